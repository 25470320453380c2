/* SPDX-License-Identifier: BSD-3-Clause */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>

#include "joint.h"
#include "list/format/head.h"
#include "outside.h"
#include "pops.h"
#include "tags.h"
#include "txs.h"

void oracle_push_version(struct oracle *o, unsigned list, bool exists, const struct ids *items,
                         uint64_t at)
{
    struct model_list *l = &o->list[list];
    if (l->count == l->cap) {
        l->cap = l->cap == 0 ? 64 : l->cap * 2;
        l->versions = realloc(l->versions, l->cap * sizeof *l->versions);
        CHECK(l->versions != NULL);
    }
    struct version *version = &l->versions[l->count++];
    *version = (struct version){.exists = exists,
                                .max = l->max,
                                .refuses = l->refuses,
                                .open = txs_is_open(o, list),
                                .at_us = *o->now_us,
                                .at = at};
    ids_copy(&version->items, items);
}

void oracle_init(struct oracle *o, struct cluster cluster, unsigned lists, const uint64_t *now_us)
{
    struct ids none = {0};
    *o = (struct oracle){.cluster = cluster, .lists = lists, .now_us = now_us};
    for (unsigned i = 0; i < lists; i++) {
        snprintf(o->list[i].key, sizeof o->list[i].key, "L%u", i);
        snprintf(o->list[i].head_key, sizeof o->list[i].head_key, "L%u#", i);
        oracle_push_version(o, i, false, &none, ++o->moment);
        o->list[i].tidy = true;
        o->list[i].deleted_at = calloc(ITEMS_MAX, sizeof(uint64_t));
        CHECK(o->list[i].deleted_at != NULL);
    }
    for (unsigned i = 0; i < SESSIONS_MAX; i++) {
        TAILQ_INIT(&o->sessions[i].calls);
    }
}

void oracle_set_format(struct oracle *o, const struct format *format)
{
    o->format = format;
    for (unsigned i = 0; i < o->lists; i++) {
        memcpy(o->list[i].head_key, o->list[i].key, sizeof o->list[i].head_key);
    }
}

void oracle_fini(struct oracle *o)
{
    decoded_fini(&o->content);
    for (unsigned i = 0; i < o->lists; i++) {
        ids_fini(&o->list[i].adds);
        ids_fini(&o->list[i].deletes);
        for (uint32_t v = 0; v < o->list[i].count; v++) {
            ids_fini(&o->list[i].versions[v].items);
        }
        free(o->list[i].versions);
        free(o->list[i].deleted_at);
        free(o->list[i].marks);
        free(o->list[i].lives);
        leases_fini(&o->list[i].absence);
    }
    txs_destroy(&o->txs);
    free(o->losses);
    free(o->tags);
}

const struct version *oracle_now(const struct oracle *o, unsigned list)
{
    return &o->list[list].versions[o->list[list].count - 1];
}

static void push_mark(struct model_list *l, uint64_t seen)
{
    if (l->mark_count == l->mark_cap) {
        l->mark_cap = l->mark_cap == 0 ? 64 : l->mark_cap * 2;
        l->marks = realloc(l->marks, l->mark_cap * sizeof *l->marks);
        CHECK(l->marks != NULL);
    }
    l->marks[l->mark_count++] = (struct version_mark){seen, l->count - 1};
}

void oracle_note_mark(struct oracle *o, unsigned list, int64_t now_s)
{
    CHECK(list < o->lists);
    struct model_list *l = &o->list[list];
    struct slice key = slice_of(l->head_key);
    const struct item *item = cluster_head(&o->cluster, key, now_s);
    if (item == NULL) {
        return;
    }
    push_mark(l, head_version(item->cas, slice_make(item->value->data, item->value->used)));
}

void oracle_note_return(struct oracle *o, unsigned list, uint32_t version)
{
    struct model_list *l = &o->list[list];
    const struct version *was = &l->versions[version], *now = oracle_now(o, list);
    size_t count = l->mark_count;
    for (size_t i = 0;
         i < count && was->exists == now->exists && ids_equal(&was->items, &now->items); i++) {
        if (l->marks[i].version == version) {
            push_mark(l, l->marks[i].seen);
        }
    }
}

