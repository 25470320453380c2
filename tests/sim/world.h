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
#include "foreign.h"
#include "list/core/cache.h"
#include "oracle.h"
#include "outside.h"
#include "params.h"
#include "../world/trace.h"

#define DAY_S (60 * 60 * 24)

struct connection {
    struct rng rng;   /* its delays */
    bool far;         /* they are long */
    uint64_t held_us; /* when the last of those arrives that a stalled server has kept waiting */
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
    bool was_held;  /* by a stalled server */
    bool connected; /* went out over the connection */
    uint64_t epoch;
    struct be_reply reply;
    struct intent intent;
    int list;           /* -1: not about a list */
    unsigned end_count; /* message_before's */
    int64_t ends_s[ITEM_ENDS_MAX + 1];
    const char *step; /* the wait that it ends, by name */
    uint64_t sent;    /* foreign_sent's: the moment, and */
    bool may_write;   /* it may write to what is foreign, if it does so blindly */
};

struct client {
    struct proxy *proxy;
    struct list_session session;
    struct rng rng;  /* what it asks, and when */
    unsigned number; /* over all proxies */
    unsigned pending;
    bool waits; /* for an answer, before it asks more */
};

struct proxy {
    struct world *world;
    unsigned number;
    struct config *config;
    int64_t clock_skew_s;
    struct engine *engine; /* NULL: crashed */
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    uint64_t life; /* counts starts */
    uint64_t paused_until_us;
    struct alarm alarm; /* when its engine is to run again */
    unsigned unsettled; /* calls that ended at their deadlines, and may still be carried out */
    uint64_t last_arrival_us; /* of what it has sent, over all connections */
    bool pause_due;           /* with the next write of a compaction */
    struct connection connections[SERVERS_MAX];
    struct client clients[CLIENTS_MAX];
    TAILQ_HEAD(, waiting) waiting; /* writes that the engine holds until it knows the time */
};

/* A client without a proxy: hand.c. */
struct hand {
    struct world *world;
    unsigned number;
    struct rng rng;
    struct sim_call *call;
    unsigned step, tries;
    uint64_t found; /* which log or sublist is the one to append to, or the number that it has */
    struct block *value; /* what it has read */
    uint64_t cas, incarnation;
};

struct world {
    struct params p;
    struct rng rng;
    uint64_t now_us;
    struct events events;
    struct store stores[SERVERS_MAX];
    uint64_t stalled_until_us[SERVERS_MAX];
    int64_t clock_offsets_us[SERVERS_MAX]; /* the servers' clocks, against the world's */
    int64_t clocks_s[SERVERS_MAX];         /* what they show */
    struct proxy proxies[PROXIES_MAX];
    struct oracle oracle;
    struct format format; /* of dialects */
    struct hand hands[HANDS_MAX];
    struct foreign_world foreign;
    uint64_t foreign_refused;         /* calls */
    uint16_t entries_made[LISTS_MAX]; /* of rings: each has an item of its own */
    uint64_t last_epoch, faults_made;
    uint64_t calls_made; /* with those that were left out */
    uint64_t calls_pending, last_answer_us;
    uint64_t statuses[5], abandoned;
    bool quiet;        /* no more calls and faults */
    uint64_t quiet_us; /* since when */
    struct sim_call *all_calls;
    struct metrics metrics; /* of crashed engines, added up */
};

#define START_WALL_S 1700000000

static inline struct now world_now(const struct world *w)
{
    return (struct now){w->now_us, START_WALL_S + (int64_t)(w->now_us / 1000000)};
}

/* As that proxy's clocks have it. */
static inline struct now proxy_now(const struct proxy *p)
{
    struct now now = world_now(p->world);
    now.wall_s += p->clock_skew_s;
    return now;
}

/* Items of lists get lost, with or without a reason that a proxy could know. */
static inline bool world_loses(const struct world *w)
{
    return w->p.faults[FAULT_EVICTION] + w->p.faults[FAULT_EXPIRY] + w->p.faults[FAULT_RESTART] > 0;
}

/* Runs one seed to its quiet end; does not return when a rule is broken. */
void world_run(const struct params *params);
/* Where runs add up what they did, in whatever process; NULL: nobody wants to know. */
struct sim_totals {
    uint64_t calls, faults;
    uint64_t checked; /* answers held against the model */
    uint64_t histories, undecided;
    uint64_t came_back; /* deleted items that were seen again, where that may happen */
    uint64_t refused;   /* calls that met a foreign value */
};
extern struct sim_totals *sim_totals; /* by dialect */
void world_report(void);

