/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/content.h"

void content_init(struct content *c, const struct head *head, const struct list_policy *policy)
{
    *c = (struct content){
        .runs = head->runs,
        .run_count = head->clears ? 0 : head->run_count,
        .memory_limit_bytes = policy->fold_memory_bytes,
        .output = {.to = UINT64_MAX},
    };
    fold_init(&c->overlay);
}

void content_fini(struct content *c)
{
    fold_fini(&c->overlay);
}

bool content_fold_visit(void *arg, struct sublist *sublist)
{
    struct content *c = arg;
    fold_reserve(&c->overlay, sublist->count);
    for (uint32_t i = 0; i < sublist->count; i++) {
        content_expect(c, sublist, i);
        fold_apply(&c->overlay, (enum entry_op)sublist->ops[i], sublist_item(sublist, i));
    }
    c->too_large = fold_bytes(&c->overlay) > c->memory_limit_bytes;
    return !c->too_large;
}

void content_fold_log(struct content *c, struct slice log)
{
    bool whole = fold_apply_entries(&c->overlay, log);
    CHECK(whole); /* head_read checked it */
}

static bool base_visit_back(struct content *c, struct sublist *s)
{
    if (s->all_add && c->overlay.count == 0 && !c->overlay.cleared) {
        output_span_back(&c->output, s, 0, s->count);
        return !output_satisfied(&c->output);
    }
    for (uint32_t i = s->count; i-- > 0 && !output_satisfied(&c->output);) {
        struct slice item = sublist_item(s, i);
        char op = fold_over(&c->overlay, s->ops[i], item);
        if (op != 0 && op != ENTRY_DEL) {
            output_item(&c->output, item);
        }
    }
    return !output_satisfied(&c->output);
}

bool content_base_visit(void *arg, struct sublist *s)
{
    struct content *c = arg;
    if (c->backwards) {
        return base_visit_back(c, s);
    }
    if (s->all_add && c->overlay.count == 0 && !c->overlay.cleared) {
        output_span(&c->output, s, 0, s->count);
        return !output_satisfied(&c->output);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < s->count && !output_satisfied(&c->output); i++) {
        content_expect(c, s, i);
        char op = fold_over(&c->overlay, s->ops[i], sublist_item(s, i));
        if (op == 0 || op == ENTRY_DEL) {
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
    uint32_t at = c->backwards ? c->overlay.count : 0;
    char op;
    struct slice item;
    while (c->backwards && !output_satisfied(&c->output) &&
           fold_previous(&c->overlay, &at, &item)) {
        output_item(&c->output, item);
    }
    while (!c->backwards && !output_satisfied(&c->output) &&
           fold_next(&c->overlay, true, &at, &op, &item)) {
        output_item(&c->output, item);
    }
}

bool content_known_count(const struct content *c, uint64_t *count)
{
    if (c->run_count > 1 || (c->run_count == 1 && c->overlay.count > 0)) {
        return false;
    }
    *count = c->run_count == 1 ? c->runs[0].items : 0;
    uint32_t at = 0;
    char op;
    struct slice item;
    while (fold_next(&c->overlay, true, &at, &op, &item)) {
        (*count)++;
    }
    return true;
}
