/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients without a proxy: they change the same lists as the manual teaches, with requests of their
 * own. Each takes its time between two requests, and some never come back for the next.
 */
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define TRIES_MAX 20

enum outcome { HAND_GOES_ON, HAND_DONE, HAND_FAILED };

/* ---- requests ---- */

/* Executes one request. carries: it makes the call's change. */
static enum be_status ask(struct hand *h, enum be_verb verb, enum format_part part, uint64_t number,
                          struct block *value, bool carries, struct be_reply *reply)
{
    struct sim_world *w = h->world;
    char name[KEY_BYTES_MAX + 1];
    struct message m = {.list = (int)h->call->list, .purpose.kind = PURPOSE_WORK};
    struct list_request *r = &m.flight.request;
    size_t len = format_key(&w->format, h->call->list, part, number, name);
    r->be.verb = verb;
    request_set_key(r, len);
    memcpy(r->key, name, len);
    r->be.cas = h->cas;
    r->be.durable = true;
    r->be.delta = h->call->call.item_count;
    r->be.value = value == NULL ? SLICE_NONE : slice_make(value->data, value->used);
    m.purpose.calls = &h->call;
    m.purpose.count = carries ? 1 : 0;
    struct store *store = cluster_store(&w->base.cluster, slice_make(name, len));
    if (verb == BE_CAS && h->incarnation != store->incarnation) {
        return BE_EXISTS; /* its connection has ended with the server that gave the number */
    }
    h->incarnation = store->incarnation;
    m.flight.server = (unsigned)(store - w->base.stores);
    message_before(w, &m);
    store_execute(store, &r->be, world_now(&w->base).wall_s, &m.flight.reply);
    char shown[96];
    trace(&w->base, "h%u  s%u %-10s %-34s by hand -> %s  %.*s", h->number,
          (unsigned)(store - w->base.stores), be_verb_name(verb), name,
          be_status_name(m.flight.reply.status), 90,
          slice_escape(r->be.value.len > 0 ? r->be.value : m.flight.reply.value, shown,
                       sizeof shown));
    if (reply != NULL) {
        *reply = m.flight.reply;
    } else {
        block_unref(&m.flight.reply.block);
    }
    message_executed(w, &m);
    return m.flight.reply.status;
}

/* Keeps the value, and its CAS number. */
static enum be_status look(struct hand *h, enum format_part part, uint64_t number)
{
    struct be_reply reply;
    block_unref(&h->value);
    enum be_status status = ask(h, BE_GET, part, number, NULL, false, &reply);
    h->value = status == BE_HIT ? reply.block : NULL;
    h->cas = status == BE_HIT ? reply.cas : 0;
    return status;
}

static struct slice value_of(const struct hand *h)
{
    return h->value == NULL ? SLICE_NONE : slice_make(h->value->data, h->value->used);
}

static void put(struct block **b, char c)
{
    block_append(b, &c, 1);
}

/* ---- texts ---- */

/* Some leave out the last delimiter, and begin with one where others may have left it out. */
static bool leaves_open(struct hand *h)
{
    return h->world->p.unclosed && rng_below(&h->rng, 2) == 0;
}

/* The call's items with delimiters: what is appended, or with what an item begins. */
static struct block *delimited(struct hand *h, bool begins, bool with_bar)
{
    struct block *b = block_new(64);
    bool open = leaves_open(h);
    if (with_bar) {
        put(&b, h->world->format.bar);
    }
    if (!begins && h->world->p.unclosed) {
        put(&b, ',');
    }
    for (size_t i = 0; i < h->call->call.item_count; i++) {
        block_append(&b, h->call->items[i].p, h->call->items[i].len);
        if (!open || i + 1 < h->call->call.item_count) {
            put(&b, ',');
        }
    }
    return b;
}

/* The same in front of what is there. */
static struct block *buried(const struct hand *h)
{
    struct block *b = block_new(64);
    for (size_t i = 0; i < h->call->call.item_count; i++) {
        block_append(&b, h->call->items[i].p, h->call->items[i].len);
        put(&b, ',');
    }
    return b;
}

