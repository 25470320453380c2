/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/view.h"

#include <stdlib.h>

#include "base/array.h"

void view_init(struct view *v)
{
    *v = (struct view){0};
    log_fold_init(&v->log);
}

static void set_dead(struct view *v, struct view_place place)
{
    struct view_run *run = &v->runs[place.run];
    view_run_set_dead(run, &run->parts[place.part], place.position);
}

static void set_live(struct view *v, struct view_place place)
{
    struct view_run *run = &v->runs[place.run];
    view_run_set_live(run, &run->parts[place.part], place.position);
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
    view_init(v);
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

/* ---- runs ---- */

static uint32_t common_runs(const struct view *v, const struct head *head)
{
    uint32_t count = 0;
    while (count < v->run_count && count < head->run_count &&
           name_equal(&v->runs[count].name, &head->runs[count].range.name)) {
        count++;
    }
    return count;
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

static struct view_run *get_run(struct view *v, const struct run *run, size_t at)
{
    if (at < v->run_count) {
        return &v->runs[v->run_count - 1];
    }
    v->runs = array_room(v->runs, v->run_count, &v->run_cap, sizeof *v->runs);
    struct view_run *fresh = &v->runs[v->run_count++];
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
        if (i % EXPECTED_MAX == 0) {
            expect_sublist(v, older, s, i);
        }
        struct slice item = sublist_item(s, i);
        struct view_place place;
        bool found = find_place(v, older, item, item_hash(item), &place);
        if (found && s->ops[i] == ENTRY_ADD) {
            view_run_set_dead(run, part, i); /* it stays in its older place */
            continue;
        }
        if (found) {
            set_dead(v, place);
            view_run_hide(run, place);
        }
        if (s->ops[i] == ENTRY_DEL) {
            view_run_set_dead(run, part, i);
        }
    }
}

/* ---- the log ---- */

static void find_new_places(struct view *v)
{
    if (v->place_cap < v->log.fold.count) {
        v->place_cap = v->log.fold.cap;
        v->places = realloc(v->places, v->place_cap * sizeof *v->places);
        CHECK(v->places != NULL);
    }
    while (v->place_count < v->log.fold.count) {
        const struct fold_item *item = &v->log.fold.items[v->place_count];
        struct log_place *log = &v->places[v->place_count++];
        log->hidden = false;
        log->found = !v->log.fold.cleared &&
                     find_place(v, v->run_count, item->item, item_hash(item->item), &log->place);
    }
}

/* Which places in the runs the log makes void, and what it adds behind them. Memberships do not
 * need to know. */
static void settle_log(struct view *v)
{
    if (v->settled) {
        return;
    }
    v->settled = true;
    find_new_places(v);
    v->rest = 0;
    for (uint32_t i = 0; i < v->log.fold.count; i++) {
        struct fold_item *item = &v->log.fold.items[i];
        struct log_place *log = &v->places[i];
        bool in = item->outcome == ENTRY_ADD || item->outcome == ENTRY_READD;
        item->placed = item->outcome == ENTRY_ADD && log->found;
        v->rest += in && !item->placed;
        /* An item that was deleted and added again stands twice in the fold; its place is hidden
         * once. */
        if (log->found && item->outcome != ENTRY_ADD && !is_dead(v, log->place)) {
            set_dead(v, log->place);
            log->hidden = true;
        }
    }
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

bool view_has(const struct view *v, struct slice item)
{
    char outcome = fold_outcome(&v->log.fold, item);
    if (outcome != 0 || v->log.fold.cleared) {
        return outcome == ENTRY_ADD || outcome == ENTRY_READD;
    }
    struct view_place place;
    return find_place(v, v->run_count, item, item_hash(item), &place);
}

bool view_changes(struct view *v, char op, struct slice item)
{
    struct view_place place;
    forget_places(v);
    bool found = find_place(v, v->run_count, item, item_hash(item), &place);
    return op == ENTRY_READD || found != (op == ENTRY_ADD);
}

uint64_t view_count(struct view *v)
{
    settle_log(v);
    uint64_t count = v->rest;
    for (uint32_t i = 0; i < v->run_count && !v->log.fold.cleared; i++) {
        count += v->runs[i].live;
    }
    return count;
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

static void write_part(const struct view_part *part, struct output *output)
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

static void write_run(const struct view_run *run, struct output *output)
{
    for (uint32_t i = 0; i < run->part_count && !output_satisfied(output); i++) {
        write_part(&run->parts[i], output);
    }
}

void view_write(struct view *v, struct output *output)
{
    settle_log(v);
    for (uint32_t i = 0; i < v->run_count && !v->log.fold.cleared; i++) {
        write_run(&v->runs[i], output);
    }
    uint32_t at = 0;
    char op;
    struct slice item;
    while (!output_satisfied(output) && fold_next(&v->log.fold, true, &at, &op, &item)) {
        output_item(output, item);
    }
}

static void write_part_back(const struct view_part *part, struct output *output)
{
    uint32_t count = part->sublist->count;
    if (output->position + part->live <= output->from) {
        output->position += part->live;
    } else if (part->live == count) {
        output_span_back(output, part->sublist, 0, count);
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
    uint32_t at = v->log.fold.count;
    struct slice item;
    settle_log(v);
    while (!output_satisfied(output) && fold_previous(&v->log.fold, &at, &item)) {
        output_item(output, item);
    }
    for (uint32_t i = v->log.fold.cleared ? 0 : v->run_count; i-- > 0;) {
        const struct view_run *run = &v->runs[i];
        for (uint32_t p = run->part_count; p-- > 0 && !output_satisfied(output);) {
            write_part_back(&run->parts[p], output);
        }
    }
}
