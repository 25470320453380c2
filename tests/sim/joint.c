/* SPDX-License-Identifier: BSD-3-Clause */
#include "joint.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "leases.h"
#include "list/joint/verb.h"
#include "world.h"

bool joint_call_wants(struct client *client, enum list_verb *verb)
{
    static const enum list_verb verbs[] = {
        LIST_GETX,  LIST_GETX, LIST_INTER,    LIST_UNION,   LIST_UNION,
        LIST_UNION, LIST_DIFF, LIST_INTERLEN, LIST_DIFFLEN, LIST_UNIONLEN,
    };
    struct rng *rng = &client->joint_rng;
    if (!client->proxy->world->p.joints || rng_below(rng, 10) != 0) {
        return false;
    }
    static const enum list_verb stores[] = {LIST_INTERSTORE, LIST_UNIONSTORE, LIST_DIFFSTORE};
    const struct sim_world *w = client->proxy->world;
    *verb = verbs[rng_below(rng, sizeof verbs / sizeof verbs[0])];
    /* Of items with times it depends on the second which of them are stored; a cap cuts what is. */
    bool known = w->p.dialect == DIALECT_NATIVE && !w->oracle.may_lose && !w->p.history &&
                 !w->p.timed && w->p.max_items == 0;
    if (known && rng_below(rng, 4) == 0) {
        *verb = stores[rng_below(rng, sizeof stores / sizeof stores[0])];
        *verb = w->p.lists > 1 && rng_below(rng, 3) == 0 ? LIST_COPY : *verb;
    }
    return true;
}

/* A list is copied over another one; half of the time only where that is missing. */
static void choose_copy(struct client *client, struct sim_call *call)
{
    const struct sim_world *w = client->proxy->world;
    struct rng *rng = &client->joint_rng;
    unsigned more = 1 + (unsigned)rng_below(rng, w->p.lists - 1);
    call->list_count = 1;
    call->lists[0] = (call->list + more) % w->p.lists;
    chain_init(&call->several[0].answer);
    call->call.source = slice_of(w->oracle.list[call->lists[0]].key);
    call->call.source_policy = call->call.policy;
    call->call.condition = rng_below(rng, 2) == 0 ? LIST_IF_MISSING : LIST_ALWAYS;
}

void joint_call_choose(struct client *client, struct sim_call *call)
{
    struct sim_world *w = client->proxy->world;
    struct rng *rng = &client->joint_rng;
    if (call->call.verb == LIST_COPY) {
        choose_copy(client, call);
        return;
    }
    call->list_count = 1 + (unsigned)rng_below(rng, JOINT_LISTS_MAX);
    for (unsigned i = 0; i < call->list_count; i++) {
        unsigned list = (unsigned)rng_below(rng, w->p.lists);
        list = i == 0 && !joint_call_stores(call) ? call->list : list;
        call->lists[i] = list;
        call->several[i].key = slice_of(w->oracle.list[list].key);
        call->several[i].policy = call->call.policy;
        chain_init(&call->several[i].answer);
    }
    call->call.lists = call->several;
    call->call.list_count = call->list_count;
}

void joint_call_fini(struct sim_call *call)
{
    for (unsigned i = 0; i < call->list_count; i++) {
        chain_fini(&call->several[i].answer);
    }
}

void joint_call_asked(const struct oracle *o, struct sim_call *call)
{
    for (unsigned i = 0; i < call->list_count; i++) {
        const struct model_list *l = &o->list[call->lists[i]];
        call->start_versions[i] = l->count - 1;
        call->damage_seen = call->damage_seen || l->damaged;
        call->start_damages[i] = l->damage_count;
    }
}

void joint_call_answered(const struct oracle *o, struct sim_call *call)
{
    for (unsigned i = 0; i < call->list_count; i++) {
        const struct model_list *l = &o->list[call->lists[i]];
        call->damage_seen = call->damage_seen || l->damage_count != call->start_damages[i];
    }
}

/* ---- what the answer must be ---- */

static const struct version *version_of(const struct oracle *o, const struct sim_call *call,
                                        const uint32_t *versions, unsigned i)
{
    return &o->list[call->lists[i]].versions[versions[i]];
}

static bool in_all(const struct sim_call *call, const struct version *then, uint16_t id)
{
    unsigned i = 0;
    while (i < call->list_count && ids_has(&then[i].items, id)) {
        i++;
    }
    return i == call->list_count;
}

