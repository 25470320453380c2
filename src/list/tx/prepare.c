/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What precedes the first intent of an attempt: are they lists, which one decides, and is there
 * room in their logs?
 */
#include "list/tx/tx_op.h"

#include "base/number.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/tx/refusal.h"

/* Looks at a list that has no room yet, and the pause between them. */
#define ROOM_LOOKS_MAX 200
#define ROOM_PAUSE_US 2000u

/* What stands under the names of lists that this worker does not know. */
static enum progress look_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        part->is_missing = false;
        part->ends = part->list->expires_us != 0;
        part->got = GOT_HEAD;
        part->state = INTENT_GONE;
        part->lost = false;
        head_unref(&part->head);
        if (!part->list->has_head || o->looks_at_all) {
            tx_send_read(e, part);
        }
    }
    CO_CALL(co, tx_await_step(e, o, event, "looking whether they are lists"));
    CO_END(co);
}

static bool is_smaller(const struct tx_part *a, const struct tx_part *b)
{
    struct slice x = list_key(a->list), y = list_key(b->list);
    int order = memcmp(x.p, y.p, u64_least(x.len, y.len));
    return order < 0 || (order == 0 && x.len < y.len);
}

/* The primary must outlive the transaction: a list that ends is none. Of the others the one with
 * the smallest key, so that transactions on the same lists meet there first. One from which the
 * newest items move is rather not: see plan.c. */
static void choose_primary(struct op_tx *o)
{
    bool found = false;
    for (int round = 0; round < 2 && !found; round++) {
        for (size_t i = 0; i < o->part_count; i++) {
            const struct tx_part *part = &o->parts[i], *best = &o->parts[o->primary];
            bool ends = part->ends || (part->is_missing && part->list->policy->ttl_s != 0);
            bool avoided = o->no_additions && i == 0 && round == 0;
            if (!ends && !avoided && (!found || is_smaller(part, best))) {
                o->primary = i;
                found = true;
            }
        }
    }
    if (!found && !o->looks_at_all) {
        o->looks_at_all = true; /* what is known may be old */
        o->state = TX_ELSEWHERE;
    } else if (!found) {
        tx_fail(o, TX_REFUSED,
                "%s: all of the lists have a time to live, and one is needed that stays: nothing "
                "done",
                list_verb_word(o->verb));
    }
}

static void check_sizes(struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
        struct intent intent = tx_intent(o, &o->parts[i]);
        uint64_t bytes = intent_size(&intent);
        uint64_t most = list_log_hard_limit(o->parts[i].list) / 4;
        if (bytes > most) {
            tx_size_text(o->verb, bytes, most, o->error);
            o->state = TX_REFUSED;
        }
    }
}

/* Is there room for its intent, and none of this worker's compactions in the way? */
static bool has_room(const struct op_tx *o, const struct tx_part *part)
{
    const struct list *list = part->list;
    struct intent intent = tx_intent(o, part);
    return list->publisher == NULL && !timer_is_set(&list->append_backoff) &&
           intent_size(&intent) <= list_log_room(list);
}

static bool all_have_room(struct engine *e, struct op_tx *o)
{
    bool room = true;
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        part->waits = !has_room(o, part);
        if (part->waits) {
            room = false;
            tx_send_read(e, part); /* what is known may be old: others have flipped since */
        }
    }
    return room;
}

/* Of a list that has no room yet. */
static void await_list(struct engine *e, struct op_tx *o, struct tx_part *part)
{
    tx_check_part(o, part);
    list_consider_compaction(e, part->list, 0);
}

static void give_up_waiting(struct engine *e, struct op_tx *o)
{
    metric_inc(e->metrics, METRIC_list_log_full);
    tx_fail(o, TX_FAILED, "list log full, nothing done: compaction is behind, try again");
}

static enum progress room_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (o->tries = 0; tx_goes_on(o) && !all_have_room(e, o); o->tries++) {
        CO_CALL(co, tx_await_step(e, o, event, "looking whether the lists' logs have room"));
        for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
            if (o->parts[i].waits) {
                await_list(e, o, &o->parts[i]);
            }
        }
        if (o->state == TX_GOING && o->tries == ROOM_LOOKS_MAX) {
            give_up_waiting(e, o);
        } else if (tx_goes_on(o)) {
            CO_SLEEP(&o->op, co, "waiting for room in the lists' logs",
                     e->now.mono_us + ROOM_PAUSE_US);
        }
    }
    CO_END(co);
}

static void begin(struct engine *e, struct op_tx *o)
{
    o->begun = o->confirms = false;
    o->judged_s = 0;
    name_fresh(&o->name, e->rng);
    o->created_s = e->now.wall_s;
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        part->proposed = part->stored = part->published = false;
        part->tries = 0;
    }
}

enum progress tx_prepare_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    begin(e, o);
    CO_CALL(co, look_step(e, o, event));
    for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
        tx_check_part(o, &o->parts[i]);
    }
    if (tx_goes_on(o)) {
        choose_primary(o);
    }
    if (tx_goes_on(o)) {
        check_sizes(o);
    }
    if (tx_goes_on(o)) {
        CO_CALL(co, room_step(e, o, event));
    }
    CO_END(co);
}
