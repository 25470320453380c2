/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each list's intent says. Of an ltx, the call does. lmove and lpopto read the first list, and
 * move what they find; that it is still so is a condition of the transaction, and where it is not,
 * it is planned anew.
 */
#include "list/tx/tx_op.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "list/core/engine_state.h"
#include "list/tx/queue.h"

/* ---- parts ---- */

static void change(struct tx_part *part, enum entry_op op, struct slice item)
{
    entry_append(&part->entries, op, item);
    if (!part->tx->in_queue) { /* afterwards its place there says what it is about */
        part->item_bits |= op == ENTRY_CLEAR ? UINT64_MAX : tx_queue_bits(item);
    }
}

/* What a client adds. */
static void add(struct tx_part *part, struct slice item)
{
    bool recent = part->list->policy->order == ORDER_RECENT;
    change(part, recent ? ENTRY_READD : ENTRY_ADD, item);
}

/* The item, in memory of the operation (op_tx.memory or plan), is to be in the list, or not.
 * is_named: an entry of the intent names it already. */
static void ask(struct tx_part *part, struct slice item, bool wanted, bool is_named)
{
    size_t cap = part->asked_cap;
    part->asked = array_room(part->asked, part->asked_count, &cap, sizeof *part->asked);
    part->wanted =
        array_room(part->wanted, part->asked_count, &part->asked_cap, sizeof *part->wanted);
    part->asked[part->asked_count] = item;
    part->wanted[part->asked_count++] = wanted;
    if (!is_named) {
        change(part, ENTRY_CONDITION, item);
    }
}

static void take_change(struct op_tx *o, struct tx_part *part, const struct tx_change *what)
{
    if (what->op == TX_OP_SET) {
        change(part, ENTRY_CLEAR, SLICE_NONE);
    }
    for (size_t i = 0; i < what->item_count; i++) {
        if (what->op == TX_OP_REQUIRE || what->op == TX_OP_REFUSE) {
            struct slice item = arena_copy(&o->memory, what->items[i]);
            ask(part, item, what->op == TX_OP_REQUIRE, false);
        } else if (what->op == TX_OP_DEL) {
            change(part, ENTRY_DEL, what->items[i]);
        } else {
            add(part, what->items[i]);
        }
    }
}

/* lmove: each item once, in memory of its own. */
static void take_items(struct op_tx *o, const struct list_call *call)
{
    struct fold known;
    fold_init(&known);
    o->items = arena_alloc(&o->memory, (call->item_count + 1) * sizeof *o->items);
    for (size_t i = 0; i < call->item_count; i++) {
        if (fold_find(&known, call->items[i]) == NULL) {
            fold_apply(&known, ENTRY_ADD, call->items[i]);
            o->items[o->item_count++] = arena_copy(&o->memory, call->items[i]);
        }
    }
    fold_fini(&known);
}

static void part_init(struct engine *e, struct op_tx *o, const struct call_list *from)
{
    struct tx_part *part = &o->parts[o->part_count++];
    part->tx = o;
    part->list = lists_get(&e->lists, from->key, from->policy);
    part->list->ops++;
    part->entries = block_new_small();
    for (size_t i = 0; i < from->change_count; i++) {
        take_change(o, part, &from->changes[i]);
    }
}

void tx_plan_init(struct engine *e, struct op_tx *o)
{
    const struct list_call *call = o->call;
    arena_init(&o->memory);
    arena_init(&o->plan);
    gather_init(&o->gather, call->policy->fold_memory_bytes);
    for (size_t i = 0; i < call->list_count; i++) {
        part_init(e, o, &call->lists[i]);
    }
    if (call->verb == LIST_MOVE) {
        take_items(o, call);
        for (size_t i = 0; i < o->item_count; i++) {
            o->parts[0].item_bits |= tx_queue_bits(o->items[i]);
            o->parts[1].item_bits |= tx_queue_bits(o->items[i]);
        }
    } else if (call->verb == LIST_POPTO) {
        o->parts[0].item_bits = UINT64_MAX;
    }
    tx_count_memory(o);
}

static void forget_reads(struct engine *e, struct op_tx *o)
{
    inner_drop(e, &o->look);
    tx_forget_question(e, o);
}

void tx_plan_fini(struct engine *e, struct op_tx *o)
{
    forget_reads(e, o);
    gather_fini(&o->gather);
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        head_unref(&part->head);
        block_unref(&part->entries);
        free(part->asked);
        free(part->wanted);
        part->list->ops--;
    }
    arena_fini(&o->memory);
    arena_fini(&o->plan);
    memory_give(o->memory_bytes);
}

/* ---- lmove, lpopto ---- */

static void begin_anew(struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count; i++) {
        o->parts[i].entries->used = 0;
        o->parts[i].asked_count = 0;
    }
    o->moved_count = 0;
    arena_fini(&o->plan);
}

