/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which world a seed stands for: sizes, speeds and faults are mixed anew for each.
 */
#ifndef SIM_PARAMS_H
#define SIM_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "config/config.h"

#define PROXIES_MAX 40
#define CLIENTS_MAX 16 /* per proxy */
#define RANGES_MAX 256
#define CAPACITY_MAX 128 /* of a ring */
#define FOREIGN_MAX 4

/* Those of a proxy come from FAULT_LOSS on, those of a server before. */
enum fault {
    FAULT_EVICTION,
    FAULT_EXPIRY,
    FAULT_RESTART,
    FAULT_DISK,     /* an item moves to disk */
    FAULT_SHORTAGE, /* a server has no memory, or refuses, for a while */
    FAULT_FULL,     /* a head is filled to its last bytes */
    FAULT_STALL,    /* a server answers nothing for a while */
    FAULT_FAILOVER, /* a replica takes a node's place: nodes.h */
    FAULT_MOVE,     /* a vBucket of a node moves */
    FAULT_LOSS,     /* of a connection */
    FAULT_CRASH,
    FAULT_PAUSE,
    FAULT_COUNT
};

/* What servers are. */
enum couchbase {
    COUCHBASE_NOT,     /* memcacheds */
    COUCHBASE_DURABLE, /* nodes of a cluster; all changes are durable */
    COUCHBASE_BLIND    /* those that the engine says */
};

/* Numbers, as "3-10,17". */
struct ranges {
    unsigned count;
    struct {
        uint32_t from, to;
    } range[RANGES_MAX];
};

struct params {
    uint64_t seed, ops;
    unsigned proxies, clients, lists, items, servers;
    uint32_t log_limit, log_hard_limit, sublist_limit;
    uint64_t item_size_max, cache_bytes;
    uint32_t answer_limit;  /* bytes; 0 = plenty */
    uint32_t session_limit; /* bytes that a client leaves unread; 0 = plenty */
    unsigned fold_memory;   /* times what the configuration must allow at least; 0 = plenty */
    uint32_t grace_s, touch_interval_s;
    bool refuse, spread, miss_damaged;
    bool moving;       /* lists move to other servers meanwhile */
    bool dead;         /* and one of the old ones is gone for good one day */
    uint32_t expiry_s; /* a client gives every list so long to live, which must stay; 0 = no */
    unsigned txs;      /* of 100 calls, how many change several lists in one step */
    bool joints;       /* clients ask for several lists at one instant */
    bool recent;       /* order = recent; with mixed_limits for every second proxy only */
    bool purges;       /* clients ask for lpurge */
    bool leases;       /* clients ask for llease */
    bool timed;        /* clients ask for laddt */
    unsigned touches;  /* clients ask for ltouch and lttl: 1 with long times, 2 also with short ones
                        */
    uint32_t ttl_s;    /* as configured */
    unsigned max_items; /* as configured; 0: no cap */
    bool cap_refuses;
    unsigned cap_mix; /* 1: every second proxy has another cap, or none; 2: also changed by restarts
                       */
    uint32_t ttl_renew;
    uint32_t max_stale_ms; /* as configured */
    uint64_t delay_us, think_us;
    uint64_t way_us;     /* what each way takes at least */
    bool only_adds;      /* clients ask for nothing but ladd */
    bool in_turns;       /* most calls change a list and look into it in turns */
    bool no_errors;      /* each call must be answered well */
    unsigned no_times;   /* servers that tell no times to live: 1 = all, 2 = every second one */
    unsigned far_server; /* its number and 1: all its delays are long; 0 = none */
    unsigned depth;      /* calls of one client under way */
    unsigned growth;     /* of 100 changes, how many only add: the larger, the longer the lists */
    uint64_t fault_us;   /* about so long from one fault to the next, 0 = none */
    unsigned faults[FAULT_COUNT]; /* how often each, relative to one another */
    uint64_t clock_skew_s;        /* wall clocks of proxies are off by as much at most */
    bool wrong_clocks;            /* some of them by a day */
    uint64_t pause_us;            /* how long proxies pause at most */
    uint64_t deadline_us;         /* of a call; those of lcompact are as long as in the daemon */
    uint32_t long_ms;             /* of compactions; 0 = as in the daemon */
    bool history;                 /* the checker of histories sees it, too */
    bool views;                   /* decoded content is kept */
    uint32_t view_limit;          /* of such content, 0 = as in the daemon */
    uint64_t index_bytes;         /* of the indexes of lists that are larger, 0 = none */
    uint32_t index_checks;        /* bits that tell items apart there; few: wrong finds */
    bool mixed_limits;            /* proxies are configured differently */
    bool reloads;                 /* and at times read another configuration */
    enum couchbase couchbase;
    enum list_dialect dialect;
    /* Of dialects. */
    bool manual_format;      /* names and signs as the manual has them, or others */
    unsigned hands;          /* clients without a proxy */
    bool unclosed;           /* they leave out the last delimiter, as they like */
    unsigned foreign;        /* lists under whose names others put values */
    unsigned drops;          /* lset and ldrop are among the changes; 2: often */
    uint32_t compact_chance; /* as configured */
    uint32_t capacity;       /* of a ring */
    unsigned slot;           /* of a ring: which template */
    bool counter_wraps;
    bool blind;     /* tombstone, paired: changes = blind */
    bool delimited; /* sublists: sublist_text = delimited */
    bool strict;    /* deleted items must not come back, though the dialect may let them */
    /* What is left out, counted from 1: to find out what matters for a violation. */
    struct ranges without_calls, without_faults;
};

/* A seed means something else in each dialect. */
void params_of_seed(struct params *params, uint64_t seed, enum list_dialect dialect);
static inline bool params_one_item(const struct params *params)
{
    return params->dialect <= DIALECT_SIGNED;
}
/* All changes of a list are ordered: those of the native dialect, of those with one item, and of
 * pairs. */
static inline bool params_linearizable(const struct params *params)
{
    return params_one_item(params) || params->dialect == DIALECT_PAIRED;
}
/* Do lists expire during the run? */
bool lives_end(const struct params *params);
/* Has each list a time to live always, and do sublists end for that? */
bool lives_all_end(const struct params *params);
/* Leaves out what lists that move do not go with yet. */
void params_settle_moving(struct params *params);
/* What one of them is called, and where it stands; NULL behind the last. */
struct param {
    const char *name;
    size_t offset, size; /* an unsigned integer of that many bytes, or a bool */
    uint64_t min, max;
};
const struct param *param_at(size_t index);
uint64_t param_get(const struct params *params, const struct param *param);
void param_set(struct params *params, const struct param *param, uint64_t value);
/* "name=value name=value", as params_print shows them. False: it is something else. */
bool params_change(struct params *params, struct slice changes);
/* One line with all of them. */
void params_print(const struct params *params);
/* The command that runs the same again; only what differs from the seed's own. */
void params_print_command(const struct params *params);

bool ranges_have(const struct ranges *ranges, uint64_t number);
/* "3-10,17". False: it is something else, or too much. */
bool ranges_parse(struct ranges *ranges, struct slice text);

#endif