static bool in_another(const struct sim_call *call, const struct version *then, uint16_t id)
{
    unsigned i = 1;
    while (i < call->list_count && !ids_has(&then[i].items, id)) {
        i++;
    }
    return i < call->list_count;
}

static void expect_items(const struct sim_call *call, const struct version *then, struct ids *out)
{
    bool unites = joint_verb(call->call.verb) == JOINT_UNION;
    bool intersects = joint_verb(call->call.verb) == JOINT_INTER;
    for (unsigned i = 0; i < (unites ? call->list_count : 1); i++) {
        const struct ids *items = &then[i].items;
        for (uint32_t n = 0; n < items->count; n++) {
            uint16_t id = items->ids[n];
            if (unites) {
                (void)ids_add(out, id);
            } else if (intersects ? in_all(call, then, id) : !in_another(call, then, id)) {
                ids_push(out, id);
            }
        }
    }
}

/* Are the lists' items, side by side, those versions? */
static bool lists_match(const struct oracle *o, const struct sim_call *call,
                        const struct version *then)
{
    uint32_t at = 0;
    for (unsigned i = 0; i < call->list_count; i++) {
        const struct version *v = &then[i];
        const struct call_list *answer = &call->several[i];
        bool there = o->refuse ? v->exists : v->items.count > 0;
        if (answer->is_there != there || answer->number != v->items.count ||
            at + v->items.count > call->answer.count ||
            (v->items.count > 0 && memcmp(v->items.ids, call->answer.ids + at,
                                          v->items.count * sizeof *v->items.ids) != 0)) {
            return false;
        }
        at += v->items.count;
    }
    return at == call->answer.count;
}

/* No answer comes from a list in which a transaction is not decided. An empty list may decide
 * alone: then the others are not looked at. */
static bool is_settled(const struct sim_call *call, const struct version *then)
{
    enum joint_verb verb = joint_verb(call->call.verb);
    unsigned deciding = verb == JOINT_INTER ? call->list_count : verb == JOINT_DIFF;
    unsigned open = 0;
    for (unsigned i = 0; i < call->list_count; i++) {
        if (i < deciding && !then[i].open && then[i].items.count == 0) {
            return true;
        }
        open += then[i].open;
    }
    return open == 0;
}

/* Would these versions together give the answer, in one second? */
static bool matches_now(const struct oracle *o, const struct sim_call *call,
                        const struct version *then)
{
    const struct list_call *c = &call->call;
    if (!is_settled(call, then)) {
        return false;
    }
    if (c->verb == LIST_GETX) {
        return c->status == LIST_OK && lists_match(o, call, then);
    }
    bool missing = false;
    for (unsigned i = 0; i < call->list_count; i++) {
        missing = missing || (o->refuse && !then[i].exists);
    }
    struct ids expected = {0};
    if (!missing) {
        expect_items(call, then, &expected);
    }
    bool counted = !list_verb_has(c->verb, LIST_WHOLE);
    bool same = c->number == expected.count && (counted || ids_equal(&expected, &call->answer));
    bool none = expected.count == 0 && !o->refuse;
    bool is_miss = missing || (none && (!counted || c->verb == LIST_COPY));
    ids_fini(&expected);
    return same && c->status == (is_miss ? LIST_MISSING : LIST_OK);
}

/* The same, in one second of the proxy's clock while the call was under way. */
static bool matches(const struct oracle *o, const struct sim_call *call, const uint32_t *versions)
{
    struct version then[JOINT_LISTS_MAX];
    int64_t now_s = call->from_s, next_s;
    bool good = false;
    do {
        next_s = INT64_MAX;
        for (unsigned i = 0; i < call->list_count; i++) {
            const struct version *v = version_of(o, call, versions, i);
            int64_t own_s = now_s;
            oracle_version_at(&then[i], v, now_s);
            next_s = oracle_next_second(call, v, &own_s) && own_s < next_s ? own_s : next_s;
        }
        good = matches_now(o, call, then);
        for (unsigned i = 0; i < call->list_count; i++) {
            ids_fini(&then[i].items);
        }
        now_s = next_s;
    } while (!good && next_s != INT64_MAX);
    return good;
}

/* ---- instants ---- */

/* Goes on to the next moment at which one of the lists changed. False: there is none before the
 * answer. */
