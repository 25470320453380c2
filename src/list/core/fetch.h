/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching sublists: from the cache, or from the backend with one request for all operations that
 * want the same one. The number under way is bounded; further ones wait.
 */
#ifndef LIST_CORE_FETCH_H
#define LIST_CORE_FETCH_H

#include "list/core/op.h"

struct fetch;

#define FETCH_BUCKETS 256
/* Requests under way per worker: with sublists of 128 KB this is 8 MB in flight. */
#define FETCH_INFLIGHT_MAX 64

struct fetches {
    struct fetch *buckets[FETCH_BUCKETS];
    TAILQ_HEAD(, fetch) waiting; /* not sent yet */
    unsigned inflight;
};

void fetches_init(struct fetches *fetches);
void fetches_fini(struct engine *e);

/*
 * Returns the sublist with a reference for the caller when it is cached. Otherwise NULL: the
 * operation gets an event with that tag later, with status BE_HIT and the sublist (take a
 * reference), BE_MISS when nothing is stored there, or an error. keep: put it into the cache.
 */
struct sublist *fetch_sublist(struct engine *e, struct op *op, const struct name *name,
                              uint32_t number, bool keep, uint64_t tag);

/* Takes the reply to a request that a fetch sent (list_request.op is NULL, its tag the fetch). */
void fetch_reply(struct engine *e, const struct list_request *request,
                 const struct be_reply *reply);

#endif
