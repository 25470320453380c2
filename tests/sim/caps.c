/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle's part about lists with max_items, and exact changes, which these may refuse.
 */
#include "oracle.h"
#include "pops.h"
#include "tags.h"

static void __attribute__((noreturn)) wrong_effect(const struct sim_call *call, const char *what)
{
    char text[256];
    call_describe(call, text, sizeof text);
    sim_violation("%s: %s", what, text);
}

bool oracle_cap_refuses(const struct version *v, const struct sim_call *call)
{
    bool adds = call->call.verb == LIST_ADD || call->call.verb == LIST_ADDX;
    if (!adds) {
        return false;
    }
    struct ids items = {0};
    bool fits = true;
    ids_copy(&items, &v->items);
    for (size_t i = 0; i < call->call.item_count; i++) {
        if (list_call_deletes(&call->call, i)) {
            (void)ids_remove(&items, call->ids[i]);
        } else {
            (void)ids_add(&items, call->ids[i]);
        }
        fits = fits && items.count <= v->max;
    }
    ids_fini(&items);
    return v->max > 0 && v->refuses && !fits;
}

/* Of a list with a cap: no items have times there. Counts those that were not in it before, or
 * were.
 */
static void apply_capped(struct ids *items, struct sim_call *call)
{
    struct ids before = {0};
    bool deletes = call->call.verb == LIST_DELX;
    ids_copy(&before, items);
    for (size_t i = 0; i < call->call.item_count; i++) {
        bool had = ids_has(&before, call->ids[i]), again = false;
        for (size_t k = 0; k < i; k++) {
            again = again || call->ids[k] == call->ids[i];
        }
        call->expected += had == deletes && !again;
        if (deletes || list_call_deletes(&call->call, i)) {
            (void)ids_remove(items, call->ids[i]);
        } else {
            (void)oracle_add(items, call, call->ids[i]);
        }
    }
    ids_fini(&before);
}

void oracle_apply_exact(struct oracle *o, bool exists, struct ids *items, struct sim_call *call,
                        int64_t now_s)
{
    call->expected = call->more = 0;
    if (call->call.verb == LIST_POP) {
        pops_apply(o, items, call, &o->popped_bytes, now_s);
        return;
    }
    if (call->call.verb == LIST_CREATE &&
        (oracle_count_at(items, now_s + call->lead_s) > 0 || (exists && o->refuse))) {
        wrong_effect(call, "lcreate took effect on a list that exists");
    }
    if (call->call.verb != LIST_CREATE && !exists && o->refuse) {
        wrong_effect(call, "an exact change took effect on a list that is missing");
    }
    struct version content = {.items = *items, .max = items->max, .refuses = items->refuses};
    call->refused = call->call.verb != LIST_CREATE && oracle_cap_refuses(&content, call);
    if (call->refused) {
        return;
    }
    tags_added_exactly(o, call, items);
    if (items->max > 0) {
        apply_capped(items, call);
        return;
    }
    if (call->call.verb == LIST_CREATE) {
        ids_clear(items); /* all were over */
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        uint32_t until_s = ids_until(items, call->ids[i]);
        bool takes = call->call.verb == LIST_DELX || list_call_deletes(&call->call, i);
        bool did = takes ? ids_remove(items, call->ids[i]) : oracle_add(items, call, call->ids[i]);
        if (until_s != 0) {
            oracle_count_timed(call, until_s, now_s);
        } else {
            call->expected += did;
        }
    }
}

void oracle_begin(struct oracle *o, unsigned list, const struct purpose *purpose, int64_t now_s,
                  struct ids *items)
{
    struct model_list *l = &o->list[list];
    const struct version *before = oracle_now(o, list);
    bool refuses;
    ids_copy(items, &before->items);
    if (o->format != NULL) {
        return;
    }
    uint32_t max = model_cap(&o->cluster, slice_of(l->key), now_s, &refuses);
    if (max == MODEL_NO_HEAD) {
        max = l->max; /* it was written with a time that is over */
        refuses = l->refuses;
    }
    bool same = max == l->max && refuses == l->refuses;
    bool begins = !before->exists || purpose->kind == PURPOSE_PUT;
    if (before->exists && !same && purpose->kind != PURPOSE_PUT &&
        purpose->kind != PURPOSE_COMPACT) {
        sim_violation("%s: a change of items has changed the cap", l->key);
    }
    items->max = begins ? max : l->max;
    items->refuses = begins ? refuses : l->refuses;
    if (purpose->kind == PURPOSE_COMPACT && before->exists && !same && max > 0) {
        if (refuses && items->count > max) {
            sim_violation("%s: a cap that refuses has cut the list", l->key);
        }
        while (items->count > max) {
            (void)ids_remove(items, items->ids[0]);
        }
    }
    l->max = max;
    l->refuses = refuses;
}
