/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/ends.h"

#include <stdlib.h>

#include "base/array.h"

/* Places that are decided together: one more than are wanted, then ever more while none of them
 * lives. */
#define MORE 1u
#define SOME_MAX 4096u
/* Places that one walk_gather looks at, at most. */
#define LOOKS_MAX 16384u

void ends_init(struct ends *ends)
{
    *ends = (struct ends){0};
    log_fold_init(&ends->log);
}

void ends_fini(struct ends *ends)
{
    log_fold_fini(&ends->log);
    free(ends->runs);
    *ends = (struct ends){0};
}

static struct ends_run known_run(const struct ends *ends, const struct name *name, size_t guess)
{
    if (guess < ends->run_count && name_equal(&ends->runs[guess].name, name)) {
        return ends->runs[guess];
    }
    for (size_t i = 0; i < ends->run_count; i++) {
        if (name_equal(&ends->runs[i].name, name)) {
            return ends->runs[i];
        }
    }
    return (struct ends_run){
        .name = *name, .sublists_left = UINT32_MAX, .positions_left = UINT32_MAX};
}

/* From here on it is about this head. */
static void take_head(struct ends *ends, const struct head *head)
{
    if (ends->epoch != head->epoch || ends->cas > head->cas) {
        ends_fini(ends);
        ends_init(ends);
    }
    struct ends_run *runs = calloc(head->run_count + 1, sizeof *runs);
    CHECK(runs != NULL);
    for (size_t i = 0; i < head->run_count; i++) {
        runs[i] = known_run(ends, &head->runs[i].range.name, i);
    }
    free(ends->runs);
    ends->runs = runs;
    ends->run_count = head->run_count;
    ends->epoch = head->epoch;
    ends->cas = head->cas;
    (void)log_fold_take(&ends->log, head);
}

void walk_begin(struct walk *w, struct ends *ends, const struct head *head, bool back,
                uint64_t wanted, uint64_t wanted_bytes)
{
    walk_fini(w);
    take_head(ends, head);
    *w = (struct walk){
        .ends = ends, .head = head, .back = back, .wanted = wanted, .wanted_bytes = wanted_bytes};
    arena_init(&w->arena);
    fold_init(&w->taken);
}

void walk_fini(struct walk *w)
{
    if (w->ends != NULL) {
        arena_fini(&w->arena);
        fold_fini(&w->taken);
    }
    sublist_unref(&w->sublist);
    sublist_unref(&w->hint);
    free(w->items);
    free(w->some);
    *w = (struct walk){0};
}

/* ---- from place to place ---- */

static size_t run_count(const struct walk *w)
{
    return w->head->clears ? 0 : w->head->run_count;
}

/* Where the living places of the run begin, as far as known. */
static void enter_run(struct walk *w)
{
    const struct ends_run *ends = &w->ends->runs[w->run];
    uint32_t count = w->head->runs[w->run].range.count;
    bool known = ends->sublists_left <= count;
    w->clean = true;
    sublist_unref(&w->hint);
    w->number = !w->back ? ends->sublist : known ? ends->sublists_left : count;
    w->position = !w->back ? ends->position : known ? ends->positions_left : UINT32_MAX;
}

static void enter_log(struct walk *w)
{
    w->in_log = true;
    w->run = run_count(w);
    w->position = w->back ? w->ends->log.fold.count : 0;
}

/* To the run that comes next, or to the log. False: there is none. */
static bool next_run(struct walk *w)
{
    size_t runs = run_count(w);
    bool first = !w->started;
    w->started = true;
    if (w->back ? first : (first ? runs == 0 : w->run + 1 == runs)) {
        enter_log(w);
        return true;
    }
    if (w->back ? w->run == 0 : w->in_log) {
        return false;
    }
    w->in_log = false;
    w->run = first ? 0 : w->back ? w->run - 1 : w->run + 1;
    enter_run(w);
    return true;
}

/* Has the run a sublist there? */
static bool has_sublist(const struct walk *w)
{
    return w->back ? w->number > 0 : w->number < w->head->runs[w->run].range.count;
}

bool walk_next(struct walk *w)
{
    bool was_in = w->sublist != NULL;
    sublist_unref(&w->sublist);
    if (w->full) {
        return false;
    }
    if (was_in) {
        w->number = w->back ? w->number - 1 : w->number + 1;
        w->position = w->back ? UINT32_MAX : 0;
    }
    if (w->started && !w->in_log && has_sublist(w)) {
        return true;
    }
    do {
        if ((w->in_log && !w->back) || !next_run(w)) {
            w->exhausted = true;
            return false;
        }
    } while (!w->in_log && !has_sublist(w));
    return true;
}

enum visited walk_open(void *arg, struct sublist *sublist)
{
    struct walk *w = arg;
    w->sublist = sublist_ref(sublist);
    if (w->position > sublist->count) {
        w->position = sublist->count;
    }
    return false;
}

/* ---- some places ---- */

static void add(struct walk *w, struct slice item, uint32_t position, char op)
{
    w->some = array_room(w->some, w->some_count, &w->some_cap, sizeof *w->some);
    w->some[w->some_count++] = (struct walk_item){item, position, op, WALK_OPEN};
    w->open++;
}

/* Does a newer entry of an item make its place void, where that says op? An addition leaves it in
 * its place, unless that holds for a time only. */
static bool makes_void(char newer, char op)
{
    return newer != 0 && (newer != ENTRY_ADD || op == ENTRY_TIMED);
}

