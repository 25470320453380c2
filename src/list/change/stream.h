/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The content of a list as of one head, item by item in its order, so that lists of any size are
 * gone through with bounded memory. The operation may be that of another list, also in another
 * pool.
 *
 *     stream_init(&stream, ...)
 *     stream_look_step                     its head, or state says why not
 *     stream_step                          its items, to the sink
 *     stream_fini
 *
 * A sublist that is missing has been compacted away meanwhile: then all begins anew, from a newer
 * head. If that names it still, the list is damaged.
 */
#ifndef LIST_CHANGE_STREAM_H
#define LIST_CHANGE_STREAM_H

#include "list/content/content.h"
#include "list/core/scan.h"

/* The tag of the head's reading; an operation that has a stream uses it for nothing else. */
#define TAG_STREAM_HEAD UINT64_C(0xff)

enum stream_state {
    STREAM_OK,
    STREAM_MISSING, /* there is no such list */
    STREAM_AGAIN,   /* look again */
    STREAM_REFUSED, /* set by the sink: it cannot take an item, see error */
    STREAM_FAILED,  /* see error */
};

struct stream;

/* Where the items go. */
struct stream_sink {
    void (*put)(struct stream *stream, const struct entry *entry); /* '+' or '@' */
    /* Does it take more now? Asked between sublists, and now and then behind them. */
    bool (*has_room)(const struct stream *stream);
    /* An inner protothread that ends when it takes more again, or with over or another state. Gives
     * events of the scan to stream_take. */
    enum progress (*make_room)(struct engine *e, struct stream *stream,
                               const struct op_event *event);
    /* An answer to the operation's own requests, while the stream waits for the list's. */
    void (*take)(struct stream *stream, const struct op_event *event);
    /* Is it to end early, for a reason of the sink's? */
    bool (*failed)(const struct stream *stream);
};

struct stream {
    struct op *op;
    struct list *from; /* counted as one that has an operation */
    const struct stream_sink *sink;
    void *arg;      /* the sink's */
    bool over;      /* set by the operation: its time is over */
    bool with_over; /* set behind stream_init: also items whose own time is over */
    enum stream_state state;
    struct head *head;
    struct content content;
    bool content_ready;
    struct scan scan;
    uint32_t rest_at;
    uint64_t count; /* items so far */
    bool missed_any;
    struct name missed;
    struct engine *e; /* during a step */
    char *error;      /* the operation's, LIST_ERROR_MAX bytes */
};

/* op and error are those of the operation, and stay its own. */
void stream_init(struct engine *e, struct stream *stream, struct op *op, struct slice key,
                 const struct list_policy *policy, const struct stream_sink *sink, void *arg,
                 char error[LIST_ERROR_MAX]);
/* Fine when it was never begun. */
void stream_fini(struct stream *stream);
/* Bytes of all that the head names and holds: not less than what the items take as entries. */
uint64_t stream_bytes(const struct stream *stream);
/* Ends with state: STREAM_OK when the head was read. */
enum progress stream_look_step(struct engine *e, struct stream *stream,
                               const struct op_event *event);
/* Ends when the sink has had all items, or with another state, or over, or when the sink failed. */
enum progress stream_step(struct engine *e, struct stream *stream, const struct op_event *event);
/* Takes an event, or NULL. True when it was of the scan: then the operation waits on. */
bool stream_take(struct stream *stream, const struct op_event *event);

#endif
