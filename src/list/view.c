/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/view.h"

#include <stdlib.h>

void view_init(struct view *v)
{
    *v = (struct view){0};
    fold_init(&v->fold);
}

void view_clear(struct view *v)
{
    for (uint32_t i = 0; i < v->part_count; i++) {
        sublist_unref(&v->parts[i].sublist);
        free(v->parts[i].dead);
    }
    free(v->parts);
    free(v->runs);
    free(v->places);
    fold_fini(&v->fold);
    block_unref(&v->log_block);
    view_init(v);
}

void view_fini(struct view *v)
{
    view_clear(v);
}

size_t view_memory_bytes(const struct view *v)
{
    return v->pinned_bytes + fold_bytes(&v->fold) + v->place_cap * sizeof *v->places +
           v->part_cap * sizeof *v->parts + v->run_cap * sizeof *v->runs + v->log.len;
}

int view_keeps(const struct view *v, const struct head *head)
{
    if (v->run_count > head->run_count) {
        return -1;
    }
    for (size_t i = 0; i < v->run_count; i++) {
        if (!name_equal(&v->runs[i], &head->runs[i].range.name)) {
            return -1;
        }
    }
    return (int)v->run_count;
}

/* ---- runs ---- */

static bool is_dead(const struct view_part *part, uint32_t position)
{
    return part->dead != NULL && (part->dead[position / 64] >> position % 64 & 1) != 0;
}

static void set_dead(struct view *v, struct view_part *part, uint32_t position)
{
    if (part->dead == NULL) {
        part->dead = calloc(part->sublist->count / 64 + 1, sizeof *part->dead);
        CHECK(part->dead != NULL);
        v->pinned_bytes += (part->sublist->count / 64 + 1) * sizeof *part->dead;
    }
    part->dead[position / 64] |= 1ULL << position % 64;
    part->live--;
    v->live--;
}

static void set_live(struct view *v, struct view_part *part, uint32_t position)
{
    part->dead[position / 64] &= ~(1ULL << position % 64);
    part->live++;
    v->live++;
}

/* The place at which the item counts, in one of the first parts. */
static struct view_place find_place(const struct view *v, uint32_t part_count, struct slice item)
{
    uint32_t hash = sublist_hash(item);
    for (uint32_t i = part_count; i-- > 0;) {
        uint32_t position = sublist_position(v->parts[i].sublist, item, hash);
        if (position != SUBLIST_NOWHERE && !is_dead(&v->parts[i], position)) {
            return (struct view_place){.part = i, .position = position, .found = true};
        }
    }
    return (struct view_place){0};
}

static void begin_run(struct view *v, const struct run *run, size_t at)
{
    if (at < v->run_count) {
        return;
    }
    if (v->run_count == v->run_cap) {
        v->run_cap = v->run_cap == 0 ? 8 : v->run_cap * 2;
        v->runs = realloc(v->runs, v->run_cap * sizeof *v->runs);
        CHECK(v->runs != NULL);
    }
    v->runs[v->run_count++] = run->range.name;
}

static struct view_part *push_part(struct view *v, struct sublist *s)
{
    if (v->part_count == v->part_cap) {
        v->part_cap = v->part_cap == 0 ? 8 : v->part_cap * 2;
        v->parts = realloc(v->parts, v->part_cap * sizeof *v->parts);
        CHECK(v->parts != NULL);
    }
    struct view_part *part = &v->parts[v->part_count++];
    *part = (struct view_part){
        .sublist = sublist_ref(s), .run = (uint32_t)v->run_count - 1, .live = s->count};
    v->live += s->count;
    v->pinned_bytes += sublist_memory_bytes(s);
    return part;
}

/* Takes back what the log hides. */
static void forget_log(struct view *v)
{
    for (uint32_t i = 0; i < v->place_count; i++) {
        struct view_place *place = &v->places[i];
        if (place->hidden) {
            set_live(v, &v->parts[place->part], place->position);
        }
    }
    v->place_count = 0;
    fold_fini(&v->fold);
    fold_init(&v->fold);
    block_unref(&v->log_block);
    v->log = SLICE_NONE;
    v->epoch = 0;
}