/* Makes this the current content; nothing happens when it is already. */
void oracle_set_current(struct oracle *o, unsigned list, bool exists, const struct ids *items)
{
    const struct version *now = oracle_now(o, list);
    const struct model_list *l = &o->list[list];
    bool same_cap = now->max == l->max && now->refuses == l->refuses;
    if (now->exists != exists || !ids_equal(&now->items, items) || !same_cap) {
        oracle_push_version(o, list, exists, items, ++o->moment);
    }
}

/* Applies a blind change to the content. */
void oracle_apply_blind(struct ids *items, const struct sim_call *call)
{
    if (call->call.verb == LIST_SET) {
        ids_clear(items);
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        if (list_call_deletes(&call->call, i)) {
            (void)ids_remove(items, call->ids[i]);
        } else {
            (void)oracle_add(items, call, call->ids[i]);
        }
    }
}

static void __attribute__((noreturn)) wrong_effect(const struct sim_call *call, const char *what)
{
    char text[256];
    call_describe(call, text, sizeof text);
    sim_violation("%s: %s", what, text);
}

void oracle_mark_applied(struct oracle *o, struct sim_call *call, bool made_version)
{
    bool first = call->applied++ == 0;
    if (first) {
        call->applied_version = o->list[call->list].count - 1;
        call->made_version = made_version;
        call->applied_at = ++o->moment;
    }
    tags_added(o, call);
    if (call->call.verb == LIST_DROP) {
        bool removed = made_version && !oracle_now(o, call->list)->exists;
        call->removed_version = removed ? o->list[call->list].count - 1 : call->removed_version;
        return;
    }
    if (call->applied > 1 + call->lost) {
        wrong_effect(call, "a call took effect twice");
    }
    if (call->done && !call_unknown(call)) {
        wrong_effect(call, "a call took effect after it was answered");
    }
}

bool oracle_version_is(const struct oracle *o, unsigned list, uint64_t seen, uint32_t version)
{
    const struct model_list *l = &o->list[list];
    for (size_t i = l->mark_count; i-- > 0;) {
        if (l->marks[i].seen == seen && l->marks[i].version == version) {
            return true;
        }
    }
    return false;
}

bool oracle_was_damaged(const struct oracle *o, const struct sim_call *call)
{
    const struct model_list *l = &o->list[call->list];
    return l->damaged || call->damage_seen || l->damage_count != call->start_damage;
}

/* A whole content takes the place of what was there: only where the call's condition holds. */
static void apply_put(struct oracle *o, struct ids *items, struct sim_call *call, int64_t now_s)
{
    const struct model_list *l = &o->list[call->list];
    const struct version *before = oracle_now(o, call->list);
    const struct list_call *c = &call->call;
    bool missing = o->refuse ? !before->exists : oracle_count_at(items, now_s + call->lead_s) == 0;
    bool present = o->refuse ? before->exists : oracle_count_at(items, call->from_s) > 0;
    present = present || oracle_was_damaged(o, call);
    if ((c->condition == LIST_IF_MISSING && !missing) ||
        (c->condition == LIST_IF_PRESENT && !present) ||
        (c->condition == LIST_IF_LEASED && (!missing || c->expected != l->absence.token)) ||
        /* Of an empty list no answer shows the version: only the simulator can know it. */
        (c->condition == LIST_IF_VERSION &&
         !oracle_version_is(o, call->list, c->expected, l->count - 1))) {
        wrong_effect(call, "a put took effect though its condition does not hold");
    }
    if (joint_call_stores(call)) {
        joint_call_apply(o, items, call, now_s);
        return;
    }
    if (c->condition == LIST_IF_LEASED) {
        leases_check_fill(o, call);
    }
    ids_clear(items);
    for (size_t i = 0; i < c->item_count; i++) {
        (void)oracle_add(items, call, call->ids[i]);
    }
}

static void note_clear(struct oracle *o, const struct purpose *purpose, const struct ids *before)
{
    for (size_t i = 0; before->count > 0 && i < purpose->count; i++) {
        if (++purpose->calls[i]->clears > 1 && !o->refuse) {
            sim_violation(
                "an ldrop dropped items twice: those added after it took effect are gone");
        }
    }
}

/* Is what was appended to a missing list to stand behind the content? Not where that is to be all.
 */
static bool stands_behind(const struct purpose *purpose)
{
    for (size_t i = 0; i < purpose->count; i++) {
        if (purpose->calls[i]->call.condition == LIST_ALWAYS) {
            return false;
        }
    }
    return true;
}

