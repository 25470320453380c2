/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/plain.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "list/core/engine_state.h"
#include "list/format/name.h"

/* ---- which there are ---- */

static bool keeps_items(const struct list_policy *policy)
{
    return policy->dialect == DIALECT_NATIVE || policy->migrate == MIGRATE_NATIVE;
}

bool plain_is_list_item(const struct config *config, struct slice key)
{
    struct slice list_key;
    bool head;
    return list_item_key(key, &list_key, &head) &&
           keeps_items(config_list_policy(config, list_key));
}

/* Clock items are those of all lists on their server. */
static bool protects_clocks(const struct config *config, const struct route_config *route)
{
    for (size_t i = 0; i < config->list_count; i++) {
        const struct list_policy *policy = &config->lists[i];
        if (policy->protect_lists && route_reaches(route, policy->pool_index)) {
            return true;
        }
    }
    return false;
}

bool plain_is_protected(const struct config *config, struct slice key)
{
    struct slice list_key;
    bool head;
    if (clock_key_is(key)) {
        return protects_clocks(config, config_route(config, key));
    }
    if (!list_item_key(key, &list_key, &head)) {
        return false;
    }
    const struct list_policy *policy = config_list_policy(config, list_key);
    return policy->protect_lists && keeps_items(policy) &&
           route_reaches(config_route(config, key), policy->pool_index);
}

/* Why there is no plain item of that name for a client to delete, or NULL. */
static const char *plain_refusal(const struct config *config, struct slice name)
{
    if (name.len > KEY_BYTES_MAX || !key_is_word(name)) {
        return "not a key that memcached takes";
    }
    if (plain_is_protected(config, name)) {
        return "this key belongs to a list (protect_lists)";
    }
    if (config->has_bridge && config_prefix_policy(config, name)->bridge != BRIDGE_NO &&
        !plain_is_list_item(config, name)) {
        return "this key is a list (bridge): ldrop removes it";
    }
    if (config_route(config, name)->moves) {
        return "plain keys of its pool move to other servers (next): use delete";
    }
    return NULL;
}

/* ---- deleting them ---- */

static void keep(struct plain_batch *b, struct plain_item *item, const char *why)
{
    char name[64];
    item->state = PLAIN_KEPT;
    if (b->kept++ == 0) {
        snprintf(b->why, sizeof b->why, "%s: %.180s", slice_escape(item->name, name, sizeof name),
                 why);
    }
}

void plain_add(const struct config *config, struct plain_batch *b, struct slice name)
{
    b->items = array_room(b->items, b->count, &b->cap, sizeof *b->items);
    struct plain_item *item = &b->items[b->count++];
    *item = (struct plain_item){.name = arena_copy(&b->names, name)};
    const char *why = plain_refusal(config, name);
    if (why != NULL) {
        keep(b, item, why);
    }
}

void plain_clear(struct plain_batch *b)
{
    arena_fini(&b->names);
    b->count = 0;
}

void plain_fini(struct plain_batch *b)
{
    arena_fini(&b->names);
    free(b->items);
    b->items = NULL;
}

void plain_tell(const struct plain_batch *b, uint64_t done, char text[LIST_ERROR_MAX])
{
    snprintf(text, LIST_ERROR_MAX, "lpurge: %llu names purged, %llu stay in the list: %.160s",
             (unsigned long long)done, (unsigned long long)b->kept, b->why);
}

size_t plain_bytes(const struct plain_batch *b)
{
    return b->names.bytes + b->cap * sizeof *b->items;
}

void plain_reopen(struct plain_batch *b, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (b->items[i].state == PLAIN_DELETED) {
            b->items[i].state = PLAIN_OPEN;
        }
    }
}

static void send_delete(struct engine *e, struct op *op, struct plain_item *item, size_t at)
{
    struct list_request *r = request_new(e, op->list, BE_DELETE);
    memcpy(r->key, item->name.p, item->name.len);
    request_set_key(r, (uint8_t)item->name.len);
    r->pool_index = config_route(e->config, item->name)->pool_index;
    item->state = PLAIN_SENT;
    op_send(e, op, r, NULL, at);
}

static void send_more(struct engine *e, struct op *op, struct plain_batch *b)
{
    while (!b->over && b->next < b->to && op->due < PLAIN_WINDOW) {
        if (b->items[b->next].state == PLAIN_OPEN) {
            send_delete(e, op, &b->items[b->next], b->next);
        }
        b->next++;
    }
}

static void take_outcome(struct engine *e, struct plain_batch *b, const struct op_event *event)
{
    struct plain_item *item = &b->items[event->tag];
    if (event->status == BE_DELETED || event->status == BE_NOT_FOUND) {
        item->state = PLAIN_DELETED;
        metric_inc(e->metrics, METRIC_list_purged_items);
    } else {
        char why[LIST_ERROR_MAX];
        op_error_text(event, why);
        keep(b, item, why);
    }
}

enum progress plain_delete_step(struct engine *e, struct op *op, struct plain_batch *b, size_t from,
                                size_t to, struct scan *scan, const struct op_event *event)
{
    struct co *co = &op->co;
    CO_BEGIN(co);
    CHECK(op->due == 0);
    b->next = from;
    b->to = to;
    send_more(e, op, b);
    while (op->due > 0) {
        CO_AWAIT(co, "deleting plain items");
        if ((event->tag & TAG_SCAN) != 0) {
            scan_take(scan, event);
        } else {
            take_outcome(e, b, event);
        }
        send_more(e, op, b);
    }
    CO_END(co);
}
