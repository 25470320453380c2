/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls of kind TX are refused before anything is sent. */
#ifndef LIST_TX_REFUSAL_H
#define LIST_TX_REFUSAL_H

#include "list/core/list_call.h"

/* What a transaction's entries may take in one list's log: it must leave room for others. */
static inline size_t tx_entries_bytes_max(const struct list_policy *policy)
{
    return policy->log_hard_limit_bytes / 4;
}

/* Says that the entries take so many bytes, and may take no more than most. */
void tx_size_text(enum list_verb verb, uint64_t bytes, uint64_t most, char text[LIST_ERROR_MAX]);

/* Why the list cannot be one of a transaction, as the text behind CLIENT_ERROR, or NULL. text is
 * room for it. word: the client's. */
const char *tx_list_refusal(const char *word, const struct list_policy *policy,
                            char text[LIST_ERROR_MAX]);
/* Why the call is refused, in the same way. */
const char *tx_refusal(const struct list_call *call, char text[LIST_ERROR_MAX]);

#endif
