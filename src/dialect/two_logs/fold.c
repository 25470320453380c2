/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Folding, and replacing the items.
 *
 * Each round looks at the cells and writes one of them. What to write follows from what is there,
 * whichever proxy began.
 *
 *     1. rest:      ADD the other log, as a place for a copy, if it is not there; CAS it with a
 *                   copy of what the active one amounts to
 *     2. copying:   CAS the copy with what the active one got since; then make the copy active
 *     3. draining:  CAS the active log with what the other one got besides; when there is nothing
 *                   more, empty the other one (flip) or remove it (marker), by CAS
 *
 * What an lset writes, and deletions for which a full log has no room, go into the copy. While a
 * full log is drained, they are written over it.
 *
 * Nothing is removed before its content stands elsewhere. When a process dies, readers still find
 * the same items, and any proxy can go on from there. What is added holds no items: so a copy
 * whose writer was slower than an ldrop, or than others who fold, comes to nothing.
 */
#include "dialect/two_logs/note.h"
#include "dialect/two_logs/two_logs.h"

/* More rounds than any list needs, whatever other clients do. */
#define ROUNDS_MAX 64
/* After so many rounds a log that keeps growing is flipped, and the rest is drained. A full one
 * does not grow, and has no room for a mark behind what is not taken yet. */
#define CATCH_UPS_MAX 3

static struct list_call *set_call(const struct work *w)
{
    struct list_call *call = TAILQ_FIRST(&w->calls);
    return call != NULL && call->verb == LIST_SET ? call : NULL;
}

/* Is there a call whose items, or what its changes make of the list, take the place of what the
 * logs hold? It is done when that counts. */
static bool replaces(const struct work *w)
{
    return set_call(w) != NULL || (two_logs_own(w)->in_place && !TAILQ_EMPTY(&w->calls));
}

/* Calls visit for each item that the calls change, where that is done by folding. */
static void each_change(const struct work *w,
                        void (*visit)(void *arg, enum entry_op op, struct slice item), void *arg)
{
    const struct list_call *call;
    if (!two_logs_own(w)->in_place) {
        return;
    }
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            visit(arg, list_call_deletes(call, i) ? ENTRY_DEL : ENTRY_ADD, call->items[i]);
        }
    }
}

static void change_items(void *arg, enum entry_op op, struct slice item)
{
    items_change(arg, op, item);
}

/* Appends what the list is to be: the items of an lset, or those that the last look has found, with
 * what the calls change. */
static void append_items(struct work *w, struct block **b)
{
    const struct list_call *call = set_call(w);
    struct fold set;
    if (call != NULL) {
        fold_init(&set);
        fold_call(&set, call);
        signed_encode(w->op.list->policy, &set, b);
        fold_fini(&set);
        return;
    }
    each_change(w, change_items, &w->items);
    signed_encode(w->op.list->policy, &w->items.fold, b);
}

/* Writes a log that is to be as the other one: with its flags, and to expire when it does. */
static void write_as(struct engine *e, struct work *w, int which, int other, struct block *value)
{
    struct cell *cell = &w->cells[which];
    cell->flags = w->cells[other].flags;
    cell_write_as(e, &w->op, cell, &w->cells[other], value, 0);
}

/* Adds a log without items. Where a mark says which one is active, the place for a copy is closed,
 * and says which log it is for: readers by hand pass over it, and what comes to it stands where it
 * would behind the copy. */
static void add_place(struct engine *e, struct work *w, int which)
{
    char mark = (char)w->op.list->policy->closed_mark;
    struct block *value = block_new(128);
    if (!two_logs_have_pointer(w->op.list) && which != two_logs_own(w)->active) {
        block_append(&value, &mark, 1);
        note_append_place(&value, two_logs_text(w, 1 - which), signs_in(w));
    }
    write_as(e, w, which, 1 - which, value);
    block_unref(&value);
}

/* There is nothing to copy: writes the items at once. */
static void write_first(struct engine *e, struct work *w)
{
    struct block *value = block_new(w->stored_bytes + w->call_bytes + 16);
    append_items(w, &value);
    cell_write(e, &w->op, &w->cells[two_logs_own(w)->active], value, 0);
    block_unref(&value);
    two_logs_own(w)->step = TWO_LOGS_SWITCH;
}

/* Appends what entries amount to, with deletions, without notes. */
static void append_fold(const struct work *w, const struct fold *fold, struct block **b)
{
    uint32_t at = 0;
    struct entry entry;
    while (fold_next_entry(fold, false, ENTRY_NEVER_OVER, &at, &entry)) {
        bool deletes = entry.op == ENTRY_DEL;
        if (!deletes || note_allows(entry.bytes)) {
            signed_append(b, deletes ? ENTRY_DEL : ENTRY_ADD, entry.bytes, signs_in(w));
        }
    }
}