void view_add_sublist(struct view *v, const struct run *run, size_t at, struct sublist *s)
{
    forget_log(v);
    begin_run(v, run, at);
    uint32_t older = v->part_count;
    while (older > 0 && v->parts[older - 1].run == v->run_count - 1) {
        older--;
    }
    struct view_part *part = push_part(v, s);
    if (older == 0 && s->all_add) {
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        struct view_place place =
            older == 0 ? (struct view_place){0} : find_place(v, older, sublist_item(s, i));
        if (place.found && s->ops[i] == ENTRY_ADD) {
            set_dead(v, part, i); /* it stays in its older place */
            continue;
        }
        if (place.found) {
            set_dead(v, &v->parts[place.part], place.position);
        }
        if (s->ops[i] == ENTRY_DEL) {
            set_dead(v, part, i);
        }
    }
}

/* ---- the log ---- */

static void find_new_places(struct view *v)
{
    if (v->place_cap < v->fold.count) {
        v->place_cap = v->fold.cap;
        v->places = realloc(v->places, v->place_cap * sizeof *v->places);
        CHECK(v->places != NULL);
    }
    while (v->place_count < v->fold.count) {
        v->places[v->place_count] =
            v->fold.cleared ? (struct view_place){0}
                            : find_place(v, v->part_count, v->fold.items[v->place_count].item);
        v->place_count++;
    }
}

/* Which places in the runs the log makes void, and what it adds behind them. */
static void settle_log(struct view *v)
{
    v->rest = 0;
    for (uint32_t i = 0; i < v->fold.count; i++) {
        struct fold_item *item = &v->fold.items[i];
        struct view_place *place = &v->places[i];
        bool in = item->outcome == ENTRY_ADD || item->outcome == ENTRY_READD;
        item->placed = item->outcome == ENTRY_ADD && place->found;
        v->rest += in && !item->placed;
        /* An item that was deleted and added again stands twice in the fold; its place is hidden
         * once. */
        bool hides = place->found && item->outcome != ENTRY_ADD;
        if (hides && !is_dead(&v->parts[place->part], place->position)) {
            set_dead(v, &v->parts[place->part], place->position);
            place->hidden = true;
        }
    }
}

/* Folds what is new in the head's log. False when that log is another one, or is cleared by what is
 * new. */
static bool fold_tail(struct view *v, const struct head *head)
{
    struct slice tail = head->log;
    if (!slice_starts_with(tail, v->log)) {
        return false;
    }
    (void)slice_take(&tail, v->log.len);
    struct slice rest = tail;
    struct entry entry;
    while (entry_next(&rest, &entry) == ENTRY_OK) {
        if (entry.op == ENTRY_CLEAR) {
            return false;
        }
    }
    bool whole = fold_apply_entries(&v->fold, tail);
    CHECK(whole); /* head_read checked it */
    return true;
}

void view_take_log(struct view *v, const struct head *head)
{
    if (v->epoch == head->epoch && v->cas == head->cas && v->epoch != 0) {
        return;
    }
    if (!fold_tail(v, head)) {
        forget_log(v);
        bool whole = fold_apply_entries(&v->fold, head->log);
        CHECK(whole);
    }
    block_unref(&v->log_block);
    v->log_block = block_ref(head->block);
    v->log = head->log;
    find_new_places(v);
    settle_log(v);
    v->cas = head->cas;
    v->epoch = head->epoch;
}

/* ---- reading ---- */

bool view_has(const struct view *v, struct slice item)
{
    char outcome = fold_outcome(&v->fold, item);
    if (outcome != 0 || v->fold.cleared) {
        return outcome == ENTRY_ADD || outcome == ENTRY_READD;
    }
    return find_place(v, v->part_count, item).found;
}

uint64_t view_count(const struct view *v)
{
    return v->rest + (v->fold.cleared ? 0 : v->live);
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

void view_write(const struct view *v, struct output *output)
{
    for (uint32_t i = 0; i < v->part_count && !v->fold.cleared && !output_satisfied(output); i++) {
        write_part(&v->parts[i], output);
    }
    uint32_t at = 0;
    char op;
    struct slice item;
    while (!output_satisfied(output) && fold_next(&v->fold, true, &at, &op, &item)) {
        output_item(output, item);
    }
}
