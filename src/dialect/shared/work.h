/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work on a list of a dialect: an operation that carries calls, and what the dialects share. A
 * dialect names the cells that a list is made of, says what they amount to, and writes them in its
 * own order (dialect.h).
 */
#ifndef DIALECT_SHARED_WORK_H
#define DIALECT_SHARED_WORK_H

#include "base/arena.h"
#include "dialect/shared/cell.h"
#include "list/format/fold.h"

/* Which calls travel together, and how. */
enum lane {
    LANE_UNSUPPORTED, /* the dialect has no such verb */
    LANE_READ,        /* any number of reads, from one look at the cells */
    LANE_ADD,         /* any number of blind additions, in one append */
    LANE_DELETE,      /* the same for deletions */
    LANE_CHANGE,      /* the same for both together */
    LANE_EXACT,       /* any number of changes of a single item: read, decide, CAS */
    LANE_ALONE,       /* one call at a time */
};

/* What a list holds, in its order. Items live in the fold or in the cells. */
struct items {
    struct fold fold; /* empty where the look fills in at alone */
    struct slice *at; /* as of the look: none of them once the fold is changed */
    size_t count, cap;
    uint64_t bytes; /* of all items */
};

struct move;
struct work;
typedef enum progress work_step(struct engine *e, struct work *w, const struct op_event *event);

/* An append to one item. In: target, verb, value, create. */
struct append {
    struct cell target;
    enum be_verb verb;    /* BE_APPEND or BE_PREPEND */
    struct block *value;  /* the reference is the append's */
    struct block *create; /* what a missing item is created with; NULL: it stays missing */
    bool only_there;      /* a missing item is not created here */
    /* Out: BE_STORED, BE_MISS (nothing was there, and still is not), BE_TOO_LARGE (there is no room
     * for it), or the error that work->error tells of. */
    enum be_status status;
    unsigned tries;
};

struct work {
    struct op op;
    enum lane lane;
    work_step *run;
    struct call_queue calls; /* not answered yet */
    size_t call_bytes;       /* of the items of the calls */
    struct arena kept;       /* copies of the items of calls that change something */

    struct cell *cells;
    size_t cell_count, cell_cap;
    uint64_t read_bytes; /* of the values that this look has read */
    struct items items;  /* what the cells amounted to in the last look */
    uint64_t stored_bytes;
    bool partial;    /* the look left cells out: it says nothing of the whole list */
    bool can_shrink; /* the cells are longer than the items need */
    struct append append;

    bool failed; /* error says why */
    char error[LIST_ERROR_MAX];
    unsigned tries, rounds, conflicts;
    bool conflict; /* the last write met another client's */
    bool goes_on;  /* work_try: there is more to do, at once */
    unsigned look_tries, get_tries;
    size_t next_cell;
    size_t first_cell;                /* the cell that is asked for first */
    bool changed_older, changed_last; /* by a check: cells before the last one, the last one */

    struct block **texts; /* texts to be written, one after the other */
    size_t text_count;
    bool wrote_any; /* something was written, whatever comes now */

    void *own; /* the dialect's own state (dialect.work_bytes) */

    /* For lists that may move from the dialect to the native layout. */
    struct move *move;         /* migrate.h; else NULL */
    bool met_record;           /* a record of a move was found */
    bool moved;                /* the list has moved: its calls go on where it is now */
    bool completing;           /* a look takes what it finds: it is known whether there is a list */
    struct call_queue written; /* calls that are done, if the list has not moved by now */
};

/* Makes an operation that runs run; work_add puts calls in, and op_run starts it. */
struct work *work_create(struct engine *e, struct list *list, enum lane lane, work_step *run);
void work_add(struct work *w, struct list_call *call);

