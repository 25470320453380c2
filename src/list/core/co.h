/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protothreads: an algorithm of several backend round trips, written from top to bottom. The order
 * of backend writes IS the crash-safety argument, so it must be readable.
 *
 *     CO_BEGIN(co);
 *     emit_get(...);
 *     CO_AWAIT(co, "reading head");     returns; goes on here with the next event
 *     ...
 *     CO_END(co);
 *
 * What must survive a wait lives in the operation, never in a local variable. No switch of its own
 * inside.
 */
#ifndef LIST_CORE_CO_H
#define LIST_CORE_CO_H

enum progress {
    PROGRESS_WAITING,  /* for a reply, or for somebody who calls op_make_runnable */
    PROGRESS_SLEEPING, /* until op.wake_us */
    PROGRESS_YIELD,    /* has more to do, others first */
    PROGRESS_DONE,
};

struct co {
    int resume;
    const char *waiting; /* the name of the current wait, for logs and traces */
};

#define CO_BEGIN(co) \
    switch ((co)->resume) { \
    case 0:
#define CO_PAUSE(co, name, progress) \
    do { \
        (co)->waiting = (name); \
        (co)->resume = __LINE__; \
        return (progress); \
    case __LINE__:; \
    } while (0)
#define CO_AWAIT(co, name) CO_PAUSE(co, name, PROGRESS_WAITING)
#define CO_SLEEP(op, co, name, until_us) \
    do { \
        (op)->wake_us = (until_us); \
        CO_PAUSE(co, name, PROGRESS_SLEEPING); \
    } while (0)
/* Runs an inner protothread (call: an expression of type enum progress) to its end. */
#define CO_CALL(co, call) \
    do { \
        (co)->resume = __LINE__; \
        __attribute__((fallthrough)); \
    case __LINE__:; \
        enum progress inner_progress = (call); \
        if (inner_progress != PROGRESS_DONE) { \
            return inner_progress; \
        } \
    } while (0)
#define CO_RETURN(co) \
    do { \
        (co)->resume = 0; \
        (co)->waiting = ""; \
        return PROGRESS_DONE; \
    } while (0)
#define CO_END(co) \
    } \
    CO_RETURN(co)

#endif
