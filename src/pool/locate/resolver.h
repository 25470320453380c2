/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the names of servers mean: one address each, the same for all workers of the process. A
 * thread of its own looks them up, all at the same time: /etc/hosts first, then DNS as
 * /etc/resolv.conf says, or from the DNS servers of `resolver`.
 *
 * A name keeps its address as long as that is among the answers; else the rule of
 * pool/locate/address.h chooses. A look-up that fails, or finds no address at all, changes nothing.
 * Names are looked up at the start, every resolve_interval_s, and whenever a worker is about to
 * connect.
 *
 *     worker                          the resolver's thread
 *     resolver_ask  --- wanted --->   looks up, decides
 *                   <-- watch fds --  one write for each decision
 */
#ifndef POOL_LOCATE_RESOLVER_H
#define POOL_LOCATE_RESOLVER_H

#include <stdint.h>

#include "config/config.h"
#include "pool/locate/address.h"

struct resolver;
struct resolver_name;
struct resolver_srv;
struct srv_records;

/* Collects the names of all pools' servers and starts to look them up; without any, nothing runs.
 * config must live as long. Signals must be blocked where threads are to have them blocked. Returns
 * NULL with a text in error when the system refuses a thread or a descriptor. */
struct resolver *resolver_create(const struct config *config, char error[CONFIG_ERROR_MAX]);
/* Pools and workers that used it must be gone. */
void resolver_destroy(struct resolver **resolver);

/* The name of a server, valid until resolver_release; NULL when there is nothing to look up: an
 * address, the path of a unix socket, localhost. Names that the file does not have may be asked for
 * where it has a pool of type couchbase. resolver may be NULL: then no name is known. Thread-safe.
 */
struct resolver_name *resolver_find(struct resolver *resolver, const struct endpoint *endpoint);
/* The server is gone. A name without any, that the file does not have, is forgotten. */
void resolver_release(struct resolver_name *name);

enum resolver_answer {
    RESOLVER_WAIT,    /* it is being looked up: a watch fd will tell */
    RESOLVER_KNOWN,   /* *out is what to connect to */
    RESOLVER_UNKNOWN, /* no look-up has found an address so far, and the last one failed */
};
/* What does the name mean now? To be asked before each attempt to connect: what was found out
 * longer ago than a second is looked up again first, unless DNS was failing lately. version changes
 * with each change of the address. Thread-safe. */
enum resolver_answer resolver_ask(struct resolver_name *name, struct location *out,
                                  uint64_t *version);
/* The same without looking anything up. */
enum resolver_answer resolver_peek(struct resolver_name *name, struct location *out,
                                   uint64_t *version);

/* The SRV records of a server of the file that is by_srv, valid as long as the resolver; NULL where
 * there are none to look up: of an address, of localhost, or without a resolver. Thread-safe. */
struct resolver_srv *resolver_find_srv(struct resolver *resolver,
                                       const struct server_config *server);
/* Which servers do they name? KNOWN: *out is what was told last, none where the name has no such
 * records. What was told longer ago than a second is looked up again: a watch fd will tell.
 * UNKNOWN: no look-up has ended well so far. Thread-safe. */
enum resolver_answer resolver_ask_srv(struct resolver_srv *srv, struct srv_records *out);

/* From now on each decision about any name adds 1 to that eventfd, which stays the caller's.
 * Thread-safe. */
void resolver_watch(struct resolver *resolver, int fd);
void resolver_unwatch(struct resolver *resolver, int fd);

#endif
