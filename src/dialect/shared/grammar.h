/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the stored items of a dialect can hold. Any other value under their names belongs to an
 * application: the proxy neither reads nor writes it. docs/dialects.md has the grammar for users.
 * Each dialect's table says which of these rules hold for which of its cells.
 */
#ifndef DIALECT_SHARED_GRAMMAR_H
#define DIALECT_SHARED_GRAMMAR_H

#include "dialect/shared/cell.h"

/* Room for the longest reason. */
#define GRAMMAR_REASON_MAX 96

/* A value that is checked. */
struct grammar {
    const struct list *list;
    struct slice value;
    char *reason;  /* room for one */
    size_t *fault; /* takes the byte at which it fails, where that is known */
};

/* Clients store text with flags 0 or, as pylibmc and pymemcache do, 16. Other flags say that a
 * value is compressed, a number, or an object of some language. */
static inline bool grammar_flags_of_text(uint32_t flags)
{
    return flags == 0 || flags == 16;
}

/* Can the cell, which is there, not be of the list? Returns the reason, in reason or constant;
 * NULL: the cell is of the format. */
const char *grammar_reason(const struct list *list, const struct cell *cell,
                           char reason[GRAMMAR_REASON_MAX]);
/* Of a cell that is not of the format: is more than half of it, up to the fault? */
bool grammar_mostly_fits(const struct list *list, const struct cell *cell);

/* The rules. Each returns a reason, or NULL: the text, a stretch of the value, follows the rule. */

/* The reason that what begins at that byte of the value is no item. */
const char *grammar_says(const struct grammar *g, const char *what, const char *at);
/* What is wrong with one item, which may be empty. */
typedef const char *grammar_item_rule(const struct grammar *g, struct slice item);
/* An item of the list; an empty one is none. */
grammar_item_rule grammar_item;
/* Items with delimiters between them, and before and behind them; any number in a row. A last item
 * without one must not end as JSON, XML and serialised values do. */
const char *grammar_delimited(const struct grammar *g, struct slice text, grammar_item_rule *rule);
/* Items, each with a sign before it. */
const char *grammar_signed(const struct grammar *g, struct slice text, grammar_item_rule *rule);

/* The first byte that no item of a dialect holds, or NULL: a control byte, but tabs and line ends.
 * Without them hardly any compressed or packed value is taken for a list. */
const char *grammar_bad_byte(struct slice item);

#endif
