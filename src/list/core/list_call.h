/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list call: what a client asks of one list, and the answer. The submitter fills in the first
 * half, the engine the second.
 */
#ifndef LIST_CORE_LIST_CALL_H
#define LIST_CORE_LIST_CALL_H

#include <sys/queue.h>

#include "base/chain.h"
#include "base/slice.h"
#include "config/config.h"
#include "list/core/list_verb.h"
#include "list/core/session.h"
#include "list/format/entry.h"
#include "proto/key.h"
#include "proto/tx_lines.h"

struct due_queue;
struct head;
struct inner;
struct list;
struct op;

enum list_status {
    LIST_OK,
    LIST_MISSING, /* reads: no such list (or an empty one, unless on_missing = refuse); on_missing =
                     refuse: changes */
    LIST_NOT_STORED, /* LIST_CREATE: exists. LIST_ADD with on_missing = refuse: missing. A condition
                        that the list does not meet, but for what the next one and LIST_MISSING say.
                        LIST_TX: a condition did not hold */
    LIST_EXISTS,     /* LIST_IF_VERSION, LIST_IF_LEASED: the list is not as expected any more */
    LIST_CLIENT_ERROR, /* error holds the text behind CLIENT_ERROR */
    LIST_SERVER_ERROR, /* error holds the text behind SERVER_ERROR; it says whether a change may
                          have been done */
};

/* What must be so in the instant of the change, or nothing is done. */
enum list_condition {
    LIST_ALWAYS,
    LIST_IF_MISSING, /* otherwise LIST_NOT_STORED */
    LIST_IF_PRESENT, /* otherwise LIST_NOT_STORED */
    LIST_IF_VERSION, /* the version is the one expected; otherwise LIST_EXISTS, or LIST_MISSING */
    LIST_IF_LEASED,  /* the list is missing, and the token expected is that of its lease; otherwise
                        LIST_EXISTS */
};

enum list_form {
    LIST_FORM_JOINED, /* items joined by the policy's delimiter */
    LIST_FORM_ITEMS,  /* "ITEM KEY BYTES\r\n" item "\r\n" for each item */
};

#define LIST_ERROR_MAX 256

struct list_stat {
    uint64_t items, log_bytes, log_entries, runs, sublists, sublist_bytes, garbage_names,
        announcements, head_cas, cached, timed;
    uint64_t transactions_waiting, transactions_pending, transactions_committed;
    int64_t transaction_age_s; /* of the oldest of these; 0: none */
    int64_t ttl_s;
    const char *head_server; /* or NULL */
};

/* What an LIST_TX asks of one list. */
struct tx_change {
    enum tx_op op;
    const struct slice *items;
    size_t item_count; /* 1 or more; of TX_OP_SET also 0: the list has no items then */
};

/* One of the lists of a call that takes several. */
struct call_list {
    /* Filled by the submitter, as in list_call. */
    struct slice key;
    const struct list_policy *policy;
    const struct tx_change *changes; /* LIST_TX: done in this order. TX_OP_REQUIRE and TX_OP_REFUSE
                                        are judged on what the list holds before all of them */
    size_t change_count;
    struct chain answer; /* LIST_GETX: its items */

    /* Filled by the engine. */
    bool is_there;
    uint64_t number; /* LIST_GETX: how many items */
};

struct list_call {
    /* Filled by the submitter; key and items live in memory that stays until the call is done. */
    enum list_verb verb;
    enum list_form form;
    struct slice key;
    const struct list_policy *policy;
    struct list_session *session;
    const struct slice *items;
    size_t item_count;
    const char *ops; /* LIST_ADD: ENTRY_ADD or ENTRY_DEL for each item, all of them in one step, one
                        after the other; NULL: all are added */
    int64_t from, to;
    int64_t count; /* LIST_POP, LIST_POPTO: how many of the oldest items, negative: of the newest;
                      LIST_RANDOM, LIST_AFTER, LIST_BEFORE: how many */
    struct slice source; /* LIST_COPY: the list that is copied, which stays, too */
    const struct list_policy *source_policy;
    struct call_list *lists; /* of kind JOINT: all lists, the first one is that of key. Of kind TX
                                the same, each key once. LIST_MOVE, LIST_POPTO: the list that items
                                leave, then the one that gets them, whose key and delimiter an
                                answer has. Of a LIST_INTERSTORE and the like: those that are read
                              */
    size_t list_count;       /* 1 or more; of kind TX to TX_LISTS_MAX */
    int64_t seconds;         /* LIST_LEASE, LIST_ADDT: how long from now on */
    enum list_condition condition; /* of changes that take one */
    uint64_t expected;             /* LIST_IF_VERSION: the version; LIST_IF_LEASED: the token */
    bool has_exptime;              /* false: a list keeps its time, a new one gets the prefix's */
    int64_t exptime; /* LIST_TOUCH has one always. As memcached reads it: 0 never, negative at once,
                        up to 30 days the seconds from now on, above that the second since 1970 */
    uint64_t deadline_us; /* mono_us by which it is answered, whatever happens; 0: never mind. While
                             the engine waits for the client (session.h) it does not come nearer */
    bool wants_version;   /* where items are answered, or counted: see version */
    void *owner;          /* the submitter's */

