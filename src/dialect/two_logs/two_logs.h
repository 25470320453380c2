/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists in two signed logs that change places. flip.c and marker.c tell in two ways which
 * one is active. The active log takes the changes. Folding copies what it amounts to into the other
 * one, makes that one active, takes over what still came to the old one, and empties or removes it:
 *
 *     rest       only the active one holds something
 *     copying    the other one is a copy of the active one; it counts as soon as it is active
 *     draining   the active one is a copy; what the other one got since belongs to it, too
 *     unknown    both hold something, and the active one is no copy: written by hand
 *
 * What it got since is all that it holds where it was emptied, or removed and made anew.
 *
 * A copy says in a note what it has taken, so that any proxy can go on with a folding that was
 * interrupted. A note adds an item that no list has, and deletes it at once: a reader by hand sees
 * nothing of it, whether it goes by the later sign of an item, or counts signs:
 *
 *     +@2048:9c1f0a77d3b2e845-@2048:9c1f0a77d3b2e845
 *         I have the first 2048 bytes of the other log, which has this hash
 *     +@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37
 *         I begin here; the number makes this log different from all others
 *     +@2048::9c1f0a77d3b2e845-@2048::9c1f0a77d3b2e845
 *         a copy of these bytes is to come here: a place for it. Proxies that do not know of places
 *         (0.2.0) take this for an item that is deleted at once, so the log holds nothing for them
 */
#ifndef DIALECT_TWO_LOGS_TWO_LOGS_H
#define DIALECT_TWO_LOGS_TWO_LOGS_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_two_logs_pointer, dialect_two_logs_mark;

/* What a worker remembers of the list. */
struct two_logs_list {
    int active;       /* the log that takes changes, from 1; 0: not known */
    uint64_t settled; /* see settled in two_logs.c */
    uint64_t life;    /* of the active log, as the look saw it that ended last */
};
static inline struct two_logs_list *two_logs_list(const struct list *list)
{
    return list_own(list);
}
void two_logs_forget(struct list *list);

/* The state of an operation. */
struct two_logs {
    enum two_logs_state {
        TWO_LOGS_REST,
        TWO_LOGS_COPYING,
        TWO_LOGS_DRAINING,
        TWO_LOGS_UNKNOWN
    } state;
    int active;       /* CELL_A - CELL_A or CELL_B - CELL_A */
    bool begun_twice; /* unknown: by two clients by hand at once */
    int copy;         /* while copying and draining: the log whose note is about the other one */
    uint64_t taken;   /* bytes of the other one that it has */
    size_t note_start, note_end; /* where it says so */
    uint64_t life_before;        /* the list's life when this look began */
    uint64_t seen_settlement;    /* of the look before */
    uint64_t last_version;       /* of the look before, and how many in a row were the same */
    unsigned same_looks;
    /* The others are asked about between two readings of the active log: so at that moment all
     * were as they were read, though a log that is not there may have come and gone besides. */
    enum confirming {
        CONFIRM_NOT,
        CONFIRM_OTHERS, /* a look asks about all but the active log once more, */
        CONFIRM_ACTIVE, /* then about that, */
        CONFIRM_GROWN,  /* and reads it again if it has changed: it may grow all the time */
    } confirming;
    int confirmed; /* the log that was active when that began, and what it held */
    uint64_t confirmed_bytes, confirmed_hash;
    uint64_t own;  /* the number of the copy that this operation has made, or may have */
    uint64_t next; /* of the one that it has just written; 0: it has written something else */
    enum {
        TWO_LOGS_STEP,
        TWO_LOGS_SWITCH
    } step;              /* what was written last: a switch makes a copy count */
    int numbers;         /* which log has just got a number, or -1 */
    uint64_t no_room[2]; /* the CAS numbers of logs as they had no room for one */
    bool folds;          /* this operation may write a copy of what it reads */
    unsigned catch_ups;
    bool squeeze;     /* what was to be written did not fit: it is folded first */
    bool close_whole; /* marker.c: not by PREPEND, which was not stored the time before */
    /* change.c: what was to be appended did not fit. */
    bool folded;   /* so the list was folded, once, */
    bool in_place; /* and the changes were made with that */
};
static inline struct two_logs *two_logs_own(const struct work *w)
{
    return w->own;
}

/* Does a pointer say which log is active? Else a mark says which one is closed. */
static inline bool two_logs_have_pointer(const struct list *list)
{
    return list->policy->dialect == DIALECT_FLIP;
}

/* ---- two_logs.c: looking ---- */

/* dialect.refusal: no item looks like a note. */
const char *two_logs_refusal(const struct list_policy *policy, struct slice item);

/* The text behind the marks that say that the log is closed. */
struct slice two_logs_behind_marks(const struct list *list, struct slice text);
/* The log of the cell, without these. This and the two below are valid while the cells are. */
struct slice two_logs_text(const struct work *w, int which);
bool two_logs_closed(const struct work *w, int which);
/* The number that the log begins with, or 0. */
uint64_t two_logs_number(const struct work *w, int which);
struct note;
/* Does a note of that log say that it has taken the beginning of the other one? Then fills in
 * *note. */
bool two_logs_has_taken(const struct work *w, int which, struct note *note);
/* Was it made as a copy, of whatever? A log that was closed whole, when the other one had taken all
 * of it, and what came late to one, have at most a number. */
bool two_logs_was_copy(const struct work *w, int which);
/* Should there be a pointer, and is none? */
bool two_logs_wants_pointer(const struct work *w);
/* Is it a place for a copy, which holds nothing yet but what came late? */
bool two_logs_is_place(const struct work *w, int which);
/* dialect.nth_drop: what is left in between is the list as it was. Without the active log, or
 * without the pointer to it, the other one would be the list, with what was deleted since it was
 * copied. */
size_t two_logs_nth_drop(const struct work *w, size_t n);
/* Is there a log that a folding has written, or is about to write? */
bool two_logs_outlive_drop(const struct work *w);

/* A look begins: adds the two logs to the cells. */
void two_logs_begin_look(struct work *w);
/* The look's end: two_logs_own(w)->active is set by the caller. */
enum look two_logs_look(struct engine *e, struct work *w);

/* While copying and draining. The entries that came to the other log since the copy was made: */
struct slice two_logs_late(const struct work *w);
/* and those that came to the copy behind its note. */
struct slice two_logs_tail(const struct work *w);
/* Calls visit for each item that late entries add and the tail deletes: it is in the list. */
void two_logs_each_revived(const struct work *w, void (*visit)(void *arg, struct slice item),
                           void *arg);

/* ---- fold.c ---- */

/* Folds, or puts the call's items in place of what is there: ends with failed, or done. */
work_step two_logs_fold;
/* Of the table: the same for calls, or for none. */
work_step two_logs_rewrite;

/* ---- change.c ---- */

/* Of the table: changes go to the log that is known to be active. */
work_step two_logs_change;

/* ---- pointer.c ---- */

/* The position of the pointer among the cells. */
enum { TWO_LOGS_POINTER = 2 };
/* Which log that value names, counted from 1, or 0: by its name, or by that in which its name
 * differs from the other's ("b"). */
int two_logs_named(const struct list *list, struct slice value);
/* Writes what names that log into the pointer: in the form that it has. */
void two_logs_write_pointer(struct engine *e, struct work *w, int which);

static inline enum cell_role two_logs_role(int which)
{
    return which == 0 ? CELL_A : CELL_B;
}

#endif
