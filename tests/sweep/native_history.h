/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients asked for in a case and what they were told; and whether one order of events
 * explains all of it: each call takes effect at one instant between question and answer, one
 * without an answer at one instant or not at all, one that was refused not at all.
 */
#ifndef SWEEP_NATIVE_HISTORY_H
#define SWEEP_NATIVE_HISTORY_H

#include "../world/proxy.h"

#define CALL_ITEMS_MAX 4
#define CALLS_MAX 16
#define ITEM_IDS_MAX 64

struct call_spec {
    enum list_verb verb;
    uint8_t count;
    uint8_t ids[CALL_ITEMS_MAX];
    int8_t from, to;
};

/* What one proxy is asked for. */
struct op_spec {
    const char *name;
    uint8_t count;
    bool pipelined; /* no call waits for the one before it */
    struct call_spec calls[4];
};

/* A list as clients know it: a sequence of items, each once. */
struct listing {
    bool exists;
    uint8_t count;
    uint8_t ids[ITEM_IDS_MAX];
};

struct history_call {
    struct list_call call; /* owner points back here */
    struct slice items[CALL_ITEMS_MAX];
    const struct call_spec *spec;
    char proxy;
    enum call_end end;
    uint32_t asked, over;  /* when; over: the last instant at which it may take effect */
    struct listing answer; /* of reads: the items in the order given */
};

struct history {
    bool refuse; /* on_missing */
    uint32_t clock;
    unsigned count;
    struct history_call calls[CALLS_MAX];
    struct listing first;
};

void history_init(struct history *h, const struct listing *first, bool refuse);
void history_fini(struct history *h);

/* A call about to be submitted to that proxy's engine, valid until history_fini. */
struct history_call *history_ask(struct history *h, char proxy, const struct call_spec *spec,
                                 const struct list_policy *policy, struct list_session *session);
/* The engine is done with it. False when its answer is not well-formed. */
bool history_answer(struct history *h, struct history_call *call);
/* The proxy is gone, and all that it sent: its open calls get no answer. */
void history_crash(struct history *h, char proxy);
/* What was lost has arrived by now: calls with an unknown outcome may have taken effect up to this
 * instant, beyond their answer. */
void history_settle(struct history *h);
/* The driver looked at what is stored now: as good as an answered read. */
void history_observe(struct history *h, const struct listing *listing);
/* What a damaged list is given up for: it may be dropped at any time up to now. */
void history_may_drop(struct history *h);

/* Does some order explain all answers, and end with that content? */
bool history_explains(const struct history *h, const struct listing *last);

/* False when there are more items, or other ones, than a content holds. */
bool listing_of_items(struct listing *listing, const struct ids *items, bool exists);
/* Both write a text that ends in NUL. */
void listing_describe(const struct listing *listing, char *out, size_t cap);
void call_describe(const struct history_call *call, char *out, size_t cap);

#endif
