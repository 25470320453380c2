/* SPDX-License-Identifier: BSD-3-Clause */
#include "tags.h"

#include "../world/reference.h"
#include "params.h"
#include "world.h"

enum list_verb tags_choose(const struct oracle *o, const struct params *p, uint64_t number,
                           enum list_verb verb)
{
    struct rng rng;
    rng_init_seed(&rng, (p->seed + 3) * 0x9e3779b97f4a7c15u + number);
    uint64_t n = rng_below(&rng, 100);
    if (!p->purges || !list_verb_changes(verb)) {
        return verb;
    }
    return n < 4 ? LIST_PURGE : n < 60 && o->tags->under_way > 0 ? LIST_ADD : verb;
}

void tags_asked(struct oracle *o, const struct sim_call *call)
{
    if (o->tags != NULL && call->call.verb == LIST_PURGE) {
        o->tags->under_way++;
    }
}

bool tags_is_plain(const struct params *p, const struct list_request *r)
{
    uint16_t id;
    return p->purges && item_of_name(r->be.key, &id);
}

void tags_executed(struct oracle *o, const struct list_request *r, enum be_status status)
{
    uint16_t id;
    CHECK(item_of_name(r->be.key, &id) && r->be.verb == BE_DELETE);
    if (status == BE_DELETED || status == BE_NOT_FOUND) {
        o->tags->deleted_at[id] = ++o->moment;
    }
}

static void note_added(struct oracle *o, const struct sim_call *call, uint16_t id)
{
    o->tags->added_at[call->list][id] = ++o->moment;
}

void tags_added(struct oracle *o, const struct sim_call *call)
{
    const struct list_call *c = &call->call;
    bool adds =
        c->verb == LIST_ADD || c->verb == LIST_SET || c->verb == LIST_PUT || c->verb == LIST_CREATE;
    for (size_t i = 0; o->tags != NULL && adds && i < c->item_count; i++) {
        if (!list_call_deletes(c, i)) {
            note_added(o, call, call->ids[i]);
        }
    }
}

void tags_added_exactly(struct oracle *o, const struct sim_call *call, const struct ids *before)
{
    const struct list_call *c = &call->call;
    for (size_t i = 0; o->tags != NULL && c->verb == LIST_ADDX && i < c->item_count; i++) {
        bool written = call->recent || !ids_has(before, call->ids[i]);
        if (written && !list_call_deletes(c, i)) {
            note_added(o, call, call->ids[i]);
        }
    }
}

void tags_committed(struct oracle *o, unsigned list, uint16_t id)
{
    if (o->tags != NULL) {
        o->tags->added_at[list][id] = ++o->moment;
    }
}

void tags_forgotten(struct oracle *o, unsigned list, struct slice entries)
{
    struct slice name;
    uint16_t id = 0;
    char op;
    while (o->tags != NULL && entries.len > 0) {
        CHECK(ref_take_entry(&entries, &op, &name));
        if (op == '+' && item_of_name(name, &id)) {
            o->tags->forgotten_at[list][id] = ++o->moment;
        }
    }
}

void tags_told(struct oracle *o, const struct sim_call *call, unsigned list, uint16_t id)
{
    if (o->tags != NULL && o->tags->acknowledged_at[list][id] < call->asked) {
        o->tags->acknowledged_at[list][id] = call->asked;
    }
}

void tags_answered(struct oracle *o, const struct sim_call *call)
{
    const struct list_call *c = &call->call;
    if (o->tags != NULL && c->verb == LIST_PURGE) {
        o->tags->under_way--;
    }
    if (o->tags == NULL || c->verb != LIST_ADD || c->status != LIST_OK || call->abandoned) {
        return;
    }
    for (size_t i = 0; i < c->item_count; i++) {
        uint64_t *at = &o->tags->acknowledged_at[call->list][call->ids[i]];
        if (!list_call_deletes(c, i) && *at < call->asked) {
            *at = call->asked;
        }
    }
}

static void apply(struct ids *items, struct slice entries)
{
    struct slice name;
    uint16_t id = 0;
    char op;
    while (entries.len > 0) {
        CHECK(ref_take_entry(&entries, &op, &name));
        if (op == '!') {
            ids_clear(items);
            continue;
        }
        CHECK(item_of_name(name, &id) && (op == '-' || op == '+'));
        if (op == '-') {
            (void)ids_remove(items, id);
        } else {
            (void)ids_add(items, id);
        }
    }
}

static void __attribute__((noreturn))
forgotten(const struct sim_call *call, uint16_t id, const char *since)
{
    char text[320];
    call_describe(call, text, sizeof text);
    sim_violation("name %u left the list though its item was not deleted after %s: %s",
                  (unsigned)id, since, text);
}

void tags_purged(struct oracle *o, struct sim_call *call, const struct ids *items)
{
    const struct tags *tags = o->tags;
    const struct ids *before = &oracle_now(o, call->list)->items;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < before->count; i++) {
        uint16_t id = before->ids[i];
        if (kept < items->count && items->ids[kept] == id) {
            kept++;
            continue;
        }
        call->expected++;
        if (tags->forgotten_at[call->list][id] > tags->added_at[call->list][id]) {
            continue; /* that addition may not be in the list, only older ones */
        }
        if (tags->deleted_at[id] <= tags->added_at[call->list][id]) {
            forgotten(call, id, "it was added");
        }
        if (tags->deleted_at[id] <= tags->acknowledged_at[call->list][id]) {
            forgotten(call, id, "a client began to add it, and was answered");
        }
    }
    if (kept != items->count) {
        sim_violation("L%u: an lpurge has added a name, or changed the order", call->list);
    }
    if (call->done && !call_unknown(call)) {
        sim_violation("L%u: an lpurge took names off after it was answered", call->list);
    }
}

void tags_written(struct oracle *o, unsigned list, const struct purpose *purpose,
                  const struct list_request *request)
{
    struct slice entries = request->be.value;
    struct ids items = {0};
    CHECK(purpose->count == 1);
    (void)slice_take(&entries, purpose->stored_bytes);
    ids_copy(&items, &oracle_now(o, list)->items);
    apply(&items, entries);
    tags_purged(o, purpose->calls[0], &items);
    oracle_set_current(o, list, true, &items);
    ids_fini(&items);
}

static bool was_out(const struct model_list *l, const struct sim_call *call, uint16_t id)
{
    for (uint32_t v = call->start_version; v <= call->done_version; v++) {
        if (!ids_has(&l->versions[v].items, id)) {
            return true;
        }
    }
    return false;
}

const char *tags_judge(const struct oracle *o, const struct sim_call *call)
{
    const struct model_list *l = &o->list[call->list];
    const struct ids *first = &l->versions[call->start_version].items;
    if (call->call.status == LIST_MISSING) {
        for (uint32_t v = call->start_version; v <= call->done_version; v++) {
            if (o->refuse && !l->versions[v].exists) {
                return NULL;
            }
        }
        return "the list is there";
    }
    if (call->call.number < call->expected) {
        return "took more names off than it says";
    }
    for (uint32_t i = 0; i < first->count; i++) {
        uint16_t id = first->ids[i];
        bool out = was_out(l, call, id);
        if (!out && o->tags->deleted_at[id] <= call->asked) {
            return "left an item that the list names";
        }
        if (!out && o->tags->added_at[call->list][id] <= call->asked &&
            o->tags->acknowledged_at[call->list][id] <= call->asked &&
            o->tags->forgotten_at[call->list][id] <= call->asked) {
            return "left a name in the list that was not added again";
        }
    }
    return NULL;
}
