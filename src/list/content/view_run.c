/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/view_run.h"

#include <stdlib.h>

#include "base/array.h"

#define GUIDE_ITEMS 1024u
#define SLOTS_MIN 16u
#define SLOTS_MAX (1u << 31)

/* Most of the slots that are used. */
static uint32_t fill_max(uint32_t slot_count)
{
    return slot_count / 4 * 3;
}

static void make_slots(struct view_run *run, uint64_t items)
{
    run->slot_count = SLOTS_MIN;
    while (fill_max(run->slot_count) < items && run->slot_count < SLOTS_MAX) {
        run->slot_count *= 2;
    }
    run->slots = calloc(run->slot_count, sizeof *run->slots);
    CHECK(run->slots != NULL);
}

void view_run_init(struct view_run *run, const struct name *name, uint64_t items)
{
    *run = (struct view_run){.name = *name};
    make_slots(run, items);
}

void view_run_init_counts(struct view_run *run, const struct name *name)
{
    *run = (struct view_run){.name = *name};
}

void view_run_fini(struct view_run *run)
{
    for (uint32_t i = 0; i < run->part_count; i++) {
        if (run->parts[i].sublist != NULL) {
            sublist_unkeep(run->parts[i].sublist);
            sublist_unref(&run->parts[i].sublist);
        }
        free(run->parts[i].dead);
    }
    free(run->parts);
    free(run->hides);
    free(run->ends);
    free(run->slots);
    free(run->guide);
    *run = (struct view_run){0};
}

uint64_t view_run_memory_bytes(const struct view_run *run)
{
    return run->pinned_bytes + run->part_cap * sizeof *run->parts +
           run->hide_cap * sizeof *run->hides + run->end_cap * sizeof *run->ends +
           run->slot_count * sizeof *run->slots + run->guide_cap * sizeof *run->guide;
}

void view_run_hide(struct view_run *run, struct view_place place)
{
    run->hides = array_room(run->hides, run->hide_count, &run->hide_cap, sizeof *run->hides);
    run->hides[run->hide_count++] = place;
}

/* ---- void items ---- */

void view_run_set_dead(struct view_run *run, struct view_part *part, uint32_t position)
{
    if (part->dead == NULL) {
        part->dead = calloc(part->count / 64 + 1, sizeof *part->dead);
        CHECK(part->dead != NULL);
        run->pinned_bytes += (part->count / 64 + 1) * sizeof *part->dead;
    }
    if (view_part_is_dead(part, position)) {
        return;
    }
    part->dead[position / 64] |= 1ULL << position % 64;
    part->live--;
    run->live--;
}

void view_run_set_live(struct view_run *run, struct view_part *part, uint32_t position)
{
    part->dead[position / 64] &= ~(1ULL << position % 64);
    part->live++;
    run->live++;
}

/* ---- the index ---- */

static void put_slot(struct view_run *run, struct view_slot slot)
{
    uint32_t mask = run->slot_count - 1;
    uint32_t at = slot.hash & mask;
    while (run->slots[at].item != 0) {
        at = (at + 1) & mask;
    }
    run->slots[at] = slot;
}

static void grow_slots(struct view_run *run, uint32_t items)
{
    struct view_slot *old = run->slots;
    uint32_t old_count = run->slot_count;
    make_slots(run, items);
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i].item != 0) {
            put_slot(run, old[i]);
        }
    }
    free(old);
}

static struct view_part *add_part(struct view_run *run, uint32_t count)
{
    uint32_t first = run->item_count;
    run->parts = array_room(run->parts, run->part_count, &run->part_cap, sizeof *run->parts);
    struct view_part *part = &run->parts[run->part_count++];
    *part = (struct view_part){.first = first, .count = count, .live = count};
    run->item_count += count;
    run->live += count;
    return part;
}

void view_run_push_count(struct view_run *run, uint32_t count)
{
    (void)add_part(run, count);
}

struct view_part *view_run_push(struct view_run *run, struct sublist *s)
{
    uint32_t first = run->item_count;
    CHECK(s->count < (1u << 31) - first);
    struct view_part *part = add_part(run, s->count);
    part->sublist = sublist_ref(s);
    sublist_keep(s);
    run->pinned_bytes += sublist_memory_bytes(s);
    if (run->item_count > fill_max(run->slot_count)) {
        grow_slots(run, run->item_count);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if ((first + i) % GUIDE_ITEMS == 0) {
            uint32_t at = (first + i) / GUIDE_ITEMS;
            run->guide = array_room(run->guide, at, &run->guide_cap, sizeof *run->guide);
            run->guide[at] = run->part_count - 1;
        }
        put_slot(run, (struct view_slot){item_hash(sublist_item(s, i)), first + i + 1});
    }
    return part;
}

static void locate(const struct view_run *run, uint32_t number, struct view_place *place)
{
    uint32_t part = run->guide[number / GUIDE_ITEMS];
    while (number - run->parts[part].first >= run->parts[part].count) {
        part++;
    }
    place->part = part;
    place->position = number - run->parts[part].first;
}

bool view_run_guess(const struct view_run *run, uint32_t hash, struct view_place *place)
{
    struct view_slot slot = run->slots[hash & (run->slot_count - 1)];
    if (slot.item == 0 || slot.hash != hash) {
        return false;
    }
    locate(run, slot.item - 1, place);
    return true;
}

bool view_run_find_any(const struct view_run *run, struct slice item, uint32_t hash,
                       struct view_place *place)
{
    uint32_t mask = run->slot_count - 1;
    for (uint32_t at = hash & mask; run->slots[at].item != 0; at = (at + 1) & mask) {
        if (run->slots[at].hash == hash) {
            locate(run, run->slots[at].item - 1, place);
            const struct view_part *part = &run->parts[place->part];
            if (slice_equal(sublist_item(part->sublist, place->position), item)) {
                return true;
            }
        }
    }
    return false;
}

bool view_run_find(const struct view_run *run, struct slice item, uint32_t hash,
                   struct view_place *place)
{
    return view_run_find_any(run, item, hash, place) &&
           !view_part_is_dead(&run->parts[place->part], place->position);
}

/* ---- items that are over ---- */

void view_run_end_at(struct view_run *run, uint32_t item, uint32_t until_s)
{
    run->ends = array_room(run->ends, run->end_count, &run->end_cap, sizeof *run->ends);
    /* Items that were added later are over later, most often: then it stays where it is. */
    uint32_t at = run->end_count++;
    while (at > 0 && run->ends[(at - 1) / 2].until_s > until_s) {
        run->ends[at] = run->ends[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    run->ends[at] = (struct view_end){until_s, item};
}

static void drop_first_end(struct view_run *run)
{
    struct view_end last = run->ends[--run->end_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < run->end_count; at = child) {
        if (child + 1 < run->end_count && run->ends[child + 1].until_s < run->ends[child].until_s) {
            child++;
        }
        if (run->ends[child].until_s >= last.until_s) {
            break;
        }
        run->ends[at] = run->ends[child];
    }
    run->ends[at] = last;
}

uint32_t view_run_advance(struct view_run *run, int64_t now_s)
{
    uint32_t latest_s = 0;
    while (run->end_count > 0 && (int64_t)run->ends[0].until_s <= now_s) {
        struct view_place place;
        locate(run, run->ends[0].item, &place);
        view_run_set_dead(run, &run->parts[place.part], place.position);
        latest_s = run->ends[0].until_s;
        drop_first_end(run);
    }
    return latest_s;
}
