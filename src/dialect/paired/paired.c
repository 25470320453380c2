/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: follow-X holds what was added, unfollow-X what was deleted, both as delimited text. An
 * item that was deleted k times and added m times is in the list if m > k; the first k of its
 * places are void. Folding leaves marks in both (pair.h).
 *
 * Order of writes: a change looks at both, folds the deletions that are pending, and in step 2 of
 * that, or by a CAS of the additions alone where there are none, brings or takes out its items.
 * With changes = blind an addition is an APPEND (or ADD) to the first item, a deletion to the
 * second. Folding takes one step at a time, and any proxy that looks afterwards goes on from what
 * it finds:
 *
 *   1. APPEND a mark to the deletions. It means nothing yet.
 *   2. CAS the additions: what is in the list, by the deletions up to the mark, and the mark. From
 *      here on these deletions do not count any more; those behind the mark do.
 *   3. CAS the deletions: cut off what stands before the mark. The mark stays, so that a client by
 *      hand, which subtracts the deletions from the additions, sees no mark.
 *   4. Where an item was deleted and added again, it has copies after step 2, for such clients:
 *      CAS the additions with each item once.
 *
 * When two proxies fold at once, the slower one's CAS in step 2 fails; it looks again, finds the
 * other one's mark, and takes what stands behind it. A late step 3 fails, or cuts off what a
 * folding since has taken into account. lset and ldrop do step 2 with other items, or with none;
 * ldrop then removes both items, the first one before the second, each as it was read. Additions
 * with a mark are always written by CAS, over an empty item if there was none: an ADD could come
 * behind another proxy's folding and ldrop, which have removed the mark.
 *
 * A look is right when the additions were the same before and after the deletions were read. In a
 * list that changes faster than that, it is enough that the additions were read before the
 * deletions, and that the marks fit. Additions without a mark fit only if the deletions begin as
 * they did before the additions were read: else both may have been folded, and removed, in between.
 * Then no deletion is missed, but it may be set against additions that lack some made before it.
 *
 * Not guaranteed: that a blind deletion deletes, as in tombstone.
 */
#include "dialect/paired/paired.h"

#include "dialect/paired/pair.h"

/* Steps of one folding; most of them are repeated tries. */
#define ROUNDS_MAX 32
/* So many looks want the additions to stay the same; after them it is enough that the marks fit. */
#define EXACT_LOOKS 3

enum { ADDS, DELETES, ADDS_AGAIN };

/* What a worker remembers of the list. */
struct paired_list {
    bool apart; /* its items were read through several connections */
};

static struct paired_list *paired_list(const struct list *list)
{
    return list_own(list);
}

/* The state of an operation. */
struct paired_work {
    unsigned checks;    /* of a look: how often cells were checked after the first reading */
    bool exact;         /* of a look: the additions were the same behind the deletions */
    uint64_t torn_mark; /* hash of the additions' mark when it did not fit in the look before; 0: it
                           did */
    bool begun; /* the deletions were read before the additions: their bytes, and the hash */
    size_t begin_bytes; /* of these */
    uint64_t begin_hash;
    char own_mark[TEXT_MARK_BYTES]; /* the mark that this operation has appended to the deletions,
                                     */
    bool marked;                    /* if it has */
    struct cell marked_adds;        /* the additions before that: state, CAS number and epoch */
    bool folded;                    /* step 2 is done */
    size_t cut_at;                  /* bytes of deletions that do not count any more */
    enum paired_step {
        PAIR_DONE,
        PAIR_MARK,
        PAIR_BEGIN,
        PAIR_ADDS,
        PAIR_CUT,
        PAIR_REMOVE
    } step; /* the last */
};

static struct paired_work *paired_own(const struct work *w)
{
    return w->own;
}

/* ---- what is stored ---- */

