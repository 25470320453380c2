/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head: the one mutable item of a list.
 *
 *     ^1 NAME.COUNT:BYTES:ITEMS ... -NAME.COUNT ...\n   header
 *     +9:user-1234-8:user-222 ...                       log
 *
 * Header fields: the runs, oldest first, each with its sublists, their bytes and the items they
 * add; "-" names of sublists that nothing refers to any more and that are still to be deleted.
 * Besides, each at most once: "@", "%", "?" and "#", see struct head_marks. Lists that move have
 * ">" besides, which this does not read (list/moving/places.h).
 * The content of the list: replay run 1, run 2, ..., then the log, in which changes of several
 * lists are resolved (resolve.h).
 */
#ifndef LIST_FORMAT_HEAD_H
#define LIST_FORMAT_HEAD_H

#include "list/format/cap.h"
#include "list/format/entry.h"
#include "list/format/name.h"
#include "list/format/name_set.h"
#include "list/format/resolve.h"

struct run {
    struct name_range range;
    uint64_t bytes; /* of all its sublists as stored; within what that many can have */
    uint64_t items; /* entries that add */
};

/* Which items of runs are over when. */
struct run_times {
    bool timed;          /* some are over in a second of their own */
    uint32_t earliest_s; /* if so: none of them before that second */
    uint32_t latest_s;   /* 0: an item stays for ever. Otherwise none is in the list from then on */
};
/* Of no items at all. */
#define RUN_TIMES_NONE ((struct run_times){.latest_s = ENTRY_UNTIL_MIN_S})

/* What a header says besides runs and garbage. Proxies carry it from one head to the next. */
struct head_marks {
    struct run_times times;   /* "%EARLIEST.LATEST", of all items of the runs; without that field
                                 none is over */
    int64_t sublists_until_s; /* "@SECOND": each sublist of the runs lives at least until then, in
                                 seconds since 1970, and the head no longer; 0: no such field, they
                                 live for ever */
    struct cap cap;           /* "#MAX.drop", "#MAX.refuse"; such a head has no runs */
    bool absent;              /* "?TOKEN.UNTIL": the list is to be taken for missing */
    uint64_t lease;           /* the TOKEN of the lease to fill it; 0: there is none */
    int64_t lease_until_s;    /* UNTIL, in seconds since 1970, by the proxies' clocks; 0 without a
                                 token */
};

/* The seconds that "@" can name: those that memcached takes for absolute ones. */
#define SUBLISTS_UNTIL_MIN_S (60 * 60 * 24 * 30 + 1)
#define SUBLISTS_UNTIL_MAX_S INT32_MAX
/* The last second that "?" can name: ten digits. */
#define LEASE_UNTIL_MAX_S INT64_C(9999999999)

/* An announcement in a log; with count 0 it withdraws the earlier one of that name: its owner gave
 * up, and nothing of that name is stored any more. */
struct announcement {
    struct name_range range; /* count: the greatest number of sublists the run can have */
    int64_t created_s;       /* wall clock of the proxy that announced */
};

/* Intents of a log that were undecided. */
struct head_open {
    uint32_t waiting; /* another list decides */
    uint32_t pending; /* this list is the primary */
    int64_t oldest_s; /* the wall clock of the proxy that wrote the oldest; 0: there are none */
};