static void fill(struct oracle *o, unsigned list, struct ids *items)
{
    uint32_t max = items->max;
    items->max = 0; /* what was appended counts by what it amounts to, and is cut then */
    leases_fill(o, list, items);
    items->max = max;
    while (max > 0 && items->count > max) {
        (void)ids_remove(items, items->ids[items->refuses ? items->count - 1 : 0]);
    }
    leases_forget(o, list);
}

/* Is it an exact change of a list that is missing? It takes the lease away, and is refused. */
static bool ends_lease(const struct oracle *o, const struct purpose *purpose, bool exists)
{
    enum list_verb verb = purpose->count > 0 ? purpose->calls[0]->call.verb : LIST_GET;
    return purpose->kind == PURPOSE_EXACT && o->refuse && !exists &&
           (verb == LIST_ADD || verb == LIST_ADDX || verb == LIST_DELX);
}

static void expect_removal(struct oracle *o, unsigned list, const struct purpose *purpose,
                           bool existed, int64_t now_s, struct ids *items)
{
    bool given_up = purpose->may_remove && o->miss_damaged && o->list[list].damaged;
    bool asked = purpose->count > 0 || given_up;
    if (oracle_count_at(items, oracle_over_s(o, now_s)) > 0 && !asked) {
        sim_violation("L%u: the head was removed, with %u items in the list", list, items->count);
    }
    note_clear(o, purpose, items);
    ids_clear(items);
    if (o->refuse && !asked && existed) {
        sim_violation("L%u: an empty list was removed without an ldrop", list);
    }
    if (purpose->count == 0) {
        leases_check_over(o, list, now_s, "its head was removed");
    }
    leases_forget(o, list);
}

static void expect(struct oracle *o, unsigned list, const struct purpose *purpose,
                   const struct list_request *request, int64_t now_s, bool *exists,
                   struct ids *items)
{
    const struct version *before = oracle_now(o, list);
    oracle_begin(o, list, purpose, now_s, items);
    *exists = true;
    if (request->be.verb == BE_ADD && before->exists) {
        sim_violation("L%u: ADD of a head that is there", list);
    }
    if (request->be.verb == BE_ADD) {
        if (!o->may_lose) {
            leases_check_over(o, list, now_s, "its head has gone");
        }
        leases_forget(o, list);
    }
    if (ends_lease(o, purpose, before->exists)) {
        leases_forget(o, list);
        *exists = false;
    } else if (purpose->kind == PURPOSE_LEASE) {
        if (before->exists) {
            sim_violation("L%u: a lease was given though the list is there", list);
        }
        *exists = false;
    } else if (purpose->kind == PURPOSE_ROUND && o->refuse && !before->exists &&
               request->be.verb != BE_ADD) {
        leases_append(o, list, purpose, exists, items);
    } else if (purpose->kind == PURPOSE_ROUND) {
        for (size_t i = 0; i < purpose->count; i++) {
            oracle_apply_blind(items, purpose->calls[i]);
        }
    } else if (purpose->kind == PURPOSE_EXACT) {
        o->popped_bytes = 0;
        for (size_t i = 0; i < purpose->count; i++) {
            oracle_apply_exact(o, before->exists, items, purpose->calls[i], now_s);
        }
        fill(o, list, items);
    } else if (purpose->kind == PURPOSE_PUT) {
        for (size_t i = 0; i < purpose->count; i++) {
            apply_put(o, items, purpose->calls[i], now_s);
        }
        if (stands_behind(purpose)) {
            fill(o, list, items);
        }
        leases_forget(o, list);
    } else if (purpose->kind == PURPOSE_DROP ||
               (purpose->kind == PURPOSE_COMPACT && purpose->clears)) {
        if (purpose->count == 0 && !(o->miss_damaged && o->list[list].damaged)) {
            sim_violation("L%u: cleared, though no call asked for it and it is not damaged", list);
        }
        note_clear(o, purpose, items);
        ids_clear(items);
        *exists = before->exists && !o->refuse;
        leases_forget(o, list);
    } else if (request->be.verb == BE_CAS_DELETE) {
        expect_removal(o, list, purpose, before->exists, now_s, items);
        *exists = false;
    } else if (purpose->kind == PURPOSE_TX) {
        *exists = before->exists || request->be.verb == BE_ADD;
    } else if (purpose->kind != PURPOSE_COMPACT) {
        sim_violation("L%u: a head was changed by something unknown", list);
    } else {
        *exists = before->exists || !o->refuse;
    }
}

