/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dialects: layouts of lists that applications have kept by hand, as tables beside the engine's own
 * layout. The shared files ask the list's table and name no dialect. Each dialect has a folder of
 * its own, and dialects.c names them all. Each of their files begins with what is stored, in which
 * order it is written, and what is not guaranteed; docs/dialects.md has the same for users.
 */
#ifndef DIALECT_SHARED_DIALECT_H
#define DIALECT_SHARED_DIALECT_H

#include "dialect/shared/grammar.h"
#include "dialect/shared/text.h"
#include "dialect/shared/work.h"

enum look {
    LOOK_DONE,   /* work->items is what the list holds */
    LOOK_MORE,   /* further cells were named */
    LOOK_AGAIN,  /* the cells do not belong together: they were changed while they were read */
    LOOK_FAILED, /* work->error */
};

/* Room for the bytes that a dialect reserves. */
#define RESERVED_MAX 4

#define ROLE(role) (UINT32_C(1) << (role))

/* A function may be NULL where the dialect has nothing to do. */
struct dialect {
    const char *name;
    enum lane lanes[LIST_VERB_COUNT]; /* for changes; dialect_lane has the others */
    /* The reason for verbs in LANE_UNSUPPORTED, behind the verb. */
    const char *unsupported_reason;

    /* ---- what is stored ---- */
    /* Is the cell, which is there, of the format? See grammar_reason. */
    const char *(*grammar)(const struct grammar *g, const struct cell *cell);
    uint32_t integers;  /* roles of cells that memcached counts by INCR */
    uint32_t essential; /* roles without which there is no list */
    uint32_t sublists;  /* roles that lstat counts as sublists */
    bool one_item;      /* there is no other: it is changed by CAS, or by one append */
    bool counted;       /* blind additions and deletions of an item are counted */
    bool delimited;     /* the delimiter ends each item, so no item holds it */
    bool newest_first;  /* a look finds them in that order, and may find an item twice */
    /* Writes the bytes that no item holds, besides the delimiter of lget; returns how many: at most
     * RESERVED_MAX. */
    size_t (*reserved)(const struct list_policy *policy, char *out);
    /* Returns why no call may add or delete the item, or NULL. */
    const char *(*refusal)(const struct list_policy *policy, struct slice item);
    /* The item that was added, in an item as a look finds it; NULL: all of it. */
    struct slice (*item_of)(const struct list_policy *policy, struct slice found);
    /* What a cell that is not of the format may be to another list, or NULL: unknown. */
    const char *(*use_elsewhere)(const struct list *list, const struct cell *cell);

    /* ---- its own memory, zeroed at first ---- */
    size_t work_bytes;                 /* of an operation: work.own */
    void (*work_fini)(struct work *w); /* frees what that holds */
    size_t list_bytes;                 /* what a worker remembers of a list: list_own */
    /* What is remembered has turned out to be wrong: forgets it. */
    void (*forget)(struct list *list);

    /* ---- reading ---- */
    /* Names the cells that a look begins with. */
    void (*cells)(struct work *w);
    enum look (*look)(struct engine *e, struct work *w);
    bool look_proves; /* the look itself refuses cells that are not of the format */

    /* ---- writing ---- */
    work_step *change; /* LANE_ADD, LANE_DELETE, LANE_CHANGE */
    work_step *exact;  /* LANE_EXACT */
    work_step *set;    /* LIST_SET in LANE_ALONE */
    work_step *touch;  /* LIST_TOUCH */
    work_step *purge;  /* LIST_PURGE */
    work_step *drop;
    work_step *compact; /* with or without a call */
    /* For dialect_drop: how many cells are deleted at the same time (0: one)? Which of them is the
     * n-th, from 0 (NULL: they go from the last to the first)? Does the cell stay? */
    unsigned drops_at_once;
    size_t (*nth_drop)(const struct work *w, size_t n);
    bool (*survives_drop)(const struct cell *cell);
    /* Has a folding written what is read behind the deletions? It may be of what was there before,
     * so it goes, too. NULL: no folding writes another item than it has read. */
    bool (*outlives_drop)(const struct work *w);
    /* The list of one item that may move: removes it as it was read. */
    work_step *remove;
    /* A ghost takes the place of a call (work.c). */
    void (*replace_call)(struct work *w, const struct list_call *call, struct list_call *ghost);
    /* Lists in one item: fills append with the items of the calls; writes a text of just these
     * items. */
    void (*batch)(struct work *w);
    void (*encode)(const struct list_policy *policy, const struct fold *fold, struct block **out);

    /* ---- moving to another layout ---- */
    /* Inner, before lconvert: ends with failed if the list's items may be another list's. */
    work_step *before_convert;
    /* Names the cells that a late change may have written to; NULL: those of cells. */
    void (*late_cells)(struct work *w);
};