/* A head as it was read. Reference-counted within one thread. */
struct head {
    uint32_t refs;
    struct block *block; /* value lives in it */
    struct slice value;  /* the whole item, as it is stored */
    /* The plain log. Where the item's own holds intents and decisions, this one stands in a block
     * of its own; and where open_count is not 0, intents are left out that may count. */
    struct slice log;
    struct block *log_block;     /* log lives in it */
    size_t raw_log_bytes;        /* of the log as it is stored */
    struct head_intent *intents; /* of the log, in its order */
    size_t intent_count;
    size_t open_count;     /* of these, not decided yet */
    struct head_open met;  /* what its reader has met at first, and waited for until it was decided
                            */
    struct block *residue; /* what a primary keeps of its transactions, or NULL: see resolve.h. It
                              stays in the head whatever becomes of its log, and the head stays */
    struct slice announcements; /* the log from the first one on */
    bool clears;                /* a '!' is in the log */
    struct run *runs;
    size_t run_count;
    struct name_range *garbage; /* nothing refers to these: they are to be deleted */
    size_t garbage_count;
    struct head_marks marks;
    bool log_timed;        /* an '@' is in the log, or behind its last '!' */
    uint32_t log_latest_s; /* as run_times.latest_s, of what the log adds */
    int64_t read_s;        /* the proxy's wall clock when it was read, which says which items
                              are over; ENTRY_NEVER_OVER until the reader sets it */
    uint64_t cas, epoch;
    int64_t ttl_s; /* -1 = no expiry */
    uint32_t flags;
    bool rolls_back;    /* as resolve_log's, of its server */
    struct head *whole; /* head_in_front, head_cut: what it was cut from, or NULL */
    bool is_cut;        /* head_cut */
    size_t cut_at;      /* so many bytes of the stored log stand in front */
};

enum head_status {
    HEAD_OK,
    HEAD_FOREIGN, /* not a head, one with counts that no run can have, or of a version or with ops
                     that this program does not know */
};

/* Reads the head of the list of that key out of a BE_GET reply with status BE_HIT. The log's
 * entries are checked to be well-formed. On HEAD_OK *out holds one reference, the caller's
 * (head_unref). */
MUST_CHECK enum head_status head_read(const struct be_reply *reply, struct slice key,
                                      struct head **out);
/* No more of it than what became of an intent, by the log alone: for who has to know only that. Of
 * the rest no more is checked than that the log is made of entries. */
MUST_CHECK enum head_status head_read_state(const struct be_reply *reply, struct slice key,
                                            const struct name *name, enum intent_state *state);
/* Of a primary whose log holds no intent of that name: does the log show that the commit came when
 * the intent was gone already, so that it has done nothing? False: it does not tell. */
bool head_commit_came_late(const struct be_reply *reply, const struct name *name);
/* The number of the format that a value names which head_read does not take, if it is that of a
 * later release; 0: it names none. */
uint64_t head_later_format(const struct be_reply *reply);
/* May the value of a BE_HIT that head_read does not take be a head of a later version? What begins
 * otherwise is something else that took the place of a head that has gone, and its intents with it.
 */
static inline bool head_may_be(const struct be_reply *reply)
{
    return reply->flags == 0 && reply->value.len > 0 && reply->value.p[0] == '^';
}
struct head *head_ref(struct head *head);
void head_unref(struct head **head);

/* The log as it is stored. */
static inline struct slice head_raw_log(const struct head *head)
{
    return slice_make(head->value.p + head->value.len - head->raw_log_bytes, head->raw_log_bytes);
}
/* Bytes of the header: all of the head but the log. */
static inline size_t head_header_bytes(const struct head *head)
{
    return head->value.len - head->raw_log_bytes;
}
/* Bytes of the stored log up to where it is cut: what a fold replaces. */
static inline size_t head_front_bytes(const struct head *head)
{
    return head->is_cut ? head->cut_at : head->raw_log_bytes;
}
/* What stands behind that. */
static inline struct slice head_tail(const struct head *head)
{
    struct slice tail = head_raw_log(head);
    (void)slice_take(&tail, head_front_bytes(head));
    return tail;
}
/* Bytes of that part that a fold would save, though the plain log stays as it is. */
size_t head_spent_bytes(const struct head *head);
/* Is it one of the head's runs? Whether the log makes them void does not count. */
bool head_names_run(const struct head *head, const struct name *run);

/* What the log says of the transaction of that name; NULL when it holds no intent of it. Valid as
 * long as the head. */
const struct head_intent *head_find_intent(const struct head *head, const struct name *name);
/* Its state; INTENT_GONE when there is none. */
enum intent_state head_intent_state(const struct head *head, const struct name *name);
/* Does a conflicting plain entry stand behind it, in front of what decides it? */
bool head_intent_is_crossed(const struct head *head, const struct name *name);
/* The same head with its log cut in front of that intent, which it must hold, as a reference of the
 * caller's. Of the intents in front those that are not decided are left out: they must not conflict
 * with what is asked. It is for reading only: value, CAS and sizes are those of the whole head. */