/* A place of a run, by what the log says. */
static void consider(struct walk *w, uint32_t position)
{
    char op = w->sublist->ops[position];
    struct slice item = sublist_item(w->sublist, position);
    if (op == ENTRY_DEL) {
        return;
    }
    char outcome = fold_outcome(&w->ends->log.fold, item);
    if (makes_void(outcome, op) || fold_outcome(&w->taken, item) == ENTRY_ADD) {
        return;
    }
    if (w->hint != NULL && makes_void(sublist_find(w->hint, item), op)) {
        w->hint_helps = true;
        return;
    }
    uint32_t until_s = sublist_until(w->sublist, position);
    if (!entry_is_over(op, until_s, w->head->read_s)) {
        add(w, item, position, op);
    } else if (!entry_is_over(op, until_s, w->head->read_s - CLOCK_SKEW_S)) {
        w->clean = false; /* a clock that is set back may bring it back */
    }
}

static bool gather_log(struct walk *w)
{
    const struct fold *log = &w->ends->log.fold;
    uint32_t looks = 0, left = w->position;
    while (w->some_count < w->most && looks++ < LOOKS_MAX &&
           (w->back ? left > 0 : left < log->count)) {
        uint32_t at = w->back ? --left : left++;
        const struct fold_item *known = &log->items[at];
        if (entry_is_in(known->outcome, known->until_s, w->head->read_s) &&
            fold_outcome(&w->taken, known->item) != ENTRY_ADD) {
            add(w, known->item, at, known->outcome);
        }
    }
    bool any = w->position != left;
    w->end = left;
    return any;
}

static bool gather_sublist(struct walk *w)
{
    uint32_t looks = 0, left = w->position;
    while (w->some_count < w->most && looks++ < LOOKS_MAX &&
           (w->back ? left > 0 : left < w->sublist->count)) {
        consider(w, w->back ? --left : left++);
    }
    bool any = w->position != left;
    w->end = left;
    return any;
}

bool walk_gather(struct walk *w)
{
    uint64_t more = w->wanted - w->count + MORE;
    w->some_count = w->open = 0;
    if (w->full) {
        return false;
    }
    more = more < SOME_MAX ? more : SOME_MAX;
    uint64_t grown = (uint64_t)w->most * 4 < SOME_MAX ? (uint64_t)w->most * 4 : SOME_MAX;
    w->most = (size_t)(w->most == 0 || w->hint_helps ? more : grown);
    w->hint_helps = false;
    return w->in_log ? gather_log(w) : gather_sublist(w);
}

const struct run *walk_newer(const struct walk *w, size_t *count)
{
    *count = w->in_log || w->open == 0 ? 0 : run_count(w) - w->run - 1;
    return w->head->runs + w->run + (w->in_log ? 0 : 1);
}

const struct run *walk_older(const struct walk *w, size_t *count)
{
    /* From the oldest end all that is older is void, or taken. */
    *count = w->back && w->open > 0 ? w->run : 0;
    return w->head->runs;
}

static void settle(struct walk *w, struct walk_item *item, bool lives)
{
    item->verdict = lives ? WALK_LIVES : WALK_VOID;
    w->open--;
}

enum visited walk_kill(void *arg, struct sublist *sublist)
{
    struct walk *w = arg;
    bool kills = false;
    for (size_t i = 0; i < w->some_count && w->open > 0; i++) {
        struct walk_item *item = &w->some[i];
        if (item->verdict == WALK_OPEN && makes_void(sublist_find(sublist, item->item), item->op)) {
            settle(w, item, false);
            kills = true;
        }
    }
    if (kills) {
        sublist_unref(&w->hint);
        w->hint = sublist_ref(sublist);
    }
    return w->open > 0;
}

enum visited walk_seek(void *arg, struct sublist *sublist)
{
    struct walk *w = arg;
    for (size_t i = 0; i < w->some_count && w->open > 0; i++) {
        struct walk_item *item = &w->some[i];
        if (item->verdict == WALK_OPEN && item->op != ENTRY_ADD) {
            settle(w, item, true);
        } else if (item->verdict == WALK_OPEN) {
            char op = sublist_find(sublist, item->item);
            if (op != 0) {
                settle(w, item, makes_void(ENTRY_ADD, op) || op == ENTRY_DEL);
            }
        }
    }
    return w->open > 0;
}

/* All places up to there are void. */
static void note_void(struct walk *w, uint32_t position)
{
    struct ends_run *ends = &w->ends->runs[w->run];
    if (w->back) {
        ends->sublists_left = w->number;
        ends->positions_left = position;
    } else {
        ends->sublist = w->number;
        ends->position = position;
    }
}

static void take(struct walk *w, const struct walk_item *item)
{
    uint64_t bytes = entry_bytes(item->item.len);
    if (w->count > 0 && w->bytes + bytes > w->wanted_bytes) {
        w->full = true;
        return;
    }
    w->items = array_room(w->items, w->count, &w->cap, sizeof *w->items);
    w->items[w->count++] = arena_copy(&w->arena, item->item);
    w->bytes += bytes;
    fold_apply(&w->taken, ENTRY_ADD, item->item);
    w->full = w->count == w->wanted;
}

void walk_decide(struct walk *w)
{
    for (size_t i = 0; i < w->some_count && !w->full; i++) {
        const struct walk_item *item = &w->some[i];
        if (item->verdict == WALK_VOID) {
            continue;
        }
        if (w->clean && !w->in_log) {
            note_void(w, w->back ? item->position + 1 : item->position);
            w->clean = false;
        }
        take(w, item);
    }
    if (w->clean && !w->in_log) {
        note_void(w, w->end);
    }
    w->position = w->end;
}
