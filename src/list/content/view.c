/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/view.h"

#include <stdlib.h>

#include "base/array.h"

void view_init(struct view *v)
{
    *v = (struct view){0};
    log_fold_init(&v->log);
}

void view_set_dead(struct view *v, struct view_place place)
{
    struct view_run *run = &v->runs[place.run];
    view_run_set_dead(run, &run->parts[place.part], place.position);
}

static void set_live(struct view *v, struct view_place place)
{
    struct view_run *run = &v->runs[place.run];
    const struct sublist *s = run->parts[place.part].sublist;
    if (s != NULL &&
        entry_is_over(s->ops[place.position], sublist_until(s, place.position), v->now_s)) {
        return; /* it is void for another reason by now */
    }
    view_run_set_live(run, &run->parts[place.part], place.position);
}

static const struct sublist *sublist_at(const struct view *v, struct view_place place)
{
    return v->runs[place.run].parts[place.part].sublist;
}

static bool is_timed(const struct view *v, struct view_place place)
{
    const struct sublist *s = sublist_at(v, place); /* outlines are of lists without times */
    return s != NULL && s->ops[place.position] == ENTRY_TIMED;
}

static bool is_dead(const struct view *v, struct view_place place)
{
    return view_part_is_dead(&v->runs[place.run].parts[place.part], place.position);
}

/* Takes back what the log hides. */
static void forget_places(struct view *v)
{
    for (uint32_t i = 0; i < v->place_count; i++) {
        if (v->places[i].hidden) {
            set_live(v, v->places[i].place);
        }
    }
    v->place_count = 0;
    v->settled = false;
}

static void forget_log(struct view *v)
{
    forget_places(v);
    log_fold_clear(&v->log);
    v->epoch = 0;
}

static void drop_last_run(struct view *v)
{
    struct view_run *run = &v->runs[--v->run_count];
    for (uint32_t i = run->hide_count; i-- > 0;) {
        set_live(v, run->hides[i]);
    }
    view_run_fini(run);
}

void view_clear(struct view *v)
{
    forget_log(v);
    while (v->run_count > 0) {
        drop_last_run(v);
    }
    free(v->runs);
    free(v->places);
    int64_t now_s = v->now_s;
    view_init(v);
    v->now_s = now_s;
}

void view_fini(struct view *v)
{
    view_clear(v);
}

size_t view_memory_bytes(const struct view *v)
{
    uint64_t bytes = fold_bytes(&v->log.fold) + v->place_cap * sizeof *v->places +
                     v->run_cap * sizeof *v->runs + v->log.log.len;
    for (uint32_t i = 0; i < v->run_count; i++) {
        bytes += view_run_memory_bytes(&v->runs[i]);
    }
    return bytes;
}

/* ---- time ---- */

void view_advance(struct view *v, int64_t now_s)
{
    if (v->over_s != 0 && now_s < v->over_s) {
        view_clear(v);
    }
    v->now_s = now_s;
    for (uint32_t i = 0; i < v->run_count; i++) {
        uint32_t over_s = view_run_advance(&v->runs[i], now_s);
        v->over_s = (int64_t)over_s > v->over_s ? (int64_t)over_s : v->over_s;
    }
    v->settled = v->settled && now_s < v->settled_until_s;
}

/* ---- runs ---- */

static uint32_t common_runs(const struct view *v, const struct head *head)
{
    return head_runs_known(head, v->runs, v->run_count, sizeof(struct view_run),
                           offsetof(struct view_run, name));
}

bool view_has_runs(const struct view *v, const struct head *head)
{
    return v->run_count == head->run_count && common_runs(v, head) == v->run_count;
}

size_t view_keep(struct view *v, const struct head *head)
{
    uint32_t count = common_runs(v, head);
    if (count < v->run_count) {
        forget_log(v);
    }
    while (v->run_count > count) {
        drop_last_run(v);
    }
    return count;
}

/* The place at which the item counts, in one of the first runs. */
static bool find_place(const struct view *v, uint32_t run_count, struct slice item, uint32_t hash,
                       struct view_place *place)
{
    for (uint32_t i = run_count; i-- > 0;) {
        if (view_run_find(&v->runs[i], item, hash, place)) {
            place->run = i;
            return true;
        }
    }
    return false;
}

/* Items whose memory is on its way together. */
#define EXPECTED_MAX 64

struct guess {
    uint32_t hash;
    const struct sublist *sublist; /* NULL: none */
    uint32_t position;
};

