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
 * An operation may be written as several of them. CO_CALL runs an inner one to its end: it pushes a
 * frame for it, so that each protothread has its own place to go on from, and takes the frame off
 * at the end. All share one struct co, the operation's.
 *
 * What must survive a wait lives in the operation, never in a local variable. No switch of its own
 * inside. An inner protothread is called by CO_CALL only, or as the very last thing by a function
 * that is no protothread itself.
 */
#ifndef LIST_CORE_CO_H
#define LIST_CORE_CO_H

#include <stdint.h>

#include "base/check.h"

enum progress {
    PROGRESS_WAITING,  /* for a reply, or see op_check_quiet */
    PROGRESS_SLEEPING, /* until op.wake_us */
    PROGRESS_YIELD,    /* has more to do, others first */
    PROGRESS_DONE,
};

/* Protothreads that call each other. The deepest there are, conversions of lists, need 8. */
#define CO_DEPTH_MAX 11

struct co {
    const char *waiting;           /* the name of the innermost wait, for logs and traces */
    uint8_t depth;                 /* the frame of the protothread that runs; 0 between steps */
    uint16_t frames[CO_DEPTH_MAX]; /* the line where each goes on; 0: at its beginning */
};

#define CO_FRAME(co) ((co)->frames[(co)->depth])

#define CO_BEGIN(co) \
    switch (CO_FRAME(co)) { \
    case 0:
#define CO_PAUSE(co, name, progress) \
    do { \
        (co)->waiting = (name); \
        CO_FRAME(co) = __LINE__; \
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
        CHECK((co)->depth + 1 < CO_DEPTH_MAX); \
        CO_FRAME(co) = __LINE__; \
        (co)->frames[(co)->depth + 1] = 0; \
        __attribute__((fallthrough)); \
    case __LINE__:; \
        (co)->depth++; \
        enum progress inner_progress = (call); \
        (co)->depth--; \
        if (inner_progress != PROGRESS_DONE) { \
            return inner_progress; \
        } \
    } while (0)
#define CO_RETURN(co) return PROGRESS_DONE
#define CO_END(co) \
    } \
    CO_RETURN(co)

#endif
