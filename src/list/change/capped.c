/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/capped.h"

static bool is_in(const struct fold *fold, struct slice item)
{
    char outcome = fold_outcome(fold, item);
    return outcome == ENTRY_ADD || outcome == ENTRY_READD;
}

static bool deletes(const struct list_call *call, size_t i)
{
    return call->verb == LIST_DELX || list_call_deletes(call, i);
}

/* Counts, and says whether the list is never longer than its cap. */
static bool fits(const struct fold *content, struct list_call *call)
{
    struct fold own;
    uint64_t live = content->live;
    bool fit = true;
    fold_init(&own);
    call->number = 0;
    for (size_t i = 0; i < call->item_count; i++) {
        struct slice item = call->items[i];
        bool named = fold_outcome(&own, item) != 0, before = is_in(content, item);
        bool in = named ? is_in(&own, item) : before;
        bool takes = deletes(call, i);
        call->number += !named && before == takes;
        live += !in && !takes;
        live -= in && takes;
        fit = fit && live <= content->cap.max;
        fold_apply(&own, takes ? ENTRY_DEL : ENTRY_ADD, item);
    }
    fold_fini(&own);
    return fit;
}

bool capped_decide(struct fold *content, struct list_call *call, struct block **entries)
{
    if (!fits(content, call) && content->cap.refuses) {
        call->number = 0;
        return false;
    }
    for (size_t i = 0; i < call->item_count; i++) {
        struct slice item = call->items[i];
        enum entry_op op = deletes(call, i) ? ENTRY_DEL : list_call_adds(call);
        if (is_in(content, item) == (op == ENTRY_DEL) || op == ENTRY_READD) {
            fold_apply(content, op, item);
            entry_append(entries, op, item);
        }
    }
    return true;
}

static void lay(struct fold *to, const struct fold *from)
{
    struct entry entry;
    uint32_t at = 0;
    while (fold_next_entry(from, true, ENTRY_NEVER_OVER, &at, &entry)) {
        fold_apply_entry(to, &entry);
    }
}

void capped_fill(struct block **log, struct cap cap, struct slice entries, struct slice pending)
{
    struct fold filled, all, cut;
    fold_init(&filled);
    fold_init(&all);
    fold_init(&cut);
    fold_set_cap(&filled, cap);
    fold_set_cap(&cut, cap);
    bool whole = fold_apply_entries(&filled, entries);
    lay(&all, &filled);
    whole = whole && fold_apply_entries(&all, pending);
    CHECK(whole); /* made here, and checked by head_read */
    lay(&cut, &all);
    fold_append_items(&cut, log);
    fold_fini(&filled);
    fold_fini(&all);
    fold_fini(&cut);
}

bool capped_refuses_whole(const struct list_call *call)
{
    const struct list_policy *policy = call->policy;
    bool whole = call->verb == LIST_SET || call->verb == LIST_PUT || call->verb == LIST_CREATE;
    if (!whole || policy->max_items == 0 || policy->cap != CAP_REFUSE ||
        call->item_count <= policy->max_items) {
        return false;
    }
    struct fold items;
    uint32_t count = 0;
    fold_init(&items);
    for (size_t i = 0; i < call->item_count && count <= policy->max_items; i++) {
        count += fold_outcome(&items, call->items[i]) == 0;
        fold_apply(&items, ENTRY_ADD, call->items[i]);
    }
    fold_fini(&items);
    return count > policy->max_items;
}

size_t capped_once(struct slice *items, size_t count, bool recent)
{
    struct fold seen;
    size_t kept = 0;
    fold_init(&seen);
    for (size_t i = 0; i < count; i++) {
        struct slice item = items[recent ? count - 1 - i : i];
        if (fold_outcome(&seen, item) == 0) {
            fold_apply(&seen, ENTRY_ADD, item);
            kept++;
            items[recent ? count - kept : kept - 1] = item;
        }
    }
    fold_fini(&seen);
    if (recent && kept < count) {
        memmove(items, items + count - kept, kept * sizeof *items);
    }
    return kept;
}
