/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/session.h"

#include "base/number.h"
#include "list/core/list_call.h"
#include "list/format/head.h"

/* "ITEM ", " ", digits, two line ends: around key and item. */
#define ITEM_FRAME_BYTES 24u

struct list_extent session_extent(const struct head *head)
{
    uint64_t log = head->log.len;
    struct list_extent extent = {.bytes = u64_sum(head_run_bytes(head), log),
                                 .items = log / entry_bytes(1)};
    for (size_t i = 0; i < head->run_count; i++) {
        /* What a head says of its items may be anything; of entries, that they have three bytes. */
        extent.items += u64_least(head->runs[i].items, head->runs[i].bytes / 3);
    }
    return extent;
}

/* Bytes of the answer at most, with what its memory holds besides. */
static uint64_t answer_bytes(const struct list_call *call, struct list_extent extent)
{
    const struct list_policy *policy = call->policy;
    uint64_t items = extent.items, bytes = extent.bytes;
    bool known_count = (call->from < 0) == (call->to < 0) && call->from <= call->to;
    if (list_verb_has(call->verb, LIST_RANGES) && known_count) {
        items = u64_least(items, (uint64_t)(call->to - call->from) + 1);
        bytes = u64_least(bytes, items * (policy->max_item_bytes + 1));
    }
    if (list_verb_has(call->verb, LIST_PICKS)) {
        items = u64_least(items, (uint64_t)call->count);
        bytes = u64_least(bytes, items * (policy->max_item_bytes + 1));
    }
    if (call->form == LIST_FORM_ITEMS) {
        bytes += items * (call->key.len + ITEM_FRAME_BYTES);
    }
    return u64_least(bytes, policy->max_answer_bytes);
}

bool session_has_room(const struct list_call *call)
{
    const struct list_session *session = call->session;
    uint64_t others = session->charged_bytes - call->charged_bytes + session->unread_bytes;
    return call == session->first || call->wanted_bytes == 0 ||
           others + call->wanted_bytes <= session->limit_bytes;
}

bool session_admit(struct list_call *call, struct list_extent extent)
{
    struct list_session *session = call->session;
    if (session->limit_bytes == 0 || !list_verb_has(call->verb, LIST_GIVES_ITEMS)) {
        return true;
    }
    uint64_t bytes = answer_bytes(call, extent);
    call->wanted_bytes = bytes;
    if (!session_has_room(call)) {
        return false;
    }
    session_charge(call, bytes);
    return true;
}

void session_charge(struct list_call *call, uint64_t bytes)
{
    bool was = call->charged_bytes != 0;
    call->session->charged_bytes += bytes - call->charged_bytes;
    call->charged_bytes = bytes;
    if (was && bytes == 0) {
        LIST_REMOVE(call, charged_link);
    } else if (!was && bytes != 0) {
        LIST_INSERT_HEAD(&call->session->charged, call, charged_link);
    }
}

void session_discharge(struct list_call *call)
{
    session_charge(call, 0);
}

void session_defer(struct list_call *call)
{
    if (!call->deferred) {
        call->deferred = true;
        if (!session_has_deferred(call->session)) {
            TAILQ_INIT(&call->session->deferred); /* a session begins as zeros */
        }
        TAILQ_INSERT_TAIL(&call->session->deferred, call, deferred_link);
    }
}

void session_release(struct list_call *call)
{
    if (call->deferred) {
        call->deferred = false;
        TAILQ_REMOVE(&call->session->deferred, call, deferred_link);
    }
}
