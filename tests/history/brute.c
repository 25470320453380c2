/* SPDX-License-Identifier: BSD-3-Clause */
#include "brute.h"

#define CONTENT_MAX 64

struct content {
    struct slice items[CONTENT_MAX];
    unsigned count;
    bool exists; /* with on_missing = refuse */
};

struct brute {
    bool refuse;
    const struct history_op *ops;
    unsigned count;
    bool done[BRUTE_OPS_MAX];
};

/* --- a plain list --- */

static bool has(const struct content *c, struct slice item)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (slice_equal(c->items[i], item)) {
            return true;
        }
    }
    return false;
}

static unsigned add(struct content *c, struct slice item)
{
    if (has(c, item)) {
        return 0;
    }
    CHECK(c->count < CONTENT_MAX);
    c->items[c->count++] = item;
    return 1;
}

static unsigned delete_item(struct content *c, struct slice item)
{
    unsigned kept = 0, deleted;
    for (unsigned i = 0; i < c->count; i++) {
        if (!slice_equal(c->items[i], item)) {
            c->items[kept++] = c->items[i];
        }
    }
    deleted = c->count - kept;
    c->count = kept;
    return deleted;
}

static bool is_read(const struct history_op *op)
{
    return op->verb == HISTORY_LGET || op->verb == HISTORY_LHAS || op->verb == HISTORY_LLEN ||
           op->verb == HISTORY_LRANGE;
}

/* Does the change; returns the outcome that it must have, and its number. */
static enum history_outcome do_change(const struct brute *b, unsigned i, struct content *c,
                                      uint64_t *number)
{
    const struct history_op *op = &b->ops[i];
    bool there = b->refuse ? c->exists : c->count > 0;
    bool missing = b->refuse && !c->exists;
    *number = 0;
    if (op->verb == HISTORY_LCREATE && there) {
        return HISTORY_NOT_STORED;
    }
    if (missing && (op->verb == HISTORY_LADD || op->verb == HISTORY_LADDX)) {
        return HISTORY_NOT_STORED;
    }
    if (missing && op->verb != HISTORY_LSET && op->verb != HISTORY_LCREATE) {
        return HISTORY_MISSING;
    }
    if (!b->refuse && op->verb == HISTORY_LDROP && op->outcome == HISTORY_MISSING) {
        return c->count == 0 ? HISTORY_MISSING : HISTORY_OK; /* a bridge's delete tells */
    }
    if (op->verb == HISTORY_LSET || op->verb == HISTORY_LCREATE || op->verb == HISTORY_LDROP) {
        c->count = 0;
        c->exists = op->verb != HISTORY_LDROP;
    }
    for (size_t n = 0; n < op->item_count; n++) {
        *number += op->verb == HISTORY_LDEL || op->verb == HISTORY_LDELX
                       ? delete_item(c, op->items[n])
                       : add(c, op->items[n]);
    }
    return HISTORY_OK;
}

static bool read_right(const struct brute *b, const struct history_op *op, const struct content *c)
{
    struct slice expected[CONTENT_MAX];
    size_t n = 0;
    int64_t from = op->from < 0 ? c->count + op->from : op->from;
    int64_t to = op->to < 0 ? c->count + op->to : op->to;
    if (op->verb == HISTORY_LLEN) {
        return op->outcome == HISTORY_MISSING ? c->count == 0
                                              : op->outcome == HISTORY_OK && op->count == c->count;
    }
    for (size_t i = 0; op->verb == HISTORY_LHAS && i < op->item_count; i++) {
        if (has(c, op->items[i])) {
            expected[n++] = op->items[i];
        }
    }
    for (int64_t i = 0; op->verb != HISTORY_LHAS && i < c->count; i++) {
        if (op->verb == HISTORY_LGET || (i >= from && i <= to)) {
            expected[n++] = c->items[i];
        }
    }
    if (n != op->answer_count || op->outcome == HISTORY_NOT_STORED) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!slice_equal(expected[i], op->answer[i])) {
            return false;
        }
    }
    if (!b->refuse || op->verb == HISTORY_LHAS || op->outcome == HISTORY_NONE) {
        return true;
    }
    return (op->outcome == HISTORY_OK) == c->exists;
}

/* --- all orders --- */

static bool answered(const struct history_op *op)
{
    return op->outcome <= HISTORY_NONE;
}

static bool matters(const struct history_op *op)
{
    return answered(op) || ((op->outcome == HISTORY_UNKNOWN || op->outcome == HISTORY_MAYBE) &&
                            !is_read(op) && op->verb != HISTORY_LCOMPACT);
}

/* May operation i be the next? */
static bool may_begin(const struct brute *b, unsigned i)
{
    for (unsigned n = 0; n < b->count; n++) {
        if (!b->done[n] && answered(&b->ops[n]) && b->ops[n].completed < b->ops[i].invoked) {
            return false;
        }
    }
    return true;
}

/* Has nothing been done that was invoked after its completion? */
static bool in_time(const struct brute *b, unsigned i)
{
    for (unsigned n = 0; n < b->count; n++) {
        if (b->done[n] && b->ops[n].invoked > b->ops[i].completed) {
            return false;
        }
    }
    return true;
}

static bool search(struct brute *b, const struct content *before);

static bool try_step(struct brute *b, unsigned i, const struct content *before)
{
    const struct history_op *op = &b->ops[i];
    struct content after = *before;
    uint64_t number;
    bool exact = op->verb == HISTORY_LADDX || op->verb == HISTORY_LDELX;
    if (is_read(op)) {
        if (!read_right(b, op, &after)) {
            return false;
        }
    } else {
        enum history_outcome outcome = do_change(b, i, &after, &number);
        if (answered(op) &&
            (outcome != op->outcome || (exact && outcome == HISTORY_OK && number != op->count))) {
            return false;
        }
    }
    b->done[i] = true;
    bool found = search(b, &after);
    b->done[i] = false;
    return found;
}

static bool search(struct brute *b, const struct content *before)
{
    bool all = true;
    for (unsigned i = 0; i < b->count; i++) {
        all = all && (b->done[i] || !answered(&b->ops[i]));
    }
    if (all) {
        return true;
    }
    for (unsigned i = 0; i < b->count; i++) {
        const struct history_op *op = &b->ops[i];
        if (!matters(op) || !may_begin(b, i)) {
            continue;
        }
        if (!b->done[i] && (op->outcome == HISTORY_UNKNOWN || in_time(b, i)) &&
            try_step(b, i, before)) {
            return true;
        }
    }
    return false;
}

bool brute_linearizable(bool refuse, const struct history_op *ops, unsigned count)
{
    struct brute b = {.refuse = refuse, .ops = ops, .count = count};
    struct content nothing = {.count = 0};
    CHECK(count <= BRUTE_OPS_MAX);
    return search(&b, &nothing);
}
