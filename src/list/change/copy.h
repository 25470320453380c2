/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an lcopy copies: the content of another list as of one head (stream.h), to a run that is
 * being written, or to a fold. The operation is that of the list that is filled; the other one,
 * which may be in another pool, stays as it is.
 */
#ifndef LIST_CHANGE_COPY_H
#define LIST_CHANGE_COPY_H

#include "list/change/stream.h"
#include "list/core/write_run.h"

struct copy {
    struct stream stream;
    struct run_writer *writer; /* of the operation */
    struct fold *items;
    bool to_run; /* the items go to the writer */
};

/* The call names the list that is copied, and its policy. op, writer, items and error are those of
 * the operation that fills the other list, and stay its own. */
void copy_init(struct engine *e, struct copy *copy, struct op *op, const struct list_call *call,
               struct run_writer *writer, struct fold *items, char error[LIST_ERROR_MAX]);
/* Fine when it was never begun. */
void copy_fini(struct copy *copy);
/* Between stream_look_step and its end; ends when all is written, or with another state of the
 * stream, or writer_failed, or over. */
enum progress copy_stream_step(struct engine *e, struct copy *copy, const struct op_event *event);

#endif
