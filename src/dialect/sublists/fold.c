/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Folding sublists in place, oldest first, each by CAS, so that the list reads the same after every
 * write.
 *
 *     - Only the newest mention of an item stays. So an item that was added again moves to the end:
 *       the older mention may already be gone when a repeated one would have to go for its sake.
 *     - A deletion goes when no older sublist adds the item. So one whose addition this round
 *       removes stays until the next round. Another proxy may be about to merge what an older
 *       sublist held before that: so those that it may write are written first, as they are, and
 *       its CAS fails.
 *     - An empty sublist, except for the newest, is removed by CAS; then its number is taken out of
 *       the index: by an append, or, between delimiters, by CAS at the end of the round.
 *     - Where nothing else is left to do, two neighbours that are short become one: the later of
 *       them gets the entries of the other in front of its own. From then on these stand in both,
 *       as items that were added again, and the next rounds empty the older one. So no mention of
 *       an item ever goes unless a newer one is stored.
 *
 * lset, ldrop: ADD new sublists, then write the index by CAS, which is the moment when they count;
 * then delete the old ones.
 */
#include <stdlib.h>

#include "dialect/sublists/sublists.h"
#include "dialect/shared/foreign.h"

/* Rounds until nothing is left to remove: a deletion goes in the round after its addition, and each
 * merge takes three. */
#define ROUNDS_MAX 16

/* ---- what is to stand in each sublist ---- */

struct plan {
    size_t count;
    struct fold *own;          /* of each sublist */
    unsigned char **add_below; /* of each item of each fold: does an older sublist add it? */
    struct fold adds;          /* of the sublists before the current one */
    struct fold later;         /* what those behind it mention */
    size_t forgets;            /* see sublists_work */
};

static void plan_init(struct plan *plan, const struct work *w)
{
    *plan = (struct plan){.count = w->cell_count - 1};
    plan->own = calloc(plan->count + 1, sizeof *plan->own);
    plan->add_below = calloc(plan->count + 1, sizeof *plan->add_below);
    CHECK(plan->own != NULL && plan->add_below != NULL);
    for (size_t i = 0; i < plan->count; i++) {
        fold_init(&plan->own[i]);
        sublists_fold(w->op.list, &plan->own[i], w->cells[i + 1].value);
    }
    fold_init(&plan->adds);
    fold_init(&plan->later);
}

static void plan_fini(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        fold_fini(&plan->own[i]);
        free(plan->add_below[i]);
    }
    free(plan->own);
    free(plan->add_below);
    fold_fini(&plan->adds);
    fold_fini(&plan->later);
}

static void note_below(struct plan *plan, size_t i, struct slice text, const struct list *list)
{
    const struct fold *own = &plan->own[i];
    enum entry_op op;
    struct slice item;
    plan->add_below[i] = calloc(own->count + 1, 1);
    CHECK(plan->add_below[i] != NULL);
    for (uint32_t at = 0; at < own->count; at++) {
        plan->add_below[i][at] = fold_outcome(&plan->adds, own->items[at].item) != 0;
    }
    while (sublists_next(list, &text, &op, &item)) {
        if (op == ENTRY_ADD) {
            fold_apply(&plan->adds, ENTRY_ADD, item);
        }
    }
}

/* What is to stand in that sublist; the ones behind it were asked for before. deletes_stay: older
 * ones may have got entries since they were read, though this one was read later. */
static struct block *kept_text(struct plan *plan, size_t i, bool deletes_stay,
                               const struct list *list)
{
    struct fold *own = &plan->own[i];
    struct block *text = block_new(64);
    for (uint32_t at = 0; at < own->count; at++) {
        const struct fold_item *item = &own->items[at];
        if (item->outcome == 0 || fold_outcome(&plan->later, item->item) != 0) {
            continue;
        }
        fold_apply(&plan->later, ENTRY_ADD, item->item);
        if (item->outcome != ENTRY_DEL) {
            sublists_append(list, &text, ENTRY_ADD, item->item);
        } else if (plan->add_below[i][at] || deletes_stay) {
            sublists_append(list, &text, ENTRY_DEL, item->item);
        } else if (plan->forgets == 0) {
            plan->forgets = i + 1;
        }
    }
    return text;
}