/* The same of the text of a log. */
static void append_folded(const struct work *w, struct slice text, struct block **b)
{
    struct fold fold;
    fold_init(&fold);
    signed_fold(&fold, text, signs_in(w));
    append_fold(w, &fold, b);
    fold_fini(&fold);
}

/* Does the copy have all that the active log holds, or is that to be replaced? */
static bool is_taken(const struct work *w)
{
    return two_logs_own(w)->state == TWO_LOGS_COPYING &&
           (set_call(w) != NULL || two_logs_late(w).len == 0);
}

/* Appends what is to stand in a closed log, as short as can be. Of a full one that is copied, all
 * is taken before. A number makes it different from what a note is about, so that nothing that
 * comes late behind it is taken for that. */
static void append_closed(struct engine *e, struct work *w, int which, struct block **b)
{
    struct slice text = two_logs_text(w, which);
    if (!is_taken(w) && !two_logs_own(w)->squeeze) {
        block_append(b, text.p, text.len);
        return;
    }
    note_append(b, SLICE_NONE, rng_next(e->rng), signs_in(w));
    if (!is_taken(w)) {
        append_folded(w, text, b);
    }
}

/* Closes the log by PREPEND. memcached refuses that for an item on disk, at the size limit, or
 * without free memory. Then the log is written anew, by CAS. */
static void close_log(struct engine *e, struct work *w, int which)
{
    const struct cell *cell = &w->cells[which];
    char mark = (char)w->op.list->policy->closed_mark;
    struct block *value = block_new(1);
    block_append(&value, &mark, 1);
    if (!two_logs_own(w)->close_whole) {
        cell_send(e, &w->op, cell, BE_PREPEND, value, 0);
    } else {
        append_closed(e, w, which, &value);
        cell_write(e, &w->op, cell, value, 0);
    }
    two_logs_own(w)->close_whole = !two_logs_own(w)->close_whole;
    block_unref(&value);
}

/* Writes the active log, which is closed, without its marks. */
static void reopen(struct engine *e, struct work *w)
{
    int active = two_logs_own(w)->active;
    struct slice text = two_logs_text(w, active);
    struct block *value = block_new(text.len);
    block_append(&value, text.p, text.len);
    cell_write(e, &w->op, &w->cells[active], value, 0);
    block_unref(&value);
}

/* Has this operation written that log? */
static bool is_ours(const struct work *w, int which)
{
    return two_logs_own(w)->own != 0 && two_logs_number(w, which) == two_logs_own(w)->own;
}

static void make_active(struct engine *e, struct work *w)
{
    if (two_logs_have_pointer(w->op.list)) {
        two_logs_write_pointer(e, w, 1 - two_logs_own(w)->active);
    } else {
        close_log(e, w, two_logs_own(w)->active);
    }
    if (is_ours(w, 1 - two_logs_own(w)->active)) {
        two_logs_own(w)->step = TWO_LOGS_SWITCH;
    }
}

/* Appends the entries that came to the other log since it was copied, without notes. */
static void append_late(const struct work *w, struct block **b)
{
    struct slice rest = two_logs_late(w), item;
    enum entry_op op;
    while (signed_next(&rest, signs_in(w), &op, &item)) {
        if (note_allows(item)) {
            signed_append(b, op, item, signs_in(w));
        }
    }
}

struct revived {
    struct block **out;
    struct signs signs;
};

static void append_added(void *arg, struct slice item)
{
    struct revived *revived = arg;
    signed_append(revived->out, ENTRY_ADD, item, revived->signs);
}

static void append_revived(const struct work *w, struct block **b)
{
    struct revived revived = {b, signs_in(w)};
    two_logs_each_revived(w, append_added, &revived);
}

/* Appends what the copy's beginning and the late entries amount to. */
static void append_past(const struct work *w, struct block **b)
{
    const struct two_logs *logs = w->own;
    struct fold fold;
    fold_init(&fold);
    signed_fold(&fold, slice_make(two_logs_text(w, logs->copy).p, logs->note_end), signs_in(w));
    signed_fold(&fold, two_logs_late(w), signs_in(w));
    signed_encode(w->op.list->policy, &fold, b);
    fold_fini(&fold);
}

