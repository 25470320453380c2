/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's request, parsed in place. A pure function over bytes: give it what has arrived, it
 * says whether a whole request stands at the front. It never forwards doubt: what memcached would
 * refuse is refused here with memcached's words, so that backends only ever see well-formed
 * requests and stay in step.
 */
#ifndef PROTO_CLIENT_REQUEST_PARSE_H
#define PROTO_CLIENT_REQUEST_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "proto/client/verb.h"

struct request_limits {
    /* Without the line end, for lines that memcached itself would not limit. */
    size_t max_line_bytes;
    /* Of a data block; memcached answers "SERVER_ERROR object too large for cache". */
    size_t max_value_bytes;
    /* Nothing came before on this connection: other protocols are known by their first bytes. */
    bool is_first;
    /* Of the binary protocol: the client has to log in, or ask for the version, before all else. */
    bool before_login;
};

/* Protocols of clients that have come to the wrong port. */
enum stranger { STRANGER_NONE, STRANGER_TLS, STRANGER_HTTP, STRANGER_REDIS };
/* What only a request of the binary protocol says (binary_request.h). */
struct binary_call {
    uint32_t opaque; /* the answer repeats it */
    uint8_t opcode;
    bool is_quiet; /* what is usual is not answered */
    bool odd_key;  /* the key has bytes that no text client could say, and is no list's; args are
                      empty */
    bool creates;  /* SHAPE_ARITH: a missing number begins with initial, and with exptime */
    uint64_t initial;
};

struct request {
    const struct verb_info *verb;
    struct slice line; /* from the verb to the last byte that is no blank: without the line end and
                          the blanks around, since memcacheds differ in which blanks they take */
    struct slice key;  /* the (first) key as sent; for base64 metas still encoded */
    struct slice second; /* SHAPE_LIST_PAIR, SHAPE_LIST_MOVE, SHAPE_LIST_MOVE_ENDS: the second key;
                            SHAPE_LIST_PAGE: the item */
    struct slice args;   /* what follows the key (SHAPE_KEYS, SHAPE_GAT, SHAPE_LIST_KEYS,
                            SHAPE_LIST_LISTS: from the   first key on): walk it with token_next;
                            SHAPE_META_SET: BYTES, then the   flags; SHAPE_PLAIN: what follows the
                            verb
                          */
    size_t arg_count;    /* tokens in args; not counted for items of a list */
    uint32_t flags;      /* SHAPE_STORE */
    int64_t exptime; /* SHAPE_STORE, SHAPE_GAT, SHAPE_TOUCH, SHAPE_LIST_EXPTIME; with two words in
                        args or more SHAPE_LIST_BLOCK, SHAPE_LIST_LINES, SHAPE_LIST_PAIR */
    bool is_usual;   /* SHAPE_STORE, SHAPE_TOUCH: each memcached reads its numbers alike */
    uint64_t cas;   /* cas; of the binary protocol also append, prepend, delete, incr, decr: 0 = any
                     */
    uint64_t delta; /* SHAPE_ARITH */
    uint64_t token; /* SHAPE_LIST_BLOCK, SHAPE_LIST_LINES, with three words in args */
    bool only_new;  /* the same, SHAPE_LIST_PAIR: only if the list is missing. arg_count does not
                       count that word */
    int64_t from, to;    /* SHAPE_LIST_RANGE */
    int64_t seconds;     /* SHAPE_LIST_LEASE, SHAPE_LIST_TIMED, SHAPE_LIST_TIMED_DATA */
    int64_t count;       /* SHAPE_LIST_COUNT, SHAPE_LIST_PAGE, SHAPE_LIST_MOVE_ENDS */
    bool noreply;        /* classic noreply */
    bool quiet;          /* meta flag q */
    bool base64;         /* meta flag b: key is encoded */
    uint64_t meta_flags; /* SHAPE_META, SHAPE_META_SET: their letters, see letter_bit */
    struct slice opaque; /* the same: what follows flag O, which the answer repeats; or empty */
    bool has_data;
    struct slice data;         /* the data block without its line end */
    struct slice data_crlf;    /* the same with its line end, as to be forwarded ("\r\n" always) */
    struct binary_call binary; /* of clients that speak it; else not set */
};

enum parse_status {
    PARSE_MORE,  /* not a whole request yet: need says for how many bytes in all to wait; 0 when the
                    line is not whole, and only then may all of input be given as scanned the next
                    time */
    PARSE_OK,    /* request is filled; its slices point into the input */
    PARSE_ERROR, /* answer reply (one or more whole lines, "" = no answer: noreply), then drop
                    consumed bytes now and the next swallow bytes as they arrive (a refused data
                    block) */
    PARSE_CLOSE, /* answer reply if it is not empty, then close: memcached does so, or there is no
                    way back into step */
    PARSE_BINARY, /* the first byte is that of the binary protocol: binary_request_parse goes on */
};

struct parse_result {
    enum parse_status status;
    size_t consumed;    /* bytes of the input that are done with */
    size_t swallow;     /* PARSE_ERROR: further bytes behind the consumed ones to throw away unread;
                           they have not arrived */
    size_t need;        /* PARSE_MORE */
    struct slice reply; /* PARSE_ERROR, PARSE_CLOSE: static text with its line ends */
    enum stranger stranger; /* PARSE_CLOSE: whose protocol it is. Reply is in its words */
    bool removes; /* PARSE_ERROR: a value that is too large: memcached takes away the item that
                     it was to replace. The request's verb, key, base64 and noreply are
                     filled; reply comes behind that */
};

/* Parses the request at the front of input. scanned: bytes known to hold no newline (0 when not
 * known), so that a long line that trickles in is not searched again and again. */
struct parse_result request_parse(struct slice input, size_t scanned,
                                  const struct request_limits *limits, struct request *out);

/* Does it change the items or lists that it names, or their time to live? */
bool request_changes(const struct request *r);

/* Is it a meta command? */
static inline bool request_is_meta(const struct request *r)
{
    return r->verb->shape == SHAPE_META || r->verb->shape == SHAPE_META_SET;
}

/* Is a get one that asks for CAS numbers? */
static inline bool request_wants_cas(const struct request *r)
{
    return r->verb->verb == VERB_GETS || r->verb->verb == VERB_GATS;
}

/* Takes the next blank-separated token from *args; false when there is none. */
static inline bool token_next(struct slice *args, struct slice *token)
{
    const char *p = args->p;
    const char *end = p + args->len;
    while (p < end && *p == ' ') {
        p++;
    }
    const char *start = p;
    while (p < end && *p != ' ') {
        p++;
    }
    *token = slice_make(start, (size_t)(p - start));
    *args = slice_make(p, (size_t)(end - p));
    return p != start;
}

/* The same, for tokens that are longer than a few bytes as a rule. */
static inline bool item_next(struct slice *args, struct slice *item)
{
    const char *p = args->p;
    const char *end = p + args->len;
    while (p < end && *p == ' ') {
        p++;
    }
    const char *blank = p < end ? memchr(p, ' ', (size_t)(end - p)) : NULL;
    const char *item_end = blank != NULL ? blank : end;
    *item = slice_make(p, (size_t)(item_end - p));
    *args = slice_make(item_end, (size_t)(end - item_end));
    return p < end;
}

/* The line of error, with its line end, for a key that no list can have; empty: the key is fine. A
 * list's key has 1 to LIST_KEY_BYTES_MAX bytes, none of them a blank or a control byte. */
struct slice list_key_fault(struct slice key);
/* The same in words, without CLIENT_ERROR and line end; NULL: the key is fine. */
const char *list_key_fault_text(struct slice key);

#endif