static const char *paired_grammar(const struct grammar *g, const struct cell *cell)
{
    switch (cell->role) {
    case CELL_ADDS:
    case CELL_DELETES:
        return grammar_delimited(g, g->value, grammar_item);
    default:
        return NULL;
    }
}

static const char *paired_refusal(const struct list_policy *policy, struct slice item)
{
    return text_is_mark(item, (char)policy->delimiter)
               ? "item looks like a mark of a folding (@ and 16 hexadecimal digits)"
               : NULL;
}

/* ---- looking ---- */

/* One connection answers in the order of the requests: reading the additions once more, without
 * their value, tells whether they stayed the same while the deletions were read. */
static void paired_cells(struct work *w)
{
    (void)work_add_cell(w, CELL_ADDS, 0);
    (void)work_add_cell(w, CELL_DELETES, 0);
    if (!paired_list(w->op.list)->apart) {
        work_add_cell(w, CELL_ADDS, 0)->bare = true;
    }
    paired_own(w)->checks = 0;
    if (w->look_tries == 0) {
        paired_own(w)->torn_mark = 0;
        paired_own(w)->begun = false;
    }
}

static char delimiter_of(const struct work *w)
{
    return (char)w->op.list->policy->delimiter;
}

static void read_pair(const struct work *w, struct pair *pair)
{
    pair_read(pair, w->cells[ADDS].value, w->cells[DELETES].value, delimiter_of(w));
}

static bool same_cell(const struct cell *a, const struct cell *b)
{
    return a->state == b->state && a->cas == b->cas && a->epoch == b->epoch;
}

static enum look read_more(struct work *w)
{
    w->next_cell = 0;
    paired_own(w)->checks++;
    return LOOK_MORE;
}

/* Are the marks to be believed from now on? */
static bool is_fast(const struct work *w)
{
    return w->look_tries >= EXACT_LOOKS;
}

/* The additions are going to be read again: notes the deletions of before. */
static void note_begin(struct work *w)
{
    struct slice deletes = w->cells[DELETES].value;
    paired_own(w)->begun = true;
    paired_own(w)->begin_bytes = deletes.len;
    paired_own(w)->begin_hash = hash_stable(deletes, 0);
}

/* Have the deletions grown at most? */
static bool begins_as_before(const struct work *w)
{
    struct slice deletes = w->cells[DELETES].value;
    size_t len = paired_own(w)->begin_bytes;
    return paired_own(w)->begun && deletes.len >= len &&
           hash_stable(slice_make(deletes.p, len), 0) == paired_own(w)->begin_hash;
}

/* For items from different connections. LOOK_DONE: the additions were read before the deletions;
 * *exact: and were the same afterwards. */
static enum look look_apart(struct work *w, bool *exact)
{
    struct cell *adds = &w->cells[ADDS], *deletes = &w->cells[DELETES];
    if (paired_own(w)->checks == 0) {
        adds->check = deletes->check = true;
        if (is_fast(w)) {
            note_begin(w);
        }
        return read_more(w);
    }
    *exact =
        paired_own(w)->checks == 1 && adds->state != CELL_UNREAD && deletes->state != CELL_UNREAD;
    if (*exact || paired_own(w)->checks == 3) {
        return LOOK_DONE;
    }
    if (!is_fast(w)) {
        return LOOK_AGAIN;
    }
    if (paired_own(w)->checks == 2 || adds->state != CELL_UNREAD) {
        paired_own(w)->checks = 2;
        cell_forget(deletes);
    }
    return read_more(w);
}

/* The same for items from one connection, if they come from one. */
static enum look look_in_order(struct engine *e, struct work *w, bool *exact)
{
    bool in_order = work_read_in_order(e, w);
    bool asked = w->cell_count > ADDS_AGAIN;
    if (asked) {
        *exact = in_order && same_cell(&w->cells[ADDS], &w->cells[ADDS_AGAIN]);
        cell_forget(&w->cells[ADDS_AGAIN]);
        w->cell_count = ADDS_AGAIN; /* a cell is named once */
    }
    if (!in_order) {
        paired_list(w->op.list)->apart = true;
        return look_apart(w, exact);
    }
    if (!asked) {
        paired_list(w->op.list)->apart = false;
        return LOOK_AGAIN;
    }
    return LOOK_DONE;
}