/* As catch_up where the result would be too long: folds what stands before the note and what stands
 * behind it, each by itself. The copy may hold the items of another proxy's lset, which are to
 * replace those of the active log. So its beginning stays, and its number, which that proxy knows
 * it by: it may make the copy active at any moment. */
static void squeeze(struct engine *e, struct work *w)
{
    const struct two_logs *logs = w->own;
    struct block *value = block_new(w->stored_bytes + 128);
    uint64_t number = two_logs_number(w, logs->copy);
    note_append(&value, SLICE_NONE, number != 0 ? number : rng_next(e->rng), signs_in(w));
    append_past(w, &value);
    note_append(&value, two_logs_text(w, 1 - logs->copy), 0, signs_in(w));
    append_folded(w, two_logs_tail(w), &value);
    append_revived(w, &value);
    write_as(e, w, logs->copy, logs->active, value);
    block_unref(&value);
}

static void add_to(void *arg, struct slice item)
{
    fold_apply(arg, ENTRY_ADD, item);
}

static void change_if_known(void *arg, enum entry_op op, struct slice item)
{
    if (fold_find(arg, item) != NULL) {
        fold_apply(arg, op, item);
    }
}

/* Appends what came late to the place for the copy, which readers see there as long as the copy
 * does not count. Behind it, nothing undoes what the calls have changed in the copy. */
static void append_tail(const struct work *w, struct block **b)
{
    struct fold tail;
    fold_init(&tail);
    signed_fold(&tail, two_logs_tail(w), signs_in(w));
    two_logs_each_revived(w, add_to, &tail);
    each_change(w, change_if_known, &tail);
    append_fold(w, &tail, b);
    fold_fini(&tail);
}

/* A text with a number of its own. */
static struct block *begin_copy(struct engine *e, struct work *w)
{
    struct block *value = block_new(w->stored_bytes + w->call_bytes + 128);
    two_logs_own(w)->next = rng_next(e->rng);
    two_logs_own(w)->catch_ups = 0;
    note_append(&value, SLICE_NONE, two_logs_own(w)->next, signs_in(w));
    return value;
}

/* Writes the other log as a copy of the active one, or with the items that are to replace it. What
 * came late to the place for the copy stays behind it. The other one, empty or a place, may have
 * stood there for long: clients by hand give a list a new time where its items are. */
static void write_copy(struct engine *e, struct work *w)
{
    int active = two_logs_own(w)->active;
    struct block *value = begin_copy(e, w);
    append_items(w, &value);
    note_append(&value, two_logs_text(w, active), 0, signs_in(w));
    if (set_call(w) == NULL && two_logs_own(w)->state == TWO_LOGS_COPYING) {
        append_tail(w, &value);
    }
    write_as(e, w, 1 - active, active, value);
    block_unref(&value);
}

/* Writes the items over the active log, as one that has taken all of the other one: what came late
 * to that has no room beside what the active one holds. */
static void write_over(struct engine *e, struct work *w)
{
    int active = two_logs_own(w)->active;
    struct block *value = begin_copy(e, w);
    append_items(w, &value);
    note_append(&value, two_logs_text(w, 1 - active), 0, signs_in(w));
    cell_write(e, &w->op, &w->cells[active], value, 0);
    block_unref(&value);
    two_logs_own(w)->step = TWO_LOGS_SWITCH;
}

/* Writes the late entries into the copy where its beginning ends, since what stands behind is
 * newer. False: there are none. */
static bool catch_up(struct engine *e, struct work *w)
{
    const struct two_logs *logs = w->own;
    struct slice copy = two_logs_text(w, logs->copy), other = two_logs_text(w, 1 - logs->copy);
    struct slice tail = two_logs_tail(w);
    struct block *value = block_new(copy.len + other.len + 64);
    block_append(&value, copy.p, logs->note_start);
    append_late(w, &value);
    bool came = value->used > logs->note_start;
    if (came && logs->squeeze) {
        squeeze(e, w);
    } else if (came) {
        note_append(&value, other, 0, signs_in(w));
        block_append(&value, tail.p, tail.len);
        append_revived(w, &value);
        write_as(e, w, logs->copy, logs->active, value);
    }
    block_unref(&value);
    return came;
}

/* A log that was made by hand, or got entries late, has no number. Before it is copied or taken
 * over it gets one: else the same entries, when they come late once more, would be what the note of
 * the first time is about. Readers would pass over them, and the next folding empty the log; or
 * take it for the one that is active, and the list for what it holds. One that has no room for a
 * number goes without. */
static bool needs_number(const struct work *w, int which)
{
    return two_logs_number(w, which) == 0 && w->cells[which].cas != two_logs_own(w)->no_room[which];
}