/* The next event; false when there is none. */
bool world_step(struct world *w);
/* On until all calls are answered and all engines idle. when: for the message if that takes too
 * long. */
void world_rest(struct world *w, const char *when);
/* finish.c: that time goes by. */
void world_let_pass(struct world *w, uint64_t us);

/* faults.c: one fault now, and the next one planned. */
void fault_happen(struct world *w);
/* Everything that is stored moves to disk. */
void fault_disk_fills(struct world *w);

/* hand.c */
void hands_start(struct world *w);
void hands_fini(struct world *w);
void hand_act(struct hand *hand);

/* record.c: holds all calls and answers against a plain list, without a look inside. */
void world_check_history(const struct world *w);
/* Longer histories may take minutes. */
#define HISTORY_CALLS_MAX 5000
/* It costs about as much as the run itself, so not each is checked. With on_damaged = miss a list
 * that is damaged reads as missing and may be there again when the sublist is, as no list would. */
static inline bool world_history_matters(const struct world *w)
{
    return w->p.history && w->p.ops <= HISTORY_CALLS_MAX && !(world_loses(w) && w->p.miss_damaged);
}

/* finish.c: checks what is left when all is quiet. */
void world_finish(struct world *w);

/* One line, with the time in front; see trace.h. */
#define trace(w, ...) \
    do { \
        if (trace_mode != TRACE_OFF) { \
            trace_line((w)->now_us, __VA_ARGS__); \
        } \
    } while (0)

/* proxies.c */
void proxy_start(struct proxy *proxy);
void proxy_crash(struct proxy *proxy);

void proxy_pause(struct proxy *proxy);
/* Lets the engine run and carries out what it wants. */
void proxy_turn(struct proxy *proxy);
/* Has that done at that moment. */
void proxy_wake_at(struct proxy *proxy, uint64_t at_us);
void proxy_submit(struct proxy *proxy, struct sim_call *call);
void message_arrive(struct world *w, struct message *m);
void message_deliver(struct world *w, struct message *m);
/* Before the request is executed: in which seconds its item was to expire since it was written
 * last. More than one when somebody has touched it since: a touch in the moment of a rewriting may
 * be undone. */
void message_before(struct world *w, struct message *m);
/* Tells the oracle what a request has changed. */
void message_executed(struct world *w, struct message *m);
/* What the proxy has begun is over: so are the calls that ended before. */
void proxy_settle(struct proxy *proxy);
/* The connection is gone; some of what is on its way still arrives when may_arrive. */
void connection_break(struct proxy *proxy, unsigned server, bool may_arrive);
void connection_lost(struct proxy *proxy, unsigned server);
void connection_up(struct proxy *proxy, unsigned server);

/* intent.c: of a request that is sent now. */
void intent_find(struct world *w, struct message *m, const struct be_request *r);
/* Notes what the engine keeps waiting; before calls can end at their deadlines. */
void intents_note(struct proxy *proxy);
/* Frees what is noted of an engine that is gone. */
void proxy_forget(struct proxy *proxy);

/* clients.c */
void client_think(struct client *client);
/* It thinks again in a while. */
void client_plan(struct client *client);
struct sim_call *call_create(struct world *w, struct client *client, enum list_verb verb,
                             unsigned list);
/* When it must be answered, from now on. */
void call_set_deadline(struct world *w, struct sim_call *call);
/* The same without a proxy. */
struct sim_call *call_new(struct world *w, enum list_verb verb, unsigned list);
/* Gives it items. */
void call_choose_items(struct world *w, struct rng *rng, struct sim_call *call);
/* A call is asked, or answered. */
void trace_call(struct world *w, const struct sim_call *call);
/* The proxy has given the call back. True when its engine has to run once more. */
bool call_done(struct world *w, struct sim_call *call);
/* An answer of so many bytes has come: the client may read what has come so far, or not yet. True
 * when reads were held for it, which may go on now. */
bool client_takes(struct client *client, uint64_t bytes);

enum {
    EVENT_ARRIVE,
    EVENT_DELIVER,
    EVENT_WAKE,
    EVENT_CLIENT,
    EVENT_FAULT,
    EVENT_LOST,
    EVENT_UP,
    EVENT_CRASH,
    EVENT_BOOT,
    EVENT_HAND,
    EVENT_FOREIGN,
    EVENT_ASKER,
    EVENT_PLENTY
};

#endif