/* The additions have changed while they were read: do the marks fit? They never will if the
 * deletions were lost, or replaced by hand; then the next look finds the same mark in the
 * additions, and deletions that were not cut. */
static bool marks_fit(struct work *w, const struct pair *pair)
{
    uint64_t mark = hash_stable(pair->mark, 0);
    bool torn = pair_is_torn(pair), seen = paired_own(w)->torn_mark == mark;
    paired_own(w)->torn_mark = torn ? mark : 0;
    if (torn) {
        return seen && paired_own(w)->begin_bytes > 0 && begins_as_before(w);
    }
    return pair->mark.len > 0 || begins_as_before(w);
}

/* Do the additions hold copies of items? */
static bool has_copies(const struct work *w, const struct pair *pair)
{
    size_t mark_bytes = pair->mark_there ? TEXT_MARK_BYTES + 1 : 0;
    return pair->adds.len > w->items.bytes + w->items.count + mark_bytes;
}

static enum look paired_look(struct engine *e, struct work *w)
{
    struct pair pair;
    bool exact = false;
    enum look look = look_in_order(e, w, &exact);
    if (look != LOOK_DONE) {
        return look;
    }
    paired_own(w)->exact = exact;
    read_pair(w, &pair);
    if (!exact && !(is_fast(w) && marks_fit(w, &pair))) {
        note_begin(w);
        return LOOK_AGAIN;
    }
    pair_fold(&pair, SIZE_MAX, &w->items.fold);
    items_settle(&w->items);
    if (!exact && work_finds_nothing_to_drop(w)) {
        return LOOK_AGAIN; /* items may have come; no write would show that */
    }
    w->can_shrink =
        pair.cut > 0 || pair.pending_bytes > 0 || pair.strays > 0 || has_copies(w, &pair);
    return LOOK_DONE;
}

/* ---- adding and deleting ---- */

/* Would additions that are made anew hide a native list? */
static bool hides_native(const struct list *list)
{
    return list_migrates(list) && dialect_keeps_key(list);
}

static enum progress paired_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    delimited_batch(w);
    w->append.target.role = w->lane == LANE_ADD ? CELL_ADDS : CELL_DELETES;
    w->append.only_there = w->lane == LANE_ADD && hides_native(w->op.list);
    CO_CALL(co, work_append(e, w, event));
    if (!w->failed && w->append.status == BE_TOO_LARGE) {
        work_note_no_room(w);
    }
    if (!w->failed && w->append.status == BE_MISS && w->append.only_there) {
        w->failed = w->moved = true;
    }
    if (!w->failed) {
        dialect_appended(e, w->op.list, w->append.value->used);
    }
    work_end(e, w);
    CO_END(co);
}

/* ---- folding, replacing, dropping ---- */

/* Does it replace the items (lset, ldrop), and has not done so yet? */
static bool replaces(const struct work *w)
{
    return !paired_own(w)->folded && (work_is_asked(w, LIST_SET) || work_is_asked(w, LIST_DROP));
}

/* Is it a change of some items that has not been written yet? */
static bool changes_items(const struct work *w)
{
    return w->lane == LANE_EXACT && !paired_own(w)->folded;
}

/* Is there a call that has something to add or delete? */
static bool has_change(const struct work *w)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            if (items_have(&w->items, call->items[i]) == list_call_deletes(call, i)) {
                return true;
            }
        }
    }
    return false;
}

static void apply_calls(const struct work *w, struct fold *fold)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            fold_apply(fold, list_call_deletes(call, i) ? ENTRY_DEL : ENTRY_ADD, call->items[i]);
        }
    }
}