/* The call's items, each behind its sign. */
static struct block *with_signs(const struct hand *h)
{
    const struct format *f = &h->world->format;
    struct block *b = block_new(64);
    for (size_t i = 0; i < h->call->call.item_count; i++) {
        put(&b, h->call->call.verb == LIST_ADD ? f->plus : f->minus);
        block_append(&b, h->call->items[i].p, h->call->items[i].len);
    }
    return b;
}

/* The call's additions as the list's logs have them. */
static struct block *additions(struct hand *h, bool begins)
{
    return h->world->format.delimited ? delimited(h, begins, false) : with_signs(h);
}

static bool is_named(const struct hand *h, struct slice item)
{
    for (size_t i = 0; i < h->call->call.item_count; i++) {
        if (slice_equal(item, h->call->items[i])) {
            return true;
        }
    }
    return false;
}

/* What was read, without the call's items. */
static struct block *without_items(struct hand *h)
{
    struct block *b = block_new(64);
    struct slice rest = value_of(h);
    bool open = leaves_open(h);
    while (rest.len > 0) {
        const char *end = memchr(rest.p, ',', rest.len);
        struct slice item = slice_take(&rest, end == NULL ? rest.len : (size_t)(end - rest.p));
        if (end != NULL) {
            (void)slice_take(&rest, 1);
        }
        if (item.len > 0 && !is_named(h, item)) {
            block_append(&b, item.p, item.len);
            put(&b, ',');
        }
    }
    b->used -= open && b->used > 0;
    return b;
}

/* ---- one step ---- */

/* Appends and, where nothing is, adds. Two steps. Takes both blocks. */
static enum outcome append(struct hand *h, unsigned first_step, enum be_verb verb,
                           enum format_part part, uint64_t number, struct block *value,
                           struct block *create)
{
    bool adds = h->step == first_step + 1;
    enum be_status status =
        ask(h, adds ? BE_ADD : verb, part, number, adds ? create : value, true, NULL);
    block_unref(&value);
    block_unref(&create);
    if (status == BE_STORED) {
        return HAND_DONE;
    }
    h->step = adds ? 0 : first_step + 1;
    return status == BE_NOT_STORED ? HAND_GOES_ON : HAND_FAILED;
}

static enum outcome delete_simply(struct hand *h)
{
    if (h->step == 0) {
        h->step = 1;
        return look(h, FORMAT_KEY, 0) == BE_HIT ? HAND_GOES_ON : HAND_DONE;
    }
    struct block *less = without_items(h);
    enum be_status status = ask(h, BE_CAS, FORMAT_KEY, 0, less, true, NULL);
    block_unref(&less);
    h->step = 0;
    return status == BE_STORED                             ? HAND_DONE
           : status == BE_EXISTS || status == BE_NOT_FOUND ? HAND_GOES_ON
                                                           : HAND_FAILED;
}

static enum outcome bury(struct hand *h)
{
    struct block *items = buried(h);
    enum be_status status = ask(h, BE_PREPEND, FORMAT_KEY, 0, items, true, NULL);
    block_unref(&items);
    if (status == BE_STORED) {
        return HAND_DONE;
    }
    return look(h, FORMAT_KEY, 0) == BE_MISS ? HAND_DONE : HAND_FAILED;
}

static void find_active(struct hand *h)
{
    char name[KEY_BYTES_MAX + 1];
    const struct format *f = &h->world->format;
    if (f->dialect == DIALECT_FLIP) {
        (void)look(h, FORMAT_ACTIVE, 0);
        size_t len = format_key(f, h->call->list, FORMAT_B, 0, name);
        h->found = slice_equal(value_of(h), slice_make(name, len)) ? FORMAT_B : FORMAT_A;
        return;
    }
    (void)look(h, FORMAT_A, 0);
    bool a_there = h->value != NULL;
    bool a_closed = a_there && h->value->used > 0 && h->value->data[0] == f->mark;
    bool b_there = look(h, FORMAT_B, 0) == BE_HIT;
    h->found = a_closed || (!a_there && b_there) ? FORMAT_B : FORMAT_A;
}