/* Is each sublist as it is to be, and none empty but the newest? */
static bool is_at_rest(const struct work *w)
{
    bool rests = true;
    for (size_t i = 0; rests && i < w->text_count; i++) {
        rests = slice_equal(w->cells[i + 1].value, block_text(w->texts[i])) &&
                (w->texts[i]->used > 0 || i + 1 == w->text_count);
    }
    return rests;
}

static void plan_merges(struct work *w)
{
    for (size_t i = 0; i + 2 < w->text_count; i++) {
        struct block *one = w->texts[i], *other = w->texts[i + 1];
        if (sublists_may_merge(w->op.list, one->used, other->used)) {
            w->texts[i + 1] = block_new(one->used + other->used);
            block_append(&w->texts[i + 1], one->data, one->used);
            block_append(&w->texts[i + 1], other->data, other->used);
            block_unref(&other);
            i++;
        }
    }
}

/* The texts that are to replace the sublists', in w->texts. */
static void plan_texts(struct work *w)
{
    struct plan plan;
    plan_init(&plan, w);
    work_forget_texts(w);
    w->texts = calloc(plan.count + 1, sizeof *w->texts);
    CHECK(w->texts != NULL);
    w->text_count = plan.count;
    for (size_t i = 0; i < plan.count; i++) {
        note_below(&plan, i, w->cells[i + 1].value, w->op.list);
    }
    for (size_t i = plan.count; i-- > 0;) {
        bool read_last = i > 0 && i + 1 == plan.count && !sublists_own(w)->checked_all;
        w->texts[i] = kept_text(&plan, i, read_last, w->op.list);
    }
    sublists_own(w)->forgets = plan.forgets;
    plan_fini(&plan);
    if (is_at_rest(w)) {
        plan_merges(w);
    }
}

/* ---- folding ---- */

/* Sends the write that this round has for that sublist. False: there is none. */
static bool write_sublist(struct engine *e, struct work *w, size_t i)
{
    const struct cell *cell = &w->cells[i];
    struct block *text = w->texts[i - 1];
    bool holds_back =
        i < sublists_own(w)->forgets && sublists_may_be_merged(w->op.list, cell->value.len);
    if (holds_back || !slice_equal(cell->value, block_text(text))) {
        cell_write(e, &w->op, cell, text, 0);
        return true;
    }
    if (cell->value.len == 0 && cell->state == CELL_THERE && i + 1 < w->cell_count) {
        cell_remove(e, &w->op, cell);
        return true;
    }
    return false;
}

/* The sublist is gone and not the newest: no writer appends to it any more. */
static bool is_gone(const struct work *w, size_t i)
{
    const struct cell *cell = &w->cells[i];
    return i + 1 < w->cell_count && cell->value.len == 0 && w->texts[i - 1]->used == 0 &&
           (cell->state == CELL_MISSING || sublists_own(w)->wrote_last);
}

static void strike_number(struct engine *e, struct work *w, uint32_t number)
{
    struct block *value = block_new(16);
    sublists_append_number(w->op.list, &value, ENTRY_DEL, number);
    cell_send(e, &w->op, &(struct cell){.role = CELL_KEY}, BE_APPEND, value, 0);
    block_unref(&value);
}

static struct block *index_text(const struct work *w)
{
    struct block *text = block_new(64);
    for (size_t i = 1; i < w->cell_count; i++) {
        if (w->cells[i].listed) {
            sublists_append_number(w->op.list, &text, ENTRY_ADD, w->cells[i].number);
        }
    }
    return text;
}

static void send_index(struct engine *e, struct work *w)
{
    struct block *text = index_text(w);
    cell_write(e, &w->op, &w->cells[0], text, 0);
    block_unref(&text);
}

