/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content.h"

#include "proto/list_format.h"

static bool log_clears(struct slice log)
{
    struct entry entry;
    while (entry_next(&log, &entry) == ENTRY_OK) {
        if (entry.op == ENTRY_CLEAR) {
            return true;
        }
    }
    return false;
}

void content_init(struct content *c, const struct head *head, const struct list_policy *policy)
{
    *c = (struct content){
        .runs = head->runs,
        .run_count = log_clears(head->log) ? 0 : head->run_count,
        .memory_limit_bytes = policy->fold_memory_bytes,
        .answer_limit_bytes = policy->max_answer_bytes,
        .delimiter = policy->delimiter,
        .to = UINT64_MAX,
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
    for (uint32_t i = 0; i < sublist->count; i++) {
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

bool content_satisfied(const struct content *c)
{
    return c->answer_too_large || c->position > c->to;
}

/* Writes items first..last-1 of the sublist, which stand side by side in its text. */
static void write_joined(struct content *c, struct sublist *s, uint32_t first, uint32_t last)
{
    if (c->written > 0) {
        char delimiter = (char)c->delimiter;
        chain_copy(c->out, &delimiter, 1);
    }
    chain_add(c->out, s->text, s->text->data + s->starts[first],
              s->starts[last] - s->starts[first] - 1);
}

/* Passes on items first..last-1, all of which are in the list: only those at wanted positions are
 * written. */
static void pass_on(struct content *c, struct sublist *s, uint32_t first, uint32_t last)
{
    uint64_t start = c->position;
    c->position += last - first;
    if (c->out == NULL || first == last || start > c->to || c->position <= c->from) {
        return;
    }
    uint32_t skip = c->from > start ? (uint32_t)(c->from - start) : 0;
    uint32_t over = c->position - 1 > c->to ? (uint32_t)(c->position - 1 - c->to) : 0;
    first += skip;
    last -= over;
    if (c->items_form) {
        for (uint32_t i = first; i < last; i++) {
            list_format_item(c->out, c->key, sublist_item(s, i));
        }
    } else {
        write_joined(c, s, first, last);
    }
    c->written += last - first;
    c->answer_too_large = c->out->bytes > c->answer_limit_bytes;
}

bool content_base_visit(void *arg, struct sublist *s)
{
    struct content *c = arg;
    if (s->all_add && c->overlay.count == 0 && !c->overlay.cleared) {
        pass_on(c, s, 0, s->count);
        return !content_satisfied(c);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < s->count && !content_satisfied(c); i++) {
        char op = fold_over(&c->overlay, s->ops[i], sublist_item(s, i));
        if (op == 0 || op == ENTRY_DEL) {
            if (first < i) {
                pass_on(c, s, first, i);
            }
            first = i + 1;
        }
    }
    if (first < s->count) {
        pass_on(c, s, first, s->count);
    }
    return !content_satisfied(c);
}

void content_rest(struct content *c)
{
    uint32_t at = 0;
    char op;
    struct slice item;
    while (!content_satisfied(c) && fold_next(&c->overlay, true, &at, &op, &item)) {
        uint64_t position = c->position++;
        if (c->out == NULL || position < c->from) {
            continue;
        }
        if (c->items_form) {
            list_format_item(c->out, c->key, item);
        } else {
            if (c->written > 0) {
                char delimiter = (char)c->delimiter;
                chain_copy(c->out, &delimiter, 1);
            }
            chain_copy_slice(c->out, item);
        }
        c->written++;
        c->answer_too_large = c->out->bytes > c->answer_limit_bytes;
    }
}

void content_rewind(struct content *c)
{
    c->position = 0;
    c->written = 0;
    c->answer_too_large = false;
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
