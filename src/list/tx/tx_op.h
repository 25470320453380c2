/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this room share: a transaction under way, see tx.h. In its order: plan.c, what
 * it does to each list; propose.c, which list decides, whether all have room, intents, and
 * validation with conditions and caps that refuse; tx.c, attempts, the decision, how it gets to all
 * lists, and the answer. tx_op.c has the requests to the lists.
 */
#ifndef LIST_TX_TX_OP_H
#define LIST_TX_TX_OP_H

#include "list/core/settle.h"
#include "list/format/intent.h"
#include "list/read/question.h"

struct op_tx;

/* One of its lists. */
struct tx_part {
    struct list *list; /* counted as one that has an operation */
    struct op_tx *tx;

    /* What the transaction does here: the entries of the intent, which begin anew with each plan.
     * Items lie in op_tx.memory or plan. */
    struct block *entries;
    struct slice *asked; /* conditions: these items, */
    bool *wanted;        /* ... and whether they are to be in the list */
    size_t asked_count, asked_cap;
    uint64_t item_bits; /* two for each item, by its hash: queue.h; all bits: it is about all items
                         */

    /* Of this attempt. */
    bool is_missing; /* as last seen */
    bool ends;       /* it has a time to live, as last seen */
    bool makes;      /* what is sent is an ADD of its head */
    bool proposed;   /* its intent is in the log, or may get there */
    bool stored;     /* the intent was */
    bool published;  /* the decision is in its log, or the list does not need it any more */
    bool waits;      /* it has no room yet */
    unsigned tries;
    bool rewrites;        /* the last write is a CAS, since the one before was refused */
    enum be_status wrote; /* of the last write; BE_HIT: there was none */
    enum head_result got; /* of the last read */
    bool empty;           /* it was made for the transaction, or had no items when it was read */
    bool lost; /* the last read has shown what is no head: nothing more is appended to that */
    struct head *head;       /* what it brought; NULL: none, or only state was read */
    enum intent_state state; /* of the transaction, by that read; INTENT_GONE: none */
    bool is_late;            /* then, of state alone: its commit came when it was gone already */

    TAILQ_ENTRY(tx_part) queued; /* in its list: queue.h */
};

/* Of the transaction that is announced under op_tx.name. */
enum tx_phase {
    TX_PHASE_NOT_BEGUN,
    TX_PHASE_WAITING, /* for all of its lists to have the intent */
    TX_PHASE_PENDING, /* all have it, and the primary decides */
    TX_PHASE_COMMITTED,
};

enum tx_state {
    TX_GOING,
    TX_AGAIN,     /* another writer was in the way, nothing done */
    TX_ELSEWHERE, /* the primary has a time to live: another one */
    TX_COMMITTED,
    TX_NOTHING,    /* there was nothing to move */
    TX_NOT_STORED, /* a condition did not hold */
    TX_MISSING,
    TX_REFUSED, /* error is behind CLIENT_ERROR */
    TX_FAILED,  /* error is behind SERVER_ERROR; nothing done */
    TX_UNKNOWN, /* the same, and the outcome is not known */
};

struct op_tx {
    struct op op;
    struct list_call *call; /* NULL: it was answered, or its time is over */
    bool over;              /* its time was over before &c was sent: it ends in an abort */
    enum list_verb verb;
    int64_t count;       /* LIST_POPTO */
    struct arena memory; /* copies of the call's items */
    struct arena plan;   /* what each plan makes anew */
    size_t memory_bytes; /* of all that the transaction holds, as counted: tx_count_memory */
    struct slice *items; /* LIST_MOVE: each once */
    size_t item_count;

    struct tx_part parts[INTENT_KEYS_MAX];
    size_t part_count;
    size_t primary;
    size_t at; /* the part that is being looked at */

    struct name name;
    int64_t created_s;
    enum tx_state state;
    enum tx_phase phase;
    int64_t begun_s;         /* the wall clock, when the first phase began */
    TAILQ_ENTRY(op_tx) open; /* of the engine, while in a phase */
    unsigned attempts, tries;
    bool looks_at_all; /* before the first intent, whatever is known of the lists */
    bool all_read;     /* behind all intents */
    int64_t judged_s;  /* the second in which lists were judged that have items with a time of their
                          own; 0: there were none */
    bool committing;   /* &c is on its way, or may have been done */
    bool refused;      /* &c was, whatever was sent */
    bool begun;        /* an intent may be somewhere */
    bool confirms;     /* a list has forgotten the transaction: the primary is to confirm it */
    struct settle settle;
    struct question question;

