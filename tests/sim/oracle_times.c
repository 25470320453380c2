/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Items with a time of their own, in the model: they stay in its versions when they are over, and
 * each question asks for a second.
 */
#include <stdlib.h>

#include "oracle.h"

bool oracle_add(struct ids *items, const struct sim_call *call, uint16_t id)
{
    bool moves = call->recent || ids_until(items, id) != 0 || call->call.verb == LIST_ADDT;
    bool known = moves && ids_remove(items, id);
    if (items->max > 0) {
        return ids_add(items, id) && !known; /* no items with times */
    }
    bool added = !ids_has(items, id);
    if (added) {
        ids_push_timed(items, id, call->call.verb == LIST_ADDT ? call->call.until_s : 0);
    }
    return added && !known;
}

uint32_t oracle_count_at(const struct ids *items, int64_t now_s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++) {
        count += items->untils[i] == 0 || (int64_t)items->untils[i] > now_s;
    }
    return count;
}

int64_t oracle_over_s(const struct oracle *o, int64_t now_s)
{
    return now_s + o->clock_skew_s - CLOCK_SKEW_S;
}

void oracle_count_timed(struct sim_call *call, uint32_t until_s, int64_t now_s)
{
    bool surely = (int64_t)until_s > now_s + call->lead_s, never = (int64_t)until_s <= call->from_s;
    bool counts_in = call->call.verb == LIST_DELX;
    call->expected += counts_in ? surely : never;
    call->more += !surely && !never;
}

bool oracle_same(const struct oracle *o, const struct ids *stored, const struct ids *must,
                 int64_t now_s)
{
    struct ids kept[2] = {{0}, {0}};
    bool same = true;
    for (uint32_t i = 0, at = 0; i < stored->count && same; i++, at++) {
        at = ids_find(must, stored->ids[i], at);
        same = at < must->count && must->untils[at] == stored->untils[i];
    }
    ids_copy_at(&kept[0], stored, oracle_over_s(o, now_s));
    ids_copy_at(&kept[1], must, oracle_over_s(o, now_s));
    same = same && ids_equal(&kept[0], &kept[1]);
    ids_fini(&kept[0]);
    ids_fini(&kept[1]);
    return same;
}

void oracle_version_at(struct version *out, const struct version *v, int64_t now_s)
{
    *out = (struct version){.exists = v->exists, .max = v->max, .refuses = v->refuses};
    ids_copy_at(&out->items, &v->items, now_s);
    for (uint32_t i = 0; i < out->items.count; i++) {
        out->items.untils[i] = 0;
    }
}

bool oracle_next_second(const struct sim_call *call, const struct version *v, int64_t *now_s)
{
    int64_t next_s = INT64_MAX;
    for (uint32_t i = 0; i < v->items.count; i++) {
        int64_t until_s = v->items.untils[i];
        next_s = until_s > *now_s && until_s < next_s ? until_s : next_s;
    }
    *now_s = next_s;
    return next_s <= call->to_s;
}

void oracle_note_life(struct oracle *o, unsigned list, int64_t now_s)
{
    CHECK(list < o->lists);
    struct model_list *l = &o->list[list];
    struct slice key = slice_of(l->head_key);
    const struct item *item = cluster_head(&o->cluster, key, now_s);
    int64_t end_s = item == NULL ? 0 : item->expires_s;
    if (l->life_count > 0 && l->lives[l->life_count - 1].end_s == end_s) {
        return;
    }
    if (l->life_count == l->life_cap) {
        l->life_cap = l->life_cap == 0 ? 64 : l->life_cap * 2;
        l->lives = realloc(l->lives, l->life_cap * sizeof *l->lives);
        CHECK(l->lives != NULL);
    }
    l->lives[l->life_count++] = (struct life_mark){++o->moment, end_s};
}
