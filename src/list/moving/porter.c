/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/porter.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "list/core/co.h"
#include "list/core/request.h"
#include "list/moving/places.h"
#include "list/moving/state.h"

/* What is under way for one list. */
struct porter {
    struct moved_list *list;
    bool removes; /* they are on the new server, and readers find them there */
    struct name_range *ranges;
    size_t range_count, ranges_max, range;
    uint32_t number;
    bool gave_up;
    struct co co;
    const struct be_reply *reply;
    struct list_request own; /* last, as a mover's */
};

static size_t porter_bytes(const struct moving *m, const struct porter *x)
{
    return sizeof *x + m->room_bytes + x->ranges_max * sizeof *x->ranges;
}

static void free_porter(const struct moving *m, struct porter *x)
{
    memory_give(porter_bytes(m, x));
    block_unref(&x->own.be.block);
    free(x->ranges);
    free(x);
}

static void port_ask(struct moving *m, struct porter *x, bool on_new, enum be_verb verb,
                     struct block *value)
{
    moving_ask(m, x->list, &x->own, on_new, verb, value);
    uint8_t len =
        sublist_key(x->own.key, moved_list_name(x->list), &x->ranges[x->range].name, x->number);
    x->own.be.key = slice_make(x->own.key, len);
}

static void give_up_port(struct porter *x, const char *why)
{
    x->gave_up = true;
    x->list->port_failed = why;
    x->list->failed_run = x->ranges[x->range].name;
}

/* One sublist is copied, or deleted. */
static enum progress port_one(struct moving *m, struct porter *x)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    if (x->removes) {
        port_ask(m, x, false, BE_DELETE, NULL);
        CO_AWAIT(co, "deleting a sublist on the old server");
        CO_RETURN(co);
    }
    port_ask(m, x, true, BE_PROBE, NULL);
    CO_AWAIT(co, "looking for a sublist on the new server");
    if (x->reply->status == BE_HIT) {
        CO_RETURN(co);
    }
    port_ask(m, x, false, BE_GET, NULL);
    CO_AWAIT(co, "reading a sublist");
    if (x->reply->status != BE_HIT) {
        give_up_port(x, x->reply->status == BE_MISS ? "a sublist of it is missing"
                                                    : "its old server does not answer");
        CO_RETURN(co);
    }
    port_ask(m, x, true, BE_ADD, block_ref(x->reply->block));
    /* The block may hold more than the value. */
    x->own.be.value = x->reply->value;
    x->own.be.exptime = place_exptime_beyond(x->reply, m->wall_s);
    CO_AWAIT(co, "copying a sublist");
    if (x->reply->status != BE_STORED && x->reply->status != BE_NOT_STORED) {
        give_up_port(x, "its new server does not take its sublists");
    }
    CO_END(co);
}

static enum progress port(struct moving *m, struct porter *x)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    for (; x->range < x->range_count; x->range++) {
        for (x->number = 0; x->number < x->ranges[x->range].count; x->number++) {
            CO_CALL(co, port_one(m, x));
            if (x->gave_up) {
                CO_RETURN(co);
            }
        }
    }
    CO_END(co);
}

bool porter_has(const struct moved_list *list, const struct name *name)
{
    for (size_t i = 0; i < list->ported_count; i++) {
        if (name_equal(&list->ported[i].name, name)) {
            return true;
        }
    }
    return false;
}

void porter_keep(struct moving *m, struct moved_list *list, const struct head *head)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->ported_count; i++) {
        if (head_names_run(head, &list->ported[i].name)) {
            list->ported[kept++] = list->ported[i];
        }
    }
    m->bytes -= (list->ported_count - kept) * sizeof *list->ported;
    list->ported_count = kept;
}

static void end_port(struct moving *m, struct porter *x)
{
    struct moved_list *list = x->list;
    list->porter = NULL;
    if (x->removes || x->gave_up) {
        free_porter(m, x);
        return;
    }
    size_t count = list->ported_count + x->range_count;
    list->ported = realloc(list->ported, count * sizeof *list->ported);
    CHECK(list->ported != NULL);
    memcpy(list->ported + list->ported_count, x->ranges, x->range_count * sizeof *x->ranges);
    list->ported_count = count;
    m->bytes += x->range_count * sizeof *x->ranges;
    free_porter(m, x);
}

static void advance_port(struct moving *m, struct porter *x)
{
    if (port(m, x) == PROGRESS_DONE) {
        end_port(m, x);
    }
}

void porter_begin(struct moving *m, struct moved_list *list, const struct head *head, bool removes)
{
    if (list->porter != NULL || head->run_count == 0) {
        return;
    }
    struct porter *x = calloc(1, sizeof *x + m->room_bytes);
    CHECK(x != NULL);
    x->ranges_max = head->run_count;
    x->ranges = calloc(x->ranges_max, sizeof *x->ranges);
    CHECK(x->ranges != NULL);
    memory_take(porter_bytes(m, x));
    x->list = list;
    x->removes = removes;
    for (size_t i = 0; i < head->run_count; i++) {
        if (removes || !porter_has(list, &head->runs[i].range.name)) {
            x->ranges[x->range_count++] = head->runs[i].range;
        }
    }
    list->porter = x;
    advance_port(m, x);
}

const char *porter_failure(struct moved_list *list, const struct head *head)
{
    const char *why = list->port_failed;
    list->port_failed = NULL;
    return why != NULL && head_names_run(head, &list->failed_run) ? why : NULL;
}

bool porter_takes(struct moving *m, struct moved_list *list, const struct list_request *request,
                  const struct be_reply *reply)
{
    struct porter *x = list->porter;
    if (x == NULL || request != &x->own) {
        return false;
    }
    x->reply = reply;
    advance_port(m, x);
    return true;
}

void porter_forget(struct moving *m, struct moved_list *list)
{
    m->bytes -= list->ported_count * sizeof *list->ported;
    free(list->ported);
    list->ported = NULL;
    list->ported_count = 0;
}

void porter_drop(const struct moving *m, struct moved_list *list)
{
    if (list->porter != NULL) {
        free_porter(m, list->porter);
        list->porter = NULL;
    }
}
