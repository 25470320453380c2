/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X = +0+1, a signed log of numbers, names the sublists X.0 and X.1. These are signed logs,
 * of which the later ones win. The largest number is the newest.
 *
 * Order of writes: APPEND the changes to the newest sublist, then read the index again. If it names
 * a newer one by now, repeat the changes there. The first change writes the index, then the
 * sublist. When a sublist has become too long: ADD the next, then write the index with its number
 * by CAS. See change.c; for folding and lset fold.c.
 *
 * With delimiters in place of signs (sublist_text) both hold what is in the list, and nothing of
 * what was deleted: delete.c.
 *
 * Not guaranteed: a read sees no single instant, since it reads the sublists one by one. Beside two
 * foldings in quick succession it may see an item that was deleted.
 */
#include "dialect/sublists/sublists.h"

#include <stdlib.h>

#include "dialect/shared/foreign.h"
#include "dialect/shared/record.h"

/* ---- looking ---- */

/* Asks for the sublists that the last look found together with the index. */
static void sublists_cells(struct work *w)
{
    const struct sublists_list *list = sublists_list(w->op.list);
    (void)work_add_cell(w, CELL_KEY, 0);
    sublists_own(w)->checks = 0;
    sublists_own(w)->had_older = false;
    sublists_own(w)->in_order = list->newest_known;
    if (list->newest_known) {
        w->first_cell = 1; /* the index last, see sublists_look */
        for (uint64_t n = list->oldest; n <= list->newest; n++) {
            (void)work_add_cell(w, CELL_SUBLIST, (uint32_t)n);
        }
    }
}

