/* SPDX-License-Identifier: BSD-3-Clause */
#include "answers.h"

#include "proto/client/list_format.h"

/* An answer as it must look. */
struct expected {
    struct block *bytes;
    uint64_t count;
};

static void expect_item(struct expected *x, const struct list_call *call, struct slice item)
{
    if (call->form == LIST_FORM_ITEMS) {
        char line[KEY_BYTES_MAX + 32];
        memcpy(line, "ITEM ", 5);
        memcpy(line + 5, call->key.p, call->key.len);
        line[5 + call->key.len] = ' ';
        size_t n = 6 + call->key.len + format_u64(line + 6 + call->key.len, item.len);
        block_append(&x->bytes, line, n);
        block_append(&x->bytes, "\r\n", 2);
        block_append(&x->bytes, item.p, item.len);
        block_append(&x->bytes, "\r\n", 2);
    } else {
        char delimiter = (char)call->policy->delimiter;
        block_append(&x->bytes, &delimiter, x->count > 0 ? 1 : 0);
        block_append(&x->bytes, item.p, item.len);
    }
    x->count++;
}

static bool in_range(const struct list_call *call, int64_t at, int64_t count)
{
    int64_t from = call->from < 0 ? call->from + count : call->from;
    int64_t to = call->to < 0 ? call->to + count : call->to;
    return call->verb == LIST_GET || call->verb == LIST_POP || (at >= from && at <= to);
}

static void expect_beside(struct expected *x, const struct list_call *call,
                          const struct ref_items *items)
{
    int64_t step = call->verb == LIST_AFTER ? 1 : -1, at = 0, count = (int64_t)items->count;
    while (at < count && !slice_equal(items->items[at], call->items[0])) {
        at++;
    }
    CHECK((at == count) == (call->status == LIST_MISSING));
    for (int64_t left = call->count; at < count && left > 0; left--) {
        at += step;
        if (at < 0 || at >= count) {
            return;
        }
        expect_item(x, call, items->items[at]);
    }
}

void check_answer_bytes(const struct list_call *call, const struct ref_items *items)
{
    struct expected x = {.bytes = block_new(256)};
    if (call->verb == LIST_HAS) {
        for (size_t i = 0; i < call->item_count; i++) {
            if (ref_items_has(items, call->items[i])) {
                expect_item(&x, call, call->items[i]);
            }
        }
    } else if (list_verb_has(call->verb, LIST_PAGES)) {
        expect_beside(&x, call, items);
    } else {
        for (size_t i = 0; i < items->count; i++) {
            if (in_range(call, (int64_t)i, (int64_t)items->count)) {
                bool back = call->verb == LIST_REVRANGE;
                expect_item(&x, call, items->items[back ? items->count - 1 - i : i]);
            }
        }
    }
    CHECK(call->number == x.count && call->answer.bytes == x.bytes->used);
    CHECK(call->status == LIST_OK || x.count == 0);
    size_t at = 0;
    for (size_t i = 0; i < call->answer.count; i++) {
        const struct chain_seg *seg = &call->answer.segs[call->answer.first + i];
        CHECK(memcmp(seg->p, x.bytes->data + at, seg->len) == 0);
        at += seg->len;
    }
    block_unref(&x.bytes);
}
