/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation: one algorithm on one list, a plain struct that is stepped with one event at a time.
 * It puts requests into the engine's outbox and says whether it waits or is finished. It reads no
 * clock and opens nothing; dropping the struct is what a crash is.
 */
#ifndef LIST_CORE_OP_H
#define LIST_CORE_OP_H

#include <sys/queue.h>

#include "base/clock.h"
#include "list/core/co.h"
#include "list/core/list_call.h"
#include "list/core/metrics.h"
#include "list/core/request.h"
#include "list/core/timers.h"
#include "list/format/head.h"
#include "list/format/sublist.h"

struct engine;
struct life;

/* What is known of a call when its time is over. */
enum list_known {
    KNOWN_NOTHING, /* it was not done and never will be */
    KNOWN_UNKNOWN, /* it was done, or will be, or never is */
    KNOWN_DONE,
    KNOWN_TOLD, /* the call's error says it */
};

TAILQ_HEAD(call_queue, list_call);

/* What an operation is stepped with; NULL at its start, after a sleep or a yield. */
struct op_event {
    uint64_t tag;                       /* as given at emission */
    const struct be_reply *reply;       /* a backend's reply, or */
    const struct list_request *request; /* that it answers, or NULL */
    struct sublist *sublist; /* a fetched sublist (scan.h), NULL with missing or failed */
    enum be_status status;   /* of the reply or the fetch */
    const char *text;        /* what happened, when status is an error */
    struct head *head; /* of a reply to a read of a head: what was read, during the call; NULL:
                          there is none, or it is foreign. All intents are decided, unless the read
                          was raw, or the head is cut */
    bool was_held;     /* that read waited for decisions: held_reads.h */
    uint64_t appended_bytes; /* list.appended_total, when the request was emitted */
};

typedef enum progress op_step(struct engine *e, struct op *op, const struct op_event *event);
/* Frees what the operation holds besides its struct; its calls were finished before, unless all is
 * being dropped. */
typedef void op_fini(struct engine *e, struct op *op);
/* The time of one of its calls is over: lets go of the call, whose items may be gone afterwards,
 * and says what is known of it. The operation may end by this (op_abort). */
typedef enum list_known op_let_go(struct engine *e, struct op *op, struct list_call *call);

struct op {
    struct co co;
    op_step *step;
    op_fini *fini;
    op_let_go *let_go; /* NULL: it carries no calls */
    size_t size_bytes; /* of the whole struct, as op_create allocated it */
    struct list *list;
    struct op **place;    /* of the list's, that it has: see lists.h. NULL: none */
    struct list *reads;   /* whose sublists it reads: list, or one that is copied */
    unsigned outstanding; /* requests and fetches whose answers are to come */
    unsigned due;         /* of these, the operation's own requests */
    bool finished;        /* stays only for answers still to come */
    bool runnable;
    bool has_written;         /* it has sent something that changes an item */
    bool takes_cut;           /* its reads of its list's head may bring one that is cut: head_cut */
    bool told_unknown;        /* a call was told that the outcome of what is under way is unknown */
    bool is_held;             /* the read that it waits for is held: held_reads.h */
    bool waits_quiet;         /* for other operations on its list to let it publish */
    uint32_t scan_generation; /* events of earlier scans are dropped */
    uint64_t wake_us;         /* while it sleeps */
    struct timer timer;
    TAILQ_ENTRY(op) all; /* of the engine */
    TAILQ_ENTRY(op) run; /* of the engine's runnable ones */
};

/* Tags: the low ones are each operation's own; scans mark theirs. */
#define TAG_SCAN (1ULL << 63)

/* Makes room for operations and requests, of which none is there yet. */
void ops_init(struct engine *e, size_t request_room);
/* Drops all operations, as a crash would. */
void ops_drop(struct engine *e);
/* Allocates a zeroed operation struct of size bytes that begins with a struct op, and registers it
 * with the list. */
void *op_create(struct engine *e, struct list *list, size_t size, op_step *step, op_fini *fini);
/* Takes a place of its list, which was free, and leaves the one that it had; leaves that. An
 * operation that ends leaves its place. */
void op_enter(struct op *op, struct op **place);
void op_leave(struct op *op);
/* Ends it where it stands, as a crash would; its calls must be others' by then. */
void op_abort(struct engine *e, struct op *op);
/* Starts it, or steps it when it waits for something other than a reply. The operation may be gone
 * afterwards. */
