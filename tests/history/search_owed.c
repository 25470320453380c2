/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What answers that are still owed rule out. An item is stuck, as seen by a read, when it is there
 * and no change that may still come before the read can remove it. Items that are stuck must be in
 * a full read's answer, in its order, and whatever the answer has before them must be there
 * already: what is added later goes to the end. A change that removes everything may come, too; but
 * then the whole answer must be added behind it.
 */
#include <stdlib.h>

#include "search_impl.h"

/* So many neighbours of an item are looked at, and so many full reads that are still to come. More
 * would rule out more, sooner, and cost more. */
#define NEIGHBOURS_MAX 24
#define READS_AHEAD 2
#define MUST_SCAN_MAX 16

/* Before this event the step must get its answer. */
static uint32_t until_of(const struct search *s, uint32_t i)
{
    return s->complete_at[i] < s->horizon ? s->complete_at[i] : s->horizon;
}

/* Says no, because of the order of the items. */
static bool not_in_order(struct search *s)
{
    s->order_mattered = true;
    return false;
}

/* Nothing can remove the item before the read but what removes everything, and that does not come
 * before it. */
static bool is_stuck(const struct search *s, uint32_t read, uint32_t item)
{
    return s->removers_now[item] == 0 &&
           !ahead_index_to_come(s, &s->removers, item, until_of(s, read));
}

/* Could a change that removes everything still come before the read? Then all of its answer must be
 * added behind that. */
static bool may_begin_anew(const struct search *s, uint32_t read)
{
    const struct step *step = &s->p->steps[read];
    uint32_t until = until_of(s, read);
    if (!ahead_may_wipe(s, until)) {
        return false;
    }
    for (uint32_t n = 0; n < step->item_count; n++) {
        if (!ahead_may_add(s, step->items[n], until)) {
            return false;
        }
    }
    return true;
}

/* Is there one under way that must take effect before the read begins? */
static bool must_come(const struct search *s, const struct step_index *index, uint32_t item,
                      uint32_t read)
{
    uint32_t start = index->start[item];
    uint32_t at = ahead_first_to_come(s, index->steps, start, index->start[item + 1]);
    for (uint32_t n = 0; at > start && n < MUST_SCAN_MAX; n++) {
        uint32_t i = index->steps[--at];
        if (s->under_way[i] && !s->p->steps[i].optional && s->p->steps[i].kind != STEP_SET &&
            s->complete_at[i] < s->call_at[read]) {
            return true;
        }
    }
    return false;
}

/* --- full reads --- */

static uint32_t place_of(const struct search *s, uint32_t read, uint32_t item)
{
    const uint32_t *places = s->places[read];
    uint32_t from = 0, to = s->p->steps[read].item_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (places[2 * middle] == item) {
            return places[2 * middle + 1];
        }
        if (places[2 * middle] < item) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return UINT32_MAX;
}

/* The item is stuck: do its neighbours fit the read? */
static bool place_fits(struct search *s, uint32_t read, uint32_t item, uint32_t place)
{
    const struct step *step = &s->p->steps[read];
    uint32_t lowest = place > NEIGHBOURS_MAX ? place - NEIGHBOURS_MAX : 0;
    for (uint32_t at = place; at > lowest; at--) {
        if (!sequence_has(&s->content, step->items[at - 1])) {
            return false;
        }
    }
    uint32_t node = s->content.prev[item + 1];
    for (uint32_t n = 0; n < NEIGHBOURS_MAX && node != 0; n++, node = s->content.prev[node]) {
        uint32_t other = place_of(s, read, node - 1);
        if ((other == UINT32_MAX || other > place) && is_stuck(s, read, node - 1)) {
            return false;
        }
    }
    return true;
}

static bool read_allows_item(struct search *s, uint32_t read, uint32_t item)
{
    uint32_t place = place_of(s, read, item), until = until_of(s, read);
    bool wanted = place != UINT32_MAX, allowed;
    if (!sequence_has(&s->content, item)) {
        allowed = wanted ? ahead_may_add(s, item, until)
                         : !must_come(s, &s->adders, item, read) || !is_stuck(s, read, item);
    } else if (is_stuck(s, read, item)) {
        allowed = wanted && place_fits(s, read, item, place);
    } else {
        allowed =
            !wanted || !must_come(s, &s->removers, item, read) || ahead_may_add(s, item, until);
    }
    return allowed || may_begin_anew(s, read);
}