/* Is the content not known? A list that is too large to be read can be dropped, and so can a
 * foreign value (foreign.h). */
static bool is_unread(const struct work *w)
{
    return w->read_bytes > w->op.list->policy->fold_memory_bytes || w->cells[ADDS].foreign ||
           w->cells[DELETES].foreign;
}

/* The mark up to which deletions can be taken into account: one with no deletions behind it, or the
 * operation's own, if the additions have not changed since. An item that was added in between may
 * have been deleted before that, behind the mark: the folding would make one of all its places, and
 * the deletion take that away. Of length 0: there is none; if nothing is pending, none is needed.
 * Then none is used either: an ldrop may be about to remove the item that holds it. */
static struct slice usable_mark(const struct work *w, const struct pair *pair)
{
    if (!pair->mark_there && pair->pending_bytes == 0) {
        return SLICE_NONE;
    }
    struct slice own =
        slice_make(paired_own(w)->own_mark, paired_own(w)->marked ? TEXT_MARK_BYTES : 0);
    if (pair->last.len > 0 || own.len == 0 ||
        !same_cell(&paired_own(w)->marked_adds, &w->cells[ADDS])) {
        return pair->last;
    }
    size_t at = pair_find(pair, own);
    return at == SIZE_MAX ? SLICE_NONE : slice_make(pair->deletes.p + at, TEXT_MARK_BYTES);
}

/* What is to be written next. folded: step 2 is done, later changes may stay. */
static enum paired_step next_step(const struct work *w, const struct pair *pair)
{
    bool drops = work_is_asked(w, LIST_DROP), folded = paired_own(w)->folded;
    if (is_unread(w)) {
        return PAIR_REMOVE;
    }
    if (changes_items(w)) {
        /* By all deletions that the look has found, or the change would not be decided by it. Where
         * the additions may have grown before the deletions were read, that there is nothing to
         * change shows only in a CAS of the additions. */
        bool marked = pair->pending_bytes == 0 || pair->last.len > 0;
        return !has_change(w) && paired_own(w)->exact ? PAIR_DONE
               : pair->cut > 0                        ? PAIR_CUT
               : marked                               ? PAIR_ADDS
                                                      : PAIR_MARK;
    }
    if (drops && pair->cut == 0 && pair->pending_bytes == 0 && (!folded || w->items.count == 0)) {
        return work_any_there(w) ? PAIR_REMOVE : PAIR_DONE;
    }
    if (drops && folded && w->items.count > 0) {
        return PAIR_DONE; /* it was added since */
    }
    if (pair->cut > 0) {
        return PAIR_CUT;
    }
    if (pair->pending_bytes > 0) {
        bool marked = usable_mark(w, pair).len > 0;
        return folded && !drops ? PAIR_DONE : marked ? PAIR_ADDS : PAIR_MARK;
    }
    bool due = !folded && (replaces(w) || pair->strays > 0);
    return due || has_copies(w, pair) ? PAIR_ADDS : PAIR_DONE;
}

/* Prepares the append of a mark. */
static void prepare_mark(struct engine *e, struct work *w)
{
    char delimiter = delimiter_of(w);
    struct slice mark = slice_make(paired_own(w)->own_mark, TEXT_MARK_BYTES);
    struct append *a = &w->append;
    text_make_mark(paired_own(w)->own_mark, rng_next(e->rng), delimiter);
    paired_own(w)->marked_adds = (struct cell){
        .state = w->cells[ADDS].state, .cas = w->cells[ADDS].cas, .epoch = w->cells[ADDS].epoch};
    cell_forget(&a->target);
    block_unref(&a->value);
    block_unref(&a->create);
    a->target = (struct cell){.role = CELL_DELETES};
    a->verb = BE_APPEND;
    a->value = block_new(TEXT_MARK_BYTES + 1);
    text_append(&a->value, mark, delimiter);
    a->create = block_ref(a->value);
}