static enum outcome append_to_active(struct hand *h)
{
    if (h->step == 0 || h->step == 2) {
        enum format_part before = (enum format_part)h->found;
        find_active(h);
        /* Nothing is created behind the back of a change. */
        h->step = h->step == 2 && before == h->found ? 3 : 1;
        return HAND_GOES_ON;
    }
    struct block *items = with_signs(h);
    bool adds = h->step == 3;
    enum be_status status =
        ask(h, adds ? BE_ADD : BE_APPEND, (enum format_part)h->found, 0, items, true, NULL);
    block_unref(&items);
    h->step = adds ? 0 : 2;
    return status == BE_STORED ? HAND_DONE : status == BE_NOT_STORED ? HAND_GOES_ON : HAND_FAILED;
}

/* Has it deleted in a sublist that is not the newest any more? That is lost where the sublist is
 * just being merged with the next one (docs/dialects.md). */
static bool deletes_late(const struct hand *h)
{
    const struct format *f = &h->world->format;
    int64_t now_s = world_now(&h->world->base).wall_s;
    struct slice index = format_value(f, h->call->list, FORMAT_KEY, 0, now_s);
    uint64_t newest = 0;
    return h->call->call.verb == LIST_DEL && index_newest(f, index, &newest) && newest != h->found;
}

static enum outcome append_to_newest(struct hand *h)
{
    const struct format *f = &h->world->format;
    enum be_status status;
    if (h->step == 0) {
        h->step = 1;
        bool any = look(h, FORMAT_KEY, 0) == BE_HIT && index_newest(f, value_of(h), &h->found);
        if (!any) {
            h->found = 0;
            h->step = 3;
        }
        return HAND_GOES_ON;
    }
    if (h->step == 5) {
        struct block *index = block_new(2);
        if (!f->delimited) {
            put(&index, f->plus);
        }
        put(&index, '0');
        if (f->delimited && !leaves_open(h)) {
            put(&index, ',');
        }
        status = ask(h, BE_ADD, FORMAT_KEY, 0, index, true, NULL);
        block_unref(&index);
        h->call->abandoned = status != BE_STORED;
        h->step = 6;
        return status == BE_STORED       ? HAND_DONE
               : status == BE_NOT_STORED ? HAND_GOES_ON
                                         : HAND_FAILED;
    }
    if (h->step == 6) {
        /* What was made again may have been taken out of the index meanwhile. */
        uint64_t newest = 0;
        bool same = look(h, FORMAT_KEY, 0) == BE_HIT && index_newest(f, value_of(h), &newest) &&
                    newest == h->found;
        h->step = 0;
        h->call->abandoned = !same;
        return same ? HAND_DONE : HAND_GOES_ON;
    }
    bool adds = h->step == 2 || h->step == 3;
    struct block *items = additions(h, adds);
    status = ask(h, adds ? BE_ADD : BE_APPEND, FORMAT_SUBLIST, h->found, items, true, NULL);
    block_unref(&items);
    if (status == BE_STORED) {
        bool done = h->step == 1;
        h->step = done ? 0 : h->step == 2 ? 6 : 5;
        h->call->abandoned = !done || deletes_late(h); /* else until it is sure */
        return done ? HAND_DONE : HAND_GOES_ON;
    }
    /* There, but not in an index: 3, then 4. In it, but not there: looked at again first. */
    h->step = h->step == 3 ? 4 : h->step == 1 && h->tries > 4 ? 2 : 0;
    return status == BE_NOT_STORED ? HAND_GOES_ON : HAND_FAILED;
}

/* Does what was read hold one of the call's items? */
static bool holds_items(const struct hand *h)
{
    struct slice item, rest = value_of(h);
    bool holds = false;
    char sign;
    while (signed_take(&h->world->format, &rest, &sign, &item)) {
        holds = holds || is_named(h, item);
    }
    return holds;
}

