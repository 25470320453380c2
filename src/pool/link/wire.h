/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a kind of server is spoken to: one table per kind. Connections (pool/link/upstream.h) move
 * bytes, keep the order and the deadlines; what the bytes say is known here only. Pure functions:
 * they open nothing, read no clock and keep nothing between calls but struct handshake.
 */
#ifndef POOL_LINK_WIRE_H
#define POOL_LINK_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "pool/link/failure.h"
#include "proto/server/backend.h"
#include "proto/server/scram.h"

/* Room for the longest text about a server that is refused. */
#define HANDSHAKE_ERROR_MAX 160
/* Room for what one step of a handshake sends. A new socket takes it in one piece. */
#define HANDSHAKE_SEND_MAX 1024
/* Room for what stands in front of the longest key and behind it, without a value. */
#define WIRE_FRONT_MAX ((size_t)576)
/* Room for the longest text of an answer. */
#define WIRE_TEXT_MAX ((size_t)512)

/* As whom the proxy logs in, where a kind of server wants that. */
struct wire_login {
    struct slice bucket; /* 1 to 100 bytes */
    bool by_certificate; /* TLS has told who this is: no user and no password */
    struct slice user;   /* 1 to SCRAM_USER_MAX bytes */
    struct slice password;
    struct slice collection;   /* "SCOPE.COLLECTION", up to 503 bytes; empty: the default one */
    bool plain;                /* the password itself may be sent, where SCRAM does not do */
    bool durable;              /* changes ask for durability: a node must have it */
    struct scram_cache *cache; /* of all connections with this login */
};

/* What a server says of itself at connect. Zero-initialise for each connection. */
struct handshake {
    bool probe;            /* set by the caller: the server must answer a request as well, since it
                              may answer the handshake and nothing else */
    const char *waits_for; /* set by the wire: what has not come yet, for the text of a timeout */
    const struct wire_login *login;    /* set by the caller; NULL for memcached */
    char nonce[SCRAM_NONCE_BYTES + 1]; /* set by the caller with login: random letters and digits */
    unsigned step;                     /* the wire's */
    bool has_plain;                    /* the wire's: the server would take the password itself */
    bool logs_in; /* set by the wire: a login has begun, and was not accepted yet */
    enum handshake_durability {
        DURABILITY_NOT_TOLD,
        DURABILITY_LACKS,
        DURABILITY_HAS,
    } durability;     /* does the server have durable changes? */
    bool tells_newer; /* set by the wire: BE_MAP may say which map is known */
    /* What it says of the login's collection, where that is not the default one. */
    enum handshake_collection {
        COLLECTION_NOT_TOLD,
        COLLECTION_IS_THERE,
        COLLECTION_IS_MISSING,
        COLLECTION_LACKS_SCOPE,
    } collection;
    uint32_t collection_id;
    uint64_t manifest;         /* a newer one has a larger number; 0 = not told */
    struct scram scram;        /* the wire's */
    char version[32];          /* as the server gives it */
    const struct wire *speaks; /* set by the wire: how the connection goes on; NULL: as it began */
    /* The defaults of the kind where the server does not tell. */
    uint64_t item_size_max; /* bytes; 0 = not told */
    bool cas_disabled;
    bool flush_disabled;
    bool evictions_disabled;
    bool takes_few; /* requests of a connection, before it turns to the next: memcached's default */
};

enum handshake_result {
    HANDSHAKE_MORE,
    HANDSHAKE_DONE,
    HANDSHAKE_REFUSED, /* the server is of no use; the reason, a phrase that goes on after
                          "backend NAME: ", is in error */
};

/* One step of a handshake. */
struct handshake_step {
    struct slice in;  /* the bytes that have arrived; the step takes what it has read off them */
    size_t need;      /* HANDSHAKE_MORE: bytes of in without which there is nothing to do, or 0 */
    struct slice map; /* HANDSHAKE_DONE: the map of the cluster, in the bytes taken; or empty */
    size_t send_len;  /* bytes of send, to be sent now */
    char send[HANDSHAKE_SEND_MAX];
    char error[HANDSHAKE_ERROR_MAX];
};

enum wire_result {
    WIRE_MORE,    /* the answer is not all there yet */
    WIRE_PART,    /* one value of the answer; more follows */
    WIRE_ANSWER,  /* the answer, or the end of one that came in parts */
    WIRE_MISFIT,  /* an answer, but not one to this operation: requests and answers are out of step
                   */
    WIRE_GARBAGE, /* the stream cannot be followed any further */
};

/* What a server says of its map by itself. */
struct wire_news {
    size_t size; /* bytes of it; WIRE_MORE: 0 = not known yet */
    bool of_map; /* else it is of no interest */
    int64_t epoch, revision;
    struct slice map; /* or empty */
};

/* What a decoder has found. */
struct wire_answer {
    size_t size;    /* of the answer or part, bytes; WIRE_MORE: 0 = not known yet */
    bool distrust;  /* nothing that follows on this connection can be believed */
    bool stale;     /* the connection is to be replaced once what was sent is answered */
    int64_t now_s;  /* set by the caller: seconds since 1970 */
    bool no_memory; /* the server refuses the operation for want of memory */
    bool displaced; /* set where no_memory is true. The error may be meant for a later operation
                       with parts (BE_LINE_GET): this operation's answer was dropped then, if there
                       is such an operation */
    /* All but block, epoch, caps and distrust, which are the connection's to fill. Of an answer to
     * a line only status, line, has_value, value and text. */
    struct be_reply reply;
    char text[WIRE_TEXT_MAX]; /* where reply.text may live */
};

struct wire {
    const char *kind; /* what such a server is called in the log */
    const char *lack; /* what it says there of one that lacks something, or NULL */

    /* Begins the handshake, with nothing in step->in, and goes on with it as bytes arrive. Fills
     * step but for in, and what was found out in hs. */
    enum handshake_result (*handshake)(struct handshake *hs, struct handshake_step *step);

    /* Why a server cannot do the operation, so that it is not sent; else FAILURE_NONE. NULL: all of
     * them can do all. */
    enum exchange_failure (*lacks)(const struct be_operation *op);

    /* Returns the bytes in front of the operation's value, in room or in the operation's memory.
     * tail: the bytes behind the value, which live for ever. */
    struct slice (*encode)(const struct be_operation *op, char room[WIRE_FRONT_MAX],
                           struct slice *tail);

    /* Is there an answer to op at the front of the bytes? The slices of out->reply point into them.
     * server is the one that answers. The caller has set distrust, stale and no_memory to false. */
    enum wire_result (*decode)(const struct be_operation *op, struct slice bytes,
                               const struct be_caps *server, struct wire_answer *out);

    /* The first byte of what a server of the kind may say between its answers, unasked; 0: it says
     * nothing. news reads it: WIRE_MORE, WIRE_ANSWER or WIRE_GARBAGE. */
    uint8_t news_mark;
    enum wire_result (*news)(struct slice bytes, struct wire_news *out);
};

#endif
