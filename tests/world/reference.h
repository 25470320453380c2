/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list format once more, read slowly and simply and without any code of src/list, so that both
 * are not wrong in the same way. The model (model.h) and the fuzzers read lists by it. What is read
 * points into the bytes given.
 */
#ifndef WORLD_REFERENCE_H
#define WORLD_REFERENCE_H

#include "base/slice.h"

/* A list's content: its items in order, also those whose time is over. */
struct ref_items {
    struct slice *items;
    uint64_t *until; /* of each, the second in which it is over; 0: never */
    size_t count, cap;
};

void ref_items_fini(struct ref_items *items);
bool ref_items_has(const struct ref_items *items, struct slice item);
bool ref_items_equal(const struct ref_items *a, const struct ref_items *b);
void ref_items_copy(struct ref_items *to, const struct ref_items *from);
/* What the op of an entry does to the content. until: of an '@'. */
void ref_apply_timed(struct ref_items *items, char op, uint64_t until, struct slice item);
void ref_apply(struct ref_items *items, char op, struct slice item);
/* Takes those out that are over in that second. */
void ref_drop_over(struct ref_items *items, uint64_t now_s);

/* Takes an entry off the front. False when it is cut short or its op is not known. The bytes of an
 * '@' are the item, *until its second; of others it is 0. */
bool ref_take_timed(struct slice *rest, char *op, uint64_t *until, struct slice *bytes);
bool ref_take_entry(struct slice *rest, char *op, struct slice *bytes);
/* Replays entries, announcements passed over. False when one is malformed. */
bool ref_replay(struct ref_items *items, struct slice entries);
/* Is there a '!' among well-formed entries? */
bool ref_clears(struct slice entries);

/* NAME.COUNT, with what stands behind it in a run, and in front of it in garbage. */
struct ref_range {
    struct slice name;
    uint64_t count;
    uint64_t bytes, items; /* runs */
    uint64_t created;      /* announcements */
};

struct ref_ranges {
    struct ref_range *ranges;
    size_t count, cap;
};
/* The range of that name, or NULL. */
const struct ref_range *ref_find(const struct ref_ranges *ranges, struct slice name);

struct ref_head {
    struct slice value, log;
    struct ref_ranges runs, garbage, announcements; /* the latter with withdrawals */
    uint64_t max; /* of "#MAX.drop" and "#MAX.refuse"; 0: there is none */
    bool refuses;
    struct slice until, absent; /* the fields "@" and "?", as they stand there; empty: none */
    bool timed;                 /* there is a field "%", with these seconds */
    uint64_t earliest, latest;
};

/* Reads a head. False when it is none; ref_head_fini is needed in both cases. Its log may hold
 * intents and decisions, which txlog.h resolves; whether they fit one another is left open. */
bool ref_head_read(struct ref_head *head, struct slice value);
void ref_head_fini(struct ref_head *head);
/* Is the run announced in the log, and the announcement not withdrawn? */
bool ref_head_announces(const struct ref_head *head, struct slice name);
bool ref_head_withdraws(const struct ref_head *head, struct slice name);

/* May an entry like this stand in a run, by what the field "%" says, or its absence? */
bool ref_head_covers(const struct ref_head *head, char op, uint64_t until);

/* Takes the count off a stored sublist; *entries are what follows. False when it is none. Whether
 * the entries are well-formed and as many is left open. */
bool ref_sublist_header(struct slice value, uint64_t *count, struct slice *entries);
/* A whole, well-formed sublist? */
bool ref_sublist_valid(struct slice value);

/* Where sublists are: sets *value, which must stay, or returns false. */
typedef bool ref_lookup(void *arg, struct slice name, uint64_t number, struct slice *value);

enum ref_result {
    REF_OK,
    REF_MISSING,   /* a sublist that counts is not there or is none */
    REF_IRREGULAR, /* a run names an item twice, or the header says something else of it than its
                      sublists: no program writes that, and its meaning is not defined */
};
/* What a list holds. *items is complete only for REF_OK. */
enum ref_result ref_content(const struct ref_head *head, ref_lookup *lookup, void *arg,
                            struct ref_items *items);

#endif