/* Writes the additions by the deletions up to the mark. */
static void write_adds(struct engine *e, struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    struct pair pair;
    struct fold fold;
    read_pair(w, &pair);
    struct slice mark = usable_mark(w, &pair);
    size_t until = mark.len > 0 ? (size_t)(mark.p - pair.deletes.p) : 0;
    fold_init(&fold);
    if (!replaces(w)) {
        pair_fold(&pair, until, &fold);
    } else {
        fold_call(&fold, call);
    }
    if (changes_items(w)) {
        apply_calls(w, &fold);
    }
    struct block *text = pair_folded(&pair, &fold, until, mark);
    cell_write(e, &w->op, &w->cells[ADDS], text, 0);
    paired_own(w)->cut_at = until;
    block_unref(&text);
    fold_fini(&fold);
}

/* Writes the deletions from the mark at that byte on. */
static void write_rest(struct engine *e, struct work *w, size_t at)
{
    struct slice rest = w->cells[DELETES].value;
    (void)slice_take(&rest, at);
    struct block *text = block_new(rest.len);
    block_append(&text, rest.p, rest.len);
    cell_write(e, &w->op, &w->cells[DELETES], text, 0);
    block_unref(&text);
}

static void write_nothing(struct engine *e, struct work *w)
{
    struct block *nothing = block_new(16);
    cell_write(e, &w->op, &w->cells[ADDS], nothing, PAIRED_TAG_BEGIN);
    block_unref(&nothing);
}

static enum progress begin_additions(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    write_nothing(e, w);
    CO_AWAIT(co, "adding an item for the folded additions");
    w->conflict = !work_written(e, w, event);
    CO_END(co);
}

static enum progress append_mark(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    prepare_mark(e, w);
    CO_CALL(co, work_append(e, w, event));
    if (!w->failed && w->append.status == BE_TOO_LARGE) {
        work_note_no_room(w);
    }
    w->conflict = paired_own(w)->marked; /* its mark was there before, and another proxy has cut it
                                            off */
    paired_own(w)->marked = true;
    CO_END(co);
}

static enum progress cut_deletions(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    write_rest(e, w, paired_own(w)->cut_at);
    CO_AWAIT(co, "cutting off the deletions that count no more");
    w->conflict = !work_written(e, w, event);
    CO_END(co);
}

static enum progress fold_additions(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    write_adds(e, w);
    CO_AWAIT(co, "writing the folded additions");
    w->conflict = !work_written(e, w, event);
    if (w->failed || w->conflict) {
        CO_RETURN(co);
    }
    if (w->lane != LANE_EXACT || paired_own(w)->cut_at > 0) {
        metric_inc(e->metrics, METRIC_list_folds);
    }
    paired_own(w)->folded = true;
    if (work_is_asked(w, LIST_SET) || w->lane == LANE_EXACT) {
        work_finish(e, w);
    }
    if (paired_own(w)->cut_at > 0) {
        CO_CALL(co, cut_deletions(e, w, event));
    } else if (w->lane == LANE_EXACT) {
        paired_own(w)->step = PAIR_DONE; /* nothing was folded, so nothing is left to tidy up */
    }
    CO_END(co);
}

/* Removes the additions first, since no deletion counts any more: as they were read, or it would
 * take away a mark that another proxy has folded by, and its deletions would count again. What
 * cannot be read goes whatever it is, unless the record of a move may have come in its place. */