static bool content_fits(struct search *s, uint32_t read)
{
    const struct step *step = &s->p->steps[read];
    uint32_t until = until_of(s, read), all_seen = 0;
    s->seen_stamp++;
    for (uint32_t node = s->content.next[0]; node != 0; node = s->content.next[node]) {
        uint32_t place = place_of(s, read, node - 1);
        if (place != all_seen && is_stuck(s, read, node - 1)) {
            bool early = place != UINT32_MAX && sequence_has(&s->content, step->items[all_seen]);
            return early ? not_in_order(s) : false;
        }
        if (place != UINT32_MAX) {
            s->seen_mark[node - 1] = s->seen_stamp;
        }
        while (all_seen < step->item_count &&
               s->seen_mark[step->items[all_seen]] == s->seen_stamp) {
            all_seen++;
        }
    }
    for (uint32_t n = all_seen; n < step->item_count; n++) {
        if (!sequence_has(&s->content, step->items[n]) &&
            !ahead_may_add(s, step->items[n], until)) {
            return false;
        }
    }
    return true;
}

static bool read_allows_content(struct search *s, uint32_t read)
{
    return content_fits(s, read) || may_begin_anew(s, read);
}

/* --- ranges --- */

/* From an item that is stuck on towards one end: the first other that is stuck, or the wanted one,
 * if that comes first; else 0. */
static uint32_t next_stuck(const struct search *s, uint32_t read, uint32_t item, bool forward,
                           uint32_t wanted_node)
{
    const uint32_t *links = forward ? s->content.next : s->content.prev;
    uint32_t node = links[item + 1];
    for (uint32_t n = 0; n < NEIGHBOURS_MAX && node != 0; n++, node = links[node]) {
        if (node == wanted_node || is_stuck(s, read, node - 1)) {
            return node;
        }
    }
    return 0;
}

/* From an item that is stuck on to one end of the list: can there be exactly that many in the end?
 * Behind it, others may still be added; before it, not. */
static bool distance_fits(const struct search *s, uint32_t read, uint32_t item, bool forward,
                          int64_t distance)
{
    const uint32_t *links = forward ? s->content.next : s->content.prev;
    int64_t all = 0, stuck = 0;
    for (uint32_t node = links[item + 1]; node != 0; node = links[node]) {
        if (++all > distance + NEIGHBOURS_MAX) {
            return true; /* perhaps */
        }
        stuck += is_stuck(s, read, node - 1);
        if (stuck > distance) {
            return false;
        }
    }
    return forward || all >= distance;
}

/* The answer's items stand side by side, so nothing that is stuck may be between two of them; and
 * at the right distance from the list's ends, as far as that was asked for. */
static bool neighbours_fit(struct search *s, uint32_t read, uint32_t place)
{
    const struct step *step = &s->p->steps[read];
    const uint32_t *items = step->items;
    uint32_t last = step->item_count - 1, beside, wanted;
    if (place > 0) {
        if (!sequence_has(&s->content, items[place - 1])) {
            return false;
        }
        wanted = items[place - 1] + 1;
        beside = next_stuck(s, read, items[place], false, wanted);
        if (beside != 0 && beside != wanted) {
            return not_in_order(s);
        }
    } else if (step->from >= 0 && !distance_fits(s, read, items[place], false, step->from)) {
        return not_in_order(s);
    }
    if (place < last) {
        wanted = items[place + 1] + 1;
        beside = next_stuck(s, read, items[place], true, wanted);
        return beside == 0 || beside == wanted || not_in_order(s);
    }
    return step->to >= 0 || distance_fits(s, read, items[place], true, -1 - step->to) ||
           not_in_order(s);
}

static bool range_fits(struct search *s, uint32_t read)
{
    const struct step *step = &s->p->steps[read];
    for (uint32_t place = 0; place < step->item_count; place++) {
        uint32_t item = step->items[place];
        if (!sequence_has(&s->content, item)) {
            if (!ahead_may_add(s, item, until_of(s, read))) {
                return false;
            }
        } else if (is_stuck(s, read, item) && !neighbours_fit(s, read, place)) {
            return false;
        }
    }
    return true;
}

/* --- counts --- */

