/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a case: what is stored must be what the calls explain, and once the announcements of
 * the dead have grown old, a compaction by a proxy that has seen nothing leaves that, and nothing
 * else.
 */
#include "list/core/expiry.h"
#include "native_world.h"

/* The server has it back: what a list holds cannot be told while a part of it is missing. If the
 * head names it no more, it stays away. */
static void restore_evicted(struct native_world *w)
{
    static struct ids items;
    struct stored stored;
    if (w->scene->evicted < 0) {
        return;
    }
    model_decode(&w->base.cluster, slice_of(LIST_KEY), world_now(&w->base).wall_s, &items, &stored);
    if (stored.sublist_missing) {
        trace(&w->base, "%s is back", stored.missing);
        scene_put(&w->base.cluster, &w->scene->items[w->scene->evicted]);
    }
}

/* What was written late is left where its proxy died, or lost its connection, before it knew. */
static void check_named(struct native_world *w)
{
    const struct item *item;
    int64_t now_s = world_now(&w->base).wall_s;
    for (unsigned s = 0; s < w->base.cluster.count; s++) {
        TAILQ_FOREACH(item, &w->base.stores[s].items, link)
        {
            struct slice key = item_key(item);
            bool over = item->expires_s != 0 && item->expires_s <= now_s;
            bool other = key.p[key.len - 1] == '#' || clock_key_is(key);
            if (!over && !item->is_late && !other &&
                !model_head_names(&w->base.cluster, slice_of(LIST_KEY), now_s, key) &&
                !model_removed_head_names(&w->base.cluster, slice_of(LIST_KEY), key)) {
                world_violation(&w->base, "%.*s is left over: no head names it", SLICE_ARGS(key));
            }
        }
    }
}

static void check_explained(struct native_world *w, const struct listing *last)
{
    if (!w->base.failed && !history_explains(&w->history, last)) {
        char text[256];
        listing_describe(last, text, sizeof text);
        world_violation(&w->base, "no order of events explains the answers and %s", text);
    }
}

/* Once compacted, a list is as small as it can be. Reads what is stored into *last. */
static void check_tidy(struct native_world *w, struct listing *last)
{
    static struct ids items;
    struct stored stored;
    model_decode(&w->base.cluster, slice_of(LIST_KEY), world_now(&w->base).wall_s, &items, &stored);
    if (stored.malformed || stored.sublist_missing) {
        world_violation(&w->base, "after lcompact: malformed, or a sublist is missing");
    } else if (stored.runs > 1 || stored.garbage > 0 || stored.announcements > 0) {
        world_violation(&w->base, "after lcompact: %u runs, %u garbage names, %u announcements",
                        stored.runs, stored.garbage, stored.announcements);
    } else if (stored.entries != items.count) {
        world_violation(&w->base, "after lcompact: %u entries for %u items", stored.entries,
                        items.count);
    } else if (!w->scene->policy->refuse && stored.exists && items.count == 0) {
        world_violation(&w->base, "after lcompact: an empty head");
    }
    check_named(w);
    if (!listing_of_items(last, &items, stored.exists)) {
        world_violation(&w->base, "after lcompact: too many items");
    }
}

static bool same_listing(const struct listing *a, const struct listing *b)
{
    return a->exists == b->exists && a->count == b->count && memcmp(a->ids, b->ids, a->count) == 0;
}

void case_finish(struct native_world *w)
{
    static const struct op_spec look = {
        .name = "lcompact, lget",
        .count = 2,
        .calls = {{.verb = LIST_COMPACT}, {.verb = LIST_GET}},
    };
    struct listing before, after;
    restore_evicted(w);
    if (w->scene->policy->miss_damaged) {
        history_may_drop(&w->history);
    }
    case_observe(w, &before);
    case_pass(w, (GRACE_S + 2) * 1000000ULL);
    /* A proxy that has seen nothing knows only what is stored, and does the same with it again. */
    uint64_t hash = world_hash(&w->base);
    if (w->base.failed || seen_has(&w->seen.finishes, hash)) {
        check_explained(w, &before);
        return;
    }
    case_start(w, PROXY_C);
    case_ask(w, PROXY_C, &look);
    case_rest(w, PROXY_C);
    if (!w->base.failed) {
        check_tidy(w, &after);
        check_explained(w, &after);
    }
    if (!w->base.failed && same_listing(&before, &after)) {
        seen_add(&w->seen.finishes, hash);
    }
}
