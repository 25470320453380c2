/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle knows what every list must hold: it applies each client's operation at the moment when
 * the backend executes the request that carries it, and compares what is stored after every change
 * of a head. It keeps all versions of each content, so that an answer can be held against what was
 * current at one instant between question and answer.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "../world/model.h"
#include "format.h"
#include "leases.h"
#include "list/engine.h"

#define LISTS_MAX 16
#define CALL_ITEMS_MAX 40
#define JOINT_LISTS_MAX 4
#define HANDS_MAX 8
#define SESSIONS_MAX (PROXIES_MAX * CLIENTS_MAX + HANDS_MAX)

/* One client operation, kept until the end of the run. */
struct sim_call {
    struct list_call call; /* owner points back here */
    uint64_t number;       /* counted from 1 */
    unsigned list, proxy, session;
    char key[16];
    uint16_t ids[CALL_ITEMS_MAX];
    struct slice items[CALL_ITEMS_MAX];
    char ops[CALL_ITEMS_MAX]; /* those of call.ops */
    uint32_t cap_max;         /* max_items of its proxy, when it was asked */
    bool cap_refuses;
    bool refused; /* by the list's cap, in the request that carried it */
    bool recent;  /* an item that it adds goes to the end, if it is there already */
    unsigned lists[JOINT_LISTS_MAX]; /* those of call.lists, where it takes several */
    unsigned list_count;
    struct call_list several[JOINT_LISTS_MAX];
    struct tx_plan *plan;     /* an ltx: what it asks of its lists */
    unsigned commits;         /* of transactions: how often it was committed, */
    const struct tx *tx;      /* ... and as which */
    int64_t lead_s;           /* its proxy's clock, less the world's */
    uint64_t asked, answered; /* moments, counted by the oracle */
    struct ids answer;        /* what it read */
    struct ids took;          /* an lpop: what it has taken off */
    uint64_t due_us;          /* its deadline */
    uint64_t held_us;         /* when it was last seen held for its client; 0: never */
    bool done;
    bool abandoned; /* its proxy crashed: it may have been done or not, without an answer */

    /* The oracle's. */
    uint64_t ring_counter; /* of its ring, when it was asked */
    uint64_t copied_at;    /* that of its list of two logs, when it was asked */
    bool slot_counted;     /* the counter reached the slot that holds what is foreign */
    uint32_t start_version, done_version;
    uint64_t start_writes, done_writes;       /* of its list, as that counts them */
    uint32_t start_versions[JOINT_LISTS_MAX]; /* of its lists */
    uint64_t start_damages[JOINT_LISTS_MAX];
    bool damage_seen;
    int64_t asked_s, answered_s; /* its list's server's clock */
    int64_t from_s, to_s;        /* its proxy's clock, when it was asked and when answered */
    bool tidy_seen;              /* there was a moment without anything for an lcompact to do */
    uint64_t start_damage;
    unsigned applied;                  /* how often it took effect */
    unsigned clears;                   /* LIST_DROP: how often it dropped items */
    bool made_version;                 /* the request that carried it changed the content */
    bool pends;                        /* it was appended to a list that was missing */
    bool is_void;                      /* ... which no client had a lease to fill */
    uint32_t laid_version, laid_order; /* ... and laid behind what filled it; 0: never */
    unsigned lost;                     /* so many of these a failover has lost */
    uint32_t applied_version;
    uint64_t applied_at;
    uint32_t removed_version; /* LIST_DROP: the one without a list that it made; 0: none */
    uint64_t expected;        /* exact ones: the number at that moment */
    uint64_t more; /* the same: and up to so many more, where items were over about then, or
                      several contents fit what was stored */

    /* Judged from outside. */
    uint64_t settled_us; /* of unknown outcome: its last request has arrived by then */
    TAILQ_ENTRY(sim_call) under_way;

    TAILQ_ENTRY(sim_call) link;
    struct sim_call *next, *next_unsettled;
};

/* What a request to a head is meant to do, found out when it was sent. */
struct purpose {
    enum {
        PURPOSE_READ,
        PURPOSE_ROUND,
        PURPOSE_EXACT,
        PURPOSE_TURNS,
        PURPOSE_PUT,
        PURPOSE_LEASE,
        PURPOSE_DROP,
        PURPOSE_TX, /* the intent of a transaction */
        PURPOSE_PURGE,
        PURPOSE_COMPACT,
        PURPOSE_WORK /* of a dialect: all calls, one after the other; without any it compacts */
    } kind;
    bool clears;         /* PURPOSE_COMPACT: drops all content */
    bool may_remove;     /* PURPOSE_COMPACT: an ldrop, or a damaged list is given up */
    bool settles;        /* PURPOSE_COMPACT, PURPOSE_TX: it may take intents off that it decides */
    size_t stored_bytes; /* PURPOSE_PURGE: of what the write replaces */
    struct sim_call **calls;
    size_t count;
};

