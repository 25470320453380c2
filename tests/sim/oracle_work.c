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

static void apply(struct oracle *o, unsigned list, struct ids *items, struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    if (verb == LIST_ADDX || verb == LIST_DELX || verb == LIST_CREATE) {
        oracle_apply_exact(o, oracle_now(o, list)->exists, items, call);
    } else if (verb == LIST_DROP) {
        ids_clear(items);
    } else if (verb != LIST_COMPACT) {
        oracle_apply_blind(items, call);
    }
}

static void pass(struct oracle *o, unsigned list, const struct ids *items, struct sim_call *call)
{
    uint32_t before = o->list[list].count;
    oracle_set_current(o, list, call->call.verb != LIST_DROP, items);
    oracle_mark_applied(o, call, o->list[list].count > before);
}

/* ---- counted items ---- */

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
static bool is_longer(const struct oracle *o, unsigned list, const struct intent *intent)
{
    const struct decoded *now = &o->content;
    struct model_list longer = {0};
    bool blind = intent->count > 0;
    ids_copy(&longer.adds, &o->list[list].adds);
    ids_copy(&longer.deletes, &o->list[list].deletes);
    for (size_t i = 0; i < intent->count; i++) {
        enum list_verb verb = intent->calls[i]->call.verb;
        blind = blind && (verb == LIST_ADD || verb == LIST_DEL);
        push_items(&longer, intent->calls[i]);
    }
    bool same =
        blind && ids_equal(&longer.adds, &now->adds) && same_counts(&longer.deletes, &now->deletes);
    ids_fini(&longer.adds);
    ids_fini(&longer.deletes);
    return same;
}

static void count_calls(struct oracle *o, unsigned list, const struct intent *intent,
                        struct ids *items)
{
    struct model_list *l = &o->list[list];
    for (size_t i = 0; i < intent->count; i++) {
        push_items(l, intent->calls[i]);
        count_items(&l->adds, &l->deletes, items);
        pass(o, list, items, intent->calls[i]);
    }
}

/* ---- */

void oracle_work_done(struct oracle *o, unsigned list, const struct intent *intent,
                      const struct be_request *request, int64_t now_s)
{
    struct model_list *l = &o->list[list];
    struct ids items = {0};
    bool removes = request->verb == BE_DELETE || request->verb == BE_CAS_DELETE;
    bool appends = request->verb == BE_APPEND || request->verb == BE_PREPEND;
    bool counts = o->format->dialect == DIALECT_TOMBSTONE;
    if (removes && (intent->count != 1 || intent->calls[0]->call.verb != LIST_DROP)) {
        sim_violation("L%u: removed, though nobody asked for it", list);
    }
    format_decode(o->format, list, now_s, &o->content);
    ids_copy(&items, &oracle_now(o, list)->items);
    if (counts && is_longer(o, list, intent)) {
        count_calls(o, list, intent, &items);
    } else if (counts && appends) {
        sim_violation("L%u: %s has stored something else than was asked for", list,
                      be_verb_name(request->verb));
    } else {
        for (size_t i = 0; i < intent->count; i++) {
            apply(o, list, &items, intent->calls[i]);
            pass(o, list, &items, intent->calls[i]);
        }
    }
    ids_copy(&l->adds, &o->content.adds);
    ids_copy(&l->deletes, &o->content.deletes);
    ids_fini(&items);
}