static bool go_on(const struct oracle *o, const struct sim_call *call, uint64_t until,
                  uint32_t *versions)
{
    uint64_t next = until;
    for (unsigned i = 0; i < call->list_count; i++) {
        const struct model_list *l = &o->list[call->lists[i]];
        bool more = versions[i] + 1 < l->count && l->versions[versions[i] + 1].at < next;
        next = more ? l->versions[versions[i] + 1].at : next;
    }
    for (unsigned i = 0; i < call->list_count; i++) {
        const struct model_list *l = &o->list[call->lists[i]];
        bool is_it = versions[i] + 1 < l->count && l->versions[versions[i] + 1].at == next;
        versions[i] += is_it;
    }
    return next < until;
}

/* The list that is made is among those that are read: was it then as it is now? */
static bool is_bound(const struct oracle *o, const struct sim_call *call, const uint32_t *versions)
{
    for (unsigned i = 0; i < call->list_count; i++) {
        const struct ids *then = &version_of(o, call, versions, i)->items;
        if (call->lists[i] == call->list && !ids_equal(then, &oracle_now(o, call->list)->items)) {
            return false;
        }
    }
    return true;
}

/* Under a condition, what was appended to the missing list stands behind the content. */
static bool is_stored(const struct oracle *o, const struct sim_call *call,
                      const struct ids *content, const struct ids *stored)
{
    struct ids whole = {0};
    ids_copy(&whole, content);
    if (call->call.condition != LIST_ALWAYS) {
        leases_lay(&o->list[call->list].absence, &whole);
    }
    bool same = ids_equal(&whole, stored);
    ids_fini(&whole);
    return same;
}

/* Then stored becomes the content, without what stands behind it. That may hide how many items the
 * content had: the number of each instant that fits is a right answer. */
static bool may_store(const struct oracle *o, struct sim_call *call, struct ids *stored)
{
    uint32_t versions[JOINT_LISTS_MAX];
    struct version then[JOINT_LISTS_MAX];
    struct ids content = {0};
    uint64_t least = UINT64_MAX, most = 0;
    memcpy(versions, call->start_versions, sizeof versions);
    do {
        bool missing = false;
        struct ids expected = {0};
        for (unsigned i = 0; i < call->list_count; i++) {
            then[i] = *version_of(o, call, versions, i);
            missing = missing || (o->refuse && !then[i].exists);
        }
        expect_items(call, then, &expected);
        if (!missing && is_settled(call, then) && is_bound(o, call, versions) &&
            is_stored(o, call, &expected, stored)) {
            ids_copy(&content, &expected);
            least = u64_least(least, expected.count);
            most = expected.count > most ? expected.count : most;
        }
        ids_fini(&expected);
    } while (go_on(o, call, o->moment + 1, versions));
    if (least <= most) {
        ids_copy(stored, &content);
        call->expected = least;
        call->more = most - least;
    }
    ids_fini(&content);
    return least <= most;
}

void joint_call_apply(struct oracle *o, struct ids *items, struct sim_call *call, int64_t now_s)
{
    struct stored stored;
    char text[256];
    oracle_decode(o, call->list, now_s, items, &stored);
    if (!may_store(o, call, items)) {
        call_describe(call, text, sizeof text);
        sim_violation("at no instant did the lists amount to what was stored: %s", text);
    }
}

static bool parse(const struct oracle *o, struct sim_call *call)
{
    bool good = true;
    for (unsigned i = 0; call->call.verb == LIST_GETX && i < call->list_count && good; i++) {
        chain_move(&call->call.answer, &call->several[i].answer);
        good = oracle_parse_answer(o, call, &call->answer);
    }
    return good && oracle_parse_answer(o, call, &call->answer);
}

static void print_ids(const char *what, const struct ids *items)
{
    printf("  %s (%u):", what, items->count);
    for (uint32_t i = 0; i < items->count && i < 60; i++) {
        printf(" %u", (unsigned)items->ids[i]);
    }
    printf("\n");
}

bool joint_call_is_right(const struct oracle *o, struct sim_call *call)
{
    uint32_t versions[JOINT_LISTS_MAX];
    memcpy(versions, call->start_versions, sizeof versions);
    if (!parse(o, call)) {
        return false;
    }
    do {
        if (matches(o, call, versions)) {
            return true;
        }
    } while (go_on(o, call, call->answered, versions));
    print_ids("answered", &call->answer);
    for (unsigned i = 0; i < call->list_count; i++) {
        print_ids("a list at the end", &version_of(o, call, versions, i)->items);
    }
    return false;
}
