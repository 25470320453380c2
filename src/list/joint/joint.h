/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several lists at one instant.
 *
 *     look     read all heads
 *     probe    ask for all their CAS numbers. If each is what it was, and over the same connection,
 *              no head has changed between the last read and the first probe: at any instant
 *              between, all lists were what these heads say
 *     else     again, after a pause
 *
 * What the heads say is read afterwards (struct source), and may take its time: sublists do not
 * change.
 *
 * A missing list has no CAS number. If one is missing, it is looked at again, alone, before the
 * others are probed: the instant is that of this look. If two are, they may have come and gone in
 * turns, so that a head is made for each but one, and removed by CAS in the end, as it was made.
 * Where a missing list decides the answer, no other list matters: the instant is that of its look.
 *
 * What is done with large lists takes several times their bytes, and looks at many lists take
 * memory whatever these hold. So either begins only when others leave room in half of
 * memory_limit_bytes, or there are none: several at once would only end each other for want of
 * memory.
 */
#ifndef LIST_JOINT_JOINT_H
#define LIST_JOINT_JOINT_H

#include "list/content/view.h"
#include "list/core/inner.h"
#include "list/joint/verb.h"

/*
 * A source: one of the lists of a joint, as it was at the instant. What it holds is found in one of
 * three ways:
 *
 *     items     in a fold: what a head without runs holds, or a list in another layout
 *     view      in the list's view, which is brought to that head if need be
 *     stream    by a pass over its sublists, for each question: it is too large for a view
 */
enum source_kind { SOURCE_ITEMS, SOURCE_VIEW, SOURCE_STREAM };

struct source {
    struct list *list;   /* counted as one that has an operation */
    size_t first_arg;    /* the first of the call's lists that it is */
    struct inner *look;  /* what the last one found */
    struct inner *probe; /* of a list in another layout: a second look */
    bool missing;
    bool made; /* its head was made for this joint */
    enum source_kind kind;
    bool has_items;
    struct fold items;  /* SOURCE_ITEMS */
    size_t items_bytes; /* of these, counted */
    int64_t over_s;     /* items that are over in that second are not there any more */
    unsigned brought;   /* how often its view was asked for */
    struct inner *read; /* a pinned read in progress, or the last one */
};

enum joint_state {
    JOINT_OK,
    JOINT_MISSING, /* a list is missing without which there is no answer */
    JOINT_AGAIN,   /* what the heads named has gone meanwhile */
    JOINT_REFUSED, /* error is behind CLIENT_ERROR */
    JOINT_FAILED,  /* error is behind SERVER_ERROR */
};

/* A part of an operation: its memory, zeroed at first. */
struct joint {
    struct op *op;
    struct list_call *call; /* as long as it is not over; see over */
    bool over;              /* set by the operation: nothing waits for it any more */
    enum joint_state state;
    char *error; /* the operation's, LIST_ERROR_MAX bytes */

    struct source *sources; /* each list once */
    size_t source_count;
    size_t *args; /* the source of each list of the call */
    size_t arg_count;
    size_t memory_bytes;  /* of both, and of all items */
    uint64_t looks_bytes; /* what its looks are expected to take */
    unsigned tries, rounds;
    size_t alone; /* the source that is looked at behind the others */
    bool changed;
    bool making;   /* heads for missing lists are on their way */
    bool empty;    /* a missing list makes the result empty */
    bool in_turns; /* in engine.turns: it goes on when it is the first there */
    TAILQ_ENTRY(joint) turn;
    uint64_t reserve_bytes; /* what it is expected to take */
    bool reserved;          /* that was let in */
};

/* Makes the sources of the call's lists, and charges its session; fails never. */
void joint_init(struct engine *e, struct joint *joint, struct op *op, struct list_call *call,
                char error[LIST_ERROR_MAX]);
/* Fine when it was never begun. */
void joint_fini(struct engine *e, struct joint *joint);
/* What it holds, and what its looks take at most, for the call's session to be charged with. */
uint64_t joint_bytes(const struct joint *joint);
/* Ends with state: JOINT_OK when an instant was found, and the turn is the joint's, if it needs
 * one; JOINT_MISSING or JOINT_FAILED. After JOINT_AGAIN it may be called again. */
enum progress joint_instant_step(struct engine *e, struct joint *joint,
                                 const struct op_event *event);
/* What was made of the lists is done: the turn is the next one's. */
void joint_leave_turn(struct engine *e, struct joint *joint);
/* Removes heads that were made for missing lists, unless they have changed since. */
enum progress joint_tidy_step(struct engine *e, struct joint *joint, const struct op_event *event);

/* Is a head to be removed that was made for a missing list, or may it be on its way? */
bool joint_has_made(const struct joint *joint);
/* A pinned read of the source is done: notes in state what came of it. */
void joint_take_read(struct joint *joint, const struct source *source);

static inline struct source *joint_arg(const struct joint *joint, size_t i)
{
    return &joint->sources[joint->args[i]];
}

/* How many items it has, at most or about. */
uint64_t source_size(const struct source *source);

/* SOURCE_ITEMS: is the item there, and at which place? */
static inline bool source_has(const struct source *source, struct slice item, uint64_t *place)
{
    const struct fold_item *known = fold_find(&source->items, item);
    *place = known != NULL ? (uint64_t)(known - source->items.items) : 0;
    return known != NULL && entry_is_in(known->outcome, known->until_s, source->over_s);
}
/* The same kind: the next item, as fold_next_item. */
static inline bool source_next(const struct source *source, uint32_t *at, struct slice *item)
{
    return fold_next_item(&source->items, source->over_s, at, item);
}

/* Begins a read of the head that was looked at; source->read is it, and may be done already. form
 * counts where items are answered to its chain; from, where positions are asked for: to the end. */
void source_read(struct engine *e, struct source *source, struct op *op, enum list_verb verb,
                 enum list_form form, uint64_t from, struct gather *gather);

/* The view, when it shows the source's head; else NULL. To be used before anything else runs. */
struct view *source_view(struct source *source);

#endif