static void write_number(struct engine *e, struct work *w, int which)
{
    struct slice text = two_logs_text(w, which), all = w->cells[which].value;
    struct block *value = block_new(all.len + 64);
    block_append(&value, all.p, all.len - text.len); /* the marks of a closed one */
    note_append(&value, SLICE_NONE, rng_next(e->rng), signs_in(w));
    block_append(&value, text.p, text.len);
    cell_write(e, &w->op, &w->cells[which], value, 0);
    block_unref(&value);
    two_logs_own(w)->numbers = which;
}

/* Takes away what the other log holds, all of which stands in the active one. Where a pointer tells
 * which one is active, an empty log stays, as the manual has it: old writers still append to it,
 * and for many of them an append that fails is an error. */
static void empty_other(struct engine *e, struct work *w)
{
    struct cell *other = &w->cells[1 - two_logs_own(w)->active];
    if (!two_logs_have_pointer(w->op.list)) {
        cell_remove(e, &w->op, other);
        return;
    }
    struct block *nothing = block_new(1);
    cell_write(e, &w->op, other, nothing, 0);
    block_unref(&nothing);
}

/* May it count yet, as a copy of what the active log held before? See note_flip. */
static bool may_be_a_copy(const struct work *w)
{
    return two_logs_own(w)->taken == 0 && two_logs_was_copy(w, 1 - two_logs_own(w)->active);
}

static void drain(struct engine *e, struct work *w)
{
    const struct two_logs *logs = w->own;
    bool emptied_before = logs->taken == 0;
    if (emptied_before && needs_number(w, 1 - logs->active)) {
        write_number(e, w, 1 - logs->active);
    } else if (replaces(w) && logs->squeeze && two_logs_late(w).len > 0 && !may_be_a_copy(w)) {
        write_over(e, w);
    } else if (!catch_up(e, w)) {
        empty_other(e, w);
    }
}

/* Brings the copy up to date, or makes it active. Only an lset writes over another operation's
 * copy, which may be made active, and answered, before that: what replaces all of it comes behind
 * it. */
static void advance_copy(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    if (two_logs_is_place(w, logs->copy) || (set_call(w) != NULL && !is_ours(w, logs->copy))) {
        write_copy(e, w);
    } else if ((logs->catch_ups++ >= CATCH_UPS_MAX && !logs->squeeze) || !catch_up(e, w)) {
        make_active(e, w);
    }
}

/* The logs were written by hand: the active one gets what both amount to. It does not say so where
 * the list was begun twice: once one of them is closed, they look folded by hand. */
static void take_in(struct engine *e, struct work *w)
{
    int active = two_logs_own(w)->active;
    struct block *value = block_new(w->stored_bytes + 128);
    note_append(&value, SLICE_NONE, rng_next(e->rng), signs_in(w));
    signed_encode(w->op.list->policy, &w->items.fold, &value);
    if (!two_logs_own(w)->begun_twice) {
        note_append(&value, two_logs_text(w, 1 - active), 0, signs_in(w));
    }
    cell_write(e, &w->op, &w->cells[active], value, 0);
    block_unref(&value);
}

/* Another proxy's copy that was found and made active may leave much to fold. */
static bool is_due(const struct work *w)
{
    return replaces(w) || (two_logs_own(w)->own == 0 && w->can_shrink);
}

static bool is_missing(const struct work *w, int which)
{
    return w->cells[which].state == CELL_MISSING;
}

static bool holds_no_item(const struct work *w, int which)
{
    struct slice text = two_logs_text(w, which), item;
    enum entry_op op;
    bool none = true;
    while (none && signed_next(&text, signs_in(w), &op, &item)) {
        none = !note_allows(item);
    }
    return none;
}

/* Is there a log without items that no proxy needs any more? Where a pointer tells which one is
 * active, an empty log stays, unless it stands alone: then it was added while the list was dropped.
 * Returns which, or -1. */
static int needless_log(const struct work *w)
{
    const struct two_logs *logs = w->own;
    int other = 1 - logs->active;
    if (!two_logs_have_pointer(w->op.list)) {
        bool unrelated = logs->state == TWO_LOGS_REST || logs->state == TWO_LOGS_UNKNOWN ||
                         (logs->state == TWO_LOGS_DRAINING && logs->taken == 0);
        return unrelated && !is_missing(w, other) && holds_no_item(w, other) ? other : -1;
    }
    bool alone = two_logs_wants_pointer(w) && !is_missing(w, logs->active) && is_missing(w, other);
    return alone && two_logs_text(w, logs->active).len == 0 ? logs->active : -1;
}

