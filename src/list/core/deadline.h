/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines: each call is answered by its own, whatever it waits for by then.
 *
 *     in the queue        it was not started: nothing done
 *     in an operation     the operation lets go of it (op.let_go) and says what is known; it goes
 *                         on where others need it, or where the list is to be left in order
 *
 * Calls are kept in the order of their deadlines, and one timer stands for all: it is set for the
 * earliest that was known when it was set, so most calls come and go without touching it.
 */
#ifndef LIST_CORE_DEADLINE_H
#define LIST_CORE_DEADLINE_H

#include "list/core/engine_state.h"

/* The call's time runs from now on, or on as before. */
void deadline_start(struct engine *e, struct list_call *call);
/* It does not run any more. Fine when it did not. */
void deadline_stop(struct list_call *call);
/* The whole time again, from now on. */
void deadline_renew(struct engine *e, struct list_call *call);
/* May a call's time be over? */
static inline bool deadline_is_due(const struct engine *e)
{
    return timer_is_set(&e->deadline_timer) && e->deadline_timer.at_us <= e->now.mono_us;
}
/* Why a call that was not started has waited until its deadline: the text behind SERVER_ERROR, with
 * its counter. NULL: only for the calls before it. */
typedef const char *wait_reason(const struct list *list, const struct list_call *call,
                                unsigned *metric);
/* Answers all calls whose time is over; reason explains those that were not started. Must not be
 * called from within an operation. */
void deadline_pass(struct engine *e, wait_reason *reason);
/* The same for one call that has been started, because there is no memory for it. */
void deadline_end_for_memory(struct engine *e, struct list_call *call);
/* The same, because no client takes its answer. */
void deadline_give_up(struct engine *e, struct list_call *call);

#endif