static int by_number(const void *a, const void *b)
{
    const struct cell *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* Finds a sublist among the first count cells, which are in order. */
static struct cell *find_cell(struct work *w, size_t count, uint32_t number)
{
    struct cell wanted = {.number = number};
    return bsearch(&wanted, w->cells + 1, count - 1, sizeof *w->cells, by_number);
}

/* Sorts the sublists by number, each once. */
static void sort_cells(struct work *w)
{
    size_t kept = 2;
    qsort(w->cells + 1, w->cell_count - 1, sizeof *w->cells, by_number);
    for (size_t i = 2; i < w->cell_count; i++) {
        if (w->cells[i].number != w->cells[kept - 1].number) {
            w->cells[kept++] = w->cells[i];
        }
    }
    w->cell_count = kept;
    w->next_cell = 1;
}

/* Names the sublists that the index lists, as it was read last. False: some of them are still to be
 * read. */
static bool list_cells(struct work *w)
{
    struct fold index;
    uint32_t at = 0, number;
    struct slice item;
    size_t before = w->cell_count;
    for (size_t i = 1; i < before; i++) {
        w->cells[i].listed = false;
    }
    fold_init(&index);
    sublists_fold(w->op.list, &index, w->cells[0].value);
    while (fold_next_item(&index, ENTRY_NEVER_OVER, &at, &item)) {
        if (sublists_number(item, &number)) {
            struct cell *cell = find_cell(w, before, number);
            cell = cell != NULL ? cell : work_add_cell(w, CELL_SUBLIST, number);
            cell->listed = true;
        }
    }
    fold_fini(&index);
    if (w->cell_count > before) {
        sort_cells(w);
        return false;
    }
    return true;
}

/* Drops sublists that the index does not list. False: one of them holds something. It was taken out
 * of the index after it was read, and its content stands in another sublist by now, which may have
 * been read before. */
static bool drop_unlisted(struct work *w)
{
    bool empty = true;
    size_t kept = 1;
    for (size_t i = 1; i < w->cell_count; i++) {
        if (w->cells[i].listed) {
            w->cells[kept++] = w->cells[i];
        } else {
            empty = empty && w->cells[i].value.len == 0;
            sublists_own(w)->had_older = sublists_own(w)->had_older || kept == 1;
            sublists_own(w)->in_order =
                sublists_own(w)->in_order && w->cells[i].server == w->cells[0].server;
            cell_forget(&w->cells[i]);
        }
    }
    w->cell_count = kept;
    return empty;
}

/* An item that was added again moves to a newer sublist, and then leaves the older one. If the
 * newer one were read before the older one, a read could find the item in neither. So the older
 * ones are read first, and the index last; also those that are gone by now. A look that cannot be
 * sure of this order checks all cells again that items may have come to, until at most the newest
 * has changed; then it reads that one again, and the index must still be the same. Folding also
 * relies on what older sublists do not hold, so it always checks. False: there is something to
 * check, or to read again. */
static bool is_sound(struct engine *e, struct work *w, enum look *look)
{
    enum { CHECKS_MAX = 8 };
    bool folds = w->lane != LANE_READ, from_first = folds || sublists_own(w)->had_older;
    bool all = sublists_own(w)->checks == 0 || w->changed_older;
    *look = LOOK_MORE;
    if ((!folds && sublists_own(w)->in_order && work_read_in_order(e, w)) ||
        (!all && !w->changed_last)) {
        return true;
    }
    if (++sublists_own(w)->checks > CHECKS_MAX) {
        *look = LOOK_AGAIN;
        return false;
    }
    for (size_t i = 0; i < w->cell_count; i++) {
        w->cells[i].check = i == 0 || (all && (from_first || i > 1));
    }
    sublists_own(w)->checked_all = all;
    w->changed_older = w->changed_last = false;
    w->next_cell = 0;
    return false;
}

static void note_numbers(struct sublists_list *list, const struct work *w)
{
    list->newest_known = w->cell_count > 1;
    if (list->newest_known) {
        list->oldest = w->cells[1].number;
        list->newest = w->cells[w->cell_count - 1].number;
        if (list->newest - list->oldest >= 2 * w->cell_count) {
            list->oldest = list->newest; /* the gaps are too large to ask for all numbers */
        }
    }
}

static enum look sublists_look(struct engine *e, struct work *w)
{
    uint64_t stored = 0;
    bool empty = false, merges = false, there = false;
    enum look look;
    if (w->cells[0].state == CELL_THERE && !foreign_refuse_cells(e, w, 0, 1)) {
        return LOOK_FAILED;
    }
    if (!work_all_read(w) || !list_cells(w)) {
        sublists_own(w)->in_order = false;
        w->next_cell = 0;
        return LOOK_MORE;
    }
    if (!drop_unlisted(w)) {
        sublists_list(w->op.list)->newest_known = false;
        return LOOK_AGAIN;
    }
    if (!foreign_refuse_cells(e, w, 1, w->cell_count)) {
        return LOOK_FAILED;
    }
    if (w->cell_count > 1 && !is_sound(e, w, &look)) {
        return look;
    }
    for (size_t i = 1; i < w->cell_count; i++) {
        sublists_fold(w->op.list, &w->items.fold, w->cells[i].value);
        stored += w->cells[i].value.len;
        there = there || w->cells[i].state == CELL_THERE;
        merges = merges ||
                 (i + 2 < w->cell_count &&
                  sublists_may_merge(w->op.list, w->cells[i].value.len, w->cells[i + 1].value.len));
        empty = empty || (w->cells[i].value.len == 0 && i + 1 < w->cell_count);
    }
    items_settle(&w->items);
    /* Where none is there, clients may have other names for them: the index is left as it is. */
    w->can_shrink = there && (empty || merges || stored > w->items.bytes + w->items.count);
    note_numbers(sublists_list(w->op.list), w);
    return LOOK_DONE;
}

/* ---- does an item belong to another list? ----
 *
 * The name of a sublist, X.0, is also a key that a list may have, and a sublist may look like an
 * index. So before a list of sublists is converted, the proxy reads the indexes of the lists that
 * would have a sublist of this name.
 */

/* Digits of the largest number that an index may list. */
#define DIGITS_MAX 10

/* The key of the list that has a sublist of this name, if the last digits are its number. Empty:
 * there is no such key. */
static struct slice owner_of(const struct list *list, size_t digits, uint64_t *number)
{
    const char *template = list->policy->sublist_name, *rest = strstr(template, "%s");
    size_t before = (size_t)(rest - template), after = strlen(rest + 2);
    struct slice key = list_key(list);
    if (key.len <= before + after + digits) {
        return SLICE_NONE;
    }
    const char *tail = key.p + key.len - digits;
    bool is_name = memcmp(key.p, template, before) == 0 &&
                   memcmp(tail - after, rest + 2, after) == 0 &&
                   slice_to_u64(slice_make(tail, digits), number) && (digits == 1 || *tail != '0');
    return is_name ? slice_make(key.p + before, key.len - before - after - digits) : SLICE_NONE;
}

/* Can the item under the list's key be a sublist of another list, by its name? */
static bool owner_is_possible(const struct list *list)
{
    uint64_t number;
    bool possible = false;
    for (size_t digits = 1; digits <= DIGITS_MAX && !possible; digits++) {
        possible = owner_of(list, digits, &number).len > 0;
    }
    return possible;
}

/* Does the index list that number? A record of a move holds the index that stood there before. */
static bool lists_number(const struct list *list, struct slice index, uint64_t number)
{
    struct record record;
    struct fold fold;
    struct slice item;
    uint32_t at = 0;
    uint64_t listed;
    bool found = false;
    if (record_parse(index, &record)) {
        index = record.before;
    }
    fold_init(&fold);
    sublists_fold(list, &fold, index);
    while (!found && fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item)) {
        found = slice_to_u64(item, &listed) && listed == number;
    }
    fold_fini(&fold);
    return found;
}