/* False: nothing is left to do. */
static bool write_next(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    struct slice active = two_logs_text(w, logs->active);
    logs->step = TWO_LOGS_STEP;
    logs->next = 0;
    logs->numbers = -1;
    if (two_logs_closed(w, logs->active)) {
        reopen(e, w);
    } else if (needless_log(w) >= 0) {
        cell_remove(e, &w->op, &w->cells[needless_log(w)]);
    } else if (logs->state == TWO_LOGS_UNKNOWN && logs->begun_twice) {
        take_in(e, w);
    } else if ((logs->state == TWO_LOGS_UNKNOWN || logs->state == TWO_LOGS_DRAINING) &&
               !two_logs_have_pointer(w->op.list) && !two_logs_closed(w, 1 - logs->active)) {
        /* Else the active one would become a copy in the making of the other. */
        close_log(e, w, 1 - logs->active);
    } else if (logs->state == TWO_LOGS_UNKNOWN && two_logs_wants_pointer(w)) {
        /* The same: another proxy may be about to make the other log active. */
        two_logs_write_pointer(e, w, logs->active);
    } else if (logs->state == TWO_LOGS_UNKNOWN && is_missing(w, logs->active)) {
        add_place(e, w, logs->active);
    } else if (logs->state == TWO_LOGS_UNKNOWN) {
        take_in(e, w);
    } else if (logs->state == TWO_LOGS_DRAINING) {
        drain(e, w);
    } else if (logs->state == TWO_LOGS_COPYING) {
        advance_copy(e, w);
    } else if (is_due(w) && active.len == 0) {
        write_first(e, w);
    } else if (is_due(w) && needs_number(w, logs->active)) {
        write_number(e, w, logs->active);
    } else if (is_due(w) && is_missing(w, 1 - logs->active)) {
        add_place(e, w, 1 - logs->active);
    } else if (is_due(w)) {
        write_copy(e, w);
    } else {
        return false;
    }
    return true;
}

/* Another proxy may have made our copy active. But the log that we wrote it over may have become
 * active before that: then others may still make the other log count, as a copy of what we wrote
 * over, and no CAS of theirs would fail. They cannot as long as the other log is what ours was made
 * of, nor once it is a copy of ours. Else the items are written anew, into the other log. */
static void note_flip(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    if (!replaces(w) || !is_ours(w, logs->active)) {
        return;
    }
    if (logs->state == TWO_LOGS_COPYING || (logs->state == TWO_LOGS_DRAINING && logs->taken > 0)) {
        work_finish(e, w);
    } else {
        logs->own = rng_next(e->rng); /* of no log: what we wrote may count or not */
    }
}

/* The reply to what was written last. */
static void note_written(struct engine *e, struct work *w, const struct op_event *event)
{
    struct two_logs *logs = w->own;
    w->conflict = !work_written(e, w, event);
    bool is_too_large = event->status == BE_TOO_LARGE || event->status == BE_NO_MEMORY;
    if (logs->next != 0 && !w->conflict && !is_too_large) {
        logs->own = logs->next;
    }
    if (w->failed && is_too_large && logs->numbers >= 0) {
        w->failed = false;
        logs->no_room[logs->numbers] = w->cells[logs->numbers].cas;
    } else if (w->failed && is_too_large && !logs->squeeze) {
        w->failed = false;
        logs->squeeze = true;
    } else if (!w->failed) {
        logs->close_whole = logs->close_whole && w->conflict;
        if (!w->conflict && logs->step == TWO_LOGS_SWITCH && replaces(w)) {
            work_finish(e, w);
        }
    }
}

static enum progress fold_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    note_flip(e, w);
    if (!write_next(e, w)) {
        CO_RETURN(co);
    }
    CO_AWAIT(co, "folding: writing one of the logs");
    w->goes_on = true;
    note_written(e, w, event);
    CO_END(co);
}

enum progress two_logs_fold(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    two_logs_own(w)->folds = true;
    CO_CALL(co, work_try(e, w, event, fold_once, WORK_TRIES_MAX, ROUNDS_MAX));
    if (!w->failed && w->goes_on) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: other writers were faster each time");
    }
    if (w->failed && replaces(w) && two_logs_own(w)->own != 0) {
        work_note_unknown(w); /* the proxy that goes on makes the new items count */
    }
    CO_END(co);
}

enum progress two_logs_rewrite(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, two_logs_fold(e, w, event));
    if (!w->failed) {
        metric_inc(e->metrics, METRIC_list_folds);
    }
    work_end(e, w);
    CO_END(co);
}