struct head *head_in_front(struct head *head, const struct name *name);
/* The same in front of the first intent that is not decided, of which there must be one. Such a
 * head can be written anew: its layout keeps all that stands behind the cut as it is stored. log
 * and residue are those of the part in front. */
struct head *head_cut(struct head *head);
/* The same head as of that second, as a reference of the caller's: others that share the head go on
 * with theirs. For reading only. */
struct head *head_as_of(struct head *head, int64_t read_s);
/* Does the log announce that name, in front of the cut or behind it? */
bool head_announces(const struct head *head, const struct name *name);
/* Sums over the runs. */
uint64_t head_run_bytes(const struct head *head);
uint64_t head_sublists(const struct head *head);
/* How many of the head's runs, from the oldest on, are the first of these: count of run_bytes each,
 * with a struct name at name_at. */
uint32_t head_runs_known(const struct head *head, const void *runs, uint32_t count,
                         size_t run_bytes, size_t name_at);

/* Does the head alone tell that the list holds an item? False: it may be empty. */
bool head_has_items(const struct head *head);

/* Has it items that are over in a second of their own, whether that has come or not? */
static inline bool head_is_timed(const struct head *head)
{
    return head->marks.times.timed || head->log_timed;
}
/* Does the head alone tell that there were items, and that all of them are over in that second? */
bool head_is_over(const struct head *head, int64_t now_s);

/* What both say together. */
struct run_times run_times_join(struct run_times a, struct run_times b);
/* Notes one item more. */
void run_times_add(struct run_times *times, const struct entry *entry);

/* Appends a header line to the block. marks: NULL when there are none. */
void head_append_header(struct block **b, const struct head_marks *marks, const struct run *runs,
                        size_t run_count, const struct name_range *garbage, size_t garbage_count);

/* What the head holds, and these entries behind it. The caller's reference. */
struct block *head_with_entries(const struct head *head, struct slice entries);

/* Versions and the tokens of leases have so many bits: clients whose numbers are doubles
 * (JavaScript) give larger ones back changed, and their cas or lput would never fit. */
#define VERSION_BITS 53
/* A version made of a 64-bit hash, or a token made of 64 random bits; never 0. */
uint64_t version_of_hash(uint64_t hash);
/* The version that clients see of an item with that CAS number and those bytes: another one
 * whenever the item has changed, also when a restarted server gives out the number again. The same
 * in every process; never 0. Takes time in proportion to the bytes. */
uint64_t head_version(uint64_t cas, struct slice value);

/* As grace_s: every announcement is dead, however young. */
#define GRACE_NONE INT64_MIN

/* Parses an announcement's bytes; false when malformed. */
bool announcement_parse(struct slice bytes, struct announcement *out);
/* Does it belong to a dead proxy? Older than grace_s, or from further in the future than that (a
 * clock that was wrong). */
bool announcement_is_dead(const struct announcement *announcement, int64_t now_s, int64_t grace_s);
/* Appends the announcement as a log entry. */
void announcement_append(struct block **b, const struct announcement *announcement);
/* Appends the withdrawal of a fresh name, which it returns. That name was never announced, so this
 * says nothing, and a head that is written anew loses it: one that was changed, and changed back,
 * is not the same again. */
struct name mark_append(struct block **b, struct rng *rng, int64_t now_s);
/* Does this log still hold the announcement of that name? (storage rule 3) */
bool log_has_announcement(struct slice log, const struct name *name);
/* Does this log withdraw it? */
bool log_has_withdrawal(struct slice log, const struct name *name);
/* Adds all names that it withdraws to the set. */
void log_withdrawals(struct slice log, struct name_set *set);
/* Does it hold that mark? Then *since is what was appended behind it; valid while the log is. */
bool log_since_mark(struct slice log, const struct name *mark, struct slice *since);

#endif
