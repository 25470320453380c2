/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A round: all blind changes of a list that wait together, in ONE append, and behind them ONE head
 * read for all waiting reads. Order of writes: the append; when the head is missing, it is made.
 */
#ifndef LIST_CHANGE_ROUND_H
#define LIST_CHANGE_ROUND_H

#include "list/core/op.h"

struct op_round {
    struct op op;
    struct call_queue writes; /* in the order of their entries in batch */
    struct call_queue reads;
    struct block *batch; /* the entries of all writes, NULL while there is none */
    struct head *head;   /* for the reads */
    enum head_result got;
    bool has_looked; /* before it appended: the item was not known, and is no list */
    enum head_result looked;
    bool sent;   /* the changes are on their way, or may have been done */
    bool stored; /* the append was: its writes are answered, but where there are sets */
    bool fewer;  /* a change that is in the batch is not to be done any more */
    bool sets;  /* an LIST_SET is among them, and the list may be missing: then it must not keep the
                   lease's time to live, see format/absent.h */
    bool probe; /* carries nothing: asks for the size, since the log may be full */
    bool reread; /* the head read was overtaken by the change's second try */
    unsigned tries;
    uint64_t sent_us; /* when its requests were sent */
    unsigned changes; /* this proxy's, by then: read/recent.h */
    bool has_size_before;
    uint64_t size_before; /* the head's, right before the append */
    uint64_t log_bytes_before;
    struct op_event write_outcome; /* of the append; its text copied to error */
    char error[LIST_ERROR_MAX];
    char read_error[LIST_ERROR_MAX];
    struct head *found;
    bool appended_again; /* this head refused the append a second time, or is about to */
    bool conflict;       /* the last write met another proxy's */
};

/* Makes an empty round and takes the list's place for it. Fill writes (with round_add_write) and
 * reads, then op_run. */
struct op_round *round_create(struct engine *e, struct list *list);
void round_add_write(struct op_round *round, struct list_call *call);
void round_add_read(struct op_round *round, struct list_call *call);
/* Bytes of the entries in the batch. */
static inline size_t round_bytes(const struct op_round *round)
{
    return round->batch == NULL ? 0 : round->batch->used;
}

#endif