/* One round over all sublists. Ends with conflict or failed, or wrote_any. */
static enum progress fold_round(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    plan_texts(w);
    w->wrote_any = sublists_own(w)->strikes = false;
    for (w->next_cell = 1; w->next_cell < w->cell_count; w->next_cell++) {
        sublists_own(w)->wrote_last = write_sublist(e, w, w->next_cell);
        if (sublists_own(w)->wrote_last) {
            CO_AWAIT(co, "folding a sublist");
            w->conflict = !work_written(e, w, event);
            w->wrote_any = true;
        }
        if (w->conflict || w->failed) {
            break;
        }
        if (is_gone(w, w->next_cell) && sublists_is_delimited(w->op.list)) {
            w->cells[w->next_cell].listed = false;
            sublists_own(w)->strikes = true;
        } else if (is_gone(w, w->next_cell)) {
            strike_number(e, w, w->cells[w->next_cell].number);
            CO_AWAIT(co, "taking a sublist out of the index");
            if (event->status != BE_STORED && event->status != BE_NOT_STORED) {
                work_note_error(w, event);
                break;
            }
            w->wrote_any = true;
        }
    }
    if (sublists_own(w)->strikes && !w->conflict && !w->failed) {
        send_index(e, w);
        CO_AWAIT(co, "taking sublists out of the index");
        w->conflict = !work_written(e, w, event);
        w->wrote_any = true;
    }
    CO_END(co);
}

/* Folds the index, which is a log, too. False: it is as short as can be; or it would become empty,
 * as a deletion alone, which may be a negative number, reads. */
static bool write_index(struct engine *e, struct work *w)
{
    struct block *text = index_text(w);
    bool shorter = text->used > 0 && text->used < w->cells[0].value.len;
    if (shorter) {
        cell_write(e, &w->op, &w->cells[0], text, 0);
    }
    block_unref(&text);
    return shorter;
}

static enum progress fold_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (w->can_shrink) {
        CO_CALL(co, fold_round(e, w, event));
    } else {
        w->wrote_any = false;
    }
    if (!w->wrote_any && !w->conflict && write_index(e, w)) {
        CO_AWAIT(co, "folding the index");
        w->conflict = w->wrote_any = !work_written(e, w, event);
    }
    w->goes_on = w->wrote_any && w->rounds - w->conflicts < ROUNDS_MAX;
    CO_END(co);
}

enum progress sublists_compact(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->wrote_any = true;
    CO_CALL(co, work_try(e, w, event, fold_once, WORK_TRIES_MAX, 0));
    if (!w->failed && w->conflict) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: other writers were faster each time");
    }
    if (!w->failed) {
        metric_inc(e->metrics, METRIC_list_folds);
    }
    work_end(e, w);
    CO_END(co);
}

/* ---- lset ---- */

/* The items of the call as texts of sublists, in w->texts. */
static void set_texts(struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    uint64_t limit = list_sublist_limit(w->op.list);
    struct fold fold;
    uint32_t at = 0;
    struct slice item;
    fold_init(&fold);
    fold_call(&fold, call);
    work_forget_texts(w);
    w->texts = calloc(call->item_count + 1, sizeof *w->texts);
    CHECK(w->texts != NULL);
    while (fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item)) {
        if (w->text_count == 0 || w->texts[w->text_count - 1]->used + item.len + 1 > limit) {
            w->texts[w->text_count++] = block_new(1024);
        }
        sublists_append(w->op.list, &w->texts[w->text_count - 1], ENTRY_ADD, item);
    }
    if (w->text_count == 0) {
        w->texts[w->text_count++] = block_new(16);
    }
    fold_fini(&fold);
}

/* Numbers that no other proxy takes: it uses the next ones for sublists that have become too long.
 * From half of the range on they begin anew, since the old sublists go; one that is still there is
 * met as a conflict. */
static uint32_t free_number(struct engine *e, const struct work *w)
{
    uint32_t newest = w->cell_count > 1 ? w->cells[w->cell_count - 1].number : 0;
    newest = newest > SUBLIST_NUMBER_MAX / 2 ? 0 : newest;
    return newest + 2 + (uint32_t)rng_below(e->rng, 1000);
}

static void write_new_index(struct engine *e, struct work *w)
{
    struct block *text = block_new(64);
    for (size_t i = 0; i < w->text_count; i++) {
        sublists_append_number(w->op.list, &text, ENTRY_ADD, sublists_own(w)->newest + (uint32_t)i);
    }
    cell_write(e, &w->op, &w->cells[0], text, 0);
    block_unref(&text);
}

static void send_numbered(struct engine *e, struct work *w, uint32_t number, enum be_verb verb,
                          struct block *value)
{
    cell_send(e, &w->op, &(struct cell){.role = CELL_SUBLIST, .number = number}, verb, value, 0);
}

