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
 * What the heads say is read afterwards (source.h), and may take its time: sublists do not change.
 *
 * A missing list has no CAS number. If one is missing, it is looked at again, alone, before the
 * others are probed: the instant is that of this look. If two are, they may have come and gone in
 * turns, so that a head is made for each but one, and removed by CAS in the end, as it was made.
 * Where a missing list decides the answer, no other list matters: the instant is that of its look.
 *
 * What is done with large lists takes several times their bytes. So it begins only when others
 * leave room in half of memory_limit_bytes, or there are none: several at once would only end each
 * other for want of memory.
 */
#ifndef LIST_JOINT_JOINT_H
#define LIST_JOINT_JOINT_H

#include "list/core/inner.h"
#include "list/joint/source.h"
#include "list/joint/verb.h"

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
    size_t memory_bytes; /* of both */
    unsigned tries, rounds;
    size_t late; /* the source that is looked at behind the others */
    bool changed;
    bool making;   /* heads for missing lists are on their way */
    bool empty;    /* a missing list makes the result empty */
    bool in_turns; /* in engine.turns: it goes on when it is the first there */
    TAILQ_ENTRY(joint) turn;
    uint64_t reserve_bytes; /* what it is expected to take */
    bool reserved;          /* that was let in */
};

/* Makes the sources of the call's lists; fails never. */
void joint_init(struct engine *e, struct joint *joint, struct op *op, struct list_call *call,
                char error[LIST_ERROR_MAX]);
/* Fine when it was never begun. */
void joint_fini(struct engine *e, struct joint *joint);
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

#endif
