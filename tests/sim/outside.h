/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judging from outside, for dialects that do not promise one order of all changes. All that counts
 * is what clients asked and were answered, and when. Of each item it is known at any moment whether
 * it must be in, must be out, or neither; of a ring, which entries must still be there.
 */
#ifndef SIM_OUTSIDE_H
#define SIM_OUTSIDE_H

#include "oracle.h"

/* What was said about an item. Moments are the oracle's. */
struct word {
    uint64_t in_since, out_since; /* it must be in, or out; 0 = not known */
    uint64_t dropped_since;       /* out by an ldrop, and nothing has added it since */
    bool out_for_good; /* a copy had all that had added it when its deletion was asked for */
    uint64_t add_over, delete_over; /* when the last of these could not take effect any more */
    uint32_t adding, deleting;      /* that may still take effect */
    uint32_t deletes_beside_clears;
    uint32_t adds;     /* that were not refused */
    int64_t net_least; /* where items are counted: adds without deletions, */
    uint64_t net_most; /* at least and at most */
};

/* An entry of a ring: an item is used again only when the ring has gone round several times. */
struct ring_word {
    uint64_t asked, answered; /* answered: 0 = not acknowledged */
    uint64_t number;          /* as stored; 0 = never */
    bool overwritten;         /* by a writer who was a whole lap late */
    uint32_t under_way;       /* calls that add it */
    bool reused;              /* an older entry had the same item: slow reads may still show that */
};

struct outside_list {
    struct word *words;
    uint32_t clearing; /* lset and ldrop that may still take effect */
    uint64_t clear_over;
    /* Of two logs. */
    unsigned parts;
    bool second_alone;  /* the one that stood alone last */
    uint64_t second_at; /* when a second one came, */
    uint64_t copied_at; /* and that of the last time after which the other one stood alone */
    /* Of rings. */
    struct ring_word *ring;
    unsigned ring_end; /* no item from here on was ever asked for */
    uint64_t entries;  /* asked for */
    uint64_t counter;  /* the largest so far; one that is set back counts on here */
    uint64_t raw;      /* as it was stored last */
    uint16_t *numbers; /* item + 1 of the entry with each number so far */
    uint64_t number_cap;
};

struct outside {
    struct oracle *oracle;
    const struct format *format;
    unsigned lists, items;
    struct outside_list list[LISTS_MAX];
    struct sim_calls under_way; /* not over: linked by sim_call.under_way */
    uint64_t now_us;
    bool quiet;         /* no client writes any more */
    bool strict;        /* deleted items must not come back to what is stored */
    uint64_t came_back; /* items that were seen, though their last word was a deletion */
};

struct outside *outside_create(struct oracle *oracle, const struct format *format, unsigned items);
void outside_destroy(struct outside **outside);

/* Time passes: what was of unknown outcome is over at last. */
void outside_time(struct outside *o, uint64_t now_us);
void outside_asked(struct outside *o, struct sim_call *call);
void outside_answered(struct outside *o, struct sim_call *call);
/* A request was executed: what is stored is as good as an answer to a client that asks now. */
void outside_executed(struct outside *o, unsigned list, const struct list_request *request,
                      bool stored, int64_t now_s);

/* outside_ring.c */
/* Is no call adding this item, and has no new entry it? Each has an item of its own, and they are
 * not endless. */
bool ring_free(const struct outside *o, unsigned list, uint16_t id);
void ring_asked(struct outside *o, struct sim_call *call);
void ring_over(struct outside *o, struct sim_call *call, bool acknowledged);
/* asked: the moment when a client asked for it. call: NULL when it is what is stored. */
void ring_check(struct outside *o, unsigned list, const struct ids *seen, uint64_t asked,
                const struct sim_call *call);
void ring_check_counter(struct outside *o, unsigned list, uint64_t counter);
/* A slot was written; or not, which removes what was there. */
void ring_stored(struct outside *o, unsigned list, const struct list_request *request, bool stored);

/* Ends the run. */
void outside_wrong(const struct outside *o, unsigned list, const struct sim_call *call,
                   const struct ids *seen, const char *what, uint16_t id) __attribute__((noreturn));

#endif