    /* Filled by the engine before the call is done. */
    enum list_status status;
    uint64_t number;       /* LIST_ADDX, LIST_DELX, LIST_MOVE, LIST_PURGE, LIST_LEN; where items are
                              answered: how many */
    uint64_t version;      /* if it was wanted: differs whenever the content may have changed, see
                              head_version. 0: the list is missing, or an LIST_HAS was answered
                              together with changes, and the version that they made is not known */
    struct chain answer;   /* where items are answered: these, in the form asked for.
                              Submitter runs chain_init before submission and chain_fini or chain_move
                              afterwards */
    struct list_stat stat; /* LIST_STAT; of LIST_TTL ttl_s alone: the list's or, where the call has
                              an item, that item's */
    char error[LIST_ERROR_MAX];

    uint32_t until_s;              /* the engine's: LIST_ADDT: the items are over in that second */
    TAILQ_ENTRY(list_call) link;   /* the engine's until the call is done, then the submitter's */
    TAILQ_ENTRY(list_call) active; /* the engine's */
    TAILQ_ENTRY(list_call) due;    /* the engine's: those with deadlines, see deadline.h */
    uint64_t time_us;              /* the engine's: from submission to deadline */
    struct due_queue *due_in;      /* the engine's */
    bool ghost;                    /* the engine's: stands for one that was answered, see
                                      dialect/shared/work.c */
    const struct slice *given_items; /* the engine's: the submitter's, while items are a copy; */
    const char *given_ops;           /* and so are ops */
    uint64_t key_hash;               /* the engine's: while list is NULL */
    size_t log_bytes;                /* the engine's: what its items take in the log at most */
    struct list *list;               /* the engine's: NULL until it has been looked up */
    struct inner *inner;             /* the engine's: the call is one of its own, see inner.h */
    struct op *op;                   /* the engine's: the operation that carries it, or NULL */
    struct head *head;               /* the engine's: what a read is answered from */
    bool fills;                      /* the engine's: it is done by change/put.h */
    bool deferred;                   /* the engine's: see session.h */
    bool in_doubt; /* the engine's: it was done where it does not count any more */
    TAILQ_ENTRY(list_call) deferred_link; /* the engine's */
    uint64_t charged_bytes;               /* the engine's */
    LIST_ENTRY(list_call) charged_link;   /* the engine's: while that is not 0 */
    uint64_t wanted_bytes; /* the engine's: what there was no room for when it was deferred */
    unsigned waits;        /* the engine's: how often it waited for a compaction */
    bool refused;          /* the engine's: the list's cap refuses it */
    uint64_t room_bytes;   /* the engine's: what there was no room for in the log; 0: never so */
};

/* LIST_ADD, LIST_DEL: is item i of the call deleted? */
static inline bool list_call_deletes(const struct list_call *call, size_t i)
{
    return call->verb == LIST_DEL || (call->ops != NULL && call->ops[i] == ENTRY_DEL);
}

/* What the log gets of a change at most. */
static inline size_t list_call_log_bytes(const struct list_call *call)
{
    return call->log_bytes + (call->verb == LIST_SET ? entry_bytes(0) : 0);
}

/* What the log says of an item that the call adds. */
static inline enum entry_op list_call_adds(const struct list_call *call)
{
    if (call->verb == LIST_ADDT) {
        return ENTRY_TIMED;
    }
    return call->policy->order == ORDER_RECENT ? ENTRY_READD : ENTRY_ADD;
}

#endif
