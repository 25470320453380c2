/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/answer.h"

#include "list/core/engine_state.h"
#include "proto/client/list_format.h"

/* An lcopy of a list over itself, which engine.c has made an llen. */
static bool copies_itself(const struct list_call *call)
{
    return call->verb == LIST_LEN && call->source.len > 0;
}

void answer_call(struct engine *e, struct list *list, struct list_call *call,
                 const struct head *head, enum list_status status)
{
    if (head != NULL && call->wants_version) {
        call->version = head_version(head->cas, head->value);
    }
    bool keeps_empty = list->policy->on_missing == ON_MISSING_REFUSE && head != NULL;
    bool needs_items =
        (list_verb_has(call->verb, LIST_GIVES_ITEMS) && !list_verb_has(call->verb, LIST_PAGES)) ||
        call->verb == LIST_TTL || copies_itself(call);
    if (status == LIST_OK && call->number == 0 && needs_items && !keeps_empty) {
        status = LIST_MISSING;
    }
    call_finish(e, list, call, status);
}

void answer_item_time(struct engine *e, struct list *list, struct list_call *call,
                      const struct head *head, bool in, uint32_t until_s)
{
    call->number = in;
    call->stat.ttl_s = until_s == 0 ? -1 : (int64_t)until_s - head->read_s;
    answer_call(e, list, call, head, in ? LIST_OK : LIST_MISSING);
}

void answer_member(const struct list *list, struct list_call *call, struct slice item)
{
    char delimiter = (char)list->policy->delimiter;
    chain_begin_small(&call->answer);
    if (call->form == LIST_FORM_ITEMS) {
        list_format_item(&call->answer, call->key, item);
    } else {
        chain_copy_behind(&call->answer, call->number > 0, delimiter, item);
    }
    call->number++;
}

void answer_begin(const struct list *list, struct list_call *call, struct output *output)
{
    output_rewind(output);
    output->delimiter = list->policy->delimiter;
    output->limit_bytes = list->policy->max_answer_bytes;
    bool gathers = inner_is_pinned(call) && call->inner->gather != NULL;
    output->out = gathers ? NULL : &call->answer;
    chain_begin_small(&call->answer);
    output->gather = gathers ? call->inner->gather : NULL;
    output->items_form = call->form == LIST_FORM_ITEMS;
    output->key = call->key;
}

bool answer_range(const struct list_call *call, uint64_t count, struct output *output)
{
    int64_t from = call->from, to = call->to;
    if (count > INT64_MAX) {
        return false;
    }
    int64_t n = (int64_t)count;
    from = from >= 0 ? from : from < -n ? 0 : n + from;
    to = to >= 0 ? to : to < -n ? -1 : n + to;
    if (to >= n) {
        to = n - 1;
    }
    if (from > to) {
        return false;
    }
    output->from = (uint64_t)from;
    output->to = (uint64_t)to;
    return true;
}

void answer_content(struct engine *e, struct list *list, struct list_call *call,
                    const struct head *head, const struct output *output)
{
    if (output->too_large) {
        chain_clear(&call->answer);
        call_fail(e, list, call,
                  "answer is larger than max_answer_bytes (%llu): ask for parts with lrange",
                  (unsigned long long)output->limit_bytes);
        return;
    }
    call->number = output->written;
    answer_call(e, list, call, head, LIST_OK);
}
