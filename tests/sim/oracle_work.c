/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of lists that are one stored item. The calls that a request carries take effect one after
 * the other, each at a moment of its own: those that change nothing may be answered from what was
 * in between.
 *
 * Where items are counted, what is stored matters beside what a reader sees. Folding forgets the
 * counts, and may come just before any change that writes the whole list.
 */
#include "oracle.h"
#include "tags.h"

static void apply(struct oracle *o, unsigned list, struct ids *items, struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    if (verb == LIST_ADDX || verb == LIST_DELX || verb == LIST_CREATE || verb == LIST_POP) {
        oracle_apply_exact(o, oracle_now(o, list)->exists, items, call, 0);
    } else if (verb == LIST_DROP) {
        ids_clear(items);
    } else if (verb == LIST_PURGE) {
        tags_purged(o, call, &o->content.items);
        ids_copy(items, &o->content.items);
    } else if (verb != LIST_COMPACT && verb != LIST_TOUCH) {
        oracle_apply_blind(items, call);
    }
}

static void pass(struct oracle *o, unsigned list, const struct ids *items, struct sim_call *call)
{
    uint32_t before = o->list[list].count;
    bool pair = o->format->dialect == DIALECT_PAIRED;
    oracle_set_current(o, list, pair ? items->count > 0 : call->call.verb != LIST_DROP, items);
    if (call->call.verb == LIST_PURGE) {
        return; /* by several writes */
    }
    oracle_mark_applied(o, call, o->list[list].count > before);
}

/* ---- counted items ---- */

static void note_deletions(const struct oracle *o, struct model_list *l,
                           const struct sim_call *call)
{
    for (size_t i = 0; call->call.verb == LIST_DEL && i < call->call.item_count; i++) {
        l->deleted_at[call->ids[i]] = o->moment;
    }
}

static void push_items(struct model_list *l, const struct sim_call *call)
{
    struct ids *to = call->call.verb == LIST_DEL ? &l->deletes : &l->adds;
    for (size_t i = 0; i < call->call.item_count; i++) {
        ids_push(to, call->ids[i]);
    }
}

/* The order of deletions says nothing. */
static bool same_counts(const struct ids *a, const struct ids *b)
{
    uint32_t counts[ITEMS_MAX] = {0};
    for (uint32_t i = 0; i < a->count; i++) {
        counts[a->ids[i]]++;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        if (counts[b->ids[i]]-- == 0) {
            return false;
        }
    }
    return a->count == b->count;
}

/* Is stored what was before, and the calls' items behind it? */
static bool is_longer(const struct oracle *o, unsigned list, const struct purpose *purpose)
{
    const struct decoded *now = &o->content;
    struct model_list longer = {0};
    /* A mark changes nothing. */
    bool blind = purpose->count > 0 || o->format->dialect == DIALECT_PAIRED;
    ids_copy(&longer.adds, &o->list[list].adds);
    ids_copy(&longer.deletes, &o->list[list].deletes);
    for (size_t i = 0; i < purpose->count; i++) {
        enum list_verb verb = purpose->calls[i]->call.verb;
        blind = blind && (verb == LIST_ADD || verb == LIST_DEL);
        push_items(&longer, purpose->calls[i]);
    }
    bool same =
        blind && ids_equal(&longer.adds, &now->adds) && same_counts(&longer.deletes, &now->deletes);
    ids_fini(&longer.adds);
    ids_fini(&longer.deletes);
    return same;
}

static void count_calls(struct oracle *o, unsigned list, const struct purpose *purpose,
                        struct ids *items)
{
    struct model_list *l = &o->list[list];
    for (size_t i = 0; i < purpose->count; i++) {
        push_items(l, purpose->calls[i]);
        note_deletions(o, l, purpose->calls[i]);
        count_items(&l->adds, &l->deletes, items);
        pass(o, list, items, purpose->calls[i]);
    }
}

/* A deletion that came just before a pair's additions were written anew counts on, behind the mark:
 * it is set against what a call has brought, and against one of each item, however often that was
 * added. since: an older one was there for the call to take into account. */
static void allow_late_deletions(const struct model_list *l, const struct decoded *now,
                                 uint64_t since, struct ids *items)
{
    for (uint32_t i = 0; i < now->deletes.count; i++) {
        uint16_t id = now->deletes.ids[i];
        if (!ids_has(&now->items, id) && l->deleted_at[id] >= since) {
            (void)ids_remove(items, id);
        }
    }
}

/* Folding forgets that an item was added more than once; but no deletion may be left that nothing
 * was added for: it would take the next addition away. */
static void check_counts(const struct model_list *l, const struct decoded *now)
{
    static int64_t before[ITEMS_MAX], after[ITEMS_MAX], deleted[ITEMS_MAX];
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    memset(deleted, 0, sizeof deleted);
    for (uint32_t i = 0; i < l->adds.count; i++) {
        before[l->adds.ids[i]]++;
    }
    for (uint32_t i = 0; i < l->deletes.count; i++) {
        before[l->deletes.ids[i]]--;
    }
    for (uint32_t i = 0; i < now->adds.count; i++) {
        after[now->adds.ids[i]]++;
    }
    for (uint32_t i = 0; i < now->deletes.count; i++) {
        after[now->deletes.ids[i]]--;
        deleted[now->deletes.ids[i]]++;
    }
    for (unsigned id = 0; id < ITEMS_MAX; id++) {
        int64_t once = 1 - deleted[id], least = before[id] < once ? before[id] : once;
        if (after[id] < least) {
            sim_violation("%s: folding has left a deletion of item %u too much", l->key, id);
        }
    }
}

/* ---- */

void oracle_work_done(struct oracle *o, unsigned list, const struct purpose *purpose,
                      const struct list_request *request, int64_t now_s)
{
    struct model_list *l = &o->list[list];
    struct ids items = {0};
    l->writes++;
    bool removes = request->be.verb == BE_DELETE || request->be.verb == BE_CAS_DELETE;
    bool appends = request->be.verb == BE_APPEND || request->be.verb == BE_PREPEND;
    bool pair = o->format->dialect == DIALECT_PAIRED;
    bool counts = pair || o->format->dialect == DIALECT_TOMBSTONE;
    if (removes && !pair && (purpose->count != 1 || purpose->calls[0]->call.verb != LIST_DROP)) {
        sim_violation("L%u: removed, though no call asked for it", list);
    }
    format_decode(o->format, list, now_s, &o->content);
    ids_copy(&items, &oracle_now(o, list)->items);
    if (counts && is_longer(o, list, purpose)) {
        count_calls(o, list, purpose, &items);
    } else if (counts && appends) {
        sim_violation("L%u: %s has stored something else than was asked for", list,
                      be_verb_name(request->be.verb));
    } else {
        for (size_t i = 0; i < purpose->count; i++) {
            apply(o, list, &items, purpose->calls[i]);
            if (pair) {
                allow_late_deletions(l, &o->content, purpose->calls[i]->asked, &items);
            }
            pass(o, list, &items, purpose->calls[i]);
        }
        if (pair && !removes && purpose->count == 0) {
            check_counts(l, &o->content);
            allow_late_deletions(l, &o->content, 0, &items);
            oracle_set_current(o, list, items.count > 0, &items);
        }
    }
    ids_copy(&l->adds, &o->content.adds);
    ids_copy(&l->deletes, &o->content.deletes);
    ids_fini(&items);
}
