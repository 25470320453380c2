/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settling: finding out what became of intents that a head does not tell, so that no reader and no
 * writer of a list ever meets one (docs/list-format.md, "Changes of several lists"). For each:
 *
 *   1. GET the head of its primary. Decided there: that is it. No intent of that name there: it is
 *      aborted, or done, or the primary was lost. The own list is looked at as well then, for as
 *      long as a coordinator may take to tell it; if none does, it is aborted. A node of Couchbase
 *      that was failed over, and has not heard of it, shows what was: there it is pushed first
 *      (2.), which such a node cannot carry out; a list that is missing is made for that.
 *   2. Undecided: its coordinator is at work, or has died. It is looked at again for
 *      transaction_patience_ms; then it is pushed: APPEND an abort to the primary, and GET. Which
 *      decision stands first there counts, also when the coordinator's was faster.
 *   3. APPEND the decision to the list's own head. What waits for it reads that head anew: never is
 *      anything answered from a head that was read before the decision was known.
 *
 * A head that takes no appends is written by CAS, with the decision in place of its intent
 * (docs/list-format.md, "Full heads").
 *
 * All appends may be repeated, or arrive late: only the first decision counts.
 */
#ifndef LIST_CORE_SETTLE_H
#define LIST_CORE_SETTLE_H

#include "list/core/lists.h"

/* Intents that are settled together; those beyond have their turn in the next round. */
#define SETTLE_MAX 64

enum settle_state {
    SETTLE_OK,
    SETTLE_FAILED, /* error says why */
};

struct settle_target {
    struct name name;
    struct list *primary;
    bool own;                /* the primary is the list itself */
    struct head *taken;      /* of a primary that takes no appends: as it was read last, or NULL */
    bool refused;            /* the last append to the primary was */
    bool gone;               /* the primary does not hold it, as last seen */
    bool is_foreign;         /* what stands in the primary's place is another client's */
    bool told;               /* the list itself has the decision by now */
    bool is_current;         /* the primary's server has carried out a durable change meanwhile */
    enum intent_state found; /* INTENT_OPEN until it is known */
};

/* A part of an operation. What it appends to its own list is noted there (list_note_size and its
 * relatives); sizes of primaries as well. */
struct settle {
    struct op *op;
    struct list *list; /* whose head the intents stand in */
    struct settle_target targets[SETTLE_MAX];
    size_t count;
    enum settle_state state;
    uint64_t until_us; /* a coordinator may take so long */
    uint64_t again_us;
    unsigned looks, pushes, tries;
    bool refused;      /* the own head takes no appends, or is gone */
    struct head *head; /* then: as it was read last, or NULL */
    bool gave_up;      /* error is settle_busy: no primary has taken a decision */
    char error[LIST_ERROR_MAX];
};

/* The error of a list whose transactions could not be settled. */
extern const char settle_busy[];

/* Begins with no target. The list must stay as long as the part (list->ops), and has been seen as a
 * head. */
void settle_init(struct settle *s, struct op *op, struct list *list);
/* Adds an intent that is open in the list's head, as it was read. False when there is no room; the
 * rest is for the next round. */
bool settle_add(struct engine *e, struct settle *s, const struct head_intent *intent);
/* Adds all that are open in that head, as far as there is room. */
void settle_add_open(struct engine *e, struct settle *s, const struct head *head);
/* Releases what it holds; fine when there is nothing. */
void settle_fini(struct settle *s);

/* Adds a head where a list is missing, so that its node shows that it carries out durable changes:
 * nothing can be appended where nothing is. */
void settle_emit_place(struct engine *e, struct op *op, struct list *list, uint64_t tag);

/* Inner: settles its targets, then ends with state. The operation has nothing else under way. */
enum progress settle_step(struct engine *e, struct settle *s, const struct op_event *event);

#endif
