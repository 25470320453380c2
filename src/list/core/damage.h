/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damage: memcached has thrown a sublist out that a head still names. And heads that are no lists,
 * or lists of a newer release.
 */
#ifndef LIST_CORE_DAMAGE_H
#define LIST_CORE_DAMAGE_H

#include "list/core/op.h"

/* For an operation that has read the head again and found that it still names the missing sublist
 * (missing: the run, with the sublist's number as its count). Counts and logs the damage and writes
 * the text behind SERVER_ERROR to error. With on_damaged = miss it wishes for the list to be
 * cleared; the operation then reads the head again. */
void list_report_damage(struct engine *e, struct list *list, const struct name_range *missing,
                        char error[LIST_ERROR_MAX]);

/* For an operation that has read under the head's name what this program takes for no list. Counts
 * and logs it, and writes the text behind SERVER_ERROR to error. */
void list_report_foreign(struct engine *e, const struct list *list, const struct be_reply *reply,
                         char error[LIST_ERROR_MAX]);

#endif
