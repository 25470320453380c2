/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over a list's queue, in the order in which calls came: which of them start now. Only
 * each session's own order must be kept; per session the pass notes how far its earlier calls are.
 * What can start is for each kind of lists to say (schedule.c, dialect/shared/schedule.c).
 */
#ifndef LIST_CORE_PASS_H
#define LIST_CORE_PASS_H

#include "list/core/engine_state.h"

enum phase {
    PHASE_FREE,     /* nothing of this session is under way on this list */
    PHASE_CHANGED,  /* it has a change in what is being made */
    PHASE_LOOKING,  /* it has an lhas in that: changes may follow in turns */
    PHASE_READING,  /* it has another read in that: only reads may follow */
    PHASE_BLOCKED,  /* an earlier call must end first */
    PHASE_DEFERRED, /* an earlier call waits for the client to take answers, and so does this one */
};

struct pass {
    struct engine *e;
    struct list *list;
    /* Starts the call, or returns false: it stays in the queue. */
    bool (*take)(struct pass *pass, struct list_call *call);
};

/* Notes what is under way. */
void pass_begin(struct pass *pass);
/* Offers each waiting call to take, but for reads whose client is gone. */
void pass_queue(struct pass *pass);

static inline enum phase pass_phase(const struct pass *pass, const struct list_call *call)
{
    return call->session->mark == pass->e->session_mark ? (enum phase)call->session->phase
                                                        : PHASE_FREE;
}

static inline void pass_set_phase(const struct pass *pass, struct list_call *call, enum phase phase)
{
    call->session->mark = pass->e->session_mark;
    call->session->phase = phase;
}

/* The call leaves the queue. */
void pass_activate(const struct pass *pass, struct list_call *call);
/* A read whose answer there is no room for: see session.h. */
void pass_defer(const struct pass *pass, struct list_call *call);
/* Reads that were started before their list's extent was known: puts those whose answers are too
 * large for now back into the queue, where they came from. */
void pass_defer_large(struct engine *e, struct list *list, struct call_queue *reads);

#endif
