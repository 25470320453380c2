/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lists that this worker deals with or remembers: what waits for each, what is under way, and
 * what is known of its head's size. Bounded: idle ones are forgotten, those that were not used for
 * long first (tracked_lists).
 */
#ifndef LIST_CORE_LISTS_H
#define LIST_CORE_LISTS_H

#include "list/core/op.h"

/* A compaction that an operation wishes for. Only schedule.c starts compactions, from these wishes
 * and from calls. */
enum list_wish {
    WISH_NONE,
    WISH_COMPACT,         /* the log is long */
    WISH_COMPACT_INSTEAD, /* the same, and the proxy that should compact it does not seem to */
    WISH_CLEAR,           /* a sublist is missing, and on_damaged = miss */
    WISH_HEAL,            /* a sublist is missing, and this process has it in its cache */
};

/* read/recent.h */
struct recent {
    uint64_t cas, epoch; /* of the head; epoch 0: of none */
    uint64_t asked_us;   /* when it was asked for */
    unsigned changes;    /* this proxy's, by then: own_changes.h */
};

/* What most calls touch stands together, and the key behind it: from LIST_BUSY_FROM on. */
struct list {
    TAILQ_ENTRY(list) lru;
    TAILQ_ENTRY(list) waiting;
    /* For lstat: the undecided intents for which reads wait (held_reads.h), or the last to wait. */
    struct head_open met;
    struct op *renewal;       /* the one that renews its time to live */
    struct op *settler;       /* the one that finds out what became of intents: held_reads.h */
    struct op *finisher;      /* the one that finishes transactions: finish.h */
    int64_t finish_grace_s;   /* of those that are older; GRACE_NONE: of all */
    uint64_t finish_after_us; /* no such wish of its own accord before */
    struct op *writer;        /* dialects: what changes it, or folds it */
    struct op *reader;        /* dialects: what reads it */

    /* This worker's transactions on it: tx/queue.h. */
    TAILQ_HEAD(, tx_part) transactions;

    uint64_t cap_after_us; /* no compaction is wished for the cap's sake before */
    struct list_extent extent;
    bool has_no_runs;        /* as far as known; false when nothing is known */
    bool no_times;           /* its servers do not tell times to live: be_reply */
    const char *head_server; /* name of the server that answered last for the head, or NULL */

    size_t view_bytes;  /* memory that the view was counted with */
    struct op *viewing; /* the operation that brings it up to date */
    bool view_lags;     /* a head was seen whose runs it does not have; reads bring them in */
    /* A sublist of that run was missing when a read asked for it last; zero: none was. Names never
     * return, so while a head names the run, the list may be damaged. */
    struct name suspect;
    TAILQ_ENTRY(list) view_lru;
    struct ends *ends; /* what is known of the ends of a queue, or NULL */
    TAILQ_ENTRY(list) ends_lru;

    struct outline *outline; /* the same of a list that is too large for a view, or NULL */
    size_t outline_bytes;
    struct op *indexing;     /* the operation that reads by it */
    uint64_t index_after_us; /* no reads by an index before */
    TAILQ_ENTRY(list) outline_lru;

    uint64_t patience_us;         /* until then another worker's compaction of it is waited for */
    unsigned compact_failures;    /* in a row */
    struct name_range wish_about; /* WISH_CLEAR, WISH_HEAL: the run, and the missing sublist's
                                     number */
    uint64_t touch_after_us;
    uint64_t renew_after_us;
    bool knows_clock;
    int64_t clock_lead_s; /* what the head's server's clock shows, less the proxy's, as seen last */
    int64_t wanted_until_s;  /* an ltouch waits for sublists that live until then; INT64_MAX: for
                                ever; see list_wanted_until_s */
    uint64_t wanted_by_us;   /* the ltouch's deadline */
    uint64_t turns_after_us; /* sessions go one by one before: has_turns */
    unsigned turns_failures; /* in a row */
    bool wants_compaction;   /* set by operations of the plugin, for its schedule */
    void *plugin_state; /* the plugin's own memory (plugin.h); NULL: the layout is the engine's */

    struct view *view; /* the content as of the last read, or NULL */
    /* For which head the view may answer without a look at the server. */
    struct recent recent;
    uint64_t crowded_us; /* when the log was first seen over backoff.c's line; 0 = it is not */
    uint64_t compact_after_us; /* no automatic compaction before */