void op_run(struct engine *e, struct op *op);
/* The same in the next engine_run. */
void op_wake(struct engine *e, struct op *op);
/* Not any more: it goes on with the next event. */
void op_stop_waking(struct op *op, struct engine *e);
/* Hands an event to the operation and settles what follows. */
void op_deliver(struct engine *e, struct op *op, const struct op_event *event);
/* Lets an operation go on that waits for this worker's changes, once there are none. */
void op_check_quiet(struct engine *e, struct list *list);
/* Keeps this worker's changes of the list, and the publishing of its other operations, back until
 * op_stop_publishing. True when none is under way any more; OP_BECOME_PUBLISHER waits for that. */
bool op_become_publisher(struct op *op);
void op_stop_publishing(struct engine *e, struct op *op);
#define OP_BECOME_PUBLISHER(co, op) \
    while (!op_become_publisher(op)) { \
        CO_AWAIT(co, "waiting for own changes"); \
    }
/* Until when an operation sleeps that has met a conflict so many times, for CO_SLEEP: 1 us to
 * unit_us, doubled for each of them up to 8 times, by chance. So those that met come back apart. */
uint64_t op_backoff_end_us(struct engine *e, uint64_t unit_us, unsigned conflicts);
/* The name of the step that the oldest operation on this list waits in, "" when there is none. */
const char *op_waiting(const struct engine *e, const struct list *list);

/* A zeroed request with the key's placement, from the spare ones. */
struct list_request *request_new(struct engine *e, const struct list *list, enum be_verb verb);
void request_free(struct engine *e, struct list_request **request);
/* Where its operation notes that a call was told that the outcome is unknown; or NULL. */
static inline const bool *request_told_unknown(const struct list_request *request)
{
    bool is_ops = request->op != NULL && request->expiry == NULL;
    return is_ops ? &request->op->told_unknown : NULL;
}
/* Puts it into the outbox. */
void request_send(struct engine *e, struct list_request *request);

/* ---- emit.c, but for the first two ---- */

/* Makes the request one of the operation's, and counts it as outstanding. Value: the block's filled
 * part, of which the request takes its own reference. */
void op_prepare(struct op *op, struct list_request *request, struct block *value, uint64_t tag);
/* Emission: each puts one request into the outbox and counts it as outstanding; values as above. */
void op_send(struct engine *e, struct op *op, struct list_request *request, struct block *value,
             uint64_t tag);
void emit_get(struct engine *e, struct op *op, uint64_t tag);
/* The same of another list. */
void emit_get_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag);
/* The same, with intents that are not decided: for what decides them, or waits for that itself. */
void emit_get_raw_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag);
/* The same, and the head is not read: the event brings the reply alone. */
void emit_get_unread_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag);
/* Sends a read again whose answer was held, for that answer; rounds: how often that was so. */
void emit_get_again(struct engine *e, struct op *op, const struct list *list, uint64_t tag,
                    uint8_t rounds);
void emit_size(struct engine *e, struct op *op, uint64_t tag);
void emit_probe(struct engine *e, struct op *op, uint64_t tag);
void emit_size_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag);
void emit_append(struct engine *e, struct op *op, struct block *value, uint64_t tag);
/* The same, of changes that a failover may lose, since nothing else depends on them: of clients,
 * who did not read first. */
void emit_append_blind(struct engine *e, struct op *op, struct block *value, uint64_t tag);
/* The same to the head of another list, which is known to be one. */
void emit_append_to(struct engine *e, struct op *op, struct list *list, struct block *value,
                    uint64_t tag);
/* The same by CAS of what was read of that list, entries and all, for an item that takes no
 * appends: one that its server has moved to disk. It keeps its expiry. */
void emit_cas_appending(struct engine *e, struct op *op, struct list *list, const struct head *read,
                        const struct block *entries, uint64_t tag);
/* The same with decisions of transactions, so that it fits an item that is full as well:
 * layout_decided. */
void emit_cas_deciding(struct engine *e, struct op *op, struct list *list, const struct head *read,
                       const struct block *decisions, uint64_t tag);
/* Creates the head, with the prefix's time to live; with one of its own (expiry.h); that of any
 * list. */
