/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/tx/refusal.h"

#include <stdio.h>

#include "list/core/item_fault.h"
#include "list/format/intent.h"

_Static_assert(TX_LISTS_MAX == INTENT_KEYS_MAX, "an intent names all lists");

void tx_size_text(enum list_verb verb, uint64_t bytes, uint64_t most, char text[LIST_ERROR_MAX])
{
    snprintf(text, LIST_ERROR_MAX,
             "%s: what it does to one list takes %llu bytes, and a quarter of "
             "log_hard_limit_bytes is %llu: raise it, or use several transactions",
             list_verb_word(verb), (unsigned long long)bytes, (unsigned long long)most);
}

const char *tx_list_refusal(const char *word, const struct list_policy *policy,
                            char text[LIST_ERROR_MAX])
{
    if (policy->dialect != DIALECT_NATIVE || policy->migrate != MIGRATE_NO) {
        snprintf(text, LIST_ERROR_MAX,
                 "%s works on lists of dialect native only: others cannot hold what a transaction "
                 "writes",
                 word);
        return text;
    }
    return NULL;
}

static const char *items_refusal(const struct list_policy *policy, const struct slice *items,
                                 size_t count, char text[LIST_ERROR_MAX])
{
    const char *why = NULL;
    for (size_t i = 0; i < count && why == NULL; i++) {
        why = item_fault(policy, items[i], true, text);
    }
    return why;
}

/* Would the intent in the list that the items leave, where each of them is named, fit no log? */
static bool never_fits(const struct list_call *call, char text[LIST_ERROR_MAX])
{
    uint64_t bytes = 0, most = tx_entries_bytes_max(call->lists[0].policy);
    for (size_t i = 0; i < call->item_count; i++) {
        bytes += entry_bytes(call->items[i].len);
    }
    if (bytes > most) {
        tx_size_text(call->verb, bytes, most, text);
    }
    return bytes > most;
}

static const char *move_refusal(const struct list_call *call, char text[LIST_ERROR_MAX])
{
    const char *word = list_verb_word(call->verb), *what = NULL;
    const struct call_list *from = &call->lists[0], *to = &call->lists[1];
    if (slice_equal(from->key, to->key)) {
        what = "SRC and DST are the same list";
    } else if (call->verb == LIST_POPTO && call->count == 0) {
        what = "COUNT must not be 0: a positive one takes the oldest items, a negative one the "
               "newest";
    } else if (call->verb == LIST_POPTO && call->form == LIST_FORM_JOINED &&
               to->policy->delimiter < 0) {
        what = "DST has no delimiter: use lpoptob";
    }
    if (what != NULL) {
        snprintf(text, LIST_ERROR_MAX, "%s: %s", word, what);
        return text;
    }
    if (never_fits(call, text)) {
        return text;
    }
    /* The items of a call are such as its own list takes: that is SRC. */
    return items_refusal(to->policy, call->items, call->item_count, text);
}

const char *tx_refusal(const struct list_call *call, char text[LIST_ERROR_MAX])
{
    const char *word = list_verb_word(call->verb), *why = NULL;
    CHECK(call->list_count >= 1 && call->list_count <= TX_LISTS_MAX);
    for (size_t i = 0; i < call->list_count && why == NULL; i++) {
        const struct call_list *list = &call->lists[i];
        CHECK(list->key.len > 0 && list->key.len <= LIST_KEY_BYTES_MAX);
        why = tx_list_refusal(word, list->policy, text);
        for (size_t n = 0; n < list->change_count && why == NULL; n++) {
            const struct tx_change *change = &list->changes[n];
            why = items_refusal(list->policy, change->items, change->item_count, text);
        }
    }
    if (why == NULL && call->verb != LIST_TX) {
        why = move_refusal(call, text);
    }
    return why;
}
