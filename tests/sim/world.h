/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator's world: clients and faults around the proxies and servers of tests/world, and what
 * is going to happen in which order. Everything follows from the seed.
 *
 *     client --call--> proxy (engine) --message--> [delay] --> server (store)
 *                           ^------ [delay] <------reply------------'
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "../world/proxy.h"
#include "events.h"
#include "foreign.h"
#include "nodes.h"
#include "oracle.h"
#include "outside.h"
#include "params.h"

#define DAY_S (60 * 60 * 24)

struct connection {
    struct rng rng;   /* its delays */
    bool far;         /* they are long */
    uint64_t held_us; /* when the last of those arrives that a stalled server has kept waiting */
    bool up;
    bool broken; /* the proxy has not noticed yet */
    bool waits;  /* until the next one is up, what is not sent; else it is refused meanwhile */
    uint64_t last_arrival_us, last_reply_us;
};

/* A request on its way, and its reply on the way back, with what the checks need to know. */
struct message {
    struct flight flight;
    unsigned holds; /* planned events and the proxy that waits */
    struct sim_proxy *proxy;
    uint64_t incarnation;
    bool dropped;   /* will not reach the server */
    bool was_held;  /* by a stalled server */
    bool connected; /* went out over the connection */
    bool waits;     /* for the next connection */
    struct purpose purpose;
    int list;       /* -1: not about a list */
    int moved_list; /* is_own: which one it is about; -1: none that the oracle knows */
    struct message *next_asked;
    unsigned end_count; /* message_before's */
    int64_t ends_s[ITEM_ENDS_MAX + 1];
    bool was_absent; /* the head said that the list is missing */
    uint64_t sent;   /* foreign_sent's: the moment, and */
    bool may_write;  /* it may write to what is foreign, if it does so blindly */

    /* Of worlds of nodes. */
    TAILQ_ENTRY(message) queued;
    unsigned vbucket, attempts;
    uint64_t first_us, order;
    bool refused;   /* for now: it was not done */
    bool is_served; /* what its node had to wait for is over */
    bool is_ended;  /* the pool sends it no more */
};

struct client {
    struct sim_proxy *proxy;
    struct list_session session;
    struct rng rng; /* what it asks, and when */
    struct rng joint_rng, tx_rng;
    unsigned number; /* over all proxies */
    unsigned pending;
    bool waits; /* for an answer, before it asks more */
    bool alone; /* the call that it asks next, or has asked, is alone */
    enum list_verb alone_verb;
    uint64_t tokens[LISTS_MAX]; /* of its last leases, also when they are over */
};

struct sim_proxy {
    struct proxy base;
    struct sim_world *world;
    unsigned number;
    struct config *config;
    unsigned reloads;      /* how often it has read another configuration */
    struct rng reload_rng; /* when it does */
    uint64_t life;         /* counts starts */
    uint64_t paused_until_us;
    struct alarm alarm; /* when its engine is to run again */
    unsigned unsettled; /* calls that ended at their deadlines, and may still be carried out */
    uint64_t last_arrival_us; /* of what it has sent, over all connections */
    bool pause_due;           /* with the next write of a compaction */
    struct connection connections[SERVERS_MAX];
    struct client clients[CLIENTS_MAX];
    struct hold holds[SERVERS_MAX][STORE_VBUCKETS];
    struct message *asked;         /* if lists move: what the engine waits for, as it was then */
    TAILQ_HEAD(, waiting) waiting; /* writes that the engine holds until it knows the time */
};

/* A client without a proxy: hand.c. */
struct hand {
    struct sim_world *world;
    unsigned number;
    struct rng rng;
    struct sim_call *call;
    unsigned step, tries;
    uint64_t found; /* which log or sublist is the one to append to, or the number that it has */
    struct block *value; /* what it has read */
    uint64_t cas, incarnation;
};

struct nodes {
    struct rng rng;
    struct services services;
    uint64_t order;                                 /* of requests */
    uint64_t moved_us[SERVERS_MAX][STORE_VBUCKETS]; /* until when they are refused */
};

