/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/two_logs/two_logs.h"

#include "dialect/shared/foreign.h"
#include "dialect/two_logs/note.h"

const char *two_logs_refusal(const struct list_policy *policy, struct slice item)
{
    (void)policy;
    return note_allows(item) ? NULL : "item looks like a note of a log (@BYTES:HASH)";
}

struct slice two_logs_behind_marks(const struct list *list, struct slice text)
{
    char mark = (char)list->policy->closed_mark;
    while (!two_logs_have_pointer(list) && text.len > 0 && text.p[0] == mark) {
        (void)slice_take(&text, 1);
    }
    return text;
}

/* The log of the cell, without the marks before it. */
static struct slice two_logs_text(const struct work *w, int which)
{
    return two_logs_behind_marks(w->op.list, w->cells[which].value);
}

uint64_t two_logs_number(const struct work *w, int which)
{
    struct slice text = two_logs_text(w, which), item;
    enum entry_op op;
    struct note note;
    bool begins = signed_next(&text, signs_of(w->op.list->policy), &op, &item) &&
                  note_parse(item, &note) && note.bytes == 0;
    return begins ? note.hash : 0;
}

bool two_logs_outlive_drop(const struct work *w)
{
    return two_logs_number(w, 0) != 0 || two_logs_number(w, 1) != 0;
}

/* ---- looking ---- */

bool two_logs_closed(const struct work *w, int which)
{
    return two_logs_text(w, which).len < w->cells[which].value.len;
}

bool two_logs_has_taken(const struct work *w, int which, struct note *note)
{
    struct slice other = two_logs_text(w, 1 - which);
    return other.len > 0 && note_last(two_logs_text(w, which), signs_in(w), note) &&
           note_is_about(note, other, signs_in(w));
}

static struct slice behind(struct slice text, uint64_t bytes)
{
    return slice_make(text.p + bytes, text.len - bytes);
}

/* The entries that came to the other log since the copy was made. Valid while the cells are. */
static struct slice two_logs_late(const struct work *w)
{
    return behind(two_logs_text(w, 1 - two_logs_own(w)->copy), two_logs_own(w)->taken);
}

/* The entries that came to the copy behind its note. */
static struct slice two_logs_tail(const struct work *w)
{
    return behind(two_logs_text(w, two_logs_own(w)->copy), two_logs_own(w)->note_end);
}

/* Differs whenever the active log has taken something over, or the other one was written. */
static uint64_t settlement_of(const struct work *w, struct note note)
{
    const struct cell *other = &w->cells[1 - two_logs_own(w)->active];
    return note.hash ^ (other->state == CELL_THERE ? other->cas : 0);
}

/* The cells are read one by one. Where the other log is gone, or empty, the active one may have
 * been read before it took over the last entries. So a look that began afterwards must find the
 * same note, and the same empty log: writers who are late may have written to it since, and another
 * proxy may have taken that over and emptied it again. */
static bool settled(struct work *w)
{
    struct two_logs_list *list = two_logs_list(w->op.list);
    struct note note;
    if (!note_last(two_logs_text(w, two_logs_own(w)->active), signs_in(w), &note)) {
        return true;
    }
    uint64_t settlement = settlement_of(w, note);
    if (settlement == list->settled) {
        return true;
    }
    bool again = settlement == two_logs_own(w)->seen_settlement;
    two_logs_own(w)->seen_settlement = settlement;
    if (again) {
        list->settled = settlement;
    }
    return again;
}

static enum two_logs_state state_of(struct work *w)
{
    struct two_logs *logs = w->own;
    struct note note = {0};
    enum two_logs_state state = TWO_LOGS_UNKNOWN;
    logs->copy = logs->active;
    if (two_logs_text(w, 1 - logs->active).len == 0) {
        state = TWO_LOGS_REST;
    } else if (two_logs_has_taken(w, logs->active, &note)) {
        state = TWO_LOGS_DRAINING;
    } else if (two_logs_has_taken(w, 1 - logs->active, &note)) {
        state = TWO_LOGS_COPYING;
        logs->copy = 1 - logs->active;
    } else if (two_logs_have_pointer(w->op.list) && two_logs_number(w, logs->active) != 0 &&
               note_last(two_logs_text(w, logs->active), signs_in(w), &note)) {
        /* The other one was emptied since: all that it holds came late. */
        state = TWO_LOGS_DRAINING;
        note.bytes = 0;
    }
    logs->taken = note.bytes;
    logs->note_start = note.start;
    logs->note_end = note.end;
    return state;
}