/* Moving lists from a dialect to another layout, list by list, while they are in use (migrate/):
 * what the shared files ask of it. */
struct migration {
    size_t work_bytes; /* of an operation: work.move, zeroed at first */
    void (*init)(struct work *w);
    void (*fini)(struct work *w); /* frees what that holds */
    /* Finds out where the list is, and lets its calls go on there. */
    work_step *resolve;
    work_step *convert; /* LIST_CONVERT */
    /* Inner: has the list moved by now? Ends with moved or failed, or neither. */
    work_step *verify;
    /* Inner: deletes what this operation, which took the list for one of the dialect, has written
     * beside the native one. */
    work_step *clean;
};

/* How changes travel besides ladd and ldel: in lists of one item, in lists of several. */
#define DIALECT_LANES_SINGLE \
    [LIST_SET] = LANE_EXACT, [LIST_ADDX] = LANE_EXACT, [LIST_DELX] = LANE_EXACT, \
    [LIST_POP] = LANE_EXACT, [LIST_CREATE] = LANE_EXACT, [LIST_TOUCH] = LANE_ALONE, \
    [LIST_PURGE] = LANE_ALONE
#define DIALECT_LANES_SEVERAL [LIST_SET] = LANE_ALONE

/* What a worker remembers of a list of a dialect, as long as it remembers the list
 * (tracked_lists); the dialect's own stands behind it. */
struct known {
    const struct dialect *dialect;
    const struct migration *migration; /* NULL: the list stays where it is */
    /* Of one that may move: where it is. */
    enum list_kept { KEPT_UNKNOWN, KEPT_OLD, KEPT_NATIVE } kept;
    /* See foreign.h: a bit per role of cells that may be appended to without a look; of numbered
     * cells only the one of this number. */
    uint32_t cells, number;
    /* See append.c: a bit per role of cells whose text did not end with a delimiter when it was
     * seen last. */
    uint32_t open;
    max_align_t own[];
};

/* For lists that are not in the native layout from the start. */
static inline struct known *known_of(const struct list *list)
{
    return list->plugin_state;
}
static inline const struct dialect *dialect_of(const struct list *list)
{
    return known_of(list)->dialect;
}
/* What moves the list to another layout; NULL: it stays. */
static inline const struct migration *migration_of(const struct list *list)
{
    return known_of(list)->migration;
}
static inline bool list_migrates(const struct list *list)
{
    return migration_of(list) != NULL;
}
static inline void *list_own(const struct list *list)
{
    return known_of(list)->own;
}

/* Does an essential cell stand under the list's own key? Then it is the first one of a look. */
bool dialect_keeps_key(const struct list *list);

/* Forgets what is remembered of the list, which has turned out to be wrong. */
void dialect_forget(struct list *list);

/* How a verb travels in lists of that dialect. */
enum lane dialect_lane(const struct dialect *dialect, enum list_verb verb);

/* Returns why a call on a list of that dialect is refused, or NULL; for the plugin. dialect is NULL
 * for native lists. */
const char *dialect_refusal(const struct dialect *dialect, const struct list_call *call,
                            char text[LIST_ERROR_MAX]);
/* The plugin's schedule. */
void dialect_schedule(struct engine *e, struct list *list);

/* After an append of that many bytes: asks for a folding if it is time for one. */
void dialect_appended(struct engine *e, struct list *list, uint64_t bytes);

/* For every dialect. */
work_step dialect_read, dialect_drop;
/* Answers a read with what the look has found. */
void answer_read(struct engine *e, struct work *w, struct list_call *call);
/* dialect.unsupported_reason of lists of several items. */
extern const char dialect_not_exact[];
/* Why they are not read together with others. */
extern const char dialect_not_joint[];

/* append.c: does the text need a delimiter before the next item? Notes what was read of a cell. */
bool closing_is_open(const struct list *list, struct slice text);
void closing_note_read(struct list *list, const struct cell *cell);

/* Fills append with the items of the calls as delimited text; a missing item is created with it. */
void delimited_batch(struct work *w);

/* Signed logs: fills append with the entries of the calls; writes a log of just these items. */
static inline struct signs signs_of(const struct list_policy *policy)
{
    return (struct signs){(char)policy->add_sign, (char)policy->delete_sign};
}
static inline struct signs signs_in(const struct work *w)
{
    return signs_of(w->op.list->policy);
}
void signed_batch(struct work *w);
void signed_encode(const struct list_policy *policy, const struct fold *fold, struct block **out);
/* dialect.reserved of signed logs. */
size_t signed_reserved(const struct list_policy *policy, char *out);

#endif
