/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the stored items of a dialect can hold. Anything else under their names is somebody's value
 * of another kind: it is neither read nor written. docs/dialects.md has the grammar for users.
 */
#ifndef DIALECT_SHARED_GRAMMAR_H
#define DIALECT_SHARED_GRAMMAR_H

#include "dialect/shared/part.h"

/* Room for the longest reason. */
#define GRAMMAR_REASON_MAX 96

/* Clients store text with flags 0 or, as pylibmc and pymemcache do, 16. Other flags say that a
 * value is compressed, a number, or an object of some language. */
static inline bool grammar_flags_of_text(uint32_t flags)
{
    return flags == 0 || flags == 16;
}

/* Can the part, which is there, not be of the list? Returns the reason, in reason or constant;
 * NULL: the part is of the format. */
const char *grammar_reason(const struct list *list, const struct part *part,
                           char reason[GRAMMAR_REASON_MAX]);

/* The first byte that no item of a dialect holds, or NULL: a control byte, but tabs and line ends.
 * Without them hardly any compressed or packed value is taken for a list. */
const char *grammar_bad_byte(struct slice item);

#endif