/* Applies a log. Returns how many of its entries are about items. */
static size_t fold_log(struct work *w, struct slice text)
{
    enum entry_op op;
    struct slice item;
    size_t count = 0;
    while (signed_next(&text, signs_in(w), &op, &item)) {
        if (note_allows(item)) {
            fold_apply(&w->items.fold, op, item);
            count++;
        }
    }
    return count;
}

/* Since the copy was made both logs may have got entries, from writers who read the pointer before
 * it flipped, or before it flipped back: the late ones and the tail. Their order is not known, and
 * no addition may be lost: an item is in if either of them ends with + for it. Late entries count
 * as of the copy, and the tail is newer; so visit is called for items that late entries add and the
 * tail deletes. */
static void two_logs_each_revived(const struct work *w, void (*visit)(void *arg, struct slice item),
                                  void *arg)
{
    struct fold late, newer;
    uint32_t at = 0;
    struct slice item;
    fold_init(&late);
    fold_init(&newer);
    signed_fold(&late, two_logs_late(w), signs_in(w));
    signed_fold(&newer, two_logs_tail(w), signs_in(w));
    while (fold_next_item(&late, ENTRY_NEVER_OVER, &at, &item)) {
        if (fold_outcome(&newer, item) == ENTRY_DEL) {
            visit(arg, item);
        }
    }
    fold_fini(&late);
    fold_fini(&newer);
}

static void revive(void *arg, struct slice item)
{
    fold_apply(arg, ENTRY_ADD, item);
}

/* Does a client by hand fold, and has not closed the active log yet? Then the other one holds what
 * the active one amounted to at some point. */
static bool is_copy_by_hand(const struct work *w)
{
    struct slice other = two_logs_text(w, 1 - two_logs_own(w)->active),
                 active = two_logs_text(w, two_logs_own(w)->active), item;
    struct fold copy, then;
    enum entry_op op;
    bool is_copy = true;
    fold_init(&copy);
    fold_init(&then);
    while (is_copy && signed_next(&other, signs_in(w), &op, &item)) {
        is_copy = op == ENTRY_ADD;
        fold_apply(&copy, op, item);
    }
    size_t wrong = copy.table_used; /* items that only one of them has */
    while (is_copy && wrong > 0 && signed_next(&active, signs_in(w), &op, &item)) {
        char before = fold_outcome(&then, item);
        bool was_in = before != 0 && before != ENTRY_DEL, is_in = op == ENTRY_ADD;
        fold_apply(&then, op, item);
        if (is_in != was_in) {
            wrong += is_in == (fold_outcome(&copy, item) != 0) ? -1 : 1;
        }
    }
    fold_fini(&copy);
    fold_fini(&then);
    return is_copy && wrong == 0;
}

/* Did two clients by hand begin the list at once, each in another log? Nothing says which of their
 * entries are the newer ones. */
static bool is_begun_twice(const struct work *w)
{
    return !two_logs_have_pointer(w->op.list) && !two_logs_closed(w, 0) && !two_logs_closed(w, 1) &&
           two_logs_number(w, two_logs_own(w)->active) == 0 && !is_copy_by_hand(w);
}

/* Both logs hold something, and neither has a note about the other. If the active one was made as a
 * copy, it is the newer one. A paused writer added what the other one holds: these items are not
 * lost, but nothing is deleted for them. The same where the list was begun twice. Else the active
 * one is the newer. */
