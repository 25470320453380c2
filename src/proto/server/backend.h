/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the proxy asks of the servers that store items, and what they answer. The list engine speaks
 * only this vocabulary. pool/link/wire.h turns it into bytes for each kind of server; the
 * simulator's store answers it without any.
 */
#ifndef PROTO_SERVER_BACKEND_H
#define PROTO_SERVER_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/block.h"
#include "base/slice.h"
#include "proto/key.h"

/* First those that change nothing. */
enum be_verb {
    BE_GET,     /* value, flags, CAS, remaining TTL */
    BE_SIZE,    /* only the size of the value, and CAS (mg KEY s c): BE_HIT or BE_MISS */
    BE_PROBE,   /* is it there? touches it in the server's LRU (mg KEY): BE_HIT or BE_MISS */
    BE_TIME,    /* only remaining TTL and CAS (mg KEY t c): BE_HIT or BE_MISS */
    BE_FETCH,   /* value, flags, CAS if asks_cas, no TTL: what a plain `get` needs. The engine sends
                   none. BE_ANSWERED with the server's line instead of an error */
    BE_ADD,     /* BE_STORED or BE_NOT_STORED */
    BE_REPLACE, /* BE_STORED or BE_NOT_STORED */
    BE_SET,     /* BE_STORED. One that is refused removes what it was to replace */
    BE_APPEND,  /* BE_STORED or BE_NOT_STORED; of a bucket also BE_TOO_LARGE */
    BE_PREPEND, /* the same */
    BE_INCR,    /* adds delta to a decimal number: BE_STORED with reply.number, or
                   BE_NOT_FOUND; BE_REFUSED when it is no number */
    BE_CAS,     /* BE_STORED, BE_EXISTS or BE_NOT_FOUND; only on the connection that epoch names
                 */
    BE_CAS_DELETE, /* the same; the item is gone when BE_STORED (classic cas with exptime -1) */
    BE_DELETE,     /* BE_DELETED or BE_NOT_FOUND */

    /* What plain verbs need besides. The engine sends none. */
    BE_DECR,  /* takes delta off a decimal number, never below 0; answers as BE_INCR */
    BE_TOUCH, /* another exptime: BE_STORED or BE_NOT_FOUND */
    BE_GAT,   /* BE_FETCH with another exptime */

    /* Whole requests as bytes of memcached's ASCII protocol, for servers that speak it.
     * BE_ANSWERED. The list engine sends none. */
    BE_LINE,      /* one that may change something */
    BE_LINE_READ, /* one that changes nothing */
    BE_LINE_GET,  /* a `get` or, if asks_cas, a `gets`: any number of values, each a BE_HIT whose
                     line is the key behind its "VALUE ", then the last line */
    /* What the server says of its own state: pairs of a name and a value, then BE_ANSWERED. */
    BE_STATS,
    /* Which nodes its cluster has, and which of them has which keys: BE_ANSWERED with a value. With
     * a value of its own (binary_put_version): one without bytes where there is no newer map. */
    BE_MAP,
    /* The collection that the key names, as "SCOPE.COLLECTION": BE_ANSWERED with its id as number
     * and the manifest that says so as cas. BE_REFUSED, when it is not there, has the manifest,
     * too; 0 = not told. */
    BE_COLLECTION,
};

/* True when the request carries a value to store. */
static inline bool be_has_value(enum be_verb verb)
{
    return verb >= BE_ADD && verb <= BE_CAS && verb != BE_INCR;
}

/* True when the request is done only if the item has the CAS number of the request. */
static inline bool be_is_conditional(enum be_verb verb)
{
    return verb == BE_CAS || verb == BE_CAS_DELETE;
}

/* True when the request may change an item: where its answer is lost, the item's state is unknown.
 */
static inline bool be_changes(enum be_verb verb)
{
    return verb >= BE_ADD && verb <= BE_LINE;
}

enum be_status {
    BE_HIT,
    BE_MISS,
    BE_STORED,
    BE_NOT_STORED,
    BE_EXISTS, /* also: epoch is over, the request was not sent (storage rule 5) */
    BE_NOT_FOUND,
    BE_DELETED,
    BE_ANSWERED, /* the answer to a line, whatever it says: see be_reply.line */

    /* Failures. */
    BE_NO_MEMORY, /* the server said SERVER_ERROR out of memory...: it was not done */
    BE_TOO_LARGE, /* the server said SERVER_ERROR object too large...: it was not done */
    BE_REFUSED, /* the server answered another error, see text: it was not done. A change that drew
                   a SERVER_ERROR of another kind is BE_LOST */
    BE_DOWN, /* never sent: server down, queue full or no connection in time: it was not done. See
                text */
    BE_LOST, /* sent, no answer (timeout, connection lost, garbage): the outcome is unknown. See
                text */
};

/* How many nodes of a cluster must have a change before it is answered: as Couchbase's protocol
 * numbers them. */
enum be_durability {
    BE_DURABILITY_NONE,
    BE_DURABILITY_MAJORITY,
    BE_DURABILITY_MAJORITY_PERSIST, /* and the active one on its disk */
    BE_DURABILITY_PERSIST_MAJORITY, /* on the disks of a majority */
};

