/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the list engine asks of a server: an operation (proto/server/backend.h), and what the engine
 * and list/moving know of it besides. Its carrier has its own part behind the operation, in the
 * same memory: an exchange of the pools begins with the operation that stands here.
 */
#ifndef LIST_CORE_REQUEST_H
#define LIST_CORE_REQUEST_H

#include <sys/queue.h>

#include "proto/server/backend.h"

/* Longest key of a request that goes where another key belongs. */
#define REQUEST_ROUTE_BYTES 16

struct expiry;
struct list;
struct moving;
struct op;

struct list_request {
    char key[KEY_BYTES_MAX + REQUEST_ROUTE_BYTES]; /* be.key lies in it, see request_set_key */
    uint8_t placement_at, placement_len;           /* what chooses the server */
    uint32_t pool_index;
    STAILQ_ENTRY(list_request) link; /* for the holder of the request */

    struct op *op;           /* NULL: a fetch's (list/core/fetch.h) */
    struct list *list;       /* whose head is read, or NULL (list/core/held_reads.h) */
    struct expiry *expiry;   /* that it belongs to, or NULL */
    uint64_t tag;            /* of the operation; the fetch; what the expiry asks for */
    uint64_t appended_bytes; /* what had been appended to the list by then */
    bool is_raw;             /* the head with all that stands in it */
    uint8_t rounds;          /* answers that were held */

    struct moving *moves; /* list/moving/moving.h has given it out, and takes the answer; or NULL */
    bool is_own;          /* and the engine has not asked for it: that has */
    bool needs_list; /* BE_APPEND to a head: BE_NOT_STORED where that says that its list is missing,
                        and no client fills it */
    /* What list/moving says besides, with the answer. */
    bool may_move;      /* the list, to another server */
    bool stays_for_now; /* and it can go there by and by */
    const char *stays;  /* BE_PROBE of a head: why the list is not on its new server, or NULL */

    struct be_operation be; /* last: its carrier's part is behind it */
};
STAILQ_HEAD(request_queue, list_request);

/* The key is the first bytes of request->key, and chooses the server and the connection. */
static inline void request_set_key(struct list_request *request, size_t len)
{
    request->be.key = slice_make(request->key, len);
    request->placement_at = 0;
    request->placement_len = (uint8_t)len;
}

/* The bytes that choose the server and the connection: the first ones of the key, or those of
 * another key, which stand behind it. */
static inline struct slice request_placement(const struct list_request *request)
{
    return slice_make(request->key + request->placement_at, request->placement_len);
}

#endif
