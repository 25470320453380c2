/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session: the calls of one client connection. They keep their order on each list, and the whole
 * lists that they read are started only as the client takes the answers:
 *
 *     under way (charged)  +  given and not taken yet (unread)  +  the next one  <=  limit
 *
 * A read that would exceed this is deferred, and with it what the session asks of that list
 * afterwards, until there is room or until it is the answer that the client waits for first: a
 * larger one goes alone. So memory does not grow with the number of large lists that are asked for
 * in one go.
 */
#ifndef LIST_CORE_SESSION_H
#define LIST_CORE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct head;
struct list_call;

/* Zero-initialised; owned by the submitter for as long as it has calls. */
struct list_session {
    /* The submitter's; engine_session_changed when they changed and session_has_deferred. */
    uint64_t limit_bytes;          /* of answers; 0: none */
    uint64_t unread_bytes;         /* of answers that were given and are still in memory */
    const struct list_call *first; /* is started whatever is unread, or NULL */
    bool gone; /* the client will not take the answers: deferred calls, and one that reads several
                  lists, end in errors */

    /* The engine's. */
    uint64_t mark;
    uint64_t phase;
    struct list_call *newest_due; /* of the calls that have a deadline, or NULL */
    uint64_t charged_bytes;
    LIST_HEAD(, list_call) charged;   /* the calls that these are of */
    struct list_call *joint;          /* reads several lists, and has been started; or NULL */
    TAILQ_HEAD(, list_call) deferred; /* about in the order in which they came */
};

static inline bool session_has_deferred(const struct list_session *session)
{
    return !TAILQ_EMPTY(&session->deferred);
}

/* ---- the engine's ---- */

/* What a read's answer has at most, given what the list has, in runs and log. */
struct list_extent {
    uint64_t bytes; /* as stored */
    uint64_t items;
};
struct list_extent session_extent(const struct head *head);

/* May the call be started on a list of that extent? Calls with short answers always may. When it
 * may, its answer is charged, in place of what was charged for it before. */
bool session_admit(struct list_call *call, struct list_extent extent);
/* The call holds so many bytes now, in place of what was charged for it before. */
void session_charge(struct list_call *call, uint64_t bytes);
/* Would a deferred call be admitted, as far as known? */
bool session_has_room(const struct list_call *call);
/* The answer is the submitter's. */
void session_discharge(struct list_call *call);
/* The call waits for session_admit; a second time is the same as once. */
void session_defer(struct list_call *call);
void session_release(struct list_call *call);

#endif