struct version {
    bool exists;
    uint64_t at;    /* the moment from which on it was current */
    uint64_t at_us; /* the world's time then */
    uint32_t max;   /* what the head says of a cap */
    bool refuses;
    bool open; /* a transaction was not decided: no answer comes from it */
    struct ids items;
};

/* When a list is to expire, from that moment on. */
struct life_mark {
    uint64_t at;
    int64_t end_s; /* 0: never */
};

/* Which content a head had that clients see as that version. */
struct version_mark {
    uint64_t seen;
    uint32_t version;
};

struct model_list {
    char key[16], head_key[16];
    struct version *versions;
    uint32_t count, cap;
    struct version_mark *marks;
    size_t mark_count, mark_cap;
    struct life_mark *lives;
    size_t life_count, life_cap;
    struct absence absence;
    bool damaged; /* a sublist that the head names was evicted */
    bool cleared; /* the log makes all runs void */
    uint64_t damage_count;
    bool tidy;    /* nothing is left for an lcompact to do, or it cannot be known */
    uint32_t max; /* what its head says of a cap, as of now */
    bool refuses;
    uint64_t tidy_until;      /* the moment when it was that last, unless it still is */
    struct ids adds, deletes; /* where items are counted: all that are stored */
    uint64_t *deleted_at;     /* the same: the moment of each item's last deletion */
    uint64_t writes; /* of a list of a dialect: how often what is stored has changed, though it may
                        hold the same as before */
};

TAILQ_HEAD(sim_calls, sim_call);

/* A list that was there is not any more, and no call asked for it. */
struct loss {
    unsigned list;
    uint64_t at; /* a moment, as for calls */
};

struct session_model {
    struct sim_calls calls;    /* submitted, not judged yet, in order */
    uint32_t seen[LISTS_MAX];  /* the last version that a read was answered from */
    uint32_t floor[LISTS_MAX]; /* versions below were over before the session's last call took
                                  effect */
};

/* Of lists that name plain items: moments, by name. tags.h */
struct tags {
    uint64_t deleted_at[ITEMS_MAX];                 /* of the item's last deletion */
    uint64_t added_at[LISTS_MAX][ITEMS_MAX];        /* of the name's last addition */
    unsigned under_way;                             /* calls of lpurge */
    uint64_t acknowledged_at[LISTS_MAX][ITEMS_MAX]; /* when the last one began that was answered */
    uint64_t forgotten_at[LISTS_MAX][ITEMS_MAX];    /* a commit that added it was lost */
};

struct oracle {
    struct cluster cluster;
    const struct format *format; /* NULL: the native one */
    struct decoded content;      /* what was read last */
    struct outside *outside;     /* who judges answers, or NULL: the oracle itself */
    unsigned lists;
    bool refuse;       /* on_missing */
    bool miss_damaged; /* on_damaged = miss */
    bool may_lose;     /* evictions or restarts happen */
    bool may_expire;   /* lists expire */
    bool wrong_clocks; /* of proxies; else they differ by so much at most */
    int64_t clock_skew_s;
    uint64_t log_hard_limit, item_size_max; /* the least of any proxy, of any server */
    uint64_t answer_limit;                  /* 0: none that matters */
    uint64_t popped_bytes; /* of deletions by lpops, in the request that takes effect */
    struct model_list list[LISTS_MAX];
    struct session_model sessions[SESSIONS_MAX];
    uint64_t checked;                     /* answers held against the model */
    uint64_t moment;                      /* counts what happened */
    const uint64_t *now_us;               /* the world's time */
    uint64_t max_stale_us;                /* reads may be answered with what was so long ago */
    uint32_t own[PROXIES_MAX][LISTS_MAX]; /* ... but not before the last change that the proxy had
                                             answered */
    struct tags *tags;                    /* NULL: no client asks for lpurge */
    struct loss *losses;
    size_t loss_count, loss_cap;
    struct txs *txs;               /* NULL: no client asks for transactions */
    struct saved *lost[LISTS_MAX]; /* by a failover that goes on: rollback.h */
};

/* now_us: the world's time; it outlives the oracle. */
void oracle_init(struct oracle *o, struct cluster cluster, unsigned lists, const uint64_t *now_us);
/* Lists are stored like this; before anything happens. */
void oracle_set_format(struct oracle *o, const struct format *format);
void oracle_fini(struct oracle *o);