static void print_items(const char *what, const struct ids *items)
{
    printf("  %s (%u):", what, items->count);
    for (uint32_t i = 0; i < items->count && i < 60; i++) {
        printf(" %u", (unsigned)items->ids[i]);
    }
    printf("\n");
}

static void note_tidiness(struct oracle *o, struct model_list *l, bool tidy)
{
    if (l->tidy && !tidy) {
        l->tidy_until = ++o->moment;
    }
    l->tidy = tidy;
}

/* Is there a list, not only a head? */
static bool is_there(const struct oracle *o, const struct stored *stored)
{
    return stored->exists && !(o->refuse && stored->absent && !stored->cleared);
}

void oracle_decode(struct oracle *o, unsigned list, int64_t now_s, struct ids *items,
                   struct stored *out)
{
    struct decoded *content = &o->content;
    if (o->format == NULL) {
        model_decode(&o->cluster, slice_of(o->list[list].key), now_s, items, out);
        if (!is_there(o, out)) {
            ids_clear(items);
            out->adds = out->entries = 0; /* they are not of the list yet */
        }
        return;
    }
    format_decode(o->format, list, now_s, content);
    ids_copy(items, &content->items);
    /* One deletion alone might be a number with a minus, and stays. */
    bool number = o->format->dialect == DIALECT_SIGNED && content->adds.count == 0 &&
                  content->deletes.count == 1;
    *out = (struct stored){.exists = content->exists,
                           .malformed = content->malformed != NULL,
                           .adds = content->adds.count,
                           .garbage = number ? 0 : content->deletes.count};
}

/* Compares what is stored with the current version. */
static void compare(struct oracle *o, unsigned list, int64_t now_s, const char *after)
{
    struct model_list *l = &o->list[list];
    const struct version *now = oracle_now(o, list);
    struct ids items = {0};
    struct stored stored;
    const char *key = l->key;
    oracle_decode(o, list, now_s, &items, &stored);
    if (stored.malformed) {
        sim_violation("%s: malformed after %s", key, after);
    }
    if (stored.sublist_missing && !o->may_lose) {
        sim_violation("%s: after %s the head names %s, which is not stored", key, after,
                      stored.missing);
    }
    l->damage_count += stored.sublist_missing && !l->damaged;
    l->damaged = stored.sublist_missing;
    l->cleared = stored.cleared;
    note_tidiness(o, l,
                  stored.sublist_missing ||
                      (stored.runs <= 1 && stored.garbage == 0 && stored.adds == items.count));
    bool known = !stored.sublist_missing || stored.cleared;
    bool exists = is_there(o, &stored);
    if (o->format == NULL && o->refuse && !now->exists) {
        leases_compare(o, list, &stored, strcmp(after, "a lease") == 0, now_s);
    }
    if (known && (exists != now->exists || !oracle_same(o, &items, &now->items, now_s))) {
        print_items("must hold", &now->items);
        print_items("is stored", &items);
        sim_violation("%s: wrong content after %s (%s, must be %s)", key, after,
                      exists ? "exists" : "missing", now->exists ? "exists" : "missing");
    }
    ids_fini(&items);
}

/* Each of the calls has its own moment within the request: those between them may be answered from
 * the content as of then. */
static void pass_turns(struct oracle *o, unsigned list, const struct purpose *purpose)
{
    for (size_t i = 0; i < purpose->count; i++) {
        const struct version *before = oracle_now(o, list);
        struct ids items = {0};
        uint32_t count = o->list[list].count;
        ids_copy(&items, &before->items);
        oracle_apply_blind(&items, purpose->calls[i]);
        oracle_set_current(o, list, before->exists, &items);
        oracle_mark_applied(o, purpose->calls[i], o->list[list].count > count);
        ids_fini(&items);
    }
}

/* What was written with a second that is over, as it was to be, is gone in the same moment. */
static void note_end(struct oracle *o, unsigned list, const struct list_request *request,
                     int64_t now_s)
{
    struct slice key = slice_of(o->list[list].head_key);
    struct ids none = {0};
    bool pair = o->format != NULL && o->format->dialect == DIALECT_PAIRED;
    bool writes = request->be.verb == BE_CAS || request->be.verb == BE_ADD;
    if (writes && !pair && cluster_head(&o->cluster, key, now_s) == NULL) {
        oracle_set_current(o, list, false, &none);
        ids_clear(&o->list[list].adds);
        ids_clear(&o->list[list].deletes);
        o->list[list].tidy = true;
    }
}

