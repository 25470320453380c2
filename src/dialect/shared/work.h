/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work on a list of a dialect: an operation that carries calls, and what the dialects share. A
 * dialect names the parts that a list is made of, says what they amount to, and in which order it
 * writes them (dialect.h).
 */
#ifndef DIALECT_SHARED_WORK_H
#define DIALECT_SHARED_WORK_H

#include "base/arena.h"
#include "dialect/shared/part.h"
#include "list/format/fold.h"

/* Which calls travel together, and how. */
enum lane {
    LANE_NEVER,  /* the dialect has no such verb */
    LANE_READ,   /* any number of reads, from one look at the parts */
    LANE_ADD,    /* any number of blind additions, in one append */
    LANE_DELETE, /* the same for deletions */
    LANE_CHANGE, /* the same for both together */
    LANE_EXACT,  /* any number of changes of a single item: read, decide, CAS */
    LANE_ALONE,  /* one call at a time */
};

/* What a list holds, in its order. Items live in the fold or in the parts. */
struct items {
    struct fold fold; /* rings have none */
    struct slice *at;
    size_t count, cap;
    uint64_t bytes; /* of all */
};

/* flip, marker: see logs.h. */
struct logs {
    enum logs_state { LOGS_REST, LOGS_COPYING, LOGS_DRAINING, LOGS_UNKNOWN } state;
    int active;     /* PART_A - PART_A or PART_B - PART_A */
    int copy;       /* LOGS_COPYING, LOGS_DRAINING: which one says what it has of the other */
    uint64_t taken; /* bytes of the other one that it has */
    size_t note_start, note_end; /* where it says so */
    uint64_t seen_note;          /* by the look before */
    uint64_t last_version;       /* of the look before, and how many in a row were the same */
    unsigned same_looks;
    uint64_t own;                         /* the generation of the copy that this operation made */
    enum { LOGS_STEP, LOGS_SWITCH } step; /* what was written last: a switch makes a copy count */
    unsigned catch_ups;
    bool squeeze;     /* what was to be written did not fit: it is folded first */
    bool close_whole; /* marker: not by PREPEND, which was not stored */
    bool flipped;
};

struct sublists_work {
    uint32_t newest; /* the number that was appended to */
    uint64_t newest_bytes;
    uint64_t room_from; /* the first number of a sublist in which there should be room; 0: any */
    uint64_t missed;    /* the one that was not there, from 1; 0: none */
    unsigned checks;
    bool in_order;    /* the parts were asked for once, oldest first */
    bool checked_all; /* at last all of them, and not the index alone */
    bool adds;        /* the calls do: where no list is, they make one */
    bool drops;       /* it is an ldrop */
    bool index_there, rolled, wrote_last;
    uint64_t next;         /* the number of the one that is added */
    bool added, orphan;    /* it was; or nobody has named it, and it holds something */
    struct part not_named; /* that was added and is to be removed again */
};

struct ring_work {
    uint64_t last, number;     /* the last one, and the one being written */
    struct list_call *writing; /* whose items are written */
    bool is_new;               /* to this worker: it looks first */
};

struct paired_work {
    unsigned checks;    /* of a look: what was asked for behind the first reading */
    uint64_t torn_mark; /* of the additions, when the look before did not fit; 0: it did */
    char own_mark[17];  /* that this operation has appended to the deletions, */
    bool marked;        /* if it has */
    bool folded;        /* the additions were written with what was taken into account */
    size_t cut_at;      /* bytes of deletions that do not count any more */
    enum paired_step { PAIR_DONE, PAIR_MARK, PAIR_ADDS, PAIR_CUT, PAIR_REMOVE } step; /* the last */
};

/* See migrate.h. */
struct move {
    struct part control; /* the item under the list's key */
    bool met_record, head_there, moved;
    bool completing;            /* a look takes what it finds: whether there is a list is known */
    bool taken;                 /* there is a head, and it is another's */
    bool imported_again;        /* for a head in place of the record's */
    struct name_range replaced; /* the run of the record's; count 0: none */
    bool has_import;            /* the sublists of import were written */
    bool inlined;               /* the items are in the head */
    struct run import;
    struct fold imported; /* what import held when it was written */
    struct block *head;
    size_t owner_digits; /* owner.c: of the number in the key that is tried */
    uint64_t owner_number;
};

struct work;
typedef enum progress work_step(struct engine *e, struct work *w, const struct op_event *event);

