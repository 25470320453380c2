/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an lcopy copies: the content of another list as of one head, streamed item by item, so that
 * lists of any size are copied with bounded memory. The operation is that of the list that is
 * filled; the other one, which may be in another pool, stays as it is.
 *
 *     copy_init(&copy, ...)
 *     copy_look_step                       its head, or state says why not
 *     copy_stream_step                     its items, to a run that is being written, or to a fold
 *     copy_fini
 *
 * A sublist that is missing has been compacted away meanwhile: then all begins anew, from a newer
 * head. If that names it still, the list is damaged.
 */
#ifndef LIST_CHANGE_COPY_H
#define LIST_CHANGE_COPY_H

#include "list/content/content.h"
#include "list/core/scan.h"
#include "list/core/write_run.h"

enum copy_state {
    COPY_OK,
    COPY_MISSING, /* there is no such list */
    COPY_AGAIN,   /* look again */
    COPY_REFUSED, /* an item that the other list cannot hold: see error */
    COPY_FAILED,  /* see error */
};

struct copy {
    struct op *op;
    struct list *from;         /* counted as one that has an operation */
    struct run_writer *writer; /* of the operation */
    struct fold *items;
    bool to_run; /* the items go to the writer */
    bool over;   /* set by the operation: its time is over */
    enum copy_state state;
    struct head *head;
    struct content content;
    bool content_ready;
    struct scan scan;
    uint32_t rest_at;
    uint64_t count; /* items so far */
    bool missed_any;
    struct name missed;
    struct engine *e; /* during a step */
    char *error;      /* the operation's */
};

/* The call names the list that is copied, and its policy. op, writer, items and error are those of
 * the operation that fills the other list, and stay its own. */
void copy_init(struct engine *e, struct copy *copy, struct op *op, const struct list_call *call,
               struct run_writer *writer, struct fold *items, char error[LIST_ERROR_MAX]);
/* Fine when it was never begun. */
void copy_fini(struct copy *copy);
/* Bytes of all that the head names and holds: not less than what the items take as entries. */
uint64_t copy_bytes(const struct copy *copy);
/* Ends with state: COPY_OK when the head was read. */
enum progress copy_look_step(struct engine *e, struct copy *copy, const struct op_event *event);
/* Ends when all is written, or with another state, or writer_failed, or over. */
enum progress copy_stream_step(struct engine *e, struct copy *copy, const struct op_event *event);

#endif