    struct op *round;      /* the round of blind changes and head reads in progress */
    struct op *held_round; /* one whose reads wait for a transaction (held_reads.h): changes go
                              on in rounds of their own, reads wait for its end */
    struct op *exact;      /* the exact operation in progress, also an lpop */
    struct op *turns;      /* the batch of changes and looks in turns in progress */
    struct op *compaction; /* the compaction in progress, unless it is merging */
    struct op *merge;      /* the one that is: merges are long, flips go on beside them */
    struct op *put;        /* the replacement of the whole content in progress */
    struct op *forget;     /* the lpurge in progress */
    struct op *publisher;  /* which of the four is publishing: changes of this worker wait */
    struct timer append_backoff; /* set while this worker's appends wait for the sake of others'
                                    flips */

    /* What the head says of a cap, as last seen. */
    struct cap cap;
    uint64_t folded_bytes; /* of a capped list: what its log amounts to, as last seen; 0: not known
                            */
    uint64_t expires_us; /* mono_us in which the head expires, as last seen; 0: never, or not known
                          */
    uint64_t item_size_max; /* of the head's server; 0 = not known */
    /* The head's size as last seen, and what this worker appended since. */
    uint64_t size_bytes, appended_bytes;
    uint64_t appended_total; /* by this worker, ever */
    uint64_t header_bytes;

    enum list_wish wish; /* for schedule.c */
    unsigned ops;        /* operations of any kind */
    uint32_t trip_us;    /* round trip of the head's server; 0 = not known. See backoff.h */
    bool size_known;
    uint8_t looks_shared; /* so many more before its log counts as this worker's alone */
    bool head_full;    /* a change found a short log, and no room for it in the item all the same */
    bool round_writes; /* the round carries changes that are not answered yet */
    bool is_waiting;   /* for memory to grant the wish: in lists.waiting */
    bool wants_finish; /* a wish for the finisher, for schedule.c */
    bool wants_renewal; /* a transaction has changed it: renew.h */
    bool has_turns;     /* sessions wait that change it and look into it in turns: change/turns.h */
    /* What stands under the head's name is one, as last seen: appends need no look at it. */
    bool has_head;
    /* Instead, that name holds a head that says the list is missing: format/absent.h. */
    bool is_absent;
    bool moves;     /* it may move to another server: be_reply */
    bool is_native; /* as far as this worker knows; else the plugin schedules it */
    bool is_ready;
    bool is_used; /* since forgetting came by last */
    uint8_t key_len;

    struct call_queue queue;  /* waiting */
    struct call_queue active; /* in operations, linked by list_call.active */
    TAILQ_ENTRY(list) ready;
    const struct list_policy *policy;
    struct list *next; /* in the bucket */
    uint64_t hash;
    char key[];
};
#define LIST_BUSY_FROM offsetof(struct list, view)

struct lists {
    const struct list_plugin *plugin;
    struct list **buckets;
    size_t bucket_count; /* a power of two */
    size_t count, limit;
    struct list *last; /* asked for last, or NULL: most often it is asked for again */
    /* Newest first. A list that is used stays where it is, and forget_idle puts it to the front
     * when it comes by: so a use writes to no other list's memory. */
    TAILQ_HEAD(lists_lru, list) lru;
    TAILQ_HEAD(lists_ready, list) ready;
    TAILQ_HEAD(lists_waiting, list) waiting; /* their compactions wait for others' memory */
    uint64_t compacting_bytes;               /* what those under way take: compact/compact.h */
    TAILQ_HEAD(lists_views, list) views;     /* lists that have one, most recently used first */
    TAILQ_HEAD(lists_ends, list) ends;       /* the same */
    size_t ends_count;
    uint64_t view_bytes, view_limit_bytes;
    TAILQ_HEAD(lists_outlines, list) outlines; /* the same for outlines */
    uint64_t outline_bytes, outline_limit_bytes;
};

/* plugin: may be NULL if all lists are in the engine's own layout. */
void lists_init(struct lists *lists, const struct list_plugin *plugin, size_t limit,
                uint64_t view_limit_bytes);
void lists_fini(struct lists *lists);

