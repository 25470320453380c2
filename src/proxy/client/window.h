/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a client's input may be under way at once. Five limits hold a client back:
 *
 *     count       requests (keys, for multi-gets) whose answer is not in the output yet
 *     expected    bytes that the answers in flight are expected to have
 *     worst case  items in flight: were each as large as items can be, they must still fit the hard
 *                 limit, so that no client is closed for answers that it could not read yet
 *     weight      memory of requests whose answer is not in the output yet; one larger than the
 *                 limit goes alone
 *     backlog     answers that wait: in the output to be read, or parked for their turn
 *
 * Answer sizes cannot be known beforehand, so each kind of request has an estimate: it jumps up
 * with a larger answer and comes down slowly. It starts high, so that the first burst of a
 * connection is a small one.
 */
#ifndef PROXY_CLIENT_WINDOW_H
#define PROXY_CLIENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "config/config.h"

enum window_kind {
    WINDOW_NONE,  /* answered by the proxy itself: never in flight */
    WINDOW_SHORT, /* one line */
    WINDOW_LIST,  /* a call to the list engine: see list/core/session.h */
    WINDOW_ITEM,  /* may bring an item's value */
    WINDOW_KINDS,
};

struct window {
    /* Limits. */
    size_t max_unanswered;
    size_t max_items;
    size_t soft_bytes;
    size_t max_request_bytes;
    /* What is under way. */
    size_t unanswered;     /* in flight or parked */
    size_t items;          /* of WINDOW_ITEM, in flight */
    size_t expected_bytes; /* sum over those in flight */
    size_t parked_bytes;   /* answers that wait for earlier ones */
    size_t request_bytes;  /* of requests that are not over, and their arrays of items */
    size_t held_bytes;     /* memory of these: blocks, parts and all; for pressure.h */
    size_t estimate[WINDOW_KINDS];
    bool item_seen; /* one answer has come: from now on more than four items at first */
    bool full;      /* the backlog rose above soft_bytes and has not come down to half of it yet */
};

void window_init(struct window *w, const struct config *config);
/* The limits have changed; what is under way stays. */
void window_set_limits(struct window *w, const struct config *config);

/* Counts one more in that was counted before, and whose answer was dropped; returns the bytes it is
 * expected to bring, to be given back to window_answered. */
static inline size_t window_restarted(struct window *w, enum window_kind kind)
{
    w->items += kind == WINDOW_ITEM;
    w->expected_bytes += w->estimate[kind];
    return w->estimate[kind];
}
/* The same for a new request. */
static inline size_t window_started(struct window *w, enum window_kind kind)
{
    w->unanswered++;
    return window_restarted(w, kind);
}

/* An answer of WINDOW_ITEM had so many bytes: what are others expected to have? */
void window_estimate(struct window *w, enum window_kind kind, size_t bytes);

/* The answer came and has that many bytes. It stays in unanswered until window_emitted. */
static inline void window_answered(struct window *w, enum window_kind kind, size_t expected,
                                   size_t bytes)
{
    CHECK(w->expected_bytes >= expected);
    w->expected_bytes -= expected;
    w->items -= kind == WINDOW_ITEM;
    if (kind == WINDOW_ITEM) {
        window_estimate(w, kind, bytes);
    }
}

/* The answer went to the output. */
static inline void window_emitted(struct window *w)
{
    CHECK(w->unanswered > 0);
    w->unanswered--;
}

/* Is there more to read, in the output and parked, than a client may leave unread? */
static inline bool window_backlogged(const struct window *w, size_t output_bytes)
{
    return output_bytes + w->parked_bytes > w->soft_bytes;
}

/* Has the output alone, without what is parked, come down far enough to go on? */
static inline bool window_drained(const struct window *w, size_t output_bytes)
{
    return output_bytes <= w->soft_bytes / 2;
}

/* May one more request be taken from the input, when window_open? Keys of one that was taken may be
 * started in any case. */
static inline bool window_admits(const struct window *w)
{
    return w->request_bytes < w->max_request_bytes;
}

/* May one more request be started, with that many bytes in the output? Updates full. */
static inline bool window_open(struct window *w, size_t output_bytes)
{
    if (window_backlogged(w, output_bytes)) {
        w->full = true;
    } else if (output_bytes + w->parked_bytes <= w->soft_bytes / 2) {
        w->full = false;
    }
    return !w->full && w->unanswered < w->max_unanswered && w->items < w->max_items &&
           w->expected_bytes < w->soft_bytes;
}

#endif