/* A head was changed by this request. */
void oracle_head_changed(struct oracle *o, unsigned list, const struct purpose *purpose,
                         const struct list_request *request, int64_t now_s);
/* The list may have another time to live. */
void oracle_note_life(struct oracle *o, unsigned list, int64_t now_s);
/* Something was deleted or overwritten under the name of a sublist. */
void oracle_sublist_changed(struct oracle *o, unsigned list, struct slice key, int64_t now_s);
/* Time has passed, items were evicted, or a server lost all of them. */
void oracle_look(struct oracle *o, int64_t now_s);

void oracle_submitted(struct oracle *o, struct sim_call *call, int64_t now_s);
/* The call is done, or abandoned by a crash. */
void oracle_done(struct oracle *o, struct sim_call *call, int64_t now_s);

/* At the quiet end: what is stored is what the model holds, folded and tidy. */
void oracle_final(struct oracle *o, unsigned list, int64_t now_s, bool nothing_left_over);

/* Reads what is stored: what readers see of it. */
void oracle_decode(struct oracle *o, unsigned list, int64_t now_s, struct ids *items,
                   struct stored *out);
const struct version *oracle_now(const struct oracle *o, unsigned list);

/* oracle_work.c: a list that is one item was changed. */
void oracle_work_done(struct oracle *o, unsigned list, const struct purpose *purpose,
                      const struct list_request *request, int64_t now_s);

/* A new version, whatever the current one is. at: its moment. */
void oracle_push_version(struct oracle *o, unsigned list, bool exists, const struct ids *items,
                         uint64_t at);
/* Clients see that head as the current version. */
void oracle_note_mark(struct oracle *o, unsigned list, int64_t now_s);
/* A failover has taken back all that came behind that version: heads that clients have seen as that
 * one are the current version again. */
void oracle_note_return(struct oracle *o, unsigned list, uint32_t version);
/* Makes this the current content; nothing happens when it is already. */
void oracle_set_current(struct oracle *o, unsigned list, bool exists, const struct ids *items);
/* The call has taken effect, in what is now the current version. */
void oracle_mark_applied(struct oracle *o, struct sim_call *call, bool made_version);
/* Was the list damaged while the call was under way? What it holds then cannot be known, but it is
 * not nothing. */
bool oracle_was_damaged(const struct oracle *oracle, const struct sim_call *call);
/* Have answers shown that version of a list with the content of that number? */
bool oracle_version_is(const struct oracle *o, unsigned list, uint64_t seen, uint32_t version);
/* The content before a request, and the cap that its head has got with it: a list that gets another
 * one is cut. */
void oracle_begin(struct oracle *o, unsigned list, const struct purpose *purpose, int64_t now_s,
                  struct ids *items);
/* Does the list's cap refuse the change, since not all of its items fit? */
bool oracle_cap_refuses(const struct version *v, const struct sim_call *call);
/* Adds an item as the call does. Returns whether it was new. */
bool oracle_add(struct ids *items, const struct sim_call *call, uint16_t id);
/* Items that were over in this second may be gone from what is stored. */
int64_t oracle_over_s(const struct oracle *o, int64_t now_s);
/* The number of items that are not over in that second. */
uint32_t oracle_count_at(const struct ids *items, int64_t now_s);
/* An exact change has met an item with a time: whether it was in the list when the proxy decided,
 * between the question and now. */
void oracle_count_timed(struct sim_call *call, uint32_t until_s, int64_t now_s);
/* Is that stored which must be? Of what has been over for long enough, some may be gone. */
bool oracle_same(const struct oracle *o, const struct ids *stored, const struct ids *must,
                 int64_t now_s);
/* The version as it is in that second, without times; ids_fini is the caller's. */
void oracle_version_at(struct version *out, const struct version *v, int64_t now_s);
/* The next second in which an item of the version is over, while the call is under way; false:
 * there is none. */
bool oracle_next_second(const struct sim_call *call, const struct version *v, int64_t *now_s);
void oracle_apply_blind(struct ids *items, const struct sim_call *call);
/* exists: as before. */
void oracle_apply_exact(struct oracle *o, bool exists, struct ids *items, struct sim_call *call,
                        int64_t now_s);

/* For the file that judges answers. */
void oracle_judge(struct oracle *o, struct session_model *session, struct sim_call *call);
bool call_unknown(const struct sim_call *call);
/* False when the answer is not made as it should be. Repeated items stay visible. */
bool oracle_parse_answer(const struct oracle *o, struct sim_call *call, struct ids *out);
void call_describe(const struct sim_call *call, char *out, size_t cap);

/* Ends the run: the seed's rules are broken. */
void sim_violation(const char *format, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));

#endif