/* Can the change, under way, still change as many items as it answered? */
static bool count_allows(const struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    bool add = step->kind == STEP_ADD;
    uint32_t least = 0, most = 0, until = until_of(s, i);
    if (step->count_min == 0 && step->count_max == step->item_count) {
        return true;
    }
    for (uint32_t n = 0; n < step->item_count; n++) {
        uint32_t item = step->items[n];
        bool there = sequence_has(&s->content, item), counts = there != add, open;
        if (!counts) {
            open = add ? ahead_may_remove(s, item, until) : ahead_may_add(s, item, until);
        } else if (add) {
            /* By another one than itself. */
            open = s->adders_now[item] > 1 || ahead_index_to_come(s, &s->adders, item, until);
        } else {
            open = s->removers_now[item] > 1 || ahead_may_wipe(s, until) ||
                   ahead_index_to_come(s, &s->removers, item, until);
        }
        least += counts && !open;
        most += counts || open;
    }
    return most >= step->count_min && least <= step->count_max;
}

/* Marks the items of changes under way: with the first stamp those of one change, with the second
 * those of several. */
static void mark_shared(struct search *s)
{
    s->seen_stamp += 2;
    FOR_RING(s, RING_CHANGES(s), i)
    {
        const struct step *step = &s->p->steps[i];
        for (uint32_t n = 0; n < step->item_count; n++) {
            uint32_t *mark = &s->seen_mark[step->items[n]];
            *mark = *mark < s->seen_stamp - 1 ? s->seen_stamp - 1 : s->seen_stamp;
        }
    }
}

/* By how many items can the change make the list longer, or shorter? It does all of that or
 * nothing, unless it meets others. */
static uint32_t reach_of(const struct search *s, const struct step *step, bool *all_or_nothing)
{
    uint32_t effective = 0;
    *all_or_nothing = true;
    for (uint32_t n = 0; n < step->item_count; n++) {
        effective += sequence_has(&s->content, step->items[n]) != (step->kind == STEP_ADD);
        *all_or_nothing = *all_or_nothing && s->seen_mark[step->items[n]] != s->seen_stamp;
    }
    if (!*all_or_nothing) {
        return step->item_count;
    }
    return effective >= step->count_min && effective <= step->count_max ? effective : 0;
}

/* Which lengths the changes under way can lead to, each being done or not: is one right? */
static bool length_reachable(struct search *s, uint32_t due)
{
    uint32_t down = 0, up = 0;
    mark_shared(s);
    FOR_RING(s, RING_CHANGES(s), i)
    {
        const struct step *step = &s->p->steps[i];
        if (step->kind != STEP_ADD && step->kind != STEP_DEL) {
            return true;
        }
        *(step->kind == STEP_ADD ? &up : &down) += step->item_count;
    }
    uint32_t size = down + up + 1;
    bool *lengths = history_alloc(size, sizeof *lengths), found = false;
    lengths[down] = true;
    FOR_RING(s, RING_CHANGES(s), i)
    {
        const struct step *step = &s->p->steps[i];
        bool add = step->kind == STEP_ADD, all_or_nothing;
        uint32_t reach = reach_of(s, step, &all_or_nothing);
        for (uint32_t at = 0; reach > 0 && at < size; at++) {
            /* Against the direction of the change, so that it is not done twice. */
            uint32_t from = add ? size - 1 - at : at;
            for (uint32_t by = all_or_nothing ? reach : 1; lengths[from] && by <= reach; by++) {
                lengths[add ? from + by : from - by] = true;
            }
        }
    }
    for (uint32_t at = 0; at < size && !found; at++) {
        int64_t length = (int64_t)s->content.count - down + at;
        found = lengths[at] && length >= s->p->steps[due].count_min &&
                length <= s->p->steps[due].count_max;
    }
    free(lengths);
    return found;
}

/* --- the answers to come --- */

static bool has_allows(const struct search *s, uint32_t i, uint32_t n)
{
    const struct step *step = &s->p->steps[i];
    bool wanted = step->kind == STEP_SEES || n < step->seen_count;
    uint32_t item = step->items[n], until = until_of(s, i);
    if (sequence_has(&s->content, item) == wanted) {
        return true;
    }
    return wanted ? ahead_may_add(s, item, until) : ahead_may_remove(s, item, until);
}

bool owed_allows(struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    if (s->options.plainly) {
        return true;
    }
    switch (step->kind) {
    case STEP_ADD:
    case STEP_DEL:
        return step->optional || count_allows(s, i);
    case STEP_READ:
        return read_allows_content(s, i);
    case STEP_RANGE:
        return range_fits(s, i) || may_begin_anew(s, i);
    case STEP_HAS:
    case STEP_SEES:
        for (uint32_t n = 0; n < step->item_count; n++) {
            if (!has_allows(s, i, n)) {
                return false;
            }
        }
        return true;
    default:
        return true;
    }
}