/* flip, marker: a second in which a log of the list was to expire. */
struct log_end {
    int list;
    int64_t end_s;
};

struct sim_world {
    struct world base;
    struct params p;
    struct rng rng;
    struct events events;
    uint64_t stalled_until_us[SERVERS_MAX];
    int64_t clock_offsets_us[SERVERS_MAX]; /* the servers' clocks, against the world's */
    int64_t clocks_s[SERVERS_MAX];         /* what they show */
    struct sim_proxy proxies[PROXIES_MAX];
    struct oracle oracle;
    struct format format; /* of dialects */
    struct hand hands[HANDS_MAX];
    struct foreign_world foreign;
    struct nodes nodes;
    struct log_end *log_ends; /* each once */
    size_t log_end_count, log_end_cap;
    uint64_t foreign_refused;         /* calls */
    uint16_t entries_made[LISTS_MAX]; /* of rings: each has an item of its own */
    uint64_t faults_made;
    uint64_t calls_made; /* with those that were left out */
    uint64_t calls_pending, last_answer_us;
    uint64_t statuses[LIST_SERVER_ERROR + 1], abandoned;
    bool quiet;        /* no more calls and faults */
    uint64_t quiet_us; /* since when */
    struct sim_call *all_calls;
    struct sim_call *unsettled_calls; /* with some that have been settled meanwhile */
    struct metrics metrics;           /* of crashed engines, added up */
};

/* The world's time as that proxy's clocks have it. */
static inline struct now sim_now(const struct sim_proxy *p)
{
    return proxy_now(&p->world->base, &p->base);
}

/* Items of lists get lost, with or without a reason that a proxy could know. */
static inline bool sim_loses(const struct sim_world *w)
{
    return w->p.faults[FAULT_EVICTION] + w->p.faults[FAULT_EXPIRY] + w->p.faults[FAULT_RESTART] > 0;
}

/* Runs one seed to its quiet end; does not return when a rule is broken. */
void sim_run(const struct params *params);
/* Where runs add up what they did, in whatever process; NULL: they are not added up. */
struct sim_totals {
    uint64_t calls, faults;
    uint64_t checked; /* answers held against the model */
    uint64_t histories, undecided;
    uint64_t came_back;          /* deleted items that were seen again, where that may happen */
    uint64_t committed, aborted; /* transactions */
    uint64_t indexed;            /* reads that were answered by an index */
    uint64_t recent;             /* without a request */
    uint64_t refused;            /* calls that met a foreign value */
    const char *rule; /* that was broken last, as a text that stands once in the program */
};
extern struct sim_totals *sim_totals; /* by dialect */
/* rule: that the run has broken; NULL: none. */
void sim_report(const char *rule);

/* The next event; false when there is none. */
bool sim_step(struct sim_world *w);
/* On until all calls are answered and all engines idle. when: for the message if that takes too
 * long. */
void sim_rest(struct sim_world *w, const char *when);
/* finish.c: that time goes by. */
void sim_let_pass(struct sim_world *w, uint64_t us);

/* faults.c: one fault now, and the next one planned. */
void fault_happen(struct sim_world *w);
/* Everything that is stored moves to disk. */
void fault_disk_fills(struct sim_world *w);
/* What many proxies have sent to a server that stood still arrives at once, and fills the list's
 * head: each has left room for its own changes alone. False: there is no native head, or it took
 * nothing. */
bool fault_head_fills(struct sim_world *w, unsigned list);

/* hand.c */
void hands_start(struct sim_world *w);
void hands_fini(struct sim_world *w);
void hand_act(struct hand *hand);

/* record.c: holds all calls and answers against a plain list, without a look inside. */
void sim_check_history(const struct sim_world *w);
/* Longer histories may take minutes. */
#define HISTORY_CALLS_MAX 5000
/* It costs about as much as the run itself, so not each is checked. With on_damaged = miss a list
 * that is damaged reads as missing and may be there again when the sublist is, as no list would. */