static enum progress remove_both(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (w->cells[ADDS].state == CELL_THERE) {
        if (is_unread(w) && !hides_native(w->op.list)) {
            cell_send(e, &w->op, &w->cells[ADDS], BE_DELETE, NULL, 0);
        } else {
            cell_remove(e, &w->op, &w->cells[ADDS]);
        }
        CO_AWAIT(co, "removing the additions");
        bool gone = event->status == BE_DELETED || event->status == BE_NOT_FOUND;
        w->conflict = !gone && !work_written(e, w, event);
        if (w->failed || w->conflict) {
            CO_RETURN(co);
        }
    }
    paired_own(w)->folded = true;
    if (w->cells[DELETES].state == CELL_THERE) {
        if (is_unread(w)) {
            cell_send(e, &w->op, &w->cells[DELETES], BE_DELETE, NULL, 0);
        } else {
            cell_remove(e, &w->op, &w->cells[DELETES]);
        }
        CO_AWAIT(co, "removing the deletions");
        if (event->status != BE_DELETED) {
            (void)work_written(e, w, event);
            /* What is not of the dialect stays in every reader's way: no folding takes it off. */
            paired_own(w)->folded = !(w->failed && is_unread(w));
        }
    }
    paired_own(w)->step = PAIR_DONE;
    CO_END(co);
}

static enum progress take_step(struct engine *e, struct work *w, const struct op_event *event)
{
    switch (paired_own(w)->step) {
    case PAIR_MARK:
        return append_mark(e, w, event);
    case PAIR_CUT:
        return cut_deletions(e, w, event);
    case PAIR_BEGIN:
        return begin_additions(e, w, event);
    case PAIR_ADDS:
        return fold_additions(e, w, event);
    case PAIR_REMOVE:
        return remove_both(e, w, event);
    default:
        return PROGRESS_DONE;
    }
}

static void choose_step(struct work *w)
{
    struct pair pair;
    read_pair(w, &pair);
    paired_own(w)->cut_at = pair.cut;
    enum paired_step step = next_step(w, &pair);
    bool there = w->cells[ADDS].state == CELL_THERE;
    bool begins = step == PAIR_ADDS && !there && usable_mark(w, &pair).len > 0;
    paired_own(w)->step = begins ? PAIR_BEGIN : step;
    w->conflict = false;
}

/* Takes the next step, or ends with PAIR_DONE: there is nothing to do. */
static enum progress step_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (!paired_own(w)->folded && work_drops_nothing(e, w)) {
        paired_own(w)->step = PAIR_DONE;
        CO_RETURN(co);
    }
    choose_step(w);
    CO_CALL(co, take_step(e, w, event));
    w->goes_on = paired_own(w)->step != PAIR_DONE;
    w->conflict = w->conflict && w->goes_on;
    CO_END(co);
}

/* lcompact, lset and ldrop; ladd and ldel that are not blind. */
static enum progress paired_rewrite(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    paired_own(w)->step = PAIR_CUT;
    CO_CALL(co, work_try(e, w, event, step_once, WORK_TRIES_MAX, ROUNDS_MAX));
    if (!w->failed && w->conflict) { /* the next operation begins at once */
        CO_SLEEP(&w->op, co, "backing off after a conflict",
                 op_backoff_end_us(e, WORK_BACKOFF_US, w->conflicts));
    }
    if (!w->failed && paired_own(w)->step != PAIR_DONE && !paired_own(w)->folded) {
        work_note_busy(e, w);
    }
    if (w->failed && !paired_own(w)->folded) {
        work_fail(e, w, w->error);
    } else {
        w->failed = false; /* another folding does the rest */
        work_finish(e, w);
    }
    CO_END(co);
}

const struct dialect dialect_paired = {
    .name = "paired",
    .lanes = {[LIST_ADD] = LANE_ADD, [LIST_DEL] = LANE_DELETE, DIALECT_LANES_SEVERAL},
    .unsupported_reason = dialect_not_exact,
    .grammar = paired_grammar,
    .essential = ROLE(CELL_ADDS),
    .counted = true,
    .delimited = true,
    .refusal = paired_refusal,
    .work_bytes = sizeof(struct paired_work),
    .list_bytes = sizeof(struct paired_list),
    .cells = paired_cells,
    .look = paired_look,
    .change = paired_change,
    .exact = paired_rewrite,
    .set = paired_rewrite,
    .drop = paired_rewrite,
    .compact = paired_rewrite,
};
