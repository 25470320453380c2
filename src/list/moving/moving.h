/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists whose server changes, while clients use them. It stands between a worker's list engine
 * and the servers, and takes what the engine asks for lists that move: the engine knows of one
 * server for each list, as ever, and what it asks finds the list wherever it is.
 *
 *     engine --request--> moving_submit    moving_take_request --> the servers, perhaps
 *     engine <--reply---- done             moving_reply <--------- several times
 *
 * Requests for one list are answered in the order in which they came, one after the other; those
 * for its sublists go by, to the server that the list was last seen on.
 *
 *     step     works on     a missing list is made      changes
 *     LEARN    the old one  on the old one              by CAS; follows marks
 *     MOVE     the new one  on the new one, behind a    by CAS; a head that is met on the old one
 *                           mark on the old one         is moved first
 *
 * An APPEND of the engine becomes one that names the CAS number of the head that was looked at:
 * what is appended to a mark would be answered as done, and mean nothing. A BE_CAS or BE_CAS_DELETE
 * is never answered BE_NOT_FOUND, but BE_EXISTS: one server does not say that a list is missing.
 */
#ifndef LIST_MOVING_MOVING_H
#define LIST_MOVING_MOVING_H

#include "base/rng.h"
#include "list/core/metrics.h"
#include "list/core/request.h"

struct moving;

enum moving_step { MOVING_LEARN, MOVING_MOVE };

/* The engine's request has its answer: exactly once for each, never from within moving_submit or
 * moving_take_request. reply: during the call. */
typedef void moving_done_fn(void *arg, struct list_request *request, const struct be_reply *reply);

/* For requests with pool_index old_pool whose servers by the two pools differ. room_bytes: as
 * engine_set_request_room. bytes_max: of what is kept of lists with nothing under way; the rest
 * counts in base/memory.h. Owned by the caller until moving_destroy. rng and metrics outlive it. */
struct moving *moving_create(uint32_t old_pool, uint32_t new_pool, size_t room_bytes,
                             size_t bytes_max, struct rng *rng, struct metrics *metrics,
                             moving_done_fn *done, void *arg);
/* Drops everything at once, and none of what was sent may come back. done is called with NULL for
 * requests of the engine that were not sent: those that were are whose they were sent by. */
void moving_destroy(struct moving **moving);
/* What is so from now on. wall_s: the second since 1970. */
void moving_update(struct moving *moving, enum moving_step step, int64_t wall_s);

/* Takes a request of the engine, whose pool_index is old_pool. old_is_gone: the old server of its
 * list is not asked any more, by any proxy: the list is on the new one, or nowhere. */
void moving_submit(struct moving *moving, struct list_request *request, bool old_is_gone);
/* The next request for a server, whose pool_index says which, and whose moves says moving; NULL:
 * none for now. */
struct list_request *moving_take_request(struct moving *moving);
/* The answer to one that moving_take_request gave. */
void moving_reply(struct moving *moving, struct list_request *request,
                  const struct be_reply *reply);

#endif