static void expect_places(const struct view_run *run, struct guess *guesses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct view_place place;
        if (guesses[i].sublist == NULL && view_run_guess(run, guesses[i].hash, &place)) {
            guesses[i].sublist = run->parts[place.part].sublist;
            guesses[i].position = place.position;
            __builtin_prefetch(&guesses[i].sublist->starts[place.position]);
        }
    }
}

/* In the first runs; EXPECTED_MAX items at most. */
static void expect_some(const struct view *v, uint32_t run_count, const struct slice *items,
                        size_t count)
{
    struct guess guesses[EXPECTED_MAX];
    for (size_t i = 0; i < count; i++) {
        guesses[i] = (struct guess){.hash = item_hash(items[i])};
        for (uint32_t run = 0; run < run_count; run++) {
            view_run_expect(&v->runs[run], guesses[i].hash);
        }
    }
    for (uint32_t run = run_count; run-- > 0;) {
        expect_places(&v->runs[run], guesses, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (guesses[i].sublist != NULL) {
            __builtin_prefetch(sublist_item(guesses[i].sublist, guesses[i].position).p);
        }
    }
}

void view_expect(const struct view *v, const struct slice *items, size_t count)
{
    for (size_t done = 0; done < count; done += EXPECTED_MAX) {
        size_t left = count - done;
        expect_some(v, v->run_count, items + done, left < EXPECTED_MAX ? left : EXPECTED_MAX);
    }
}

/* The items of a sublist from there on. */
static void expect_sublist(const struct view *v, uint32_t run_count, const struct sublist *s,
                           uint32_t from)
{
    struct slice items[EXPECTED_MAX];
    size_t count = 0;
    while (count < EXPECTED_MAX && from + count < s->count) {
        items[count] = sublist_item(s, from + (uint32_t)count);
        count++;
    }
    expect_some(v, run_count, items, count);
}

static struct view_run *new_run(struct view *v)
{
    v->runs = array_room(v->runs, v->run_count, &v->run_cap, sizeof *v->runs);
    return &v->runs[v->run_count++];
}

void view_begin_counts(struct view *v, const struct name *name)
{
    forget_log(v);
    view_run_init_counts(new_run(v), name);
}

static struct view_run *get_run(struct view *v, const struct run *run, size_t at)
{
    if (at < v->run_count) {
        return &v->runs[v->run_count - 1];
    }
    struct view_run *fresh = new_run(v);
    /* What a head says of its runs is not always so, but an entry has three bytes. */
    uint64_t items_max = run->bytes / 3;
    view_run_init(fresh, &run->range.name, run->items < items_max ? run->items : items_max);
    return fresh;
}

void view_add_sublist(struct view *v, const struct run *entry, size_t at, struct sublist *s)
{
    forget_log(v);
    struct view_run *run = get_run(v, entry, at);
    uint32_t older = v->run_count - 1;
    struct view_part *part = view_run_push(run, s);
    if (older == 0 && s->all_add) {
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->ops[i] == ENTRY_TIMED) {
            view_run_end_at(run, part->first + i, sublist_until(s, i));
        }
        if (i % EXPECTED_MAX == 0) {
            expect_sublist(v, older, s, i);
        }
        struct slice item = sublist_item(s, i);
        struct view_place place;
        bool found = find_place(v, older, item, item_hash(item), &place);
        if (found && s->ops[i] == ENTRY_ADD && !is_timed(v, place)) {
            view_run_set_dead(run, part, i); /* it stays in its older place */
            continue;
        }
        if (found) {
            view_set_dead(v, place);
            view_run_hide(run, place);
        }
        if (s->ops[i] == ENTRY_DEL) {
            view_run_set_dead(run, part, i);
        }
    }
    view_advance(v, v->now_s);
}

/* ---- the log ---- */

struct log_place *view_next_place(struct view *v)
{
    if (v->place_count >= v->log.fold.count) {
        return NULL;
    }
    if (v->place_cap < v->log.fold.count) {
        v->place_cap = v->log.fold.room;
        v->places = realloc(v->places, v->place_cap * sizeof *v->places);
        CHECK(v->places != NULL);
    }
    struct log_place *log = &v->places[v->place_count++];
    *log = (struct log_place){.found = false};
    return log;
}

static void find_new_places(struct view *v)
{
    struct log_place *log;
    while ((log = view_next_place(v)) != NULL) {
        struct slice item = v->log.fold.items[v->place_count - 1].item;
        log->found =
            !v->log.fold.cleared && find_place(v, v->run_count, item, item_hash(item), &log->place);
    }
}

