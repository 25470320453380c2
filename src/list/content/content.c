/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/content.h"

#include "base/number.h"

void content_init(struct content *c, const struct head *head, const struct list_policy *policy)
{
    *c = (struct content){
        .runs = head->runs,
        .run_count = head->clears ? 0 : head->run_count,
        .memory_limit_bytes = policy->fold_memory_bytes,
        .over_s = head->read_s,
        .exact_items =
            !head->marks.times.timed || (int64_t)head->marks.times.earliest_s > head->read_s,
        .output = {.to = UINT64_MAX},
    };
    fold_init(&c->overlay);
    fold_set_cap(&c->overlay, head->marks.cap);
}

void content_fini(struct content *c)
{
    fold_fini(&c->overlay);
}

/* Of all runs that are folded: their table is made once. What a head says of them may be wrong. */
static uint32_t overlay_items(const struct content *c)
{
    size_t count;
    uint64_t items = 0, most = c->memory_limit_bytes / (8 * sizeof(struct fold_slot));
    const struct run *runs = content_overlay_runs(c, &count);
    for (size_t i = 0; i < count; i++) {
        items += u64_least(runs[i].items, most);
    }
    return (uint32_t)u64_least(u64_least(items, most), UINT32_MAX / 4);
}

enum visited content_fold_visit(void *arg, struct sublist *sublist)
{
    struct content *c = arg;
    struct sublist_part part = sublist_next_part(sublist, &c->folded);
    if (part.from == 0) {
        fold_reserve(&c->overlay, c->overlay.count == 0 ? overlay_items(c) : sublist->count);
    }
    for (uint32_t i = part.from; i < part.to; i++) {
        content_expect(c, sublist, i);
        struct entry entry = sublist_entry(sublist, i);
        fold_apply_entry(&c->overlay, &entry);
    }
    c->too_large = fold_bytes(&c->overlay) > c->memory_limit_bytes;
    return c->too_large ? VISITED_ENOUGH : part.visited;
}

void content_fold_log(struct content *c, struct slice log)
{
    bool whole = fold_apply_held(&c->overlay, log);
    CHECK(whole); /* head_read checked it */
}

static bool base_visit_back(struct content *c, struct sublist *s)
{
    if (c->overlay.count == 0 && !c->overlay.cleared && sublist_all_in(s, c->over_s)) {
        output_back(&c->output, s);
        return !output_satisfied(&c->output);
    }
    for (uint32_t i = s->count; i-- > 0 && !output_satisfied(&c->output);) {
        struct slice item = sublist_item(s, i);
        char op = fold_over(&c->overlay, s->ops[i], item);
        if (entry_is_in(op, sublist_until(s, i), c->over_s)) {
            output_item(&c->output, item);
        }
    }
    return !output_satisfied(&c->output);
}

enum visited content_base_visit(void *arg, struct sublist *s)
{
    struct content *c = arg;
    if (c->backwards) {
        return base_visit_back(c, s);
    }
    if (c->overlay.count == 0 && !c->overlay.cleared && sublist_all_in(s, c->over_s)) {
        output_span(&c->output, s, 0, s->count);
        return !output_satisfied(&c->output);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < s->count && !output_satisfied(&c->output); i++) {
        content_expect(c, s, i);
        char op = fold_over(&c->overlay, s->ops[i], sublist_item(s, i));
        if (!entry_is_in(op, sublist_until(s, i), c->over_s)) {
            if (first < i) {
                output_span(&c->output, s, first, i);
            }
            first = i + 1;
        }
    }
    if (first < s->count) {
        output_span(&c->output, s, first, s->count);
    }
    return !output_satisfied(&c->output);
}

void content_rest(struct content *c)
{
    output_fold(&c->output, &c->overlay, c->over_s, c->backwards);
}

bool content_known_count(const struct content *c, uint64_t *count)
{
    if (c->run_count > 1 || (c->run_count == 1 && (c->overlay.count > 0 || !c->exact_items))) {
        return false;
    }
    *count = c->run_count == 1 ? c->runs[0].items : 0;
    *count += fold_items(&c->overlay, c->over_s);
    return true;
}
