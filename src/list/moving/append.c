/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/append.h"

#include "base/block.h"
#include "list/format/absent.h"

bool append_has_place(const struct be_request *request, const struct place *found, struct slice key)
{
    struct head *head = place_open(found, key);
    bool misses = head != NULL && head_is_absent(head) && head->marks.lease == 0;
    bool takes = head != NULL && !(misses && request->needs_list);
    head_unref(&head);
    return takes;
}

void append_begin(struct moved_append *append, struct be_request *request,
                  const struct be_reply *head)
{
    append->under_way = true;
    append->by_cas = head->ttl_s < 0;
    request->cas = head->cas;
    request->epoch = head->epoch;
    if (!append->by_cas) {
        request->with_cas = true;
        return;
    }
    struct block *whole = block_new_exact(head->value.len + request->value.len);
    block_append(&whole, head->value.p, head->value.len);
    block_append(&whole, request->value.p, request->value.len);
    append->added = request->value;
    append->block = request->block;
    request->verb = BE_CAS;
    request->value = slice_make(whole->data, whole->used);
    request->block = whole;
    request->flags = head->flags;
}

void append_end(struct moved_append *append, struct be_request *request)
{
    if (append->under_way && append->by_cas) {
        block_unref(&request->block);
        request->verb = BE_APPEND;
        request->value = append->added;
        request->block = append->block;
        request->flags = 0;
    }
    request->with_cas = false;
    *append = (struct moved_append){.under_way = false};
}

void append_forget(struct moved_append *append)
{
    block_unref(&append->block);
}
