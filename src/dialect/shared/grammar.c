/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/grammar.h"

#include <stdio.h>

#include "dialect/shared/dialect.h"

/* Folding leaves entries among the items that begin with '@' and have at most so many bytes,
 * whatever max_item_bytes is; and marks (text.h). */
#define NOTE_BYTES_MAX 40

/* The flags that pylibmc and pymemcache give to integers. */
#define FLAGS_OF_INTEGERS 2

const char *grammar_says(const struct grammar *g, const char *what, const char *at)
{
    *g->fault = (size_t)(at - g->value.p);
    snprintf(g->reason, GRAMMAR_REASON_MAX, "%s at byte %zu", what, (size_t)(at - g->value.p));
    return g->reason;
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

const char *grammar_item(const struct grammar *g, struct slice item)
{
    const struct list_policy *policy = g->list->policy;
    if (item.len == 0) {
        return grammar_says(g, "an empty item", item.p);
    }
    const char *bad = grammar_bad_byte(item);
    if (bad != NULL) {
        return grammar_says(g, "a control byte", bad);
    }
    bool note = (item.p[0] == '@' && item.len <= NOTE_BYTES_MAX) ||
                text_is_mark(item, (char)policy->delimiter);
    if (item.len > policy->max_item_bytes && !note) {
        return grammar_says(g, "an item longer than max_item_bytes", item.p);
    }
    return NULL;
}

/* Does the text end as JSON, XML and serialised values do? */
static bool ends_structured(struct slice text)
{
    static const struct slice ends = {"]})>\";", 6}, blanks = {" \t\r\n", 4};
    while (text.len > 0 && memchr(blanks.p, text.p[text.len - 1], blanks.len) != NULL) {
        text.len--;
    }
    return text.len > 0 && memchr(ends.p, text.p[text.len - 1], ends.len) != NULL;
}

const char *grammar_delimited(const struct grammar *g, struct slice text, grammar_item_rule *rule)
{
    while (text.len > 0) {
        const char *end = memchr(text.p, (char)g->list->policy->delimiter, text.len);
        struct slice item = slice_take(&text, end != NULL ? (size_t)(end - text.p) : text.len);
        const char *reason = item.len > 0 ? rule(g, item) : NULL;
        if (reason != NULL) {
            return reason;
        }
        if (end == NULL && slice_starts_with(g->value, SLICE_LIT("^1"))) {
            return "no delimiter at the end"; /* a native list's own text (foreign.c) */
        }
        if (end == NULL && ends_structured(item)) {
            return grammar_says(g, "no delimiter behind an item that ends like JSON or markup,",
                                item.p);
        }
        (void)slice_take(&text, end != NULL);
    }
    return NULL;
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

const char *grammar_signed(const struct grammar *g, struct slice text, grammar_item_rule *rule)
{
    struct signs signs = signs_of(g->list->policy);
    if (text.len > 0 && find_sign(text, signs) != text.p) {
        return "no sign at the beginning";
    }
    while (text.len > 0) {
        (void)slice_take(&text, 1);
        const char *end = text.len == 0 ? text.p : find_sign(text, signs);
        struct slice item = slice_take(&text, (size_t)(end - text.p));
        if (item.len == 0) {
            return grammar_says(g, "a sign without an item", end - 1);
        }
        const char *reason = rule(g, item);
        if (reason != NULL) {
            return reason;
        }
    }
    return NULL;
}

static const char *reason_and_fault(const struct list *list, const struct cell *cell,
                                    char reason[GRAMMAR_REASON_MAX], size_t *fault)
{
    const struct grammar g = {list, cell->value, reason, fault};
    const struct dialect *dialect = dialect_of(list);
    /* INCR keeps the flags of the number that it counts, and no proxy overwrites a counter: one
     * that a client made as an integer keeps these flags. */
    bool integer = (dialect->integers & ROLE(cell->role)) != 0 && cell->flags == FLAGS_OF_INTEGERS;
    if (!integer && !grammar_flags_of_text(cell->flags)) {
        snprintf(reason, GRAMMAR_REASON_MAX, "flags %u, which are not those of text", cell->flags);
        return reason;
    }
    return dialect->grammar(&g, cell);
}

const char *grammar_reason(const struct list *list, const struct cell *cell,
                           char reason[GRAMMAR_REASON_MAX])
{
    size_t fault;
    return reason_and_fault(list, cell, reason, &fault);
}

bool grammar_mostly_fits(const struct list *list, const struct cell *cell)
{
    char reason[GRAMMAR_REASON_MAX];
    size_t fault = 0;
    (void)reason_and_fault(list, cell, reason, &fault);
    return fault > cell->value.len / 2;
}