    /* LIST_MOVE, LIST_POPTO. */
    struct inner *look;
    struct gather gather; /* LIST_POPTO: the items at that end, */
    int64_t range_count;  /* ... so many at most */
    size_t found_count;   /* how many there were when it was planned */
    size_t moved_count;   /* those that were planned to be moved, in plan */
    struct slice *moved;
    bool no_additions; /* none may stand behind its intent in the first list */

    bool in_queue;
    unsigned blockers; /* those in front in a queue that it waits for */
    char error[LIST_ERROR_MAX];
};

static inline struct tx_part *tx_primary(struct op_tx *o)
{
    return &o->parts[o->primary];
}
/* LIST_POPTO: how many items the client asks for. */
static inline uint64_t tx_wanted_count(const struct op_tx *o)
{
    return o->count < 0 ? 0 - (uint64_t)o->count : (uint64_t)o->count;
}
/* Has it neither ended nor run out of time? */
static inline bool tx_goes_on(const struct op_tx *o)
{
    return o->state == TX_GOING && !o->over;
}

/* ---- tx_op.c ---- */

void tx_fail(struct op_tx *o, enum tx_state state, const char *format, ...) PRINTF_LIKE(3, 4);
/* TX_FAILED with that text, which says "nothing done" at its end if it does not say so yet. */
void tx_fail_undone(struct op_tx *o, const char *text);

/* Counts what the transaction holds, and says whose it is. */
void tx_count_memory(struct op_tx *o);

/* Waits for the question's answer; ends with state when there is none. Then, or when it was never
 * asked: forgets it. */
enum progress tx_ask_step(struct op_tx *o, const char *waiting);
void tx_forget_question(struct engine *e, struct op_tx *o);

/* Requests to the lists; the replies are noted in the parts. */

/* Sends an append. Where the last write was refused, though the read behind it has brought a head,
 * the list's server takes no appends to it, since it has moved it to disk: then a CAS, with all
 * that the head holds. */
void tx_send_write(struct engine *e, struct tx_part *part, struct block *value);
void tx_send_decision(struct engine *e, struct tx_part *part, enum decision decision);
/* An ADD of the head. */
void tx_send_new(struct engine *e, struct tx_part *part, struct block *value);
/* A read of the head, with undecided intents: nothing settles them on the way. */
void tx_send_read(struct engine *e, struct tx_part *part);
/* The same for part.state alone, once a decision was sent: that costs less where the log is long.
 */
void tx_send_read_state(struct engine *e, struct tx_part *part);
/* Was the last write refused, by an item that has gone, has changed, or takes none? */
bool tx_was_refused(const struct tx_part *part);
/* Waits for all that was sent. */
enum progress tx_await_step(struct engine *e, struct op_tx *o, const struct op_event *event,
                            const char *waiting);
/* Is it not known what became of the list? A value that is no head says that its head has gone. */
static inline bool tx_part_is_unknown(const struct tx_part *part)
{
    return part->got == GOT_ERROR && !part->lost;
}

/* ---- plan.c: what each list's intent says ---- */

/* Makes the parts of the call. */
void tx_plan_init(struct engine *e, struct op_tx *o);
void tx_plan_fini(struct engine *e, struct op_tx *o);
/* Fills in their entries and conditions; ends with state. */
enum progress tx_plan_step(struct engine *e, struct op_tx *o, const struct op_event *event);

/* LIST_POPTO: asks for the items at that end of the first list, which go to op_tx.gather. */
void tx_ask_range(struct engine *e, struct op_tx *o, struct head *head);

/* ---- propose.c ---- */

/* What precedes the first intent of an attempt. Ends with state, and a primary. */
enum progress tx_prepare_step(struct engine *e, struct op_tx *o, const struct op_event *event);
/* Rules 1 to 3. */
enum progress tx_propose_step(struct engine *e, struct op_tx *o, const struct op_event *event);

#endif
