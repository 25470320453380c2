/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/grammar.h"

#include <stdio.h>

#include "dialect/chunked/chunked.h"
#include "dialect/paired/pair.h"
#include "dialect/ring/ring.h"
#include "dialect/shared/dialect.h"
#include "dialect/two_logs/two_logs.h"

/* What foldings leave among the items begins with '@' and has at most so many bytes (logs.h,
 * pair.h), whatever max_item_bytes is. */
#define NOTE_BYTES_MAX 40
/* A blank and 20 digits behind a ring's item: its time. */
#define STAMP_BYTES_MAX 21

/* What pylibmc and pymemcache give to integers. */
#define FLAGS_OF_INTEGERS 2

struct check {
    const struct list_policy *policy;
    struct slice value;
    char *reason;
};

static const char *says(const struct check *c, const char *what, const char *at)
{
    snprintf(c->reason, GRAMMAR_REASON_MAX, "%s at byte %zu", what, (size_t)(at - c->value.p));
    return c->reason;
}

const char *grammar_bad_byte(struct slice item)
{
    for (size_t i = 0; i < item.len; i++) {
        unsigned char c = (unsigned char)item.p[i];
        if (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) {
            return item.p + i;
        }
    }
    return NULL;
}

static const char *check_item(const struct check *c, struct slice item, size_t more_bytes)
{
    const char *bad = grammar_bad_byte(item);
    if (bad != NULL) {
        return says(c, "a control byte", bad);
    }
    bool note = (item.p[0] == '@' && item.len <= NOTE_BYTES_MAX) ||
                pair_is_mark(item, (char)c->policy->delimiter);
    if (item.len > c->policy->max_item_bytes + more_bytes && !note) {
        return says(c, "an item longer than max_item_bytes", item.p);
    }
    return NULL;
}

/* Items, each with the delimiter behind it. A folding appends its mark with a delimiter in front,
 * so that a mark is the first item or follows an empty one. Else a value without a delimiter at its
 * end stood there, which was no list and only looks like one since the mark was appended. */
static const char *check_delimited(const struct check *c, struct slice text, bool empty_ones)
{
    char delimiter = (char)c->policy->delimiter;
    bool mark_may_follow = true;
    while (text.len > 0) {
        const char *end = memchr(text.p, delimiter, text.len);
        if (end == NULL) {
            return "no delimiter at the end";
        }
        struct slice item = slice_take(&text, (size_t)(end - text.p));
        (void)slice_take(&text, 1);
        if (item.len == 0 && !empty_ones) {
            return says(c, "an empty item", end);
        }
        const char *reason = item.len == 0 ? NULL : check_item(c, item, 0);
        if (reason != NULL) {
            return reason;
        }
        if (empty_ones && !mark_may_follow && pair_is_mark(item, delimiter)) {
            return says(c, "no delimiter before the mark", item.p);
        }
        mark_may_follow = item.len == 0;
    }
    return NULL;
}

/* What was deleted, a bar, what was added; or without a bar what was added. */
static const char *check_barred(const struct check *c)
{
    struct slice adds = c->value, deletes = SLICE_NONE;
    int bar = c->policy->deleted_delimiter;
    const char *found = adds.len == 0 ? NULL : memchr(adds.p, bar, adds.len);
    if (found != NULL) {
        deletes = slice_take(&adds, (size_t)(found - adds.p));
        (void)slice_take(&adds, 1);
        found = adds.len == 0 ? NULL : memchr(adds.p, bar, adds.len);
    }
    if (found != NULL) {
        return says(c, "a second bar", found);
    }
    const char *reason = check_delimited(c, deletes, false);
    return reason != NULL ? reason : check_delimited(c, adds, false);
}

static const char *find_sign(struct slice text, struct signs signs)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == signs.add || text.p[i] == signs.delete) {
            return text.p + i;
        }
    }
    return text.p + text.len;
}

static const char *check_number(const struct check *c, struct slice item)
{
    uint32_t number;
    return sublists_number(item, &number) ? NULL : says(c, "no number of a sublist", item.p);
}

/* Items, or numbers of sublists, each with a sign before it. */
static const char *check_signed(const struct check *c, struct slice text, bool numbers)
{
    struct signs signs = signs_of(c->policy);
    if (text.len > 0 && find_sign(text, signs) != text.p) {
        return "no sign at the beginning";
    }
    while (text.len > 0) {
        (void)slice_take(&text, 1);
        const char *end = text.len == 0 ? text.p : find_sign(text, signs);
        struct slice item = slice_take(&text, (size_t)(end - text.p));
        if (item.len == 0) {
            return says(c, "a sign without an item", end - 1);
        }
        const char *reason = numbers ? check_number(c, item) : check_item(c, item, 0);
        if (reason != NULL) {
            return reason;
        }
    }
    return NULL;
}

static const char *check_log(const struct check *c)
{
    struct slice text = c->value;
    while (c->policy->dialect == DIALECT_MARKER && text.len > 0 &&
           text.p[0] == (char)c->policy->closed_mark) {
        (void)slice_take(&text, 1);
    }
    return check_signed(c, text, false);
}

static const char *check_slot(const struct check *c)
{
    uint64_t number;
    struct slice entry;
    if (!ring_slot_parse(c->value, &number, &entry)) {
        return "no entry of a ring: a number, a blank, an item";
    }
    return check_item(c, entry, STAMP_BYTES_MAX);
}

static const char *check_key(const struct check *c)
{
    switch (c->policy->dialect) {
    case DIALECT_SIMPLE:
        return check_delimited(c, c->value, false);
    case DIALECT_TOMBSTONE:
        return check_barred(c);
    case DIALECT_SIGNED:
        return check_signed(c, c->value, false);
    case DIALECT_SUBLISTS:
        return check_signed(c, c->value, true);
    default:
        return NULL; /* nothing of the list stands there */
    }
}

const char *grammar_reason(const struct list *list, const struct part *part,
                           char reason[GRAMMAR_REASON_MAX])
{
    const struct check c = {list->policy, part->value, reason};
    /* INCR keeps the flags of the number that it counts, and no proxy writes a counter that is
     * there: what a client made as an integer stays one. */
    bool integer = part->role == PART_SEQ && part->flags == FLAGS_OF_INTEGERS;
    if (!integer && !grammar_flags_of_text(part->flags)) {
        snprintf(reason, GRAMMAR_REASON_MAX, "flags %u, which are not those of text", part->flags);
        return reason;
    }
    switch (part->role) {
    case PART_KEY:
        return check_key(&c);
    case PART_ADDS:
        return check_delimited(&c, c.value, false);
    case PART_DELETES: /* whoever folds leaves delimiters there */
        return check_delimited(&c, c.value, true);
    case PART_A:
    case PART_B:
        return check_log(&c);
    case PART_ACTIVE:
        return flip_active(list, c.value) != 0 ? NULL : "not the name of one of the two logs";
    case PART_SUBLIST:
        return check_signed(&c, c.value, false);
    case PART_SEQ:
        return ring_counter_broken(part) ? "no number" : NULL;
    case PART_SLOT:
        return check_slot(&c);
    }
    return NULL;
}
