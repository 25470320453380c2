/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A part that is a call to the list engine: what list verbs and bridged verbs have in common.
 */
#ifndef PROXY_LISTS_CALL_PART_H
#define PROXY_LISTS_CALL_PART_H

#include "list/engine.h"
#include "proto/key.h"
#include "proxy/client/client.h"
#include "proxy/core/metrics.h"
#include "proxy/core/worker.h"

/* Items of a call that need no memory of their own. */
#define FEW_ITEMS 16

/* What few calls need besides. */
struct call_more {
    struct list_call second; /* another one on the same list, if call_part.left is 2 */
    bool second_is_first;    /* of the two; else it goes behind the other */
    char *ops;               /* of the call's items, from malloc, or NULL */
    struct call_list *lists; /* of a call that takes several, from malloc, or NULL */
    size_t list_count;
    struct tx_change *changes; /* of all these lists, from malloc, or NULL */
    size_t lists_bytes;
    size_t changes_bytes;
    char key[LIST_KEY_BYTES_MAX]; /* where the request has it in another form */
};

struct call_part {
    struct part part; /* of kind WINDOW_LIST; call stands behind it */
    struct list_call call;
    struct slice *items; /* few, or from malloc */
    size_t items_bytes;  /* of those from malloc */
    struct slice few[FEW_ITEMS];
    struct call_more *more; /* from malloc, or NULL */
    unsigned left;          /* calls that are not done */
};
_Static_assert(offsetof(struct call_part, call) == sizeof(struct part), "see part_call");

static inline struct call_part *call_part_of(struct part *part)
{
    return (struct call_part *)((char *)part - offsetof(struct call_part, part));
}

/* A part that is counted in, owned by the pending, without items. */
struct call_part *call_part_new(struct pending *pending, struct slice key);
/* What the part needs besides: made at the first time. */
struct call_more *call_part_more(struct call_part *part);
/* Fills what the engine is to know of the part's call, or of its second one: no items, no
 * positions, no condition. The key stays where it is until the call is done. */
void call_part_fill(struct call_part *part, struct list_call *call, enum list_verb verb,
                    struct slice key);
/* Makes room for so many items at once; for up to FEW_ITEMS there is room. Growing by and by
 * would leave large gaps in memory. */
void call_part_reserve(struct call_part *part, size_t count);
/* The first count of part.items are those of the call. */
void call_part_set_items(struct call_part *part, size_t count);
/* Takes the keys of several lists, whose bytes stay where they are; the call is about all of them.
 * Returns these, in the same order, the part's. */
struct call_list *call_part_add_lists(struct call_part *part, const struct slice *keys,
                                      size_t count);
/* Makes room for so many changes of these lists; returns it, the part's. */
struct tx_change *call_part_add_changes(struct call_part *part, size_t count);
/* Hands the calls to the engine. */
void call_part_submit(struct call_part *part);

/* Is there memory for that many items, and changes of a transaction? For a few there always is: it
 * is not for them that the limit was reached. */
bool call_part_has_room(struct worker *worker, size_t items, size_t changes);
#define CALL_PART_NO_ROOM_TEXT \
    "SERVER_ERROR out of memory: memory_limit_bytes is reached, nothing done"
#define CALL_PART_NO_ROOM SLICE_LIT(CALL_PART_NO_ROOM_TEXT "\r\n")

/* The counter of calls of that verb. */
enum proxy_metric call_part_metric(enum list_verb verb);

/* Counts an error, and puts its line into line (CALL_PART_LINE_MAX bytes): the request ends with
 * it. */
#define CALL_PART_LINE_MAX (LIST_ERROR_MAX + 32)
void call_part_failure(struct worker *worker, const struct list_call *call,
                       char line[CALL_PART_LINE_MAX]);

/* The engine has finished a call of a part. */
void call_part_done(struct list_call *call);

/* The worker keeps spare parts, in so many bytes at most; gives them back. */
void call_part_init(struct worker *worker, size_t spare_bytes);
void call_part_fini(struct worker *worker);

#endif
