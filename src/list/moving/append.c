/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/append.h"

#include "base/block.h"
#include "list/format/absent.h"

bool append_has_place(const struct list_request *request, const struct place *found,
                      struct slice key)
{
    const struct be_caps *caps = found->reply.caps;
    if (found->reply.ttl_s >= 0 && caps != NULL && !caps->evicts) {
        return false;
    }
    struct head *head = place_open(found, key);
    bool misses = head != NULL && head_is_absent(head) && head->marks.lease == 0;
    bool takes = head != NULL && !(misses && request->needs_list);
    head_unref(&head);
    return takes;
}

void append_begin(struct moved_append *append, struct list_request *request,
                  const struct be_reply *head)
{
    append->under_way = true;
    append->by_cas = head->ttl_s < 0;
    request->be.cas = head->cas;
    request->be.epoch = head->epoch;
    if (!append->by_cas) {
        request->be.with_cas = request->be.asks_cas = true;
        return;
    }
    struct block *whole = block_new_exact(head->value.len + request->be.value.len);
    block_append(&whole, head->value.p, head->value.len);
    block_append(&whole, request->be.value.p, request->be.value.len);
    append->added = request->be.value;
    append->block = request->be.block;
    request->be.verb = BE_CAS;
    request->be.value = slice_make(whole->data, whole->used);
    request->be.block = whole;
    request->be.flags = head->flags;
}

void append_end(struct moved_append *append, struct list_request *request)
{
    if (!append->under_way) {
        return;
    }
    if (append->by_cas) {
        block_unref(&request->be.block);
        request->be.verb = BE_APPEND;
        request->be.value = append->added;
        request->be.block = append->block;
        request->be.flags = 0;
    }
    request->be.with_cas = request->be.asks_cas = false;
    request->be.cas = request->be.epoch = 0;
    *append = (struct moved_append){.under_way = false};
}

void append_forget(struct moved_append *append)
{
    block_unref(&append->block);
}
