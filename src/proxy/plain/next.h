/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain keys whose server changes: those of a pool with `next` that have another server there. A
 * request for one becomes a few, one behind the other's answer:
 *
 *     step    read                    change
 *     LEARN   the old one, then the   on the old one; what the new one holds is deleted behind it
 *             new one
 *     MOVE    the new one, then the   a set: deleted on the old one, stored on the new one, deleted
 *             old one, from where     on the old one again; others: the value is carried to the new
 *             the value is carried    one first (carry.h), and changed there
 *             to the new one
 *     MOVED   the new one             on the new one
 *
 * A delete goes to the old one, then to the new one. An add holds a lease on the new one while it
 * adds on the old one; in MOVE it looks at the old one before and behind. The CAS numbers of the
 * new one are told with a bit that those of the old one do not have (forward_part_cas), and go back
 * there.
 *
 * No value is shown that was overwritten by an acknowledged change; one may be lost:
 * docs/model/README.md, Plain keys.
 */
#ifndef PROXY_PLAIN_NEXT_H
#define PROXY_PLAIN_NEXT_H

#include "proxy/plain/forward_part.h"

/* Has the key another server in the pool that its route's pool moves to? Not an item of a list:
 * these move with it; nor one of the proxies' own. */
bool next_changes_server(const struct worker *worker, const struct route_config *route,
                         struct slice key);
static inline bool next_has(const struct worker *w, const struct route_config *route,
                            struct slice key)
{
    return UNLIKELY(route->moves) && next_changes_server(w, route, key);
}
/* The same of a request with one key. */
bool next_changes_server_of(const struct worker *worker, const struct request *request);
static inline bool next_has_request(const struct worker *w, const struct request *r)
{
    return UNLIKELY(w->config->has_moves) && next_changes_server_of(w, r);
}
/* Is it to be passed on as the line that it is? It has one key, which moves. */
static inline bool next_takes_line(const struct request *r)
{
    return r->verb->verb == VERB_MG || r->verb->verb == VERB_ME;
}
/* The request, which was just added, waits until all before it are answered, and what follows waits
 * for it, if it changes a key that moves. */
void next_take_turn(struct pending *pending);

/* Submits what the part's own exchange says, and all that goes with it; of that key and route, of
 * which next_has says true. A line is filled anew by handler.redirect. */
void next_submit(struct forward_part *part, const struct route_config *route, struct slice key);
/* Is the exchange one of a request that was submitted so, and is not answered yet? */
bool next_is_busy(const struct exchange *exchange);

#endif