void oracle_head_changed(struct oracle *o, unsigned list, const struct purpose *purpose,
                         const struct list_request *request, int64_t now_s)
{
    struct ids items = {0};
    bool exists;
    if (purpose->kind == PURPOSE_TURNS) {
        pass_turns(o, list, purpose);
        txs_changed(o, list, purpose, now_s);
        oracle_note_mark(o, list, now_s);
        note_end(o, list, request, now_s);
        compare(o, list, now_s, "changes and looks in turns");
        return;
    }
    if (purpose->kind == PURPOSE_PURGE) {
        tags_written(o, list, purpose, request);
        txs_changed(o, list, purpose, now_s);
        oracle_note_mark(o, list, now_s);
        note_end(o, list, request, now_s);
        compare(o, list, now_s, "an lpurge");
        return;
    }
    if (purpose->kind == PURPOSE_WORK) {
        oracle_work_done(o, list, purpose, request, now_s);
        oracle_note_mark(o, list, now_s);
        note_end(o, list, request, now_s);
        compare(o, list, now_s, be_verb_name(request->be.verb));
        return;
    }
    bool refused = ends_lease(o, purpose, oracle_now(o, list)->exists);
    expect(o, list, purpose, request, now_s, &exists, &items);
    uint32_t before = o->list[list].count;
    oracle_set_current(o, list, exists, &items);
    bool applies = !refused && purpose->kind != PURPOSE_TX;
    for (size_t i = 0; i < purpose->count && applies; i++) {
        if (purpose->kind == PURPOSE_EXACT && purpose->calls[i]->refused) {
            continue;
        }
        oracle_mark_applied(o, purpose->calls[i], o->list[list].count > before);
    }
    txs_changed(o, list, purpose, now_s);
    oracle_note_mark(o, list, now_s);
    note_end(o, list, request, now_s);
    ids_fini(&items);
    compare(o, list, now_s,
            purpose->kind == PURPOSE_LEASE ? "a lease" : be_verb_name(request->be.verb));
}

/* What the list's server's clock shows. */
static int64_t clock_of(const struct oracle *o, unsigned list, int64_t now_s)
{
    struct slice key = slice_of(o->list[list].head_key);
    return store_clock(cluster_store(&o->cluster, key), now_s);
}

void oracle_sublist_changed(struct oracle *o, unsigned list, struct slice key, int64_t now_s)
{
    char text[KEY_BYTES_MAX + 32];
    snprintf(text, sizeof text, "a write to %.*s", SLICE_ARGS(key));
    compare(o, list, now_s, text);
}

static void note_loss(struct oracle *o, unsigned list)
{
    if (o->loss_count == o->loss_cap) {
        o->loss_cap = o->loss_cap == 0 ? 64 : o->loss_cap * 2;
        o->losses = realloc(o->losses, o->loss_cap * sizeof *o->losses);
        CHECK(o->losses != NULL);
    }
    o->losses[o->loss_count++] = (struct loss){list, ++o->moment};
}

void oracle_look(struct oracle *o, int64_t now_s)
{
    struct ids items = {0};
    struct stored stored;
    for (unsigned i = 0; i < o->lists; i++) {
        oracle_decode(o, i, now_s, &items, &stored);
        if (!is_there(o, &stored) && (o->may_lose || o->may_expire)) {
            ids_clear(&o->list[i].adds);
            ids_clear(&o->list[i].deletes);
            if (oracle_now(o, i)->exists) {
                note_loss(o, i);
                o->list[i].writes++;
            }
            o->list[i].tidy = true;
            ids_clear(&items);
            oracle_set_current(o, i, false, &items);
            txs_lost(o, i, now_s);
        }
    }
    for (unsigned i = 0; i < o->lists; i++) { /* a loss of one list may matter in others */
        compare(o, i, now_s, o->may_lose ? "a loss in the backend" : "a while");
    }
    ids_fini(&items);
}

/* Reads that may be answered without a look at the server, of lists with max_stale_ms. */
static bool may_be_stale(const struct oracle *o, const struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    return o->max_stale_us > 0 && list_verb_kind(verb) == LIST_KIND_READ && verb != LIST_STAT &&
           verb != LIST_TTL && !call->call.wants_version;
}