/* One item appended to. In: target, verb, value, create. */
struct append {
    struct part target;
    enum be_verb verb;    /* BE_APPEND or BE_PREPEND */
    struct block *value;  /* the reference is the append's */
    struct block *create; /* what a missing item is made of; NULL: there is nothing to do then */
    bool only_there;      /* a missing item is not created here */
    /* Out: BE_STORED, BE_MISS (nothing was there, and still is not), BE_TOO_LARGE (there is no room
     * for it), or the error that work->error tells of. */
    enum be_status status;
    unsigned tries;
    struct co co;
};

struct work {
    struct op op;
    enum lane lane;
    work_step *run;
    struct call_queue calls; /* not answered yet */
    size_t call_bytes;       /* of their items */
    struct arena kept;       /* the items of those that change something */

    struct part *parts;
    size_t part_count, part_cap;
    uint64_t read_bytes; /* of values, by this look */
    struct items items;  /* what the parts amounted to, when last looked at */
    uint64_t stored_bytes;
    bool can_shrink; /* what is stored says more than the items need */
    struct append append;

    bool failed; /* error says why */
    char error[LIST_ERROR_MAX];
    unsigned tries, rounds, conflicts;
    bool conflict; /* the last write met somebody else's */
    struct co outer, body, outer_body, inner, folding, looking, gathering, verifying, completion,
        lost, undoing;
    unsigned look_tries, get_tries;
    size_t next_part;
    size_t first_part;                /* that is asked for first */
    bool changed_older, changed_last; /* when checked: other parts, the last one */

    struct block **texts; /* what is to be written, one after the other */
    size_t text_count;
    bool wrote_any; /* something was done, whatever comes now */

    /* The dialects' own, and that of lists that move from them to the native layout. */
    struct logs logs;
    struct sublists_work sublists;
    struct ring_work ring;
    struct paired_work paired;
    struct move move;
    struct call_queue written; /* calls that are done, if the list has not moved by now */
};

/* Makes an operation of that kind; calls are put in by work_add, then it is started by op_start. */
struct work *work_create(struct engine *e, struct list *list, enum lane lane, work_step *run);
void work_add(struct work *w, struct list_call *call);

/* late.c: the op's late; items of a call that is added; ghosts that were not carried out. */
op_late work_late;
void work_keep_items(struct work *w, struct list_call *call);
void work_free_ghosts(struct work *w);

/* Ends the first call, or all, and takes them off. */
void work_finish_first(struct engine *e, struct work *w, enum list_status status);
void work_finish(struct engine *e, struct work *w);
void work_fail(struct engine *e, struct work *w, const char *text);
/* Notes why the work cannot go on. */
void work_note_error(struct work *w, const struct op_event *event);
/* Something may have been done before that: the error says so, and no longer the contrary. */
void work_note_unknown(struct work *w);
void PRINTF_LIKE(2, 3) work_note_text(struct work *w, const char *format, ...);

/* Takes the reply to a part_write or part_remove. False: somebody else has written in between. */
bool work_written(struct engine *e, struct work *w, const struct op_event *event);

/* Is the first of its calls of that verb? lset and ldrop travel alone. */
bool work_is_asked(const struct work *w, enum list_verb verb);

/* The parts, by position; those added are to be read. */
struct part *work_add_part(struct work *w, enum part_role role, uint32_t number);
void work_forget_parts(struct work *w);
void work_forget_texts(struct work *w);

/* Inner protothreads. Each ends with failed and error set, or with its result. */
/* Reads the parts that were not read yet, all in flight at the same time. */
work_step work_gather;
/* Names the parts, reads them and finds out what they amount to: items. */
work_step work_look;
/* Carries out append; done when the answer is known. */
work_step work_append;
void append_fini(struct append *append);

/* Was any of the parts there? */
bool work_any_there(const struct work *w);

/* Differs whenever a part may have changed: the CAS number of a single one, a mixture of several;
 * with_key: also of the one under the list's key. */
uint64_t work_version(const struct work *w, bool with_key);

/* The first pause after a conflict; the longest is 2^8 times that. */
#define WORK_BACKOFF_US 200u
/* Pauses before the next try after a conflict, longer each time. */
uint64_t work_backoff_us(struct engine *e, const struct work *w);

void items_push(struct items *items, struct slice item);
/* Takes over what the fold amounts to. */
void items_settle(struct items *items);
/* Not for rings. */
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
