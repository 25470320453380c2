/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "list/change/capped.h"
#include "list/core/item_fault.h"
#include "list/format/entry.h"
#include "list/tx/refusal.h"
#include "proto/client/list_format.h"
#include "proto/client/tx_block.h"
#include "proxy/core/worker.h"
#include "proxy/lists/call_part.h"
#include "proxy/lists/reply.h"

/* Of longer lines the items, an array of several times their length, are counted beforehand. */
#define LONG_LINE_BYTES ((size_t)65536)

/* The engine's verb for a client's word. */
static const enum list_verb verbs[VERB_COUNT] = {
#define LIST_VERB(id, kind, traits)
#define LIST_WORD(id, word, takes, answer) [VERB_##word] = LIST_##id,
    LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
};

static RARE size_t count_items(const struct request *r)
{
    size_t count = 0;
    struct slice args = r->args, item;
    while (item_next(&args, &item)) {
        count++;
    }
    return count;
}

/* Makes room for as many items again as there are. */
static RARE void grow_items(struct call_part *c, size_t count)
{
    struct slice *grown = realloc(c->items == c->few ? NULL : c->items, 2 * count * sizeof *grown);
    CHECK(grown != NULL);
    if (c->items == c->few) {
        memcpy(grown, c->few, sizeof c->few);
    }
    c->items = grown;
}

/* The items of a data block. */
static void begin_block(struct item_block *b, const struct request *r,
                        const struct list_policy *policy)
{
    bool lines = r->verb->shape == SHAPE_LIST_LINES;
    item_block_begin(b, r->data, lines ? -1 : policy->delimiter);
}

/* How many are there? *good: the block is well-formed. */
static size_t count_block_items(const struct request *r, const struct list_policy *policy,
                                bool *good)
{
    struct item_block b;
    struct slice item;
    size_t count = 0;
    for (begin_block(&b, r, policy); item_block_next(&b, &item);) {
        count++;
    }
    *good = !b.bad;
    return count;
}

/* Gathers the items of a data block that is well-formed. */
static void set_block_items(struct call_part *c, const struct request *r)
{
    struct item_block b;
    bool good;
    size_t count = count_block_items(r, c->call.policy, &good);
    call_part_reserve(c, count);
    begin_block(&b, r, c->call.policy);
    for (size_t i = 0; i < count; i++) {
        CHECK(item_block_next(&b, &c->items[i]));
    }
    call_part_set_items(c, count);
}

/* Gathers the request's items; they stay where they lie in its block. */
static void set_items(struct call_part *c, const struct request *r)
{
    size_t count = 0, room = FEW_ITEMS;
    if (shape_has_block(r->verb->shape)) {
        set_block_items(c, r);
        return;
    }
    if (shape_has_item_block(r->verb->shape)) {
        c->few[count++] = r->data;
    } else if (r->verb->shape == SHAPE_LIST_PAGE) {
        c->few[count++] = r->second;
    } else if (shape_has_items(r->verb->shape)) {
        struct slice args = r->args, item;
        if (UNLIKELY(r->line.len > LONG_LINE_BYTES)) {
            size_t total = count_items(r);
            call_part_reserve(c, total);
            room = total > FEW_ITEMS ? total : FEW_ITEMS;
        }
        while (item_next(&args, &item)) {
            if (count == room) {
                grow_items(c, count);
                room *= 2;
            }
            c->items[count++] = item;
        }
    }
    call_part_set_items(c, count);
}

/* The lists that are read: of some verbs all keys but the first, which names the one that is made.
 */
static RARE void set_lists(struct call_part *c, const struct request *r)
{
    struct slice keys = r->args, target;
    bool has_target = r->verb->shape == SHAPE_LIST_TARGET;
    if (has_target) {
        (void)item_next(&keys, &target);
    }
    size_t count = r->arg_count - has_target;
    struct slice *found = calloc(count, sizeof *found);
    CHECK(found != NULL);
    for (size_t i = 0; i < count; i++) {
        CHECK(item_next(&keys, &found[i]));
    }
    (void)call_part_add_lists(c, found, count);
    free(found);
}

/* ---- ltx: the lines of its data block become what its call asks of each list ---- */

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

/* Looks through the block. False: the request was answered; the answer names the line that is
 * refused, and why. */
static bool transaction_is_good(struct client *client, const struct request *r)
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

/* Of a block that is good: the first list's key. */
static struct slice transaction_key(const struct request *r)
{
    struct tx_block b;
    struct tx_line line;
    tx_block_begin(&b, r->data);
    CHECK(tx_block_next(&b, &line));
    return line.key;
}

/* Gives the part's call the lists and changes of a block that is good. */
static void transaction_fill(struct call_part *c, const struct request *r)
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

/* ---- the request ---- */