/* Ends the first call, or all calls, and takes them off. */
void work_finish_first(struct engine *e, struct work *w, enum list_status status);
void work_finish(struct engine *e, struct work *w);
void work_fail(struct engine *e, struct work *w, const char *text);
/* Ends all calls: with the error if failed, else well. */
void work_end(struct engine *e, struct work *w);
/* Note why the work cannot go on: failed and error. */
void work_note_error(struct work *w, const struct op_event *event);
void work_note_busy(struct engine *e, struct work *w); /* counts it, too */
void work_note_no_room(struct work *w);
/* Says in the error that something may have been done, and no longer that nothing was. */
void work_note_unknown(struct work *w);
void PRINTF_LIKE(2, 3) work_note_text(struct work *w, const char *format, ...);

/* Takes the reply to a cell_write or cell_remove. False: another client has written in between. */
bool work_written(struct engine *e, struct work *w, const struct op_event *event);

/* Is the first of its calls of that verb? lset and ldrop travel alone. */
bool work_is_asked(const struct work *w, enum list_verb verb);
/* Is it an ldrop of a list that has to be there (LIST_IF_PRESENT), and the look has found no item?
 */
bool work_finds_nothing_to_drop(const struct work *w);
/* And no foreign value either? Then it is answered so, and nothing is to be removed. */
bool work_drops_nothing(struct engine *e, struct work *w);

/* Adds a cell that is to be read; forgets all of them, or the texts. */
struct cell *work_add_cell(struct work *w, enum cell_role role, uint32_t number);
void work_forget_cells(struct work *w);
void work_forget_texts(struct work *w);

/* Inner protothreads. Each ends with failed and error set, or with its result. */
/* Reads the cells that were not read yet, all in flight at the same time. */
work_step work_gather;
/* The same; fails where one of all cells holds a foreign value (foreign_refuse_cells). */
work_step work_read;
/* Names the cells, reads them and finds out what they amount to: items. */
work_step work_look;
/* A record of a move holds the value that stood there before: notes it in met_record, and takes the
 * value. */
void work_unwrap(struct work *w, struct cell *cell);
/* Carries out append; done when the answer is known. */
work_step work_append;
void append_fini(struct append *append);

/* Was any of the cells there? */
bool work_any_there(const struct work *w);
/* Is there no cell that was not read, or has changed by a check since? */
bool work_all_read(const struct work *w);
/* Were the cells read in the order in which they were asked for? One connection to a memcached
 * answers so, as long as it is not lost: what was not sent yet then goes before what is asked for
 * again. A node of a Couchbase cluster may refuse one request for now, and answer the next. */
bool work_read_in_order(const struct engine *e, const struct work *w);

/* Differs whenever a cell may have changed: the CAS number of a single one, a mixture of several;
 * with_key: also of the one under the list's key. */
uint64_t work_version(const struct work *w, bool with_key);

/* The first pause after a conflict; the longest is 2^8 times that. */
#define WORK_BACKOFF_US 200u
/* How often work is tried that meets other writers. */
#define WORK_TRIES_MAX 16

/* Inner: looks, and runs once, which decides and writes, until that is over or fails. Where it has
 * met another writer (conflict), it looks again after a pause, at random and longer each time;
 * where it goes_on, at once. Both are false when it begins; rounds counts it, conflicts those
 * before it.
 *
 * Ends after so many conflicts, or rounds of any kind (0: any number), as the last one has left
 * it: with conflict or goes_on where the work is not done. */
enum progress work_try(struct engine *e, struct work *w, const struct op_event *event,
                       work_step *once, unsigned tries_max, unsigned rounds_max);

/* Adds the items of a call. */
static inline void fold_call(struct fold *fold, const struct list_call *call)
{
    for (size_t i = 0; i < call->item_count; i++) {
        fold_apply(fold, ENTRY_ADD, call->items[i]);
    }
}
void items_push(struct items *items, struct slice item);
/* Fills in at with what the fold amounts to. */
void items_settle(struct items *items);
/* Changes the fold, and forgets at, which points into it. */
void items_change(struct items *items, enum entry_op op, struct slice item);
/* Only where items has a fold. */
static inline bool items_have(const struct items *items, struct slice item)
{
    char outcome = fold_outcome(&items->fold, item);
    return outcome == ENTRY_ADD || outcome == ENTRY_READD;
}

static inline struct slice block_text(const struct block *b)
{
    return slice_make(b->data, b->used);
}

#endif
