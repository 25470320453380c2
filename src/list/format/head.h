/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head: the one mutable item of a list.
 *
 *     ^1 NAME.COUNT:BYTES:ITEMS ... -NAME.COUNT ... *NAME.COUNT ...\n   header
 *     +9:user-1234-8:user-222 ...                                       log
 *
 * Header fields: the runs, oldest first, each with its sublists, their bytes and the items they
 * add; "-" names of sublists that nothing refers to any more and that are still to be deleted; "*"
 * names that a dead proxy announced and that are to be overwritten by empty items, so that a late
 * write of its finds them taken. Besides, each at most once: "@" and "?", see struct head_marks.
 * The content of the list: replay run 1, run 2, ..., then the log.
 */
#ifndef LIST_FORMAT_HEAD_H
#define LIST_FORMAT_HEAD_H

#include "list/format/entry.h"
#include "list/format/name.h"

struct run {
    struct name_range range;
    uint64_t bytes; /* of all its sublists as stored; within what that many can have */
    uint64_t items; /* entries that add */
};

struct garbage {
    struct name_range range;
    bool burn; /* to be overwritten ("*") instead of deleted ("-") */
};

/* What a header says besides runs and garbage. Only proxies with format = 2 write such fields; all
 * read them, and carry them from one head to the next. */
struct head_marks {
    int64_t sublists_until_s; /* "@SECOND": each sublist of the runs lives at least until then, in
                                 seconds since 1970, and the head no longer; 0: no such field, they
                                 live for ever */
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

/* A head as it was read. Reference-counted within one thread. */
struct head {
    uint32_t refs;
    struct block *block; /* value lives in it */
    struct slice value;  /* the whole item */
    struct slice log;
    struct slice announcements; /* the log from the first one on */
    bool clears;                /* a '!' is in the log */
    struct run *runs;
    size_t run_count;
    struct garbage *garbage;
    size_t garbage_count;
    struct head_marks marks;
    uint64_t cas, epoch;
    int64_t ttl_s; /* -1 = no expiry */
    uint32_t flags;
};

enum head_status {
    HEAD_OK,
    HEAD_FOREIGN, /* not a head, one with counts that no run can have, or of a version or with ops
                     that this program does not know */
};

/* Reads the head out of a BE_GET reply with status BE_HIT. The log's entries are checked to be
 * well-formed. On HEAD_OK *out holds one reference, the caller's (head_unref). */
MUST_CHECK enum head_status head_read(const struct be_reply *reply, struct head **out);
struct head *head_ref(struct head *head);
void head_unref(struct head **head);

/* Bytes of the header: all of the head but the log. */
size_t head_header_bytes(const struct head *head);
/* Sums over the runs. */
uint64_t head_run_bytes(const struct head *head);
uint64_t head_sublists(const struct head *head);

/* Does the head alone tell that the list holds an item? False: it may be empty. */
bool head_has_items(const struct head *head);

/* Appends a header line to the block. marks: NULL when there are none. */
void head_append_header(struct block **b, const struct head_marks *marks, const struct run *runs,
                        size_t run_count, const struct garbage *garbage, size_t garbage_count);

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
/* Does this log still hold the announcement of that name? (storage rule 3) */
bool log_has_announcement(struct slice log, const struct name *name);
/* Does this log withdraw it? */
bool log_has_withdrawal(struct slice log, const struct name *name);

#endif
