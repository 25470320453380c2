/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dialects: layouts of lists that applications have kept by hand, as tables of operations beside
 * the engine's own layout. Each file begins with what is stored, in which order it is written, and
 * what cannot be promised; docs/dialects.md has the same for users.
 */
#ifndef DIALECT_SHARED_DIALECT_H
#define DIALECT_SHARED_DIALECT_H

#include "dialect/shared/text.h"
#include "dialect/shared/work.h"

enum look {
    LOOK_DONE,   /* work->items is what the list holds */
    LOOK_MORE,   /* further parts were named */
    LOOK_AGAIN,  /* the parts do not belong together: they were changed while they were read */
    LOOK_FAILED, /* work->error */
};

struct dialect {
    const char *name;
    enum lane lanes[LIST_VERB_COUNT];
    /* The reason for verbs in LANE_NEVER, behind the verb. */
    const char *never;
    /* Names the parts that a look begins with. */
    void (*parts)(struct work *w);
    enum look (*look)(struct engine *e, struct work *w);
    work_step *change; /* LANE_ADD, LANE_DELETE, LANE_CHANGE */
    work_step *set;    /* LIST_SET in LANE_ALONE */
    work_step *drop;
    work_step *compact; /* with or without a call */
    /* Those of a single item: fills append with what the calls add to it; and writes what holds
     * just these items. */
    void (*batch)(struct work *w);
    void (*encode)(const struct list_policy *policy, const struct fold *fold, struct block **out);
};

#define DIALECT_READS \
    [LIST_GET] = LANE_READ, [LIST_HAS] = LANE_READ, [LIST_LEN] = LANE_READ, \
    [LIST_RANGE] = LANE_READ, [LIST_STAT] = LANE_READ

extern const struct dialect dialect_simple, dialect_tombstone, dialect_signed, dialect_paired,
    dialect_flip, dialect_marker, dialect_sublists, dialect_ring;

/* NULL for the native layout. */
const struct dialect *dialect_of(const struct list_policy *policy);

/* The members of the engine's plugin: list/plugin.h. */
const char *dialect_refusal(const struct list_call *call, char text[LIST_ERROR_MAX]);
void dialect_schedule(struct engine *e, struct list *list);

/* Something was appended: is it time to look for what can be folded? */
void dialect_appended(struct engine *e, struct list *list, uint64_t bytes);

/* Every dialect's. */
work_step dialect_read, dialect_drop;
/* Ends a read with what the look has found. */
void answer_read(struct engine *e, struct work *w, struct list_call *call);
/* dialect.never of those of several items. */
extern const char dialect_not_exact[];
/* Dialects of a single item. */
work_step single_change, single_exact, single_compact, single_remove;
void single_parts(struct work *w);

/* Fills append with the calls' items as delimited text, to be created where nothing is. */
void delimited_batch(struct work *w);

/* Dialects of signed logs: fills append with the calls' entries, and writes a log of just these
 * items. */
static inline struct signs signs_of(const struct list_policy *policy)
{
    return (struct signs){(char)policy->add_sign, (char)policy->delete_sign};
}
void signed_batch(struct work *w);
void signed_encode(const struct list_policy *policy, const struct fold *fold, struct block **out);

#endif
