/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put from within: what put.c, which decides and writes, and put_joint.c, which computes a
 * content, have in common.
 */
#ifndef LIST_CHANGE_PUT_OP_H
#define LIST_CHANGE_PUT_OP_H

#include "list/change/copy.h"
#include "list/change/put.h"
#include "list/core/expiry.h"
#include "list/joint/combine.h"
#include "list/read/question.h"

struct op_put {
    struct op op;
    struct list_call *call;   /* NULL: it was answered, or its time is over */
    struct fold items;        /* each once, in their order */
    size_t taken;             /* of the call's */
    uint64_t item_bytes;      /* as entries */
    size_t memory_bytes;      /* counted for items */
    bool beyond;              /* the list's cap, which refuses that */
    bool is_long;             /* they do not fit the log */
    struct head *head;        /* as last read; NULL: there is none */
    bool missing;             /* the list, as clients see it */
    struct question question; /* does this list, or the one that is copied, hold any item? */
    struct copy copy;         /* of an lcopy: where the items come from */
    struct joint joint;       /* of an linterstore and the like: where they come from */
    struct combine combine;
    bool computes;
    bool bound; /* the list is among those that were read: it must be as it was then: */
    uint64_t bound_cas, bound_epoch; /* 0: missing */
    bool again;                      /* it is not: all is to be computed again */
    unsigned computed;
    bool computing; /* nothing is written yet, but heads for lists that are missing */
    unsigned looks;
    unsigned waits;
    struct run_writer writer;
    bool unannounced; /* there was no list to announce the run in */
    uint32_t at;      /* how many places of items are written */
    bool whole;       /* all are */
    struct block *value;
    struct block *left; /* the head that was seen, as announcing leaves it; NULL: any will do */
    bool sent;          /* the CAS is on its way */
    bool done;
    bool unknown; /* its outcome is not known */
    bool lost;    /* the announcement has gone, or the list is to outlive what was written */
    uint64_t sent_cas, sent_epoch; /* of the head that the last write was to replace; 0: none */
    enum be_status refusal;        /* what became of it; BE_STORED: there was none yet */
    unsigned names, tries, adds;
    char error[LIST_ERROR_MAX];
};

/* Ends the call, if it is not over yet, with that text behind SERVER_ERROR. */
void put_fail(struct engine *e, struct op_put *p, const char *text);
/* Ends it with that status. */
void put_finish(struct engine *e, struct op_put *p, enum list_status status);
/* Counts the memory of items. */
void put_count_memory(struct op_put *p);
/* Reads lists at one instant, and fills items with what they amount to. Ends with the call answered
 * when that does not go well. */
enum progress put_compute_step(struct engine *e, struct op_put *p, const struct op_event *event);
/* Is the head that was read last the one that the content was computed from, if it was? */
bool put_is_bound(const struct op_put *p);
/* Has that head not changed since it was found to be the one that was seen, but for the
 * announcement? Where that matters: LIST_IF_VERSION, and content that was computed from it. */
bool put_is_left(const struct op_put *p);

#endif
