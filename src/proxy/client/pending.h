/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request that waits for its answer. Each client has a queue of them; answers leave in the
 * queue's order.
 *
 *     client.fifo:  [get a b c]     [set d]    [lget e]    <- the next request goes to this end
 *                    | | |           |          |
 *     parts:         a b (c waits)   d          e          each is one exchange or one list call
 *
 * A part that is answered while it is the first part of the first request is emitted at once,
 * straight from where the reply lies; any other is parked until its turn. Requests of many keys
 * start their parts one after another, as far as the client's window allows. When the client goes
 * away, parts in flight live on until they are answered.
 */
#ifndef PROXY_CLIENT_PENDING_H
#define PROXY_CLIENT_PENDING_H

#include <sys/queue.h>

#include "base/block.h"
#include "base/chain.h"
#include "base/slice.h"
#include "proto/client/request_parse.h"
#include "proxy/client/window.h"
#include "proxy/core/worker.h"

struct client;
struct list_call;
struct part;
struct pending;

/* What requests are about. Where one kind changes something, a request of the other kind that is
 * sent behind it on the same connection starts when that is answered: they go to different servers,
 * or by different ways, and another client could see the second without the first. */
enum pending_kinds { ABOUT_ITEMS = 1, ABOUT_LISTS = 2, ABOUT_BOTH = ABOUT_ITEMS | ABOUT_LISTS };

/* What one family of verbs does with its requests. */
struct handler {
    enum pending_kinds kinds;
    /* Starts the next part; with the last one it sets all_started. Not called after that. */
    void (*start)(struct pending *pending);
    /* Asks for a postponed part once more. NULL where asking twice is not the same as asking once.
     */
    void (*restart)(struct part *part);
    /* Fills the part's request for another pool, in place of the one that it asked, and that gave
     * no answer. NULL: that is not done. */
    void (*redirect)(struct part *part);
    /* Appends the part's answer to out. */
    void (*emit)(struct part *part, struct chain *out);
    /* What is known of the request at its deadline, behind SERVER_ERROR: of requests that
     * deadline_watch is told of. */
    const char *(*timeout_text)(const struct pending *pending);
};

/* What is done with a part, whatever its request is. */
struct part_type {
    /* The part's answer cannot go out yet: takes references to what is only borrowed. */
    void (*park)(struct part *part);
    /* Gives back the part's memory and what it holds. It may not have been answered when the worker
     * ends. */
    void (*free)(struct part *part);
    /* The request has ended before the part's answer, which frees the part when it comes. told: the
     * client was told that the outcome is unknown. Not of WINDOW_LIST. */
    void (*abandon)(struct part *part, bool told);
};

struct part {
    TAILQ_ENTRY(part) link; /* pending.parts */
    struct pending *pending;
    const struct part_type *type;
    struct slice key; /* in pending.block */
    enum window_kind kind;
    size_t bytes;          /* memory */
    size_t expected_bytes; /* while in flight */
    size_t parked_bytes;   /* while parked */
    uint64_t order;        /* among all parts of the client */
    bool answered;
    bool postponed; /* its answer was dropped, it will be asked for again */
};
TAILQ_HEAD(part_list, part);

/* What the part asks of the engine, or NULL when it asks something else: of WINDOW_LIST, its call
 * stands behind it. */
static inline const struct list_call *part_call(const struct part *part)
{
    return part->kind == WINDOW_LIST ? (const struct list_call *)(const void *)(part + 1) : NULL;
}

enum pending_turn {
    TURN_NOW,
    TURN_BEHIND, /* it starts when all before it is answered; TURN_NOW from then on */
    TURN_ALONE   /* the same, and it holds up what follows until it is answered itself */
};

struct pending {
    TAILQ_ENTRY(pending) link; /* client.fifo */
    struct client *client;
    uint64_t read_us;           /* when it was read */
    uint64_t held_us;           /* when it was last seen to wait for its turn; 0: never */
    unsigned counted;           /* METRIC_cmd_...: as what it counts; 0: an answer of the proxy */
    TAILQ_ENTRY(pending) watch; /* worker.watched */
    uint64_t due_us;            /* 0: it is not watched */
    const struct handler *handler; /* NULL: an answer of the proxy itself */
    struct request request;        /* slices point into block */
    struct block *block;           /* holds a reference */
    /* Parts. */
    struct part_list parts; /* in flight or parked */
    struct slice rest;      /* keys whose parts are still to be started */
    size_t next;            /* how many parts were started */
    enum pending_turn turn;
    size_t weight_bytes; /* as counted in the client's window */
    size_t held_bytes;   /* the same */
    bool all_started;
    /* What stands behind the parts' answers. */
    struct slice trailer; /* static text with its line end, or nothing */
    char *failure;        /* a line without line end that replaces trailer, from malloc, or NULL */
    /* Routes of the pool whose keys are not asked for any more, a bit each; from malloc, NULL =
     * none. */
    uint8_t *unreachable;
    struct chain *text; /* longer answers of the proxy itself, from malloc, or NULL */
};