/* Takes the items out of each sublist that holds them, oldest first. */
static enum outcome delete_from_sublists(struct hand *h)
{
    if (h->step == 0) {
        h->step = 1;
        bool more = look(h, FORMAT_KEY, 0) == BE_HIT &&
                    index_next(&h->world->format, value_of(h), &h->found);
        h->call->abandoned = more && h->call->abandoned;
        return more ? HAND_GOES_ON : HAND_DONE;
    }
    if (h->step == 1) {
        bool holds = look(h, FORMAT_SUBLIST, h->found) == BE_HIT && holds_items(h);
        h->step = holds ? 2 : 0;
        h->found += !holds;
        h->tries = holds ? h->tries : 0;
        return HAND_GOES_ON;
    }
    struct block *less = without_items(h);
    enum be_status status = ask(h, BE_CAS, FORMAT_SUBLIST, h->found, less, true, NULL);
    block_unref(&less);
    h->step = 1;
    h->call->abandoned = h->call->abandoned || status == BE_STORED; /* until all is done */
    return status == BE_STORED || status == BE_EXISTS || status == BE_NOT_FOUND ? HAND_GOES_ON
                                                                                : HAND_FAILED;
}

/* The counter of a ring, by a number of laps. */
static void set_back(struct hand *h)
{
    uint64_t number;
    if (look(h, FORMAT_SEQ, 0) == BE_HIT && slice_to_u64(value_of(h), &number)) {
        struct block *text = block_new(24);
        char digits[20];
        block_append(&text, digits, format_u64(digits, number % h->world->format.capacity));
        (void)ask(h, BE_CAS, FORMAT_SEQ, 0, text, false, NULL);
        block_unref(&text);
    }
}

static enum outcome count(struct hand *h)
{
    struct be_reply reply;
    const struct format *f = &h->world->format;
    int64_t now_s = world_now(&h->world->base).wall_s;
    if (ask(h, BE_INCR, FORMAT_SEQ, 0, NULL, false, &reply) == BE_STORED) {
        h->found = reply.number - h->call->call.item_count + 1;
        h->step = 1;
        if (f->counter_wraps && reply.number >= f->capacity) {
            set_back(h);
        }
        return HAND_GOES_ON;
    }
    uint64_t most = 0;
    for (uint32_t slot = 0; f->numbered && slot < f->capacity; slot++) {
        struct ring_entry entry;
        struct slice value = format_value(f, h->call->list, FORMAT_SLOT, slot, now_s);
        if (value.len > 0 && entry_take(f, value, &entry)) {
            most = entry.number > most ? entry.number : most;
        }
    }
    struct block *text = block_new(24);
    char digits[20];
    block_append(&text, digits, format_u64(digits, most));
    (void)ask(h, BE_ADD, FORMAT_SEQ, 0, text, false, NULL);
    block_unref(&text);
    return HAND_GOES_ON;
}

static enum outcome enter(struct hand *h)
{
    const struct format *f = &h->world->format;
    char text[96];
    if (h->step == 0) {
        return count(h);
    }
    size_t i = h->step - 1;
    size_t n = entry_make(f, h->found + i, h->call->items[i], world_now(&h->world->base).wall_s,
                          text, sizeof text);
    struct block *entry = block_new(96);
    block_append(&entry, text, n);
    enum be_status status =
        ask(h, BE_SET, FORMAT_SLOT, (h->found + i) % f->capacity, entry, true, NULL);
    block_unref(&entry);
    h->step++;
    h->call->abandoned = status != BE_STORED;
    return status != BE_STORED                  ? HAND_FAILED
           : h->step > h->call->call.item_count ? HAND_DONE
                                                : HAND_GOES_ON;
}

