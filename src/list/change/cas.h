/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that one write of the head carries out, decided by the head as it was read:
 *
 *     read the head
 *     decide                  the kind's; it may read more than the head
 *     ONE write               a CAS of that head, or an ADD where there is none
 *
 * When another writer was faster: all over again, after a pause that grows. How often, and what
 * becomes of the calls when it never gets through, is told here, for all kinds.
 */
#ifndef LIST_CHANGE_CAS_H
#define LIST_CHANGE_CAS_H

#include "list/core/op.h"

/* What a decision has come to. */
enum cas_decision {
    CAS_ENDS,    /* nothing is to be written: the calls are answered, or wait in the queue again */
    CAS_WRITES,  /* a write was sent, with TAG_CAS_WRITE */
    CAS_AGAIN,   /* it takes another look, after a pause */
    CAS_AT_ONCE, /* the same without one */
};

/* Tags of a kind's own requests begin at TAG_CAS_OWN. */
enum { TAG_CAS_GET = 1, TAG_CAS_WRITE, TAG_CAS_OWN };

/* How often a kind tries for clients, and its first pause: the longest is 50 ms. */
#define CAS_TRIES_MAX 16
#define CAS_PAUSE_US 200u

struct op_cas;

struct cas_kind {
    const char *reading, *pausing; /* names of waits; that of the write is in op_cas */
    unsigned tries_max;
    uint64_t pause_us; /* the first pause; doubles up to 2^8 times that. 0: none */
    bool carries_none; /* it is for no call's sake */
    bool gives_back;   /* calls for which nothing was written are the step's that called cas_step;
                          else they fail */
    /* Inner: decides by got and head; ends with decision. Not with GOT_ERROR. */
    enum progress (*decide)(struct engine *e, struct op_cas *x, const struct op_event *event);
    /* It was written: answers the calls. */
    void (*stored)(struct engine *e, struct op_cas *x);
    /* A call's time is over: the kind knows of it no longer. NULL: it knew of none. */
    void (*let_go)(struct op_cas *x, struct list_call *call);
    void (*fini)(struct engine *e, struct op_cas *x); /* what the kind holds; NULL: nothing */
};

/* What all kinds have in common that carry out clients' calls. */
#define CAS_FOR_CLIENTS \
    .reading = "reading head", .pausing = "backing off after a conflict", \
    .tries_max = CAS_TRIES_MAX, .pause_us = CAS_PAUSE_US

struct op_cas {
    struct op op;
    const struct cas_kind *kind;
    struct call_queue calls; /* not answered yet */
    enum head_result got;
    struct head *head;     /* as read last, or NULL */
    struct block *entries; /* what the calls change; empty at the beginning of a decision, as is
                              what the calls know of their answers */
    enum cas_decision decision;
    const char *writing; /* the name of the wait for the write */
    bool sent;           /* a write is on its way, or may have been done */
    unsigned tries;
    const char *busy; /* the error when it never gets through */
    char error[LIST_ERROR_MAX];
};

/* Makes an operation of size bytes that begins with a struct op_cas, in that place of the list;
 * cas_add puts calls in, and op_run starts it. step: calls cas_step; NULL: is that. */
void *cas_create(struct engine *e, struct list *list, struct op **place, size_t size,
                 const struct cas_kind *kind, op_step *step);
void cas_add(struct op_cas *x, struct list_call *call);

/* Inner: ends when the calls are answered, or given back. */
enum progress cas_step(struct engine *e, struct op_cas *x, const struct op_event *event);

/* ---- for kinds ---- */

/* End all calls: with that text behind SERVER_ERROR, or with that status. */
void cas_fail(struct engine *e, struct op_cas *x, const char *text);
void cas_finish(struct engine *e, struct op_cas *x, enum list_status status);
/* Nothing was done: the calls go back to the front of the queue. */
void cas_give_back(struct engine *e, struct op_cas *x);
/* Is there room for the entries behind the head? If not, the calls wait in the queue for a
 * compaction, until their time is over. */
bool cas_has_room(struct engine *e, struct op_cas *x);
/* Sends the head that was read, with the entries behind it. */
void cas_emit_entries(struct engine *e, struct op_cas *x);

#endif
