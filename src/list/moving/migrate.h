/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lmigrate: is the list on the server that it has in the pool to come? If not, it moves there.
 *
 * It asks for nothing but the head, by a BE_PROBE: whatever passes moving.h moves. That answers why
 * the list stays, where it does, and whether waiting helps. Then the same is asked again, until the
 * call's time is over.
 */
#ifndef LIST_MOVING_MIGRATE_H
#define LIST_MOVING_MIGRATE_H

#include "config/config.h"
#include "list/core/op.h"

/* Why lists of that policy cannot be asked to move, or NULL. */
const char *migrate_refusal(const struct config *config, const struct list_policy *policy);
/* For schedule.c: answers the call. */
void migrate_start(struct engine *e, struct list *list, struct list_call *call);

#endif
