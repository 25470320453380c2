/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that several dialects append, and write anew.
 */
#include "dialect/shared/dialect.h"

void delimited_batch(struct work *w)
{
    char delimiter = (char)w->op.list->policy->delimiter;
    struct block *text = block_new(w->call_bytes);
    struct list_call *call;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            text_append(&text, call->items[i], delimiter);
        }
    }
    w->append.verb = BE_APPEND;
    w->append.value = text;
    w->append.create = block_ref(text);
}

void signed_batch(struct work *w)
{
    struct signs signs = signs_of(w->op.list->policy);
    struct block *text = block_new(w->call_bytes);
    struct list_call *call;
    bool adds = false;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            enum entry_op op = list_call_deletes(call, i) ? ENTRY_DEL : ENTRY_ADD;
            adds = adds || op == ENTRY_ADD;
            signed_append(&text, op, call->items[i], signs);
        }
    }
    w->append.verb = BE_APPEND;
    w->append.value = text;
    /* There is nothing to delete where no item is. */
    w->append.create = adds ? block_ref(text) : NULL;
}

void signed_encode(const struct list_policy *policy, const struct fold *fold, struct block **out)
{
    uint32_t at = 0;
    struct slice item;
    while (fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item)) {
        signed_append(out, ENTRY_ADD, item, signs_of(policy));
    }
}

size_t signed_reserved(const struct list_policy *policy, char *out)
{
    out[0] = (char)policy->add_sign;
    out[1] = (char)policy->delete_sign;
    return 2;
}
