/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle's part about lists that are missing though they have a head (on_missing = refuse).
 */
#ifndef SIM_LEASES_H
#define SIM_LEASES_H

#include "../world/model.h"

struct purpose;
struct oracle;
struct sim_call;

/* An addition or deletion that was appended while the list was missing. */
struct pending {
    struct sim_call *call;
    uint16_t id;
    bool deletes, recent;
    uint32_t until_s; /* of an item with a time; else 0 */
};

struct lease_mark {
    uint64_t token;
    uint64_t at, over; /* moments; over: 0 while the head has it */
    bool is_told;      /* to the client that has it */
    bool is_old;       /* a change was refused since: a fill might not hold it */
};

/* Of one list. */
struct absence {
    uint64_t token; /* 0: no lease */
    int64_t until_s;
    struct pending *pending; /* in order */
    size_t pending_count, pending_cap;
    struct lease_mark *given;
    size_t given_count, given_cap;
    bool decides; /* the head is there for the sake of transactions */
};

void leases_fini(struct absence *a);
void leases_forget(struct oracle *o, unsigned list);
/* Lays what was appended over what fills the list. */
void leases_lay(const struct absence *a, struct ids *items);
/* The same, by a write that makes a version. */
void leases_fill(struct oracle *o, unsigned list, struct ids *items);
/* Blind changes have come to the head of a missing list. */
void leases_append(struct oracle *o, unsigned list, const struct purpose *purpose, bool *exists,
                   struct ids *items);
/* No lease may be under way when that happens. */
void leases_check_over(const struct oracle *o, unsigned list, int64_t now_s, const char *what);
/* Holds what is stored against what is known. gives: a lease was given by what happened last. */
void leases_compare(struct oracle *o, unsigned list, const struct stored *stored, bool gives,
                    int64_t now_s);
/* May the put with a token be refused? Not if the token is valid all the time. */
bool leases_refused(const struct oracle *o, const struct sim_call *call);
/* A change was refused, since the list is missing: no lease from before may fill the list now. */
void leases_note_refused(struct oracle *o, const struct sim_call *call);
/* The put with a token fills the list. */
void leases_check_fill(const struct oracle *o, const struct sim_call *call);
/* May the llease be answered so? */
bool leases_answered(struct oracle *o, const struct sim_call *call);

#endif