static void fold_unknown(struct work *w)
{
    struct slice active = two_logs_text(w, two_logs_own(w)->active),
                 other = two_logs_text(w, 1 - two_logs_own(w)->active), item;
    bool by_hand = two_logs_number(w, two_logs_own(w)->active) == 0;
    if (by_hand) {
        (void)fold_log(w, other);
    }
    (void)fold_log(w, active);
    two_logs_own(w)->begun_twice = is_begun_twice(w);
    if (by_hand && !two_logs_own(w)->begun_twice) {
        return;
    }
    struct fold added;
    uint32_t at = 0;
    fold_init(&added);
    signed_fold(&added, other, signs_in(w));
    while (fold_next_item(&added, ENTRY_NEVER_OVER, &at, &item)) {
        fold_apply(&w->items.fold, ENTRY_ADD, item);
    }
    fold_fini(&added);
}

static void fold_both(struct work *w)
{
    const struct two_logs *logs = w->own;
    struct slice copy = two_logs_text(w, logs->copy);
    if (logs->state == TWO_LOGS_COPYING) {
        /* The copy's beginning may hold the items that are to replace those of the active log. */
        (void)fold_log(w, two_logs_text(w, logs->active));
    } else {
        (void)fold_log(w, slice_make(copy.p, logs->note_end));
        (void)fold_log(w, two_logs_late(w));
    }
    (void)fold_log(w, two_logs_tail(w));
    two_logs_each_revived(w, revive, &w->items.fold);
}

/* Should there be a pointer, and is none? */
static bool two_logs_wants_pointer(const struct work *w)
{
    return two_logs_have_pointer(w->op.list) && w->cells[TWO_LOGS_POINTER].state == CELL_MISSING;
}

/* How many looks in a row must find the same before it is believed. The cells are read one by one:
 * an active log that holds nothing may have been read before it was written, and the other one
 * after it was emptied or removed. Two logs without notes about each other may have been read while
 * a proxy wrote them. What seems to have come to an emptied log may be what it held before. */
static unsigned looks_needed(const struct work *w)
{
    bool flip = two_logs_have_pointer(w->op.list);
    bool holds = two_logs_text(w, two_logs_own(w)->active).len > 0;
    if (!holds &&
        (!flip || !two_logs_wants_pointer(w) || two_logs_own(w)->state == TWO_LOGS_UNKNOWN)) {
        return 3;
    }
    bool all_late = two_logs_own(w)->state == TWO_LOGS_DRAINING && two_logs_own(w)->taken == 0;
    bool unsure = two_logs_own(w)->state == TWO_LOGS_UNKNOWN || all_late ||
                  two_logs_closed(w, two_logs_own(w)->active) ||
                  (two_logs_own(w)->state == TWO_LOGS_REST &&
                   two_logs_list(w->op.list)->active != two_logs_own(w)->active + 1);
    return unsure || two_logs_own(w)->squeeze ? 2 : 1;
}

static bool is_torn(struct work *w)
{
    struct two_logs *logs = w->own;
    uint64_t version = work_version(w, true);
    logs->same_looks = version == logs->last_version ? logs->same_looks + 1 : 1;
    logs->last_version = version;
    if (logs->same_looks < looks_needed(w)) {
        return true;
    }
    return logs->state == TWO_LOGS_REST && w->cells[logs->active].state == CELL_THERE &&
           !settled(w);
}

/* Logs come and go under the same names. A log that was read before it was removed, or after it was
 * emptied, must not be taken for the one that is active since. So the active log's number, and the
 * pointer's CAS number, must be those that a look saw which ended before this one began: then they
 * did not change in between. A look that ended in the meantime may have read the pointer as late as
 * this one, and shows nothing. */
static bool is_same_life(struct work *w)
{
    struct two_logs_list *list = two_logs_list(w->op.list);
    uint64_t life = two_logs_number(w, two_logs_own(w)->active);
    if (two_logs_have_pointer(w->op.list)) {
        uint64_t cas = two_logs_wants_pointer(w) ? 0 : w->cells[TWO_LOGS_POINTER].cas;
        life = hash_stable(slice_make((const char *)&cas, sizeof cas), life);
    }
    list->life = life;
    return life == two_logs_own(w)->life_before;
}