/* --- what is due --- */

/* The change puts items there that nothing will remove, and that are not in the answer. */
static bool adds_unwanted(const struct search *s, uint32_t read, const struct step *change)
{
    const struct step *step = &s->p->steps[read];
    if (step->kind != STEP_READ || ahead_may_wipe(s, until_of(s, read))) {
        return false;
    }
    for (uint32_t n = 0; n < change->item_count; n++) {
        if (place_of(s, read, change->items[n]) == UINT32_MAX &&
            is_stuck(s, read, change->items[n])) {
            return true;
        }
    }
    return false;
}

/* The change takes items away that nothing will add again, and that are in the answer. */
static bool takes_wanted(const struct search *s, uint32_t read, const struct step *change)
{
    const struct step *step = &s->p->steps[read];
    uint32_t wanted = step->kind == STEP_HAS ? step->seen_count : step->item_count;
    for (uint32_t n = 0; n < wanted; n++) {
        bool taken = wipes(change);
        for (uint32_t k = 0; k < change->item_count && !taken; k++) {
            taken = change->items[k] == step->items[n];
        }
        if (taken && !ahead_may_add(s, step->items[n], until_of(s, read))) {
            return true;
        }
    }
    return false;
}

/* Can the step never get its answer once the change has taken effect, whatever else does? */
static bool must_precede(const struct search *s, uint32_t i, const struct step *change)
{
    enum step_kind kind = s->p->steps[i].kind;
    if (kind != STEP_READ && kind != STEP_RANGE && kind != STEP_HAS && kind != STEP_SEES) {
        return false;
    }
    return change->kind == STEP_ADD || change->kind == STEP_CREATE ? adds_unwanted(s, i, change)
                                                                   : takes_wanted(s, i, change);
}

bool owed_allows_due(struct search *s, uint32_t due)
{
    const struct step *step = &s->p->steps[due];
    bool allowed = true;
    if (s->options.plainly || (step->optional && changes(step))) {
        return true;
    }
    if (changes(step)) {
        FOR_RING(s, RING_OTHERS(s), i)
        {
            if (must_precede(s, i, step)) {
                s->horizon = s->event;
                allowed = allowed && owed_allows(s, i);
                s->horizon = NO_EVENT;
            }
        }
    }
    s->horizon = s->event;
    allowed =
        allowed && owed_allows(s, due) && (step->kind != STEP_LEN || length_reachable(s, due));
    s->horizon = NO_EVENT;
    return allowed;
}

/* --- everything --- */

static bool names_item(const struct step *step, uint32_t item)
{
    for (uint32_t n = 0; n < step->item_count; n++) {
        if (step->items[n] == item) {
            return true;
        }
    }
    return false;
}

bool owed_allows_item(struct search *s, uint32_t item)
{
    if (s->options.plainly) {
        return true;
    }
    for (uint32_t ring = RING_CHANGES(s); ring <= RING_OTHERS(s); ring++) {
        FOR_RING(s, ring, i)
        {
            const struct step *step = &s->p->steps[i];
            bool allowed = step->kind == STEP_READ ? read_allows_item(s, i, item)
                           : step->kind == STEP_RANGE || names_item(step, item) ? owed_allows(s, i)
                                                                                : true;
            if (!allowed) {
                return false;
            }
        }
    }
    uint32_t first = ahead_first_to_come(s, s->reads, 0, s->read_count);
    for (uint32_t n = 0; n < READS_AHEAD && first + n < s->read_count; n++) {
        if (!read_allows_item(s, s->reads[first + n], item)) {
            return false;
        }
    }
    return true;
}

bool owed_allows_all(struct search *s)
{
    for (uint32_t ring = RING_CHANGES(s); ring <= RING_OTHERS(s); ring++) {
        FOR_RING(s, ring, i)
        {
            if (!owed_allows(s, i)) {
                return false;
            }
        }
    }
    uint32_t first = ahead_first_to_come(s, s->reads, 0, s->read_count);
    for (uint32_t n = 0; n < READS_AHEAD && first + n < s->read_count; n++) {
        if (!owed_allows(s, s->reads[first + n])) {
            return false;
        }
    }
    return true;
}