/* An item of the log that is in, or is over: until when that holds. */
static void note_end(struct view *v, const struct fold_item *item)
{
    if (item->outcome != ENTRY_TIMED) {
        return;
    }
    int64_t until_s = item->until_s;
    if (until_s > v->now_s) {
        v->settled_until_s = until_s < v->settled_until_s ? until_s : v->settled_until_s;
    } else {
        v->over_s = until_s > v->over_s ? until_s : v->over_s;
    }
}

void view_settle(struct view *v)
{
    if (v->settled) {
        return;
    }
    v->settled = true;
    v->settled_until_s = INT64_MAX;
    v->rest = 0;
    for (uint32_t i = 0; i < v->log.fold.count; i++) {
        struct fold_item *item = &v->log.fold.items[i];
        struct log_place *log = &v->places[i];
        bool in = entry_is_in(item->outcome, item->until_s, v->now_s);
        item->placed = item->outcome == ENTRY_ADD && log->found && !is_timed(v, log->place);
        v->rest += in && !item->placed;
        note_end(v, item);
        /* An item that was deleted and added again stands twice in the fold; its place is hidden
         * once. */
        if (log->found && !item->placed && !is_dead(v, log->place)) {
            view_set_dead(v, log->place);
            log->hidden = true;
        }
    }
}

/* Which places in the runs the log makes void, and what it adds behind them. Memberships do not
 * need to know. */
static void settle_log(struct view *v)
{
    find_new_places(v);
    view_settle(v);
}

void view_take_log(struct view *v, const struct head *head)
{
    if (v->epoch == head->epoch && v->cas == head->cas && v->epoch != 0) {
        return;
    }
    if (!log_fold_take(&v->log, head)) {
        forget_places(v);
    }
    v->settled = false;
    v->cas = head->cas;
    v->epoch = head->epoch;
}

/* ---- reading ---- */

/* Is the item over that the newest run which names it has for a time? */
static bool find_over(const struct view *v, struct slice item, uint32_t hash,
                      struct view_place *place)
{
    if (v->over_s == 0) {
        return false;
    }
    for (uint32_t i = v->run_count; i-- > 0;) {
        if (view_run_find_any(&v->runs[i], item, hash, place)) {
            place->run = i;
            return is_timed(v, *place);
        }
    }
    return false;
}

struct view_item view_find(const struct view *v, struct slice item)
{
    const struct fold_item *known = fold_find(&v->log.fold, item);
    if (known != NULL) {
        return (struct view_item){.in = entry_is_in(known->outcome, known->until_s, v->now_s),
                                  .timed = known->outcome == ENTRY_TIMED,
                                  .until_s = known->until_s};
    }
    uint32_t hash = item_hash(item);
    struct view_place place;
    struct view_item found = {0};
    if (v->log.fold.cleared) {
        return found;
    }
    found.in = find_place(v, v->run_count, item, hash, &place);
    if (found.in || find_over(v, item, hash, &place)) {
        found.until_s = sublist_until(sublist_at(v, place), place.position);
        found.timed = found.until_s != 0;
    }
    return found;
}

bool view_has(const struct view *v, struct slice item)
{
    return view_find(v, item).in;
}

static uint64_t place_number(const struct view *v, const struct view_place *place)
{
    return (uint64_t)place->run << 32 |
           (v->runs[place->run].parts[place->part].first + place->position);
}

bool view_place(struct view *v, struct slice item, uint64_t *place)
{
    enum { BEHIND_THE_RUNS = 63 };
    struct view_place found;
    settle_log(v);
    const struct fold_item *known = fold_find(&v->log.fold, item);
    if (known != NULL) {
        size_t at = (size_t)(known - v->log.fold.items);
        *place = known->placed ? place_number(v, &v->places[at].place)
                               : UINT64_C(1) << BEHIND_THE_RUNS | at;
        return entry_is_in(known->outcome, known->until_s, v->now_s);
    }
    if (v->log.fold.cleared || !find_place(v, v->run_count, item, item_hash(item), &found)) {
        return false;
    }
    *place = place_number(v, &found);
    return true;
}

uint64_t view_run_items(const struct view *v)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < v->run_count && !v->log.fold.cleared; i++) {
        count += v->runs[i].live;
    }
    return count;
}