void two_logs_begin_look(struct work *w)
{
    (void)work_add_cell(w, CELL_A, 0);
    (void)work_add_cell(w, CELL_B, 0);
    two_logs_own(w)->life_before = two_logs_list(w->op.list)->life;
    two_logs_own(w)->confirming = CONFIRM_NOT;
}

/* Only a log that began as a copy has a number. One without may have been emptied or removed since
 * the others were read, and got its entries late; or the other one may have taken it over since.
 * And where no pointer says which one counts, clients by hand append to a copy in the making, which
 * may have come, become active and gone since the active one was read. So at some moment all must
 * have been as they were read, unless one connection has answered, or two looks found the same. */
static bool needs_confirmation(const struct engine *e, const struct work *w)
{
    const struct two_logs *logs = w->own;
    bool all_there = logs->state == TWO_LOGS_REST || logs->state == TWO_LOGS_COPYING;
    bool proved = two_logs_have_pointer(w->op.list) && two_logs_number(w, logs->active) != 0;
    return all_there && !proved && logs->same_looks < 2 && !work_read_in_order(e, w);
}

static enum look confirm(struct work *w, enum confirming what)
{
    struct two_logs *logs = w->own;
    logs->confirming = what;
    for (size_t i = 0; i < w->cell_count; i++) {
        bool active = (int)i == logs->confirmed;
        w->cells[i].check = active ? what == CONFIRM_ACTIVE : what == CONFIRM_OTHERS;
    }
    w->next_cell = 0;
    return LOOK_MORE;
}

static enum look begin_to_confirm(struct work *w)
{
    struct two_logs *logs = w->own;
    struct slice text = two_logs_text(w, logs->active);
    logs->confirmed = logs->active;
    logs->confirmed_bytes = text.len;
    logs->confirmed_hash = hash_stable(text, 0);
    return confirm(w, CONFIRM_OTHERS);
}

/* Is the active log that was read again the same, with more behind it? */
static bool has_grown(const struct work *w)
{
    const struct two_logs *logs = w->own;
    struct slice text = two_logs_text(w, logs->confirmed);
    return w->cells[logs->confirmed].state == CELL_THERE && text.len >= logs->confirmed_bytes &&
           hash_stable(slice_make(text.p, logs->confirmed_bytes), 0) == logs->confirmed_hash;
}

void two_logs_forget(struct list *list)
{
    two_logs_list(list)->active = 0;
}

enum look two_logs_look(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    struct slice active = two_logs_text(w, logs->active);
    size_t entries = 0;
    if (!work_all_read(w)) { /* one has changed since it was read */
        return logs->confirming == CONFIRM_ACTIVE ? confirm(w, CONFIRM_GROWN) : LOOK_AGAIN;
    }
    logs->state = state_of(w);
    if (logs->confirming == CONFIRM_NOT) {
        if (!is_same_life(w) || is_torn(w)) {
            return LOOK_AGAIN;
        }
        if (needs_confirmation(e, w)) {
            return begin_to_confirm(w);
        }
    } else if (logs->active != logs->confirmed ||
               (logs->confirming == CONFIRM_GROWN && !has_grown(w))) {
        return LOOK_AGAIN;
    } else if (logs->confirming == CONFIRM_OTHERS) {
        return confirm(w, CONFIRM_ACTIVE);
    }
    if (logs->state == TWO_LOGS_REST) {
        entries = fold_log(w, active);
    } else if (logs->state == TWO_LOGS_UNKNOWN) {
        fold_unknown(w);
    } else {
        fold_both(w);
    }
    items_settle(&w->items);
    w->can_shrink = logs->state != TWO_LOGS_REST || entries > w->items.count;
    bool active_there = w->cells[logs->active].state == CELL_THERE;
    two_logs_list(w->op.list)->active = active_there ? logs->active + 1 : 0;
    return LOOK_DONE;
}

