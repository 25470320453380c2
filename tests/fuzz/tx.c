/* SPDX-License-Identifier: BSD-3-Clause */
#include "tx.h"

void tx_lists_fill(struct tx_lists *s, struct list_call *call, const struct slice keys[AUDIT_LISTS],
                   struct input *in)
{
    for (size_t i = 0, place = 1; i < AUDIT_LISTS; i++) {
        bool own = slice_equal(keys[i], call->key);
        struct call_list *list = &s->lists[own ? 0 : place++];
        *list = (struct call_list){.key = keys[i], .policy = call->policy};
        if (call->verb == LIST_TX) {
            s->changes[i] = (struct tx_change){.op = (enum tx_op)input_below(in, TX_OP_COUNT),
                                               .items = call->items,
                                               .item_count = call->item_count};
            list->changes = &s->changes[i];
            list->change_count = 1;
        }
    }
    call->lists = s->lists;
    call->list_count = AUDIT_LISTS;
    call->item_count = call->verb == LIST_TX ? 0 : call->item_count;
}
