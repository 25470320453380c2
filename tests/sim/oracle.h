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
    uint64_t asked, answered; /* moments, counted by the oracle */
    struct ids answer;        /* what it read */
    uint64_t due_us;          /* its deadline */
    uint64_t held_us;         /* when it was last seen held for its client; 0: never */
    bool done;
    bool abandoned; /* its proxy crashed: it may have been done or not, without an answer */

    /* The oracle's. */
    uint32_t start_version, done_version;
    bool damage_seen;
    int64_t asked_s, answered_s; /* its list's server's clock */
    bool tidy_seen;              /* there was a moment without anything for an lcompact to do */
    uint64_t start_damage;
    unsigned applied;  /* how often it took effect */
    unsigned clears;   /* LIST_DROP: how often it dropped items */
    bool made_version; /* the request that carried it changed the content */
    bool pends;        /* it was appended to a list that was missing */
    uint32_t applied_version;
    uint64_t expected; /* exact ones: the number at that moment */

    /* Judged from outside. */
    uint64_t settled_us; /* of unknown outcome: its last request has arrived by then */
    TAILQ_ENTRY(sim_call) under_way;

    TAILQ_ENTRY(sim_call) link;
    struct sim_call *next;
};

/* What a request to a head is meant to do, found out when it was sent. */
struct intent {
    enum {
        INTENT_READ,
        INTENT_ROUND,
        INTENT_EXACT,
        INTENT_TURNS,
        INTENT_PUT,
        INTENT_LEASE,
        INTENT_DROP,
        INTENT_COMPACT,
        INTENT_WORK /* of a dialect: all calls, one after the other; without any it compacts */
    } kind;
    bool clears;     /* INTENT_COMPACT: drops all content */
    bool may_remove; /* INTENT_COMPACT: an ldrop, or a damaged list is given up */
    struct sim_call **calls;
    size_t count;
};

struct version {
    bool exists;
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
    bool tidy;                /* nothing is left for an lcompact to do, or it cannot be known */
    uint64_t tidy_until;      /* the moment when it was that last, unless it still is */
    struct ids adds, deletes; /* where items are counted: all that are stored */
    uint64_t *deleted_at;     /* the same: the moment of each item's last deletion */
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
    bool drops_absent; /* a list that is cleared is missing from then on */
    bool wrong_clocks; /* of proxies; else they differ by so much at most */
    int64_t clock_skew_s;
    struct model_list list[LISTS_MAX];
    struct session_model sessions[SESSIONS_MAX];
    uint64_t checked; /* answers held against the model */
    uint64_t moment;  /* counts what happened */
    struct loss *losses;
    size_t loss_count, loss_cap;
};

void oracle_init(struct oracle *o, struct cluster cluster, unsigned lists);
/* Lists are stored like this; before anything happens. */
void oracle_set_format(struct oracle *o, const struct format *format);
void oracle_fini(struct oracle *o);

/* A head was changed by this request. */
void oracle_head_changed(struct oracle *o, unsigned list, const struct intent *intent,
                         const struct be_request *request, int64_t now_s);
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

const struct version *oracle_now(const struct oracle *o, unsigned list);

/* oracle_work.c: a list that is one item was changed. */
void oracle_work_done(struct oracle *o, unsigned list, const struct intent *intent,
                      const struct be_request *request, int64_t now_s);

/* Makes this the current content; nothing happens when it is already. */
void oracle_set_current(struct oracle *o, unsigned list, bool exists, const struct ids *items);
/* The call has taken effect, in what is now the current version. */
void oracle_mark_applied(struct oracle *o, struct sim_call *call, bool made_version);
/* Have answers shown that version of a list with the content of that number? */
bool oracle_version_is(const struct oracle *o, unsigned list, uint64_t seen, uint32_t version);
void oracle_apply_blind(struct ids *items, const struct sim_call *call);
/* exists: as before. */
void oracle_apply_exact(struct oracle *o, bool exists, struct ids *items, struct sim_call *call);

/* For the file that judges answers. */
void oracle_judge(struct oracle *o, struct session_model *session, struct sim_call *call);
bool call_unknown(const struct sim_call *call);
/* False when the answer is not made as it should be. Repeated items stay visible. */
bool oracle_parse_answer(const struct oracle *o, struct sim_call *call, struct ids *out);
void call_describe(const struct sim_call *call, char *out, size_t cap);

/* Ends the run: the seed's rules are broken. */
void sim_violation(const char *format, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));

#endif