static enum outcome act(struct hand *h)
{
    bool adds = h->call->call.verb == LIST_ADD;
    switch (h->world->format.dialect) {
    case DIALECT_SIMPLE:
        return adds ? append(h, 0, BE_APPEND, FORMAT_KEY, 0, delimited(h, false, false),
                             delimited(h, true, false))
                    : delete_simply(h);
    case DIALECT_TOMBSTONE:
        return adds ? append(h, 0, BE_APPEND, FORMAT_KEY, 0, delimited(h, false, false),
                             delimited(h, true, true))
                    : bury(h);
    case DIALECT_SIGNED:
        return append(h, 0, BE_APPEND, FORMAT_KEY, 0, with_signs(h), with_signs(h));
    case DIALECT_PAIRED:
        return append(h, 0, BE_APPEND, adds ? FORMAT_ADDS : FORMAT_DELETES, 0,
                      delimited(h, false, false), delimited(h, true, false));
    case DIALECT_SUBLISTS:
        return adds || !h->world->format.delimited ? append_to_newest(h) : delete_from_sublists(h);
    case DIALECT_RING:
        return enter(h);
    default:
        return append_to_active(h);
    }
}

/* ---- calls ---- */

static void plan(struct hand *h)
{
    struct sim_world *w = h->world;
    uint64_t us = h->call == NULL ? w->p.think_us : 4 * w->p.delay_us;
    if (h->call != NULL && rng_below(&h->rng, 32) == 0) {
        us *= 50; /* it thinks of something else in between */
    }
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&h->rng, us), EVENT_HAND, h, 0);
}

static void begin(struct hand *h)
{
    struct sim_world *w = h->world;
    bool deletes = w->p.dialect != DIALECT_RING && rng_below(&h->rng, 100) >= w->p.growth &&
                   rng_below(&h->rng, 5) < 2;
    struct sim_call *call =
        call_new(w, deletes ? LIST_DEL : LIST_ADD, (unsigned)rng_below(&h->rng, w->p.lists));
    call->proxy = PROXIES_MAX;
    call->session = PROXIES_MAX * CLIENTS_MAX + h->number;
    call_choose_items(w, &h->rng, call);
    if (ranges_have(&w->p.without_calls, call->number)) {
        free(call);
        return;
    }
    sim_add_call(w, call);
    h->call = call;
    h->step = h->tries = 0;
    h->found = 0;
    oracle_submitted(&w->oracle, call, world_now(&w->base).wall_s);
    trace_call(w, call);
}

/* Has it written to a sublist that no index may name? Who names it later makes the change count,
 * also behind an ldrop that has found no list. */
static bool left_unnamed(const struct hand *h)
{
    return h->world->p.dialect == DIALECT_SUBLISTS && (h->step == 5 || h->step == 6);
}

static void end(struct hand *h, enum outcome outcome)
{
    struct sim_world *w = h->world;
    struct sim_call *call = h->call;
    call->done = true;
    /* It waits for each answer. */
    call->settled_us = call->abandoned && left_unnamed(h) ? UINT64_MAX : 0;
    if (outcome == HAND_FAILED && !call->abandoned) {
        call->call.status = LIST_SERVER_ERROR;
        snprintf(call->call.error, sizeof call->call.error, "by hand, nothing done");
    }
    trace_call(w, call);
    oracle_done(&w->oracle, call, world_now(&w->base).wall_s);
    h->call = NULL;
    block_unref(&h->value);
}

void hand_act(struct hand *h)
{
    struct sim_world *w = h->world;
    if (h->call == NULL) {
        if (w->quiet || w->calls_made >= w->p.ops) {
            return;
        }
        begin(h);
    } else if (rng_below(&h->rng, 200) == 0) {
        h->call->abandoned = true;
        end(h, HAND_FAILED);
    } else {
        enum outcome outcome = h->tries++ == TRIES_MAX ? HAND_FAILED : act(h);
        if (outcome != HAND_GOES_ON) {
            end(h, outcome);
        }
    }
    plan(h);
}

void hands_start(struct sim_world *w)
{
    for (unsigned i = 0; i < w->p.hands; i++) {
        struct hand *h = &w->hands[i];
        *h = (struct hand){.world = w, .number = i};
        rng_init_seed(&h->rng, rng_next(&w->rng));
        plan(h);
    }
}

void hands_fini(struct sim_world *w)
{
    for (unsigned i = 0; i < w->p.hands; i++) {
        block_unref(&w->hands[i].value);
    }
}
