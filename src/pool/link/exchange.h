/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked of a server, and how its answer comes back. */
#ifndef POOL_LINK_EXCHANGE_H
#define POOL_LINK_EXCHANGE_H

#include <sys/queue.h>

#include "base/block.h"
#include "base/slice.h"
#include "proto/server/backend.h"

struct server;

/*
 * One operation on one server. The submitter owns the memory and keeps it until done() is called,
 * exactly once, never from within pool_submit or pool_flush: only from the pool's own events and
 * pool_destroy. It may submit again. Line and value are copied or referenced at submission and
 * need not live on. The key of an operation must until done(), with which the answer is compared,
 * and so must form; in a pool of type couchbase the value, too: it may have to be sent again. Every
 * operation must draw exactly one answer: a line (BE_LINE) asks without noreply and quiet flags.
 *
 * Replies are valid only during the call that brings them; take a reference to the block to keep
 * what lies in it. They say BE_DOWN when the operation was definitely not done, no byte of it was
 * sent; BE_EXISTS also when its epoch is over; BE_LOST when it was sent, at least in part, and its
 * outcome is unknown. Then text says what happened ("backend HOST:PORT down" and the like, with the
 * server's name as the config has it), and caps are NULL if the server never answered.
 */
struct exchange {
    struct be_operation op;
    bool needs_cas;         /* BE_DOWN on a server that runs without CAS */
    bool told;              /* the submitter has said, and counted, that the outcome is unknown */
    const bool *told_there; /* or says so there; NULL: nowhere */
    /* BE_LINE_GET: each value is given to value() as it comes, whatever becomes of the rest. done()
     * has the last line, "END" or an error. NULL for all others. */
    void (*value)(struct exchange *exchange, const struct be_reply *reply);
    void (*done)(struct exchange *exchange, const struct be_reply *reply);
    void *owner; /* the submitter's */

    /* The pool's, until done(). */
    TAILQ_ENTRY(exchange) link;
    struct server *server;          /* that has it; NULL: none, it waits */
    uint64_t since_us, deadline_us; /* submission, and when it times out */
    uint64_t start, end; /* its bytes in the connection's output, see pool/link/upstream.h */
    uint8_t failure;     /* why there is no answer, see pool/link/server.h */
    bool changes;        /* a lost answer leaves the item's state unknown */
    bool is_internal;    /* the pool's own; not counted, and no limit holds for it */
    /* Of a pool of type couchbase, see pool/couchbase/cluster.h. */
    uint8_t attempts;  /* refusals so far, for reasons that pass */
    uint32_t code;     /* of the last one, or 0 */
    uint64_t first_us; /* the first submission */
    uint64_t order;    /* among all submissions */
    uint16_t turn;     /* of its key, see pool/couchbase/change_turns.h */
    bool takes_turn;   /* a durable change: it may take longer */
    bool has_turn;
};
TAILQ_HEAD(exchange_list, exchange);

/* Has the submitter said, and counted, that the outcome is unknown? */
static inline bool exchange_is_told(const struct exchange *x)
{
    return x->told || (x->told_there != NULL && *x->told_there);
}

/* Makes an exchange for a line and its answer, which is like that to another operation
 * (be_line_form), with no value to store. Field by field: the fields that other operations have are
 * not read. */
static inline void exchange_init_line(struct exchange *x, enum be_verb verb, struct slice line,
                                      enum be_verb like,
                                      void (*done)(struct exchange *, const struct be_reply *),
                                      void *owner)
{
    x->op.verb = verb;
    x->op.line = line;
    x->op.form.meta = 0;
    x->op.form.like = like;
    x->op.value = SLICE_NONE;
    x->op.block = NULL;
    x->needs_cas = x->told = false;
    x->told_there = NULL;
    x->op.epoch = 0;
    x->value = NULL;
    x->done = done;
    x->owner = owner;
}

#endif