static void two_logs_write_pointer(struct engine *e, struct work *w, int which)
{
    const struct cell *pointer = &w->cells[TWO_LOGS_POINTER];
    char text[KEY_BYTES_MAX];
    struct slice name = two_logs_pointer_text(w->op.list, which, pointer->value, text);
    struct block *value = block_new(name.len);
    block_append(&value, name.p, name.len);
    cell_write(e, &w->op, &w->cells[TWO_LOGS_POINTER], value, 0);
    block_unref(&value);
}

/* ---- folding, and replacing the items ----
 *
 * Each round looks at the cells and writes one of them. What to write follows from what is there,
 * whichever proxy began.
 *
 *     1. rest:      ADD (or CAS) the other log: a copy of what the active one amounts to
 *     2. copying:   CAS the copy with what the active one got since; then make the copy active
 *     3. draining:  CAS the active log with what the other one got besides; when there is nothing
 *                   more, empty the other one (flip) or remove it (marker), by CAS
 *
 * Nothing is removed before its content stands elsewhere. When a process dies, readers still find
 * the same items, and any proxy can go on from there.
 */

/* More rounds than any list needs, whatever other clients do. */
#define ROUNDS_MAX 64
/* After so many rounds a log that keeps growing is flipped, and the rest is drained. */
#define CATCH_UPS_MAX 3

static struct list_call *set_call(const struct work *w)
{
    struct list_call *call = TAILQ_FIRST(&w->calls);
    return call != NULL && call->verb == LIST_SET ? call : NULL;
}

static void append_set_items(struct work *w, struct block **b)
{
    const struct list_call *call = set_call(w);
    struct fold fold;
    fold_init(&fold);
    fold_call(&fold, call);
    signed_encode(w->op.list->policy, &fold, b);
    fold_fini(&fold);
}

/* Writes the other log as a copy of the active one, or with the items that are to replace it. */
static void write_copy(struct engine *e, struct work *w)
{
    int active = two_logs_own(w)->active;
    struct cell *copy = &w->cells[1 - active], *as = copy;
    struct block *value = block_new(w->stored_bytes + w->call_bytes + 128);
    if (copy->state == CELL_MISSING) {
        copy->flags = w->cells[active].flags;
        as = &w->cells[active];
    }
    two_logs_own(w)->own = rng_next(e->rng);
    note_append(&value, SLICE_NONE, two_logs_own(w)->own, signs_in(w));
    if (set_call(w) != NULL) {
        append_set_items(w, &value);
    } else {
        signed_encode(w->op.list->policy, &w->items.fold, &value);
    }
    note_append(&value, two_logs_text(w, active), 0, signs_in(w));
    cell_write_as(e, &w->op, copy, as, value, 0);
    block_unref(&value);
}

/* There is nothing to copy: writes the items at once. */
static void write_first(struct engine *e, struct work *w)
{
    struct block *value = block_new(w->call_bytes + 16);
    append_set_items(w, &value);
    cell_write(e, &w->op, &w->cells[two_logs_own(w)->active], value, 0);
    block_unref(&value);
    two_logs_own(w)->step = TWO_LOGS_SWITCH;
}

/* Appends what the text of a log amounts to, with deletions, without notes. */
static void append_folded(const struct work *w, struct slice text, struct block **b)
{
    struct fold fold;
    uint32_t at = 0;
    struct entry entry;
    fold_init(&fold);
    signed_fold(&fold, text, signs_in(w));
    while (fold_next_entry(&fold, false, ENTRY_NEVER_OVER, &at, &entry)) {
        bool deletes = entry.op == ENTRY_DEL;
        if (!deletes || note_allows(entry.bytes)) {
            signed_append(b, deletes ? ENTRY_DEL : ENTRY_ADD, entry.bytes, signs_in(w));
        }
    }
    fold_fini(&fold);
}

/* Does the copy have all that the active log holds, or is that to be replaced? */
static bool is_taken(const struct work *w)
{
    return two_logs_own(w)->state == TWO_LOGS_COPYING &&
           (set_call(w) != NULL || two_logs_late(w).len == 0);
}

