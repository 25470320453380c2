/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "../world/reference.h"
#include "../world/txlog.h"
#include "tx_model.h"

/* ---- contents ---- */

static void apply_change(struct ids *items, const struct tx_change *change, const uint16_t *ids,
                         const struct sim_call *call)
{
    if (change->op == TX_OP_SET) {
        ids_clear(items);
    }
    for (size_t i = 0; i < change->item_count; i++) {
        if (change->op == TX_OP_DEL) {
            (void)ids_remove(items, ids[i]);
        } else if (change->op != TX_OP_REQUIRE && change->op != TX_OP_REFUSE) {
            (void)oracle_add(items, call, ids[i]);
        }
    }
}

static void apply_moved(struct ids *items, const struct tx *tx, unsigned list)
{
    for (uint32_t i = 0; i < tx->moved.count; i++) {
        if (list == tx->call->lists[0]) {
            (void)ids_remove(items, tx->moved.ids[i]);
        } else {
            (void)oracle_add(items, tx->call, tx->moved.ids[i]);
        }
    }
}

static void apply_tx(struct ids *items, const struct tx *tx, unsigned list)
{
    const struct sim_call *call = tx->call;
    if (call->call.verb != LIST_TX) {
        apply_moved(items, tx, list);
        return;
    }
    for (unsigned i = 0; i < call->list_count; i++) {
        for (size_t n = 0; call->lists[i] == list && n < call->several[i].change_count; n++) {
            apply_change(items, &call->several[i].changes[n], call->plan->ids[i][n], call);
        }
    }
}

/* The content as of all that is known now; until: in front of that transaction's intent. False when
 * there is none of it. */
bool tx_replay(const struct oracle *o, unsigned list, const struct tx *until, struct ids *items)
{
    const struct tail *tail = &o->txs->tails[list];
    const struct version *now = oracle_now(o, list);
    ids_copy(items, &tail->base);
    items->max = now->max;
    items->refuses = now->refuses;
    for (size_t i = 0; i < tail->count; i++) {
        const struct tail_op *op = &tail->ops[i];
        if (op->tx != NULL && op->tx == until) {
            return true;
        }
        if (op->clears) {
            ids_clear(items);
        } else if (op->tx != NULL) {
            if (tx_fate_in(op->tx, tx_part_of(op->tx, list)) == COMMITTED) {
                apply_tx(items, op->tx, list);
            }
        } else {
            oracle_apply_blind(items, op->call);
        }
    }
    return until == NULL;
}

void tx_push_op(struct oracle *o, unsigned list, struct tail_op op)
{
    struct tail *tail = &o->txs->tails[list];
    if (tail->count == 0) {
        ids_copy(&tail->base, &oracle_now(o, list)->items);
    }
    op.at = ++o->moment;
    if (tail->count == tail->cap) {
        tail->cap = tail->cap * 2 + 4;
        tail->ops = realloc(tail->ops, tail->cap * sizeof *tail->ops);
        CHECK(tail->ops != NULL);
    }
    tail->ops[tail->count++] = op;
}

/* ---- order ---- */

/* The call's changes, as entries. */
static size_t entries_of(const struct sim_call *call, char *out, size_t cap)
{
    size_t used = 0;
    if (call->call.verb == LIST_SET) {
        used += (size_t)snprintf(out, cap, "!0:");
    }
    for (size_t i = 0; i < call->call.item_count && used < cap; i++) {
        struct slice item = item_text(call->ids[i]);
        used += (size_t)snprintf(out + used, cap - used, "+%zu:%.*s", item.len, SLICE_ARGS(item));
    }
    CHECK(used < cap);
    return used;
}

static bool op_conflicts(const struct oracle *o, const struct tail_op *op, unsigned list,
                         struct tx_part *part)
{
    struct slice mine = slice_make(part->entries->data, part->entries->used);
    char text[CALL_ITEMS_MAX * (ITEM_NAME_MAX + 8)];
    if (oracle_now(o, list)->max > 0 || op->clears) {
        return true;
    }
    if (op->tx != NULL) {
        const struct block *other = tx_part_of(op->tx, list)->entries;
        return txlog_conflict(mine, slice_make(other->data, other->used));
    }
    return txlog_conflict(mine, slice_make(text, entries_of(op->call, text, sizeof text)));
}

/* Finds how late its instant must be, by those in front of it in this list. */
static void order_in_front(struct oracle *o, struct tx *tx, struct tx_part *part)
{
    const struct tail *tail = &o->txs->tails[part->list];
    for (size_t i = 0; i < tail->count && tail->ops[i].tx != tx; i++) {
        const struct tail_op *op = &tail->ops[i];
        if (op->tx == NULL || !op_conflicts(o, op, part->list, part)) {
            continue;
        }
        enum fate fate = tx_fate_in(op->tx, tx_part_of(op->tx, part->list));
        if (fate == OPEN) {
            tx_wrong(tx, part->list,
                     "committed while one in front, that conflicts, is not decided");
        }
        if (fate == COMMITTED && op->tx->low >= tx->low) {
            tx->low = op->tx->low + 1;
        }
    }
}

