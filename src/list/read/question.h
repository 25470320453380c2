/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A question of an operation: what does a list hold by one head? Which of some items, the items
 * from one end on, or whether there are any. Where the log does not say it all, the question is one
 * call of the list, whatever it asks for, and answered as those of clients are: from the list's
 * view, by the indexes of its runs, or from its sublists; whether there are any, from the sublists
 * up to the first item.
 */
#ifndef LIST_READ_QUESTION_H
#define LIST_READ_QUESTION_H

#include "list/content/gather.h"
#include "list/content/members.h"
#include "list/core/inner.h"

enum question_state {
    QUESTION_ANSWERED,
    QUESTION_OLD,        /* what the head names has gone: to be asked of a newer one */
    QUESTION_UNREADABLE, /* the list is damaged, or takes too much memory: see question_error */
    QUESTION_FAILED,     /* its servers did not answer: the same */
};

struct question {
    enum question_state state;
    struct members members; /* question_items: the answer */
    struct inner *read;     /* the call; NULL: the head says it all */
    bool any;               /* question_any: the answer */
};

/* Each begins a question of that list by that head, for question_step. What was asked before was
 * forgotten. */
/* Which of these are in the list? They must live until the question is forgotten; where they are
 * may change. */
void question_items(struct engine *e, struct question *q, struct op *op, struct list *list,
                    struct head *head, const struct slice *items, size_t count);
/* Is any item? */
void question_any(struct engine *e, struct question *q, struct op *op, struct list *list,
                  struct head *head);
/* count items from one end on go to gather; newest: the newest end. */
void question_range(struct engine *e, struct question *q, struct op *op, struct list *list,
                    struct head *head, bool newest, int64_t count, struct gather *gather);

/* Inner: ends with state. */
enum progress question_step(struct question *q, struct op *op, const char *waiting);
static inline const char *question_error(const struct question *q)
{
    return q->read->call.error;
}
/* Fine when it was never asked. */
void question_forget(struct engine *e, struct question *q);

#endif