/* What was current so long ago counts as current when the call was asked. */
static void allow_stale(const struct oracle *o, struct sim_call *call)
{
    const struct version *versions = o->list[call->list].versions;
    uint32_t own = o->own[call->proxy][call->list];
    uint64_t now_us = *o->now_us;
    uint64_t since_us = now_us > o->max_stale_us ? now_us - o->max_stale_us : 0;
    while (call->start_version > own && versions[call->start_version].at_us > since_us) {
        call->start_version--;
    }
    call->from_s -= (int64_t)((o->max_stale_us + 999999) / 1000000);
}

/* A change that was answered well: later reads through its proxy show it. A client by hand has
 * none.
 */
static void note_own(struct oracle *o, const struct sim_call *call)
{
    if (call->proxy >= PROXIES_MAX) {
        return;
    }
    uint32_t *own = &o->own[call->proxy][call->list];
    if (list_verb_changes(call->call.verb) && call->call.status == LIST_OK && call->applied > 0 &&
        call->applied_version > *own) {
        *own = call->applied_version;
    }
}

void oracle_submitted(struct oracle *o, struct sim_call *call, int64_t now_s)
{
    const struct model_list *l = &o->list[call->list];
    call->asked_s = clock_of(o, call->list, now_s);
    call->from_s = now_s + call->lead_s;
    call->asked = ++o->moment;
    call->start_version = l->count - 1;
    call->start_writes = l->writes;
    if (may_be_stale(o, call)) {
        allow_stale(o, call);
    }
    call->damage_seen = l->damaged;
    call->start_damage = l->damage_count;
    joint_call_asked(o, call);
    TAILQ_INSERT_TAIL(&o->sessions[call->session].calls, call, link);
    tags_asked(o, call);
    if (o->outside != NULL) {
        outside_asked(o->outside, call);
    }
}

void oracle_done(struct oracle *o, struct sim_call *call, int64_t now_s)
{
    struct session_model *session = &o->sessions[call->session];
    call->answered_s = clock_of(o, call->list, now_s);
    call->to_s = now_s + call->lead_s;
    const struct model_list *l = &o->list[call->list];
    note_own(o, call);
    tags_answered(o, call);
    txs_answered(o, call);
    call->done = true;
    call->answered = ++o->moment;
    call->done_version = l->count - 1;
    call->done_writes = l->writes;
    call->tidy_seen = l->tidy || l->tidy_until > call->asked;
    call->damage_seen = call->damage_seen || l->damage_count != call->start_damage;
    joint_call_answered(o, call);
    if (o->outside != NULL) {
        outside_answered(o->outside, call);
        TAILQ_REMOVE(&session->calls, call, link);
        return;
    }
    while ((call = TAILQ_FIRST(&session->calls)) != NULL && call->done) {
        TAILQ_REMOVE(&session->calls, call, link);
        oracle_judge(o, session, call);
    }
}

void oracle_final(struct oracle *o, unsigned list, int64_t now_s, bool nothing_left_over)
{
    struct ids items = {0};
    struct stored stored;
    const char *key = o->list[list].key;
    compare(o, list, now_s, "everything");
    oracle_decode(o, list, now_s, &items, &stored);
    if (o->list[list].damaged) {
        ids_fini(&items);
        return;
    }
    if (stored.runs > 1) {
        sim_violation("%s: %u runs after lcompact", key, stored.runs);
    }
    if (nothing_left_over && (stored.garbage > 0 || stored.announcements > 0)) {
        sim_violation("%s: %u garbage names (or deletions) and %u announcements after lcompact",
                      key, stored.garbage, stored.announcements);
    }
    if (nothing_left_over && stored.token == 0 && stored.intents + stored.decisions > 0) {
        sim_violation("%s: %u intents of transactions and %u decisions after lcompact", key,
                      stored.intents, stored.decisions);
    }
    /* A run may hold deletions of what lay below it, if a merge of that left nothing. */
    if (stored.adds != items.count || (stored.entries != stored.adds && items.count == 0)) {
        sim_violation("%s: %u entries for %u items after lcompact", key, stored.entries,
                      items.count);
    }
    bool native = o->format == NULL;
    if (native && !o->refuse && stored.exists && items.count == 0 && nothing_left_over) {
        sim_violation("%s: an empty head is left after lcompact", key);
    }
    ids_fini(&items);
}