static inline bool sim_history_matters(const struct sim_world *w)
{
    return w->p.history && w->p.ops <= HISTORY_CALLS_MAX && !(sim_loses(w) && w->p.miss_damaged);
}

/* finish.c: checks what is left when all is quiet. */
void sim_finish(struct sim_world *w);

/* The proxy's file says this of caps, since so many starts. */
void sim_set_cap(const struct sim_world *w, struct list_policy *policy, unsigned proxy,
                 uint64_t life);

/* proxies.c */
void sim_proxy_start(struct sim_proxy *proxy);
void sim_proxy_crash(struct sim_proxy *proxy);

/* lives.c: a head was changed. */
void lives_check(struct sim_world *w, const struct message *m);
/* The same of what takes a list to another server: its time goes with it. */
void lives_check_moved(struct sim_world *w, const struct message *m);
/* An EXPTIME, as clients of that world like them. */
int64_t lives_choose(struct sim_world *w, struct rng *rng);
/* A client touches the item in the server itself. */
void lives_touch(struct sim_world *w, unsigned server, struct slice key);

void sim_proxy_pause(struct sim_proxy *proxy);
/* Lets the engine run and carries out what it wants. */
void sim_proxy_turn(struct sim_proxy *proxy);
/* Has that done at that moment. */
void proxy_wake_at(struct sim_proxy *proxy, uint64_t at_us);
void sim_proxy_submit(struct sim_proxy *proxy, struct sim_call *call);
void sim_add_call(struct sim_world *w, struct sim_call *call);
void message_send(struct sim_world *w, struct message *m);
/* The server carries it out. */
void message_execute(struct sim_world *w, struct message *m);
void message_arrive(struct sim_world *w, struct message *m);
/* A server takes what the proxy has sent, or is done with it, only then. */
void sim_arrives_late(struct sim_proxy *proxy, uint64_t at_us);
void message_deliver(struct sim_world *w, struct message *m);
/* Before the request is executed: in which seconds its item was to expire since it was written
 * last. More than one when a client has touched it since: a touch in the moment of a rewriting may
 * be undone. */
void message_before(struct sim_world *w, struct message *m);
/* Tells the oracle what a request has changed. */
void message_executed(struct sim_world *w, struct message *m);
/* What the proxy has begun is over: so are the calls that ended before. */
void sim_proxy_settle(struct sim_proxy *proxy);
/* The connection is gone; some of what is on its way still arrives when may_arrive. */
void connection_break(struct sim_proxy *proxy, unsigned server, bool may_arrive);
void connection_lost(struct sim_proxy *proxy, unsigned server);
/* Its next one is up only then. */
void connection_late(struct sim_proxy *proxy, unsigned server, uint64_t at_us);
void connection_up(struct sim_proxy *proxy, unsigned server);

/* purpose.c: of a request that is sent now. */
void purpose_find(struct sim_world *w, struct message *m, const struct list_request *r);
/* Notes what the engine keeps waiting; before calls can end at their deadlines. */
void purposes_note(struct sim_proxy *proxy);
/* Frees what is noted of an engine that is gone. */
void sim_proxy_forget(struct sim_proxy *proxy);

/* clients.c */
void client_think(struct client *client);
/* It thinks again in a while. */
void client_plan(struct client *client);
struct sim_call *call_create(struct sim_world *w, struct client *client, enum list_verb verb,
                             unsigned list);
/* When it must be answered, from now on. */
void call_set_deadline(struct sim_world *w, struct sim_call *call);
/* The same without a proxy. */
struct sim_call *call_new(struct sim_world *w, enum list_verb verb, unsigned list);
/* Gives it items. */
void call_choose_items(struct sim_world *w, struct rng *rng, struct sim_call *call);
/* A call is asked, or answered. */
void trace_call(struct sim_world *w, const struct sim_call *call);
/* The proxy has given the call back. True when its engine has to run once more. */
bool call_done(struct sim_world *w, struct sim_call *call);
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
    EVENT_PLENTY,
    EVENT_RELEASE,
    EVENT_SERVED
};

#endif