/* Appends what is to stand in a closed log, as short as can be. What the copy has taken stays as it
 * is, or a number stands for it: the note is about these very bytes, and nothing that is written
 * behind them, or comes late, may look like them. */
static void append_closed(struct engine *e, struct work *w, int which, struct block **b)
{
    struct slice text = two_logs_text(w, which);
    bool copying = two_logs_own(w)->state == TWO_LOGS_COPYING;
    if (is_taken(w)) {
        note_append(b, SLICE_NONE, rng_next(e->rng), signs_in(w));
    } else if (!two_logs_own(w)->squeeze) {
        block_append(b, text.p, text.len);
    } else if (copying) {
        block_append(b, text.p, (size_t)two_logs_own(w)->taken);
        append_folded(w, two_logs_late(w), b);
    } else {
        note_append(b, SLICE_NONE, rng_next(e->rng), signs_in(w));
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

static void make_active(struct engine *e, struct work *w)
{
    if (two_logs_have_pointer(w->op.list)) {
        two_logs_write_pointer(e, w, 1 - two_logs_own(w)->active);
    } else {
        close_log(e, w, two_logs_own(w)->active);
    }
    two_logs_own(w)->step = TWO_LOGS_SWITCH;
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

static void append_revived(void *arg, struct slice item)
{
    struct revived *revived = arg;
    signed_append(revived->out, ENTRY_ADD, item, revived->signs);
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
    struct revived revived = {&value, signs_in(w)};
    uint64_t number = two_logs_number(w, logs->copy);
    note_append(&value, SLICE_NONE, number != 0 ? number : rng_next(e->rng), signs_in(w));
    append_past(w, &value);
    note_append(&value, two_logs_text(w, 1 - logs->copy), 0, signs_in(w));
    append_folded(w, two_logs_tail(w), &value);
    two_logs_each_revived(w, append_revived, &revived);
    cell_write(e, &w->op, &w->cells[logs->copy], value, 0);
    block_unref(&value);
}

/* Writes the late entries into the copy where its beginning ends, since what stands behind is
 * newer. False: there are none. */
static bool catch_up(struct engine *e, struct work *w)
{
    const struct two_logs *logs = w->own;
    struct slice copy = two_logs_text(w, logs->copy), other = two_logs_text(w, 1 - logs->copy);
    struct slice tail = two_logs_tail(w);
    struct block *value = block_new(copy.len + other.len + 64);
    struct revived revived = {&value, signs_in(w)};
    block_append(&value, copy.p, logs->note_start);
    append_late(w, &value);
    bool came = value->used > logs->note_start;
    if (came && logs->squeeze && set_call(w) == NULL) {
        squeeze(e, w);
    } else if (came) {
        note_append(&value, other, 0, signs_in(w));
        block_append(&value, tail.p, tail.len);
        two_logs_each_revived(w, append_revived, &revived);
        cell_write(e, &w->op, &w->cells[logs->copy], value, 0);
    }
    block_unref(&value);
    return came;
}

/* A log that was made by hand, or got entries late, has no number. Before it is copied or taken
 * over it gets one: else the same entries, when they come late once more, would be what the note of
 * the first time is about. Readers would pass over them, and the next folding empty the log; or
 * take it for the one that is active, and the list for what it holds. */
static bool needs_number(const struct work *w, int which)
{
    return two_logs_number(w, which) == 0 && !two_logs_own(w)->squeeze;
}

static void write_number(struct engine *e, struct work *w, int which)
{
    struct slice text = w->cells[which].value;
    struct block *value = block_new(text.len + 64);
    note_append(&value, SLICE_NONE, rng_next(e->rng), signs_in(w));
    block_append(&value, text.p, text.len);
    cell_write(e, &w->op, &w->cells[which], value, 0);
    block_unref(&value);
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

static void drain(struct engine *e, struct work *w)
{
    const struct two_logs *logs = w->own;
    bool emptied_before = logs->taken == 0;
    if (emptied_before && needs_number(w, 1 - logs->active)) {
        write_number(e, w, 1 - logs->active);
    } else if (!catch_up(e, w)) {
        empty_other(e, w);
    }
}

/* Brings the copy up to date, or makes it active. */
static void advance_copy(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    bool ours = set_call(w) == NULL || two_logs_number(w, logs->copy) == logs->own;
    if (!ours) {
        write_copy(e, w);
    } else if (logs->catch_ups++ >= CATCH_UPS_MAX || !catch_up(e, w)) {
        make_active(e, w);
    }
}

/* The logs were written by hand: the active one gets what both amount to. says_so: in a note. */
static void take_in(struct engine *e, struct work *w, bool says_so)
{
    int active = two_logs_own(w)->active;
    struct block *value = block_new(w->stored_bytes + 128);
    note_append(&value, SLICE_NONE, rng_next(e->rng), signs_in(w));
    signed_encode(w->op.list->policy, &w->items.fold, &value);
    if (says_so) {
        note_append(&value, two_logs_text(w, 1 - active), 0, signs_in(w));
    }
    cell_write(e, &w->op, &w->cells[active], value, 0);
    block_unref(&value);
}

/* Another proxy's copy that was found and made active may leave much to fold. */
static bool is_due(const struct work *w)
{
    return set_call(w) != NULL || (two_logs_own(w)->own == 0 && w->can_shrink);
}

/* False: nothing is left to do. */
static bool write_next(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    struct slice active = two_logs_text(w, logs->active);
    logs->step = TWO_LOGS_STEP;
    if (two_logs_closed(w, logs->active)) {
        two_logs_reopen(e, w);
    } else if (logs->state == TWO_LOGS_UNKNOWN && logs->begun_twice) {
        take_in(e, w, false); /* once one of them is closed, they look folded by hand */
    } else if (logs->state == TWO_LOGS_UNKNOWN && !two_logs_have_pointer(w->op.list) &&
               !two_logs_closed(w, 1 - logs->active)) {
        /* Else the active one would become a copy in the making of the other. */
        close_log(e, w, 1 - logs->active);
    } else if (logs->state == TWO_LOGS_UNKNOWN && two_logs_wants_pointer(w)) {
        /* The same: another proxy may be about to make the other log active. */
        two_logs_write_pointer(e, w, logs->active);
    } else if (logs->state == TWO_LOGS_UNKNOWN) {
        take_in(e, w, true);
    } else if (logs->state == TWO_LOGS_DRAINING) {
        drain(e, w);
    } else if (logs->state == TWO_LOGS_COPYING) {
        advance_copy(e, w);
    } else if (is_due(w) && active.len == 0) {
        write_first(e, w);
    } else if (is_due(w) && needs_number(w, logs->active)) {
        write_number(e, w, logs->active);
    } else if (is_due(w)) {
        write_copy(e, w);
    } else if (w->cells[1 - logs->active].state == CELL_THERE &&
               !two_logs_have_pointer(w->op.list)) {
        cell_remove(e, &w->op, &w->cells[1 - logs->active]); /* it holds nothing */
    } else {
        return false;
    }
    return true;
}

/* Another proxy may have made our copy active. */
static void note_flip(struct engine *e, struct work *w)
{
    struct two_logs *logs = w->own;
    if (logs->own != 0 && two_logs_number(w, logs->active) == logs->own) {
        logs->flipped = true;
    }
    if (logs->flipped && set_call(w) != NULL) {
        work_finish(e, w);
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
    w->conflict = !work_written(e, w, event);
    bool is_too_large = event->status == BE_TOO_LARGE || event->status == BE_NO_MEMORY;
    if (w->failed && !two_logs_own(w)->squeeze && is_too_large) {
        w->failed = false;
        two_logs_own(w)->squeeze = true;
    } else if (!w->failed) {
        two_logs_own(w)->flipped =
            two_logs_own(w)->flipped || (!w->conflict && two_logs_own(w)->step == TWO_LOGS_SWITCH);
        if (two_logs_own(w)->flipped && set_call(w) != NULL) {
            work_finish(e, w);
        }
    }
    CO_END(co);
}

/* Folds, or puts the call's items in place of what is there: ends with failed, or done. */
static enum progress two_logs_fold(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_try(e, w, event, fold_once, WORK_TRIES_MAX, ROUNDS_MAX));
    if (!w->failed && w->goes_on) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: other writers were faster each time");
    }
    CO_END(co);
}

enum progress two_logs_rewrite(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, two_logs_fold(e, w, event));
    if (w->failed && set_call(w) != NULL && two_logs_own(w)->own != 0) {
        work_note_unknown(w); /* the proxy that goes on makes the new items count */
    }
    if (!w->failed) {
        metric_inc(e->metrics, METRIC_list_folds);
    }
    work_end(e, w);
    CO_END(co);
}

/* ---- changing ---- */

static void aim(struct work *w, int which, bool may_create)
{
    struct append *a = &w->append;
    cell_forget(&a->target);
    a->target = (struct cell){.role = two_logs_role(which)};
    a->only_there = !may_create;
}

/* The log that was known is gone: looks for the active one, and creates it if need be. */
static enum progress append_after_look(struct engine *e, struct work *w,
                                       const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_look(e, w, event));
    if (w->failed || (w->append.create == NULL && w->stored_bytes == 0)) {
        CO_RETURN(co); /* deleting from nothing */
    }
    if (two_logs_wants_pointer(w)) {
        two_logs_write_pointer(e, w, two_logs_own(w)->active);
        CO_AWAIT(co, "writing which log is active");
        w->conflict = !work_written(e, w, event);
        if (w->failed || w->conflict) {
            CO_RETURN(co);
        }
    }
    /* A log that was found may be gone by now: then another one is active. */
    aim(w, two_logs_own(w)->active, w->cells[two_logs_own(w)->active].state != CELL_THERE);
    CO_CALL(co, work_append(e, w, event));
    w->conflict = !w->failed && w->append.status == BE_MISS && w->append.only_there;
    CO_END(co);
}

/* Ends with append.status, conflict or failed. */
static enum progress change_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct two_logs_list *list = two_logs_list(w->op.list);
    CO_BEGIN(co);
    w->failed = w->conflict = false;
    w->append.status = BE_MISS;
    if (two_logs_have_pointer(w->op.list)) {
        /* The pointer is small, and read before each append, as clients by hand do. Without one, a
         * closed log is noticed when it is gone. */
        cell_send(e, &w->op, &(struct cell){.role = CELL_ACTIVE}, BE_GET, NULL, 0);
        CO_AWAIT(co, "reading which log is active");
        list->active =
            event->status == BE_HIT ? two_logs_named(w->op.list, event->reply->value) : 0;
        if (!foreign_refuse_reply(e, w, CELL_ACTIVE, event->reply)) {
            CO_RETURN(co);
        }
    }
    if (list->active != 0) {
        aim(w, list->active - 1, false);
        CO_CALL(co, work_append(e, w, event));
    }
    if (!w->failed && w->append.status == BE_MISS) {
        CO_CALL(co, append_after_look(e, w, event));
    }
    CO_END(co);
}

enum progress two_logs_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    signed_batch(w);
    for (w->tries = 0; w->tries < WORK_TRIES_MAX; w->tries++) {
        CO_CALL(co, change_once(e, w, event));
        if (!w->failed && w->append.status == BE_TOO_LARGE && !two_logs_own(w)->flipped) {
            /* It may fit when it is folded. */
            CO_CALL(co, two_logs_fold(e, w, event));
            w->conflict = true;
            two_logs_own(w)->flipped = true;
        }
        if (w->failed || !w->conflict) {
            break;
        }
    }
    if (!w->failed && w->tries == WORK_TRIES_MAX) {
        work_note_text(w, "busy, nothing done: other writers were faster each time");
    } else if (!w->failed && w->append.status == BE_TOO_LARGE) {
        work_note_no_room(w);
    }
    if (!w->failed) {
        dialect_appended(e, w->op.list, w->append.value->used);
    }
    work_end(e, w);
    CO_END(co);
}