/* Can the item be in the list that gets it? */
static bool fits(struct op_tx *o, struct slice item)
{
    const struct list_policy *to = o->parts[1].list->policy;
    const char *word = list_verb_word(o->verb);
    if (to->delimiter >= 0 && memchr(item.p, to->delimiter, item.len) != NULL) {
        tx_fail(o, TX_REFUSED,
                "%s: an item holds the delimiter of the list that it would be in, nothing done",
                word);
        return false;
    }
    if (item.len > to->max_item_bytes) {
        tx_fail(o, TX_REFUSED, "%s: an item is longer than %u bytes (max_item_bytes), nothing done",
                word, to->max_item_bytes);
        return false;
    }
    return true;
}

static void move(struct op_tx *o, struct slice item)
{
    if (fits(o, item)) {
        change(&o->parts[0], ENTRY_DEL, item);
        ask(&o->parts[0], item, true, true);
        add(&o->parts[1], item);
        o->moved[o->moved_count++] = item;
    }
}

static void plan_move(struct op_tx *o)
{
    begin_anew(o);
    o->moved = arena_alloc(&o->plan, (o->item_count + 1) * sizeof *o->moved);
    for (size_t i = 0; i < o->item_count && o->state == TX_GOING; i++) {
        if (members_has(&o->question.members, i)) {
            move(o, o->items[i]);
        } else {
            ask(&o->parts[0], o->items[i], false, false);
        }
    }
    o->state = o->state == TX_GOING && o->moved_count == 0 ? TX_NOTHING : o->state;
}

/* The log of each list must take its part of them, whose keys take room as well. */
static uint64_t entries_bytes_most(const struct op_tx *o)
{
    uint64_t a = list_log_hard_limit(o->parts[0].list), b = list_log_hard_limit(o->parts[1].list);
    return (a < b ? a : b) / 8;
}

/* What does not fit stays: fewer than asked for are moved. */
static void plan_pop(struct op_tx *o)
{
    const struct list_policy *to = o->parts[1].list->policy;
    uint64_t answer_bytes = 0;
    begin_anew(o);
    o->moved = arena_alloc(&o->plan, (o->gather.count + 1) * sizeof *o->moved);
    for (size_t i = 0; i < o->gather.count && o->state == TX_GOING; i++) {
        struct slice item = o->gather.items[i];
        answer_bytes += item.len + 1;
        if (o->moved_count > 0 &&
            (o->parts[0].entries->used + entry_bytes(item.len) > entries_bytes_most(o) ||
             answer_bytes > to->max_answer_bytes)) {
            break;
        }
        move(o, arena_copy(&o->plan, item));
    }
    /* Were one added behind the intent, it would have been moved instead, or as well. */
    o->found_count = o->gather.count;
    o->no_additions = o->count < 0 || o->found_count < tx_wanted_count(o);
    o->state = o->state == TX_GOING && o->moved_count == 0 ? TX_NOTHING : o->state;
}

/* As many items as an intent may have, and one byte each at least. */
static int64_t range_count(const struct op_tx *o)
{
    uint64_t most = entries_bytes_most(o) / (ENTRY_BYTES_LEAST + 1) + 1,
             wanted = tx_wanted_count(o);
    return (int64_t)(wanted < most ? wanted : most);
}

void tx_ask_range(struct engine *e, struct op_tx *o, struct head *head)
{
    gather_clear(&o->gather);
    question_range(e, &o->question, &o->op, o->parts[0].list, head, o->count < 0, o->range_count,
                   &o->gather);
}

static void take_look(struct op_tx *o)
{
    const struct list_call *call = &o->look->call;
    bool refuses = o->parts[0].list->policy->on_missing == ON_MISSING_REFUSE;
    if (call->status == LIST_MISSING) {
        o->state = refuses ? TX_MISSING : TX_NOTHING;
    } else if (call->status != LIST_OK) {
        tx_fail_undone(o, call->error);
    }
}

enum progress tx_plan_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    (void)event;
    CO_BEGIN(co);
    if (o->verb == LIST_TX) {
        CO_RETURN(co);
    }
    forget_reads(e, o);
    o->look = inner_new(e, &o->op, o->parts[0].list, LIST_LEN);
    inner_look(e, o->look, o->parts[0].list);
    while (!o->look->done) {
        CO_AWAIT(co, "reading the list that items leave");
    }
    take_look(o);
    if (!tx_goes_on(o)) {
        CO_RETURN(co);
    }
    if (o->verb == LIST_MOVE) {
        question_items(e, &o->question, &o->op, o->parts[0].list, o->look->head, o->items,
                       o->item_count);
    } else {
        o->range_count = range_count(o);
        tx_ask_range(e, o, o->look->head);
    }
    CO_CALL(co, tx_ask_step(o, "reading what a list holds"));
    if (tx_goes_on(o) && o->verb == LIST_MOVE) {
        plan_move(o);
    } else if (tx_goes_on(o)) {
        plan_pop(o);
    }
    forget_reads(e, o); /* and counts what was planned */
    CO_END(co);
}
