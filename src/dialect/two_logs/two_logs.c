/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/two_logs/two_logs.h"

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

struct slice two_logs_text(const struct work *w, int which)
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

bool two_logs_is_place(const struct work *w, int which)
{
    struct slice text = two_logs_text(w, which), item;
    enum entry_op op;
    struct note note;
    return signed_next(&text, signs_in(w), &op, &item) && note_parse(item, &note) && note.is_place;
}

size_t two_logs_nth_drop(const struct work *w, size_t n)
{
    size_t active = (size_t)two_logs_own(w)->active;
    return n == 0 ? 1 - active : n == w->cell_count - 1 ? active : TWO_LOGS_POINTER;
}

static bool outlives_drop(const struct work *w, int which)
{
    return w->cells[which].state == CELL_THERE &&
           (two_logs_text(w, which).len == 0 || two_logs_is_place(w, which) ||
            two_logs_number(w, which) != 0);
}

bool two_logs_outlive_drop(const struct work *w)
{
    return outlives_drop(w, 0) || outlives_drop(w, 1);
}

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

bool two_logs_was_copy(const struct work *w, int which)
{
    struct note note;
    return two_logs_number(w, which) != 0 && note_last(two_logs_text(w, which), signs_in(w), &note);
}

static struct slice behind(struct slice text, uint64_t bytes)
{
    return slice_make(text.p + bytes, text.len - bytes);
}

/* The entries that came to the other log since the copy was made. Valid while the cells are. */
struct slice two_logs_late(const struct work *w)
{
    return behind(two_logs_text(w, 1 - two_logs_own(w)->copy), two_logs_own(w)->taken);
}

/* The entries that came to the copy behind its note. */
struct slice two_logs_tail(const struct work *w)
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
    } else if (two_logs_number(w, logs->active) != 0 &&
               note_last(two_logs_text(w, logs->active), signs_in(w), &note)) {
        /* The other one was emptied since, or made anew: all that it holds came late. */
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
void two_logs_each_revived(const struct work *w, void (*visit)(void *arg, struct slice item),
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

/* Both logs hold something, and neither has a note about the other. If a proxy has numbered
 * the active one, or the list was begun twice, what the other one adds is not lost, but nothing is
 * deleted for it. Else the active one is the newer. */
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

bool two_logs_wants_pointer(const struct work *w)
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
 * have been as they were read, unless one connection has answered, or two looks found the same.
 * What is copied must have been read behind the place where it goes: one that was added since an
 * ldrop, by another proxy, must not get what was read before that. */
static bool needs_confirmation(const struct engine *e, const struct work *w)
{
    const struct two_logs *logs = w->own;
    int other = 1 - logs->active;
    bool copies = logs->folds && w->cells[other].state == CELL_THERE &&
                  (two_logs_text(w, other).len == 0 || two_logs_is_place(w, other));
    bool all_there = logs->state == TWO_LOGS_REST || logs->state == TWO_LOGS_COPYING;
    bool proved = two_logs_have_pointer(w->op.list) && two_logs_number(w, logs->active) != 0;
    bool in_order = work_read_in_order(e, w);
    return all_there && logs->same_looks < 2 && (copies || (!proved && !in_order));
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
    struct slice value = w->cells[logs->active].value;
    logs->confirmed = logs->active;
    logs->confirmed_bytes = value.len;
    logs->confirmed_hash = hash_stable(value, 0);
    return confirm(w, CONFIRM_OTHERS);
}

/* Is the active log that was read again the same, with more behind it? */
static bool has_grown(const struct work *w)
{
    const struct two_logs *logs = w->own;
    struct slice value = w->cells[logs->confirmed].value;
    return w->cells[logs->confirmed].state == CELL_THERE && value.len >= logs->confirmed_bytes &&
           hash_stable(slice_make(value.p, logs->confirmed_bytes), 0) == logs->confirmed_hash;
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