static enum progress write_new(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    sublists_own(w)->newest = free_number(e, w);
    for (w->next_cell = 0; w->next_cell < w->text_count; w->next_cell++) {
        send_numbered(e, w, sublists_own(w)->newest + (uint32_t)w->next_cell, BE_ADD,
                      w->texts[w->next_cell]);
        CO_AWAIT(co, "adding new sublists");
        w->conflict = !work_written(e, w, event);
        if (w->conflict || w->failed) {
            break;
        }
    }
    if (!w->conflict && !w->failed) {
        write_new_index(e, w);
        CO_AWAIT(co, "replacing the index");
        w->conflict = !work_written(e, w, event);
        if (event->status == BE_STORED || event->status == BE_LOST) {
            CO_RETURN(co); /* an index whose answer was lost may name them */
        }
    }
    while (w->next_cell-- > 0) {
        send_numbered(e, w, sublists_own(w)->newest + (uint32_t)w->next_cell, BE_DELETE, NULL);
        CO_AWAIT(co, "taking back what was added");
        if (w->failed && event->status != BE_DELETED && event->status != BE_NOT_FOUND) {
            work_note_unknown(w); /* a list that grows to its number names it */
        }
    }
    CO_END(co);
}

static bool nothing_to_drop(const struct work *w)
{
    return w->cell_count == 1 && !w->cells[0].foreign && TAILQ_FIRST(&w->calls)->verb == LIST_DROP;
}

/* ldrop where a foreign value stands in the index's place: replaces it, but keeps neither its flags
 * nor its expiry. */
static void disown_index(struct work *w)
{
    if (w->cells[0].foreign) {
        w->cells[0].flags = 0;
        w->cells[0].ttl_s = -1;
    }
}

/* Removes a replaced sublist as it was read, or with what slow writers have appended to it since. A
 * value that another client has put in its place stays. */
static enum progress remove_replaced(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct cell *cell = &w->cells[w->next_cell];
    CO_BEGIN(co);
    for (w->tries = 0; w->tries < WORK_TRIES_MAX; w->tries++) {
        if (cell->state == CELL_THERE) { /* it may have come since it was looked for */
            cell_remove(e, &w->op, cell);
            CO_AWAIT(co, "deleting a sublist that was replaced");
            if (event->status != BE_EXISTS) {
                break;
            }
        }
        cell_send(e, &w->op, cell, BE_GET, NULL, 0);
        CO_AWAIT(co, "looking at a sublist that was replaced");
        if (event->status != BE_HIT ||
            !foreign_allows(w->op.list, cell->role, cell->number, event->reply)) {
            break;
        }
        cell_forget(cell);
        cell_take(cell, event->reply);
    }
    CO_END(co);
}

/* One attempt. Ends with conflict or failed, or the new content stands, or the call is answered. */
static enum progress set_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (!work_drops_nothing(e, w) && !nothing_to_drop(w)) {
        disown_index(w);
        CO_CALL(co, write_new(e, w, event));
    }
    CO_END(co);
}

/* lset, and ldrop as an lset without items. */
enum progress sublists_set(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    set_texts(w);
    CO_CALL(co, work_try(e, w, event, set_once, WORK_TRIES_MAX, 0));
    if (TAILQ_EMPTY(&w->calls)) {
        CO_RETURN(co); /* there was nothing to drop */
    }
    if (!w->failed && w->conflict) {
        work_note_busy(e, w);
    }
    sublists_list(w->op.list)->newest_known = false;
    if (w->failed) {
        work_fail(e, w, w->error);
        CO_RETURN(co);
    }
    sublists_own(w)->drops = TAILQ_FIRST(&w->calls)->verb == LIST_DROP;
    work_finish(e, w);
    for (w->next_cell = 1; w->next_cell < w->cell_count; w->next_cell++) {
        if (sublists_own(w)->drops) { /* also a foreign value */
            cell_send(e, &w->op, &w->cells[w->next_cell], BE_DELETE, NULL, 0);
            CO_AWAIT(co, "deleting the sublists of a list that is dropped");
        } else {
            CO_CALL(co, remove_replaced(e, w, event));
        }
    }
    CO_END(co);
}