/* The list of that key, made when it is not known yet; forgets idle ones beyond the limit. Never
 * NULL; valid while it has calls or operations. */
struct list *lists_get(struct lists *lists, struct slice key, const struct list_policy *policy);
/* The same in three steps, with calls on other lists between them: among thousands of lists this
 * one is in no cache, and the time until its memory is there passes for many of them at once. */
uint64_t lists_expect(const struct lists *lists, struct slice key);
void lists_fetch(const struct lists *lists, uint64_t hash);
struct list *lists_get_expected(struct lists *lists, struct slice key, uint64_t hash,
                                const struct list_policy *policy);
/* The same without making one: NULL when it is not known. */
struct list *lists_find(const struct lists *lists, struct slice key);
/* Asks for the list to be looked at in this run. */
void lists_mark_ready(struct lists *lists, struct list *list);
struct list *lists_take_ready(struct lists *lists);
/* Asks for a compaction in this run, unless the list has one under way or a wish for one. about:
 * for WISH_CLEAR and WISH_HEAL the run, and the missing sublist's number as its count; else NULL.
 */
void lists_wish(struct lists *lists, struct list *list, enum list_wish wish,
                const struct name_range *about);
/* The list joins those that wait, unless it is there; or leaves them, and the next one is marked as
 * ready. */
void lists_wait(struct lists *lists, struct list *list);
void lists_stop_waiting(struct lists *lists, struct list *list);

/* The list's view, an empty one at first. Used last as of now. */
struct view *lists_get_view(struct lists *lists, struct list *list);
/* Counts its memory anew; those used longest ago go when all together are too large. */
void lists_count_view(struct lists *lists, struct list *list);
void lists_drop_view(struct lists *lists, struct list *list);
/* Has a list of so many bytes, in runs and log, room for a view beside that of another one? */
bool lists_view_fits(const struct lists *lists, uint64_t run_bytes, uint64_t log_bytes);

/* The same as for views. */
struct outline *lists_get_outline(struct lists *lists, struct list *list);
void lists_count_outline(struct lists *lists, struct list *list);
void lists_drop_outline(struct lists *lists, struct list *list);

/* What is known of the ends of the list, nothing at first. Used last as of now. Stays while the
 * list has an operation; of others, those that were used longest ago are forgotten
 * (LISTS_ENDS_MAX). */
struct ends *lists_get_ends(struct lists *lists, struct list *list);
/* Each holds a log, decoded: about 100 KB with log_limit_bytes as it is by default. */
#define LISTS_ENDS_MAX 64

static inline struct slice list_key(const struct list *list)
{
    return slice_make(list->key, list->key_len);
}

/* The head has this size, with all that this worker has appended. */
void list_note_size(struct list *list, uint64_t size_bytes);
/* The head was seen with this size, and header, by a request that was emitted when appended_total
 * was appended_bytes: what was appended since stands behind that. */
void list_note_seen(struct list *list, uint64_t size_bytes, uint64_t appended_bytes);
void list_note_head(struct list *list, const struct head *head, uint64_t appended_bytes);

/* The log's bytes as far as known; 0 when nothing is known. */
uint64_t list_log_bytes(const struct list *list);
/* The policy's limits, kept within the longest value that the head's server stores, as far as
 * known: a log takes half of a value at most, and compaction begins at half of that at the latest.
 */
uint64_t list_log_limit(const struct list *list);
uint64_t list_log_hard_limit(const struct list *list);
/* What may still be appended to the log, as far as known. */
uint64_t list_log_room(const struct list *list);
uint64_t list_sublist_limit(const struct list *list);
/* What a change is answered with for which there is no room. */
#define LIST_LOG_FULL "list log full, nothing done: compaction is behind, try again"
/* Is there room for that many bytes of entries behind this head? Notes a head that is full. */
bool list_has_room(struct list *list, const struct head *head, size_t bytes);
/* The cap that the file says. */
static inline struct cap list_policy_cap(const struct list_policy *policy)
{
    return (struct cap){policy->max_items, policy->max_items != 0 && policy->cap == CAP_REFUSE};
}
/* Is a change of this worker under way that a CAS must wait for? */
static inline bool list_writing(const struct list *list)
{
    return list->round_writes || list->exact != NULL || list->turns != NULL;
}

#endif