/* What a server said of itself at connect. */
struct be_caps {
    uint64_t item_size_max; /* bytes; 0 = not known */
    bool evicts;            /* it makes room for what is stored */
    bool cas_enabled;
    bool rolls_back; /* a failover may take changes back that were answered and not durable */
    bool is_alone;   /* its cluster has no other node */
    const char *server_name; /* for error texts; lives as long as the pool */
};

/* What a server is asked for: all that goes over the wire. Key, line and value are the submitter's
 * memory. */
struct be_operation {
    enum be_verb verb;
    uint32_t flags;
    int32_t exptime; /* as memcached takes it: 0 never, seconds, or absolute above 30 days */
    union {
        struct slice key;
        struct slice line; /* BE_LINE and its relatives: the request line with its line end */
    };
    struct slice value;  /* what be_has_value verbs store; BE_LINE: the data block with its line end
                          */
    struct block *block; /* holds the value, or NULL: then it is copied */
    uint64_t cas;        /* BE_CAS, BE_CAS_DELETE, and with_cas */
    uint64_t epoch;      /* 0, or of the reply that brought the CAS number: only on the connection
                            of that name, else BE_EXISTS */
    uint64_t delta;      /* BE_INCR, BE_DECR */
    bool asks_cas;     /* BE_FETCH, BE_GAT, BE_LINE_GET; of changes, where the server can tell it */
    bool cas_optional; /* with asks_cas: not where the item that is there could be lost for it */

    bool durable;       /* a change that must outlive the failover of a node, whatever the pool's
                           durability says. Others may be lost by one, the latest first */
    bool time_optional; /* BE_GET: where the server does not tell times to live, without one */

    /* What only plain verbs set, of servers of a cluster or with asks_cas. */
    bool with_cas; /* BE_REPLACE, BE_APPEND, BE_PREPEND, BE_INCR, BE_DECR: BE_EXISTS unless the item
                      has cas */
    bool odd_key;  /* the key has bytes that no line can hold */
    bool creates;  /* BE_INCR, BE_DECR: a missing number begins with initial, and with exptime */
    uint64_t initial;

    /* The pool's, for servers of a cluster. */
    uint32_t opaque;               /* comes back in the answer */
    uint16_t vbucket;              /* of the key */
    uint32_t collection;           /* that the key is in, by its id; 0: the default one */
    enum be_durability durability; /* of a change */
    uint16_t durability_ms;        /* how long the server may wait for it; 0: its own default */
    bool without_time;             /* BE_GET: it is known that the server does not tell it */

    /* BE_LINE, BE_LINE_READ: what may answer it beside an error. Any other answer ends the
     * connection. The slices live as long as the request. */
    struct be_line_form {
        char meta;         /* the second letter of a meta command, or 0 */
        enum be_verb like; /* 0: the line is answered as this operation is, or, BE_LINE, by OK */
        bool key_is_base64;
        uint64_t flags;      /* of a meta command: their letters, see letter_bit */
        struct slice key;    /* what the answer names with flag k */
        struct slice opaque; /* what it repeats with flag O */
    } form;
};

/* The CAS number that a conditional operation names, where 0 would mean any: one that no item has,
 * then. Couchbase's are times in nanoseconds, memcached counts from 1; all ones is what Couchbase
 * shows of a locked document. */
static inline uint64_t be_condition(const struct be_operation *op)
{
    return op->cas != 0 ? op->cas : UINT64_MAX - 1;
}

struct be_reply {
    enum be_status status;
    uint32_t flags;
    int64_t ttl_s;      /* BE_GET, BE_TIME: seconds left, -1 = no expiry */
    uint32_t expires_s; /* the same: the second since 1970, where the server tells that, or 0 */
    bool server_down;   /* BE_DOWN: no request gets to the server now */
    bool no_times;      /* BE_GET: the server does not tell times to live; ttl_s is -1 */
    uint64_t cas;
    uint64_t epoch;      /* names the connection that gave this reply; never 0 for an answer from a
                            server */
    uint64_t size_bytes; /* BE_GET, BE_SIZE */
    uint64_t number;     /* BE_INCR, BE_DECR: what stands there now */
    uint32_t code;       /* how a server of a cluster numbers its answer (proto/server/binary.h) */
    struct slice value;  /* lives in block; both only during the call that hands over the reply */
    struct block *block; /* take a reference to keep the value */
    const struct be_caps *caps; /* of the server that answered, or NULL */
    const char *text; /* for BE_REFUSED, BE_DOWN, BE_LOST: what happened, naming the server; during
                         the call */

    /* BE_ANSWERED, during the call. */
    struct slice line; /* the answer's line without its line end; lives in block. Of an answer that
                          is passed on as it is, the line end follows, and the value with its own */
    bool has_value;    /* a "VA" or "VALUE" line: value is its data block without its line end */
    bool *distrust; /* the submitter may set it when the line cannot be the answer to its request:
                       all else that was sent on the connection is lost then, as after garbage */
};

#endif