/* Where the worker's next request is parsed to; what was there before is lost. */
struct request *pending_room(struct worker *worker);
/* Puts the request at the end of the client's queue, to be counted by pending_count: it is the one
 * from pending_room, and block is where its slices point. client_pump starts its parts. Never NULL.
 */
struct pending *pending_add(struct client *client, const struct handler *handler,
                            const struct request *request, struct block *block);
/* As what a request about plain items counts. */
static inline enum proxy_metric pending_metric(const struct request *r)
{
    enum verb_shape shape = r->verb->shape;
    return shape == SHAPE_STORE                        ? METRIC_cmd_set
           : request_is_meta(r)                        ? METRIC_cmd_meta
           : shape == SHAPE_KEYS || shape == SHAPE_GAT ? METRIC_cmd_get
                                                       : METRIC_cmd_other;
}
/* It counts n times as METRIC_cmd_..., and takes its time as one of these. */
void pending_count(struct pending *pending, enum proxy_metric which, uint64_t n);
/* The request takes so many bytes more than its line and data, until it is over. */
void pending_weigh(struct pending *pending, size_t bytes);
/* Fills a new part, which takes so many bytes with what it is embedded in, and counts it in the
 * client's window. Call it from handler.start before the part is submitted. */
void part_add(struct pending *pending, struct part *part, const struct part_type *type,
              size_t bytes, struct slice key, enum window_kind kind);
/* The part's answer, bytes long, has come: it is emitted or parked, or dropped when the client is
 * gone. The part may be freed by this call. */
void part_answered(struct part *part, size_t bytes);

/* May this part's answer, which has a value, be dropped and asked for later? So it is when the
 * client has enough to read already, and has neither started a change since nor asked for that key
 * again: memory stays bounded however large the values are that were asked for in one go. */
bool part_may_wait(const struct part *part);
/* Drops the answer; the part is restarted when the client has read what it has. */
void part_postpone(struct part *part, size_t bytes);
/* Restarts the client's first postponed part; there must be one. */
void pending_restart(struct client *client);

/* Of a part that is being emitted: is no other one of its request behind it? */
static inline bool part_is_last(const struct part *part)
{
    return part->pending->all_started && TAILQ_NEXT(part, link) == NULL;
}

/* The line replaces the request's trailer; the first failure counts. */
void pending_note_failure(struct pending *pending, const char *line);
/* The same, and parts that were not started never will be. */
void pending_fail(struct pending *pending, const char *line);
/* To be called by start when the last parts were passed over instead of started: answers what is in
 * turn, which may free the request. */
void pending_settle(struct client *client);

/* From when on the request's time is counted: since it was read or, where its client has left
 * answers lying, since it has taken them. */
uint64_t pending_since_us(const struct pending *pending);
/* It has no deadline, or none any more. */
void pending_unwatch(struct pending *pending);
/* Ends the request with what is answered so far, and that line behind it; told: which says that the
 * outcome is unknown. False: it has all its answers already, and waits for its turn. */
bool pending_expire(struct pending *pending, const char *line, bool told);

/* Answers in turn with static text, or with text (which is emptied): whole lines, which a client of
 * the binary protocol gets as packets. */
void pending_answer_fixed(struct client *client, struct slice text);
void pending_answer_text(struct client *client, struct chain *text);
/* The same with what is in the client's protocol already. */
void pending_answer_packets(struct client *client, struct chain *packets);
/* Appends a line with its line end, in the client's protocol, as all that the request is answered.
 */
void pending_emit_line(const struct pending *pending, struct slice line, struct chain *out);
/* Refuses a request with that line, without line end; noreply: with none. Counts that, as a
 * SERVER_ERROR or an error of the client's. */
void pending_refuse(struct client *client, bool noreply, const char *line);

/* Frees everything that is not in flight; called when the client goes. */
void pending_drop_answered(struct client *client);
/* Frees everything, in flight or not: the worker ends and no answer will come any more. */
void pending_drop_all(struct client *client);

/* The worker keeps spare pendings, in so many bytes at most; gives them back. */
void pending_init(struct worker *worker, size_t spare_bytes);
void pending_fini(struct worker *worker);

#endif
