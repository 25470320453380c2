/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of a log that are asked for many times: any client may write a log that is made of them.
 */
#ifndef LIST_FORMAT_NAME_SET_H
#define LIST_FORMAT_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "list/format/name.h"

/* Zeroed, it is empty. */
struct name_set {
    struct name *names;
    size_t count, cap;
    bool is_sorted;
};

void name_set_add(struct name_set *set, const struct name *name);
/* Takes time in proportion to the logarithm of the count; the first one behind an addition sorts.
 */
bool name_set_has(struct name_set *set, const struct name *name);
void name_set_fini(struct name_set *set);

#endif