static void start_call(struct pending *p)
{
    const struct request *r = &p->request;
    struct slice key = r->key;
    p->all_started = true;
    if (r->verb->shape == SHAPE_LIST_KEYS) {
        if (!item_next(&p->rest, &key)) {
            return;
        }
        p->all_started = p->next + 1 == r->arg_count;
    }
    if (r->verb->shape == SHAPE_LIST_PAIR) {
        key = r->second; /* the one that changes */
    }
    if (r->verb->shape == SHAPE_LIST_CHANGES) {
        key = transaction_key(r);
    }
    struct call_part *c = call_part_new(p, key);
    struct list_call *call = &c->call;
    call_part_fill(c, call, verbs[r->verb->verb], key);
    call->form = list_reply_form(r->verb->verb);
    call->from = r->from;
    call->to = r->to;
    call->seconds = r->seconds;
    call->count = r->count;
    call->wants_version = list_reply_has_version(r->verb->verb);
    bool has_block = shape_has_block(r->verb->shape);
    bool fills = has_block || r->verb->shape == SHAPE_LIST_PAIR;
    call->has_exptime = r->verb->shape == SHAPE_LIST_EXPTIME || (fills && r->arg_count > 1);
    call->condition = r->only_new                     ? LIST_IF_MISSING
                      : has_block && r->arg_count > 2 ? LIST_IF_LEASED
                                                      : LIST_ALWAYS;
    call->expected = r->token;
    call->exptime = r->exptime;
    if (r->verb->shape == SHAPE_LIST_PAIR) {
        call->source = r->key;
        call->source_policy = config_list_policy(p->client->worker->config, r->key);
    }
    if (shape_has_lists(r->verb->shape)) {
        set_lists(c, r);
    } else if (shape_moves(r->verb->shape)) {
        (void)call_part_add_lists(c, (struct slice[]){r->key, r->second}, 2);
    }
    set_items(c, r);
    if (r->verb->shape == SHAPE_LIST_CHANGES) {
        transaction_fill(c, r);
    }
    call_part_submit(c);
}

/* Where each list has a line of its own, the error is the line of that list, and the others follow.
 */
static RARE void fail_call(struct pending *p, const struct list_call *call, struct chain *out)
{
    char line[CALL_PART_LINE_MAX];
    call_part_failure(p->client->worker, call, line);
    if (p->request.verb->shape == SHAPE_LIST_KEYS && p->trailer.len == 0) {
        chain_copy_slice(out, slice_of(line));
        chain_copy_slice(out, SLICE_LIT("\r\n"));
    } else {
        pending_fail(p, line);
    }
}

static void emit_call(struct part *part, struct chain *out)
{
    struct call_part *c = call_part_of(part);
    struct pending *p = part->pending;
    if (list_reply_failed(&c->call)) {
        fail_call(p, &c->call, out);
    } else if (list_reply_stands_alone(p->request.verb->verb, &c->call)) {
        p->trailer = SLICE_LIT("NOT_FOUND\r\n");
    } else if (!p->request.noreply) {
        list_reply(p->request.verb->verb, &c->call, out);
    }
}

static const struct handler list_handler = {
    .kinds = ABOUT_LISTS, .start = start_call, .emit = emit_call};

/* Looks through a data block: false when the request was refused. */
static RARE bool block_is_good(struct client *client, const struct request *r)
{
    const struct list_policy *policy = config_list_policy(client->worker->config, r->key);
    bool good;
    size_t count = count_block_items(r, policy, &good);
    struct slice reply = SLICE_NONE;
    if (r->verb->shape == SHAPE_LIST_BLOCK && policy->delimiter < 0) {
        reply = SLICE_LIT("CLIENT_ERROR this list has no delimiter: use lputb\r\n");
    } else if (!good) {
        reply = SLICE_LIT("CLIENT_ERROR the block holds something else than ITEM KEY BYTES and "
                          "items, as lgetb answers them: nothing done\r\n");
    } else if (!call_part_has_room(client->worker, count, 0)) {
        metric_inc(&client->worker->metrics, METRIC_server_errors);
        pending_answer_fixed(client, CALL_PART_NO_ROOM);
        return false;
    }
    if (reply.len > 0) {
        metric_inc(&client->worker->metrics, METRIC_client_errors);
        pending_answer_fixed(client, reply);
    }
    return reply.len == 0;
}

/* The same for the number of lists. */
static bool lists_are_few(struct client *client, const struct request *r)
{
    uint32_t most = client->worker->config->max_read_lists;
    if (r->arg_count - (r->verb->shape == SHAPE_LIST_TARGET) <= most) {
        return true;
    }
    char line[160];
    snprintf(line, sizeof line,
             "CLIENT_ERROR more than %u lists (max_read_lists): combine some of them by "
             "lunionstore or linterstore before",
             most);
    pending_refuse(client, false, line);
    return false;
}

void list_request_start(struct client *client, const struct request *r, struct block *block)
{
    if (UNLIKELY(r->line.len > LONG_LINE_BYTES) && shape_has_items(r->verb->shape) &&
        !call_part_has_room(client->worker, count_items(r), 0)) {
        metric_inc(&client->worker->metrics, METRIC_server_errors);
        pending_answer_fixed(client, CALL_PART_NO_ROOM);
        return;
    }
    if (shape_has_block(r->verb->shape) && !block_is_good(client, r)) {
        return;
    }
    if (r->verb->shape == SHAPE_LIST_CHANGES && !transaction_is_good(client, r)) {
        return;
    }
    if (shape_has_lists(r->verb->shape) && !lists_are_few(client, r)) {
        return;
    }
    struct pending *p = pending_add(client, &list_handler, r, block);
    uint64_t lists = 1;
    if (r->verb->shape == SHAPE_LIST_KEYS) {
        p->rest = r->args;
    }
    if (r->verb->shape == SHAPE_LIST_KEYS || r->verb->shape == SHAPE_LIST_LISTS) {
        lists = r->arg_count;
    }
    /* The engine keeps the order of calls on one list, not of those on two, or of plain verbs. */
    if (r->verb->shape == SHAPE_LIST_PAIR || shape_has_lists(r->verb->shape) ||
        list_verb_kind(verbs[r->verb->verb]) == LIST_KIND_TX || r->verb->verb == VERB_lpurge) {
        p->turn = TURN_ALONE;
    }
    p->trailer = list_reply_trailer(r->verb->verb);
    pending_count(p, call_part_metric(verbs[r->verb->verb]), lists);
}