uint64_t view_place_position(const struct view *v, struct view_place place)
{
    const struct view_run *run = &v->runs[place.run];
    uint64_t position = 0;
    for (uint32_t i = 0; i < place.run; i++) {
        position += v->runs[i].live;
    }
    for (uint32_t i = 0; i < place.part; i++) {
        position += run->parts[i].live;
    }
    for (uint32_t i = 0; i < place.position; i++) {
        position += !view_part_is_dead(&run->parts[place.part], i);
    }
    return position;
}

bool view_log_position(const struct view *v, struct slice item, uint64_t *position)
{
    const struct fold_item *known = fold_find(&v->log.fold, item);
    if (known != NULL && known->placed) {
        *position = view_place_position(v, v->places[known - v->log.fold.items].place);
        return true;
    }
    uint32_t at = 0;
    struct slice next;
    *position = view_run_items(v);
    while (fold_next_item(&v->log.fold, v->now_s, &at, &next)) {
        if (slice_equal(next, item)) {
            return true;
        }
        (*position)++;
    }
    return false;
}

bool view_position(struct view *v, struct slice item, uint64_t *position)
{
    struct view_place place;
    settle_log(v);
    uint32_t run_count = v->log.fold.cleared ? 0 : v->run_count;
    if (!find_place(v, run_count, item, item_hash(item), &place)) {
        return view_log_position(v, item, position);
    }
    *position = view_place_position(v, place);
    return true;
}

bool view_changes(struct view *v, char op, struct slice item)
{
    struct view_place place;
    uint32_t hash = item_hash(item);
    forget_places(v);
    if (op == ENTRY_READD || op == ENTRY_TIMED) {
        return true;
    }
    bool found = find_place(v, v->run_count, item, hash, &place);
    if (op == ENTRY_ADD) {
        return !found || is_timed(v, place);
    }
    return found || find_over(v, item, hash, &place);
}

uint64_t view_count(struct view *v)
{
    settle_log(v);
    return view_run_items(v) + v->rest;
}

/* The first position from there on that is dead (or live); count when there is none. */
static uint32_t next_position(const struct view_part *part, uint32_t from, bool dead)
{
    uint32_t count = part->sublist->count;
    while (from < count) {
        uint64_t word = dead ? part->dead[from / 64] : ~part->dead[from / 64];
        word >>= from % 64;
        if (word != 0) {
            from += (uint32_t)__builtin_ctzll(word);
            return from < count ? from : count;
        }
        from = (from / 64 + 1) * 64;
    }
    return count;
}

void view_part_write(const struct view_part *part, struct output *output)
{
    uint32_t count = part->sublist->count;
    if (output->position + part->live <= output->from) {
        output->position += part->live;
    } else if (part->live == count) {
        output_span(output, part->sublist, 0, count);
    } else {
        uint32_t first = next_position(part, 0, false);
        while (first < count && !output_satisfied(output)) {
            uint32_t last = next_position(part, first, true);
            output_span(output, part->sublist, first, last);
            first = next_position(part, last, false);
        }
    }
}

void view_write_rest(const struct view *v, bool back, struct output *output)
{
    output_fold(output, &v->log.fold, v->now_s, back);
}

static void write_run(const struct view_run *run, struct output *output)
{
    for (uint32_t i = 0; i < run->part_count && !output_satisfied(output); i++) {
        view_part_write(&run->parts[i], output);
    }
}

void view_write(struct view *v, struct output *output)
{
    settle_log(v);
    for (uint32_t i = 0; i < v->run_count && !v->log.fold.cleared; i++) {
        write_run(&v->runs[i], output);
    }
    view_write_rest(v, false, output);
}

void view_part_write_back(const struct view_part *part, struct output *output)
{
    uint32_t count = part->sublist->count;
    if (output->position + part->live <= output->from) {
        output->position += part->live;
    } else if (part->live == count) {
        output_back(output, part->sublist);
    } else {
        for (uint32_t i = count; i-- > 0 && !output_satisfied(output);) {
            if (!view_part_is_dead(part, i)) {
                output_item(output, sublist_item(part->sublist, i));
            }
        }
    }
}

void view_write_back(struct view *v, struct output *output)
{
    settle_log(v);
    view_write_rest(v, true, output);
    for (uint32_t i = v->log.fold.cleared ? 0 : v->run_count; i-- > 0;) {
        const struct view_run *run = &v->runs[i];
        for (uint32_t p = run->part_count; p-- > 0 && !output_satisfied(output);) {
            view_part_write_back(&run->parts[p], output);
        }
    }
}
