/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The auditor stands between the list engine and a backend that lies. It remembers all that the
 * backend said and holds each request of the engine, and each answer to a call, against that:
 *
 *     fresh names, announced first       a sublist is added once, under a name announced before
 *     publish only while announced       and only what was answered STORED, all of it
 *     delete only what is unnamed        garbage of a head that was read, or own, never published
 *     a CAS number goes with its head    value, number and connection are those of one reply
 *     sweep before you forget            what the old head names, the new one names, or it is gone
 *     a compaction changes no content
 *     an answer is what the head of its version holds, by the reader of reference.c
 *
 * These hold whatever the backend says: a lie may lose a list, but it must not make the engine
 * break a rule.
 */
#ifndef FUZZ_AUDIT_H
#define FUZZ_AUDIT_H

#include "../world/reference.h"
#include "list/engine.h"
#include "list/format/name.h"

/* Keys of lists are told apart by their length: "k", "kk". */
#define AUDIT_LISTS 2
/* Contents that are compared at once, at most. */
#define AUDIT_LOGS 4

/* A head as the backend gave it. */
struct audit_head {
    unsigned list;
    uint64_t cas, epoch;
    uint64_t version; /* as answers show it */
    struct block *block;
    struct ref_head head;
    bool ambiguous; /* the backend used this CAS number for two values */
};

struct audit_sublist {
    struct slice key; /* in block */
    struct block *key_block, *value;
    bool changed; /* it was seen with two values: no reader can be blamed for either */
};

struct audit_name {
    unsigned list;
    char text[NAME_BYTES];
    bool own;       /* announced by the engine that runs now */
    bool withdrawn; /* by it */
    uint64_t announced_count;
    uint64_t sent, stored; /* ADDs of its sublists, and those answered STORED */
    uint64_t bytes, items; /* in those sent */
    unsigned publishing;   /* CAS requests under way that name it */
    bool published;        /* one of these was done, or its outcome is unknown */
    bool garbage;          /* named as such by a head that was read */
    uint64_t garbage_count;
    bool two_counts; /* and heads differ in how many: collecting goes by the name, so what one of
                        them names may be forgotten. No proxy writes such heads */
    uint64_t gone;   /* bit n: sublist n was definitely deleted */
};

struct audit {
    struct audit_head *heads;
    size_t head_count, head_cap;
    struct audit_sublist *sublists;
    size_t sublist_count, sublist_cap;
    struct block *logs[AUDIT_LOGS]; /* without transactions: items of contents lie in them */
    size_t log_count;
    struct audit_name *names;
    size_t name_count, name_cap;
    bool met_changed; /* the last lookup met a sublist with two values */
};

void audit_fini(struct audit *a);
/* The engine is gone; what it announced is some dead proxy's now. */
void audit_crash(struct audit *a);

/* The engine sent this. content_stays: nothing is under way that may change the list's content. */
void audit_sent(struct audit *a, const struct list_request *r, bool content_stays);
/* It is about to be told this. */
void audit_told(struct audit *a, const struct list_request *r, const struct be_reply *reply);
/* A call is done. */
void audit_done(struct audit *a, const struct list_call *call);

#endif