void emit_add_head(struct engine *e, struct op *op, struct block *value, uint64_t tag);
void emit_add_head_to(struct engine *e, struct op *op, struct list *list, const struct life *life,
                      struct block *value, uint64_t tag);
static inline void emit_add_head_for(struct engine *e, struct op *op, const struct life *life,
                                     struct block *value, uint64_t tag)
{
    emit_add_head_to(e, op, op->list, life, value, tag);
}
/* Replaces the head that was read: its expiry stays, or is renewed as the prefix's ttl_renew says;
 * with another one. See expiry.h, also for the order in which requests behind it are carried out.
 */
void emit_cas_for(struct engine *e, struct op *op, const struct head *read, const struct life *life,
                  struct block *value, uint64_t tag);
void emit_cas(struct engine *e, struct op *op, const struct head *read, struct block *value,
              uint64_t tag);
/* The same for a list that begins with this CAS: it has a new one's time to live. */
void emit_cas_new(struct engine *e, struct op *op, const struct head *read, struct block *value,
                  uint64_t tag);
void emit_cas_delete(struct engine *e, struct op *op, const struct head *read, uint64_t tag);
/* exptime: as memcached takes it. */
void emit_add_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                      int32_t exptime, struct block *value, uint64_t tag);
void emit_delete_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                         uint64_t tag);
void emit_probe_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                        uint64_t tag);

/* ---- take_head.c ---- */

/* What an emit_get brought. */
enum head_result {
    GOT_HEAD,    /* *head holds a reference, the caller's */
    GOT_ABSENT,  /* the same, and the list is missing: absent.h. With on_missing = refuse only: for
                    others a missing list is an empty one, whatever the header says */
    GOT_NOTHING, /* there is no such item */
    GOT_ERROR,   /* text says what happened */
};
/* Sorts the reply to an emit_get; also notes the head's size for the list. *head must be NULL.
 * Writes the text behind SERVER_ERROR to error when GOT_ERROR. */
enum head_result op_take_head(struct engine *e, struct op *op, const struct op_event *event,
                              struct head **head, char error[LIST_ERROR_MAX]);
/* The same of a raw read, of any list. */
enum head_result op_take_head_of(struct engine *e, struct list *list, const struct op_event *event,
                                 struct head **head, char error[LIST_ERROR_MAX]);
/* Of such a reply: is there no head, but nothing, or what is no head of any version? */
static inline bool op_head_has_gone(const struct op_event *event)
{
    return event->status == BE_MISS ||
           (event->status == BE_HIT && event->head == NULL && !head_may_be(event->reply));
}

/* ---- what writes were answered ---- */

/* Was a write answered so not done, since the item has changed or gone, or takes no appends? */
static inline bool write_was_refused(enum be_status status)
{
    return status == BE_NOT_STORED || status == BE_EXISTS || status == BE_NOT_FOUND;
}
/* Was a change refused because the server has no room for it? */
bool op_found_no_memory(const struct op_event *event);
/* The text for a change that did not end well: says whether it may have been done. */
void op_error_text(const struct op_event *event, char error[LIST_ERROR_MAX]);

/* ---- calls: calls.c ---- */

/* Puts calls at the end of an operation's queue; it must know how to let go of them. */
static inline void call_enter(struct op *op, struct call_queue *queue, struct list_call *call)
{
    call->op = op;
    TAILQ_INSERT_TAIL(queue, call, link);
}
/* The operation has nothing to do with it any more. */
static inline void call_leave(struct list_call *call)
{
    call->op = NULL;
    if (call->given_items != NULL) {
        call->items = call->given_items;
        call->ops = call->given_ops;
        call->given_items = NULL;
        call->given_ops = NULL;
    }
}
/* The operation has done nothing: its calls go back to the front of the list's queue, in their
 * order. */
void calls_give_back(struct engine *e, struct list *list, struct call_queue *calls);
/* Ends calls. The call is the submitter's again once engine_take_done gave it. */
void call_finish(struct engine *e, struct list *list, struct list_call *call,
                 enum list_status status);
void call_fail(struct engine *e, struct list *list, struct list_call *call, const char *format, ...)
    PRINTF_LIKE(4, 5);
void calls_fail(struct engine *e, struct list *list, struct call_queue *calls, const char *text);

#endif
