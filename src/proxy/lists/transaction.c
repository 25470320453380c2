/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/transaction.h"

#include <stdio.h>

#include "list/change/capped.h"
#include "list/core/item_fault.h"
#include "list/format/entry.h"
#include "list/tx/refusal.h"
#include "proto/client/tx_block.h"
#include "proxy/core/worker.h"

/* What a block holds. */
struct survey {
    struct slice keys[TX_LISTS_MAX];
    const struct list_policy *policies[TX_LISTS_MAX];
    size_t changes[TX_LISTS_MAX], entry_bytes[TX_LISTS_MAX];
    size_t lists, lines, items;
};

/* The list's place among the lists; s->lists when it is none of them. */
static size_t place_of(const struct survey *s, struct slice key)
{
    size_t i = 0;
    while (i < s->lists && !slice_equal(s->keys[i], key)) {
        i++;
    }
    return i;
}

static const char *add_list(struct survey *s, const struct config *config, struct slice key,
                            char text[LIST_ERROR_MAX])
{
    if (s->lists == TX_LISTS_MAX) {
        snprintf(text, LIST_ERROR_MAX, "more than %d lists: use several transactions",
                 TX_LISTS_MAX);
        return text;
    }
    const struct list_policy *policy = config_list_policy(config, key);
    s->keys[s->lists] = key;
    s->policies[s->lists] = policy;
    s->changes[s->lists] = s->entry_bytes[s->lists] = 0;
    s->lists++;
    return tx_list_refusal("a transaction", policy, text);
}

/* Counts a line in. Returns why it is refused, or NULL; text is room for it. */
static const char *add_line(struct survey *s, const struct config *config,
                            const struct tx_line *line, char text[LIST_ERROR_MAX])
{
    if (s->lines++ == config->max_transaction_lines) {
        snprintf(text, LIST_ERROR_MAX,
                 "more than %u lines (max_transaction_lines): name several items in one, or use "
                 "several transactions",
                 config->max_transaction_lines);
        return text;
    }
    size_t at = place_of(s, line->key);
    const char *why = at == s->lists ? add_list(s, config, line->key, text) : NULL;
    if (why != NULL) {
        return why;
    }
    const struct list_policy *policy = s->policies[at];
    struct tx_line rest = *line;
    struct slice item;
    s->changes[at]++;
    s->entry_bytes[at] += ENTRY_BYTES_LEAST;
    while (tx_line_next(&rest, &item)) {
        why = item_fault(policy, item, true, text);
        if (why != NULL) {
            return why;
        }
        s->items++;
        s->entry_bytes[at] += entry_bytes(item.len);
    }
    if (s->entry_bytes[at] > tx_entries_bytes_max(policy)) {
        snprintf(text, LIST_ERROR_MAX,
                 "what the block does to this list takes more than a quarter of "
                 "log_hard_limit_bytes, %zu bytes: raise it, or use several transactions",
                 tx_entries_bytes_max(policy));
        return text;
    }
    return NULL;
}

/* Goes through a whole block, or up to the line that is refused. Returns why it is, or NULL; *line
 * is its number, and text room for the reason. */
static const char *survey_block(struct survey *s, const struct config *config, struct slice data,
                                size_t *number, char text[LIST_ERROR_MAX])
{
    struct tx_block b;
    struct tx_line line;
    const char *why = NULL;
    s->lists = s->lines = s->items = 0;
    for (tx_block_begin(&b, data); why == NULL && tx_block_next(&b, &line);) {
        why = add_line(s, config, &line, text);
    }
    *number = b.line;
    return why != NULL ? why : b.fault;
}

bool transaction_is_good(struct client *client, const struct request *r)
{
    struct survey s;
    char text[LIST_ERROR_MAX], line[LIST_ERROR_MAX + 64];
    size_t number;
    const char *why = survey_block(&s, client->worker->config, r->data, &number, text);
    if (why != NULL) {
        snprintf(line, sizeof line, "CLIENT_ERROR ltx: line %zu: %s", number, why);
        pending_refuse(client, r->noreply, line);
        return false;
    }
    if (s.lines == 0) {
        pending_refuse(client, r->noreply,
                       "CLIENT_ERROR ltx: the data block is empty: it has a line for each change");
        return false;
    }
    if (!call_part_has_room(client->worker, s.items, s.lines)) {
        pending_refuse(client, r->noreply, CALL_PART_NO_ROOM_TEXT);
        return false;
    }
    return true;
}

struct slice transaction_key(const struct request *r)
{
    struct tx_block b;
    struct tx_line line;
    tx_block_begin(&b, r->data);
    CHECK(tx_block_next(&b, &line));
    return line.key;
}

void transaction_fill(struct call_part *c, const struct request *r)
{
    struct survey s;
    struct tx_block b;
    struct tx_line line;
    char text[LIST_ERROR_MAX];
    size_t number, taken = 0;
    CHECK(survey_block(&s, c->part.pending->client->worker->config, r->data, &number, text) ==
          NULL);
    struct call_list *lists = call_part_add_lists(c, s.keys, s.lists);
    struct tx_change *changes = call_part_add_changes(c, s.lines), *of_list[TX_LISTS_MAX];
    call_part_reserve(c, s.items);
    call_part_set_items(c, s.items);
    for (size_t i = 0, first = 0; i < s.lists; first += s.changes[i++]) {
        of_list[i] = &changes[first];
        lists[i].changes = of_list[i];
        lists[i].change_count = s.changes[i];
    }
    for (tx_block_begin(&b, r->data); tx_block_next(&b, &line);) {
        size_t first = taken;
        struct slice item;
        while (tx_line_next(&line, &item)) {
            c->items[taken++] = item;
        }
        const struct list_policy *policy = s.policies[place_of(&s, line.key)];
        if (line.op == TX_OP_SET && policy->max_items != 0) {
            bool recent = policy->order == ORDER_RECENT;
            taken = first + capped_once(&c->items[first], taken - first, recent);
        }
        *of_list[place_of(&s, line.key)]++ = (struct tx_change){
            .op = line.op, .items = &c->items[first], .item_count = taken - first};
    }
    CHECK(taken <= s.items);
    c->call.items = NULL; /* they are those of the lists */
    c->call.item_count = 0;
}