/* Asks for the index of the next list that may own the item. False: there is no other. */
static bool ask_next(struct engine *e, struct work *w)
{
    while (sublists_own(w)->owner_digits < DIGITS_MAX) {
        struct slice owner =
            owner_of(w->op.list, ++sublists_own(w)->owner_digits, &sublists_own(w)->owner_number);
        if (owner.len > 0 && config_list_policy(e->config, owner) == w->op.list->policy) {
            struct list_request *r = request_new(e, w->op.list, BE_GET);
            memcpy(r->key, owner.p, owner.len);
            request_set_key(r, (uint8_t)owner.len);
            op_send(e, &w->op, r, NULL, 0);
            return true;
        }
    }
    return false;
}

/* Inner: does the index of such a list name it? Ends with failed if so, or if an index cannot be
 * read. */
static enum progress owner_check(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    sublists_own(w)->owner_digits = 0;
    while (!w->failed && ask_next(e, w)) {
        CO_AWAIT(co, "looking at a list that the item may be a part of");
        if (event->status == BE_HIT) {
            if (lists_number(w->op.list, event->reply->value, sublists_own(w)->owner_number)) {
                work_note_text(w, "another list names this item as one of its sublists, "
                                  "not converted");
            }
        } else if (event->status != BE_MISS) {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}

/* ---- the table ---- */

static const char *number_rule(const struct grammar *g, struct slice item)
{
    uint32_t number;
    return sublists_number(item, &number) ? NULL
                                          : grammar_says(g, "no number of a sublist", item.p);
}

static const char *sublists_grammar(const struct grammar *g, const struct cell *cell)
{
    bool delimited = sublists_is_delimited(g->list);
    grammar_item_rule *rule = cell->role == CELL_KEY ? number_rule : grammar_item;
    if (cell->role != CELL_KEY && cell->role != CELL_SUBLIST) {
        return NULL;
    }
    return delimited ? grammar_delimited(g, g->value, rule) : grammar_signed(g, g->value, rule);
}

static const char *use_elsewhere(const struct list *list, const struct cell *cell)
{
    return cell->role == CELL_KEY && owner_is_possible(list) ? "it may be a sublist of another list"
                                                             : NULL;
}

static void sublists_forget(struct list *list)
{
    sublists_list(list)->newest_known = false;
}

/* A late change went to the newest sublist, or to the one after it. */
static void late_cells(struct work *w)
{
    (void)work_add_cell(w, CELL_SUBLIST, sublists_own(w)->newest);
    if (sublists_own(w)->newest < SUBLIST_NUMBER_MAX) {
        (void)work_add_cell(w, CELL_SUBLIST, sublists_own(w)->newest + 1);
    }
}

static void sublists_fini(struct work *w)
{
    cell_forget(&sublists_own(w)->not_named);
    cell_forget(&sublists_own(w)->index);
}

/* The look proves only those cells that the index names. In an ldrop numbers go on, since late
 * writers may still write to the old ones. */
#define SUBLISTS_TABLE \
    .name = "sublists", .unsupported_reason = dialect_not_exact, .grammar = sublists_grammar, \
    .essential = ROLE(CELL_KEY) | ROLE(CELL_SUBLIST), .sublists = ROLE(CELL_SUBLIST), \
    .use_elsewhere = use_elsewhere, .work_bytes = sizeof(struct sublists_work), \
    .work_fini = sublists_fini, .list_bytes = sizeof(struct sublists_list), \
    .forget = sublists_forget, .cells = sublists_cells, .look = sublists_look, \
    .look_proves = true, .change = sublists_change, .set = sublists_set, .drop = sublists_set, \
    .compact = sublists_compact, .before_convert = owner_check, .late_cells = late_cells

const struct dialect dialect_sublists = {
    .lanes = {[LIST_ADD] = LANE_CHANGE, [LIST_DEL] = LANE_CHANGE, DIALECT_LANES_SEVERAL},
    .reserved = signed_reserved,
    SUBLISTS_TABLE,
};

const struct dialect dialect_sublists_delimited = {
    .lanes = {[LIST_ADD] = LANE_ADD, [LIST_DEL] = LANE_EXACT, DIALECT_LANES_SEVERAL},
    .delimited = true,
    .exact = sublists_delete,
    SUBLISTS_TABLE,
};