/* Is there an instant in front of all that conflicts and stands behind it? */
static void order_behind(struct oracle *o, struct tx *tx, struct tx_part *part)
{
    const struct tail *tail = &o->txs->tails[part->list];
    size_t i = 0;
    while (i < tail->count && tail->ops[i].tx != tx) {
        i++;
    }
    for (i++; i < tail->count; i++) {
        if (tail->ops[i].tx == NULL && tail->ops[i].at <= tx->low &&
            op_conflicts(o, &tail->ops[i], part->list, part)) {
            tx_wrong(tx, part->list,
                     "what conflicts stands behind it, and came before its instant");
        }
    }
}

static void check_order(struct oracle *o, struct tx *tx)
{
    for (unsigned i = 0; i < tx->part_count; i++) {
        tx->low = tx->parts[i].put_at > tx->low ? tx->parts[i].put_at : tx->low;
    }
    for (unsigned i = 0; i < tx->part_count; i++) {
        if (tx->parts[i].is_there) {
            order_in_front(o, tx, &tx->parts[i]);
        }
    }
    for (unsigned i = 1; i < tx->part_count; i++) {
        if (tx->parts[i].is_there) {
            order_behind(o, tx, &tx->parts[i]);
        }
    }
}

/* ---- conditions, and what is moved ---- */

static void check_conditions(struct oracle *o, const struct tx *tx, unsigned at)
{
    const struct sim_call *call = tx->call;
    struct ids before = {0};
    if (!tx_replay(o, call->lists[at], tx, &before)) {
        ids_fini(&before);
        return; /* the list was lost */
    }
    for (size_t n = 0; n < call->several[at].change_count; n++) {
        const struct tx_change *change = &call->several[at].changes[n];
        for (size_t i = 0; i < change->item_count; i++) {
            bool in = ids_has(&before, call->plan->ids[at][n][i]);
            if ((change->op == TX_OP_REQUIRE && !in) || (change->op == TX_OP_REFUSE && in)) {
                tx_wrong(tx, call->lists[at], "committed though a condition does not hold");
            }
        }
    }
    ids_fini(&before);
}

/* lpopto: may fewer be moved than were asked for and are there? */
static bool may_stop(const struct oracle *o, const struct tx *tx, struct slice next)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < tx->moved.count; i++) {
        used += entry_bytes(item_text(tx->moved.ids[i]).len);
    }
    return tx->moved.count > 0 &&
           (o->answer_limit != 0 || used + entry_bytes(next.len) > o->log_hard_limit / 8);
}

static void check_popped(struct oracle *o, struct tx *tx, const struct ids *before)
{
    int64_t count = tx->call->call.count;
    uint64_t wanted = (uint64_t)(count < 0 ? -count : count);
    uint64_t most = wanted < before->count ? wanted : before->count;
    for (uint32_t i = 0; i < tx->moved.count; i++) {
        uint32_t at = count < 0 ? before->count - 1 - i : i;
        if (i >= most || tx->moved.ids[i] != before->ids[at]) {
            tx_wrong(tx, tx->call->lists[0], "other items are moved than stand at that end");
        }
    }
    if (tx->moved.count < most) {
        uint32_t at = count < 0 ? before->count - 1 - tx->moved.count : tx->moved.count;
        if (!may_stop(o, tx, item_text(before->ids[at]))) {
            tx_wrong(tx, tx->call->lists[0], "fewer items are moved than could be");
        }
    }
}

/* Which items its intent takes off the list. */
void tx_read_moved(struct tx *tx, struct slice entries)
{
    struct slice item;
    uint16_t id;
    char op;
    while (ref_take_entry(&entries, &op, &item)) {
        if (op == '-' && item_of_name(item, &id)) {
            ids_push(&tx->moved, id);
        }
    }
}

static void check_moved(struct oracle *o, struct tx *tx)
{
    const struct sim_call *call = tx->call;
    struct ids before = {0}, asked = {0};
    if (!tx_replay(o, call->lists[0], tx, &before)) {
        ids_fini(&before);
        return;
    }
    if (call->call.verb == LIST_POPTO) {
        check_popped(o, tx, &before);
    } else {
        for (size_t i = 0; i < call->call.item_count; i++) {
            if (ids_has(&before, call->ids[i])) {
                (void)ids_add(&asked, call->ids[i]);
            }
        }
        if (!ids_equal(&asked, &tx->moved)) {
            tx_wrong(tx, call->lists[0], "other items are moved than are there");
        }
    }
    ids_fini(&before);
    ids_fini(&asked);
}

void tx_check(struct oracle *o, struct tx *tx)
{
    const struct sim_call *call = tx->call;
    check_order(o, tx);
    if (call->call.verb == LIST_TX) {
        for (unsigned i = 0; i < call->list_count; i++) {
            check_conditions(o, tx, i);
        }
    } else {
        check_moved(o, tx);
    }
}
