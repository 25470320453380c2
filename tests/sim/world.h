/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world: proxies with an engine each, clients, servers, and the connections between proxies and
 * servers, in virtual time. Everything follows from the seed.
 *
 *     client --call--> proxy (engine) --message--> [delay] --> server (store) --reply--> [delay]
 * --> proxy
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "events.h"
#include "list/cache.h"
#include "oracle.h"

#define PROXIES_MAX 8
#define CLIENTS_MAX 16 /* per proxy */

struct params {
    uint64_t seed, ops;
    bool trace;
    unsigned proxies, clients, lists, items, servers;
    uint32_t log_limit, log_hard_limit, sublist_limit;
    uint64_t item_size_max, cache_bytes;
    uint32_t grace_s, touch_interval_s;
    bool refuse, spread, miss_damaged;
    bool expiring; /* somebody gives every list an expiry time, which must stay */
    uint64_t delay_us, think_us;
    unsigned depth;    /* calls of one client under way */
    unsigned growth;   /* of 100 changes, how many only add: the larger, the longer the lists */
    uint64_t fault_us; /* about so long from one fault to the next, 0 = none */
    unsigned losses, crashes, pauses, restarts, evictions, shortages; /* how often each, relative to
                                                                         one another */
};

struct connection {
    uint64_t epoch;
    bool up;
    bool broken; /* the proxy has not noticed yet */
    uint64_t last_arrival_us, last_reply_us;
    TAILQ_HEAD(, message) outstanding;
};

/* A request on its way, and its reply on the way back. */
struct message {
    TAILQ_ENTRY(message) link;
    unsigned holds; /* planned events and the proxy that waits */
    struct proxy *proxy;
    struct be_request request;   /* a copy: it arrives even when its proxy has crashed */
    struct be_request *original; /* NULL: nobody waits for the reply */
    unsigned server;
    uint64_t incarnation;
    bool dropped;   /* will not reach the server */
    bool connected; /* went out over the connection */
    uint64_t epoch;
    struct be_reply reply;
    struct intent intent;
    int list; /* -1: not about a head */
    char step[48];
};

struct client {
    struct proxy *proxy;
    struct list_session session;
    unsigned number; /* over all proxies */
    unsigned pending;
};

struct proxy {
    struct world *world;
    unsigned number;
    struct engine *engine; /* NULL: crashed */
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    uint64_t life; /* counts starts */
    uint64_t paused_until_us, wake_us;
    struct connection connections[SERVERS_MAX];
    struct client clients[CLIENTS_MAX];
};

struct world {
    struct params p;
    struct rng rng;
    uint64_t now_us;
    struct events events;
    struct config *config;
    struct store stores[SERVERS_MAX];
    struct proxy proxies[PROXIES_MAX];
    struct oracle oracle;
    uint64_t last_epoch;
    uint64_t calls_made, calls_pending, last_answer_us;
    uint64_t statuses[5], abandoned;
    bool quiet; /* no more calls and faults */
    struct sim_call *all_calls;
    struct metrics metrics; /* of crashed engines, added up */
};

extern bool sim_trace;
void trace(const struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);

static inline struct now world_now(const struct world *w)
{
    return (struct now){w->now_us, 1700000000 + (int64_t)(w->now_us / 1000000)};
}

/* Runs one seed to its quiet end; does not return when a rule is broken. */
void world_run(const struct params *params);

/* proxies.c */
void proxy_start(struct proxy *proxy);
void proxy_crash(struct proxy *proxy);
/* Lets the engine run and carries out what it wants. */
void proxy_turn(struct proxy *proxy);
void proxy_submit(struct proxy *proxy, struct sim_call *call);
void message_arrive(struct world *w, struct message *m);
void message_deliver(struct world *w, struct message *m);
/* The connection is gone; some of what is on its way still arrives when may_arrive. */
void connection_break(struct proxy *proxy, unsigned server, bool may_arrive);
void connection_lost(struct proxy *proxy, unsigned server);
void connection_up(struct proxy *proxy, unsigned server);

/* clients.c */
void client_think(struct client *client);
struct sim_call *call_create(struct world *w, struct client *client, enum list_verb verb,
                             unsigned list);
void call_done(struct world *w, struct sim_call *call);

enum {
    EVENT_ARRIVE,
    EVENT_DELIVER,
    EVENT_WAKE,
    EVENT_CLIENT,
    EVENT_FAULT,
    EVENT_LOST,
    EVENT_UP,
    EVENT_BOOT,
    EVENT_PLENTY
};

#endif
