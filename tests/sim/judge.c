/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judging answers: each must be right at one instant between question and answer, and the instants
 * of a session's calls must come in its order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "joint.h"
#include "oracle.h"
#include "pops.h"
#include "rollback.h"
#include "tags.h"
#include "txs.h"

bool call_unknown(const struct sim_call *call)
{
    return call->abandoned ||
           (call->call.status == LIST_SERVER_ERROR && strstr(call->call.error, "unknown") != NULL);
}

static void __attribute__((noreturn))
wrong(const struct oracle *o, const struct sim_call *call, const char *what)
{
    char text[512];
    call_describe(call, text, sizeof text);
    const struct model_list *l = &o->list[call->list];
    printf("  versions %u..%u of %u, applied %u at %u; seconds %lld..%lld; at the end of the call:",
           call->start_version, call->done_version, l->count, call->applied, call->applied_version,
           (long long)call->from_s, (long long)call->to_s);
    const struct version *v = &l->versions[call->done_version];
    for (uint32_t i = 0; i < v->items.count && i < 60; i++) {
        printf(" %u", (unsigned)v->items.ids[i]);
        if (v->items.untils[i] != 0) {
            printf("@%u", v->items.untils[i]);
        }
    }
    printf("\n");
    sim_violation("%s: %s", what, text);
}

/* Moves the answer's bytes into one string, which the caller frees. */
static char *flatten(struct chain *chain, size_t *bytes)
{
    char *text = malloc(chain->bytes + 1);
    CHECK(text != NULL);
    *bytes = 0;
    while (chain->bytes > 0) {
        struct iovec iov;
        CHECK(chain_iov(chain, &iov, 1) == 1);
        memcpy(text + *bytes, iov.iov_base, iov.iov_len);
        *bytes += iov.iov_len;
        chain_consume(chain, iov.iov_len);
    }
    return text;
}

/* Takes "NAME" up to the next delimiter; none may stand at the end. */
static bool take_joined(struct slice *rest, struct slice *name)
{
    const char *end = memchr(rest->p, ',', rest->len);
    *name = slice_take(rest, end == NULL ? rest->len : (size_t)(end - rest->p));
    if (end != NULL) {
        (void)slice_take(rest, 1);
    }
    return end == NULL || rest->len > 0;
}

/* Takes "ITEM KEY BYTES\r\n" NAME "\r\n". */
static bool take_item(const struct sim_call *call, struct slice *rest, struct slice *name)
{
    char begin[32];
    struct slice expected =
        slice_make(begin, (size_t)snprintf(begin, sizeof begin, "ITEM %s ", call->key));
    const char *end = memchr(rest->p, '\r', rest->len);
    uint64_t len;
    if (end == NULL || !slice_starts_with(*rest, expected)) {
        return false;
    }
    struct slice line = slice_take(rest, (size_t)(end - rest->p));
    (void)slice_take(&line, expected.len);
    if (!slice_to_u64(line, &len) || rest->len < len + 4 ||
        !slice_starts_with(*rest, SLICE_LIT("\r\n"))) {
        return false;
    }
    (void)slice_take(rest, 2);
    *name = slice_take(rest, len);
    return slice_equal(slice_take(rest, 2), SLICE_LIT("\r\n"));
}

/* Takes the time away that a ring's entry has beside its item. */
static bool take_time(const struct oracle *o, const struct sim_call *call, struct slice *name)
{
    bool timed =
        o->format != NULL && o->format->dialect == DIALECT_RING && call->call.verb != LIST_HAS;
    return !timed || entry_take_time(o->format, name);
}

bool oracle_parse_answer(const struct oracle *o, struct sim_call *call, struct ids *out)
{
    size_t bytes;
    char *text = flatten(&call->call.answer, &bytes);
    struct slice rest = slice_make(text, bytes);
    bool good = true;
    while (good && rest.len > 0) {
        struct slice name = SLICE_NONE;
        uint16_t id = 0;
        good = call->call.form == LIST_FORM_JOINED ? take_joined(&rest, &name)
                                                   : take_item(call, &rest, &name);
        good = good && take_time(o, call, &name) && item_of_name(name, &id);
        if (good) {
            ids_push(out, id);
        }
    }
    free(text);
    return good;
}

static void expected_range(const struct ids *all, const struct list_call *c, struct ids *out)
{
    int64_t n = all->count, from = c->from, to = c->to;
    from = from < 0 ? n + from : from;
    to = to < 0 ? n + to : to;
    from = from < 0 ? 0 : from;
    to = to >= n ? n - 1 : to;
    for (int64_t i = from; i <= to; i++) {
        ids_push(out, all->ids[c->verb == LIST_REVRANGE ? n - 1 - i : i]);
    }
}

/* Was that left at one instant of the call? */
static bool ttl_matches(const struct oracle *o, const struct sim_call *call)
{
    const struct model_list *l = &o->list[call->list];
    int64_t ttl_s = call->call.stat.ttl_s;
    for (size_t i = l->life_count; i-- > 0;) {
        int64_t end_s = l->lives[i].end_s;
        bool before = l->lives[i].at > call->answered;
        if (!before &&
            (end_s == 0 ? ttl_s == -1
                        : ttl_s >= end_s - call->answered_s && ttl_s <= end_s - call->asked_s)) {
            return true;
        }
        if (l->lives[i].at < call->asked) {
            return false; /* those before were over */
        }
    }
    return false;
}

/* lttl of an item, whose second is until_s. */
static bool item_ttl_matches(const struct sim_call *call, bool in, uint32_t until_s, int64_t now_s)
{
    int64_t ttl_s = call->call.stat.ttl_s;
    if (in != (call->call.status == LIST_OK)) {
        return false;
    }
    return !in ||
           (until_s == 0 ? ttl_s == -1 : ttl_s <= until_s - now_s && ttl_s >= until_s - call->to_s);
}

/* Would the read be answered like this by that version, as it is at that time? */
static bool read_matches_now(const struct oracle *o, const struct sim_call *call,
                             const struct ids *answer, const struct version *v)
{
    const struct list_call *c = &call->call;
    if (c->verb == LIST_LEN || c->verb == LIST_STAT) {
        return (c->verb == LIST_LEN ? c->number : c->stat.items) == v->items.count;
    }
    if (c->verb == LIST_TTL) {
        bool found = o->refuse ? v->exists : v->items.count > 0;
        return found == (c->status == LIST_OK) && (!found || ttl_matches(o, call));
    }
    struct ids expected = {0};
    uint32_t has = 0;
    bool same = true;
    if (list_verb_has(c->verb, LIST_PAGES)) {
        return pops_match(call, answer, v);
    }
    if (c->verb == LIST_RANDOM) {
        same = pops_match(call, answer, v);
    } else if (c->verb == LIST_HAS) {
        for (size_t i = 0; i < c->item_count && same; i++) {
            if (ids_has(&v->items, call->ids[i])) {
                same = has < answer->count && answer->ids[has] == call->ids[i];
                has++;
            }
        }
        same = same && has == answer->count;
    } else if (list_verb_has(c->verb, LIST_RANGES)) {
        expected_range(&v->items, c, &expected);
        same = ids_equal(&expected, answer);
    } else {
        same = ids_equal(&v->items, answer);
    }
    ids_fini(&expected);
    if (!same || c->number != answer->count) {
        return false;
    }
    bool missing = answer->count == 0 && (c->verb == LIST_HAS || !(o->refuse && v->exists));
    return (c->status == LIST_MISSING) == missing;
}

/* At one second of its proxy's clock between question and answer. */
static bool read_matches(const struct oracle *o, const struct sim_call *call,
                         const struct ids *answer, const struct version *v)
{
    bool matches = false;
    int64_t now_s = call->from_s;
    do {
        struct version then;
        oracle_version_at(&then, v, now_s);
        if (call->call.verb == LIST_TTL && call->call.item_count > 0) {
            matches = item_ttl_matches(call, ids_has(&then.items, call->ids[0]),
                                       ids_until(&v->items, call->ids[0]), now_s);
        } else {
            matches = read_matches_now(o, call, answer, &then);
        }
        ids_fini(&then.items);
    } while (!matches && oracle_next_second(call, v, &now_s));
    return matches;
}

static bool is_pair(const struct oracle *o)
{
    return o->format != NULL && o->format->dialect == DIALECT_PAIRED;
}

/* A pair is not read at one instant when its items were written during each of the looks that
 * wanted them to stay the same: the additions, or either where the items are read apart, on two
 * servers or since a connection was lost. What was written may be in the list already: counted
 * items are stored as often as they are added. */
static bool is_fast(const struct sim_call *call)
{
    enum { EXACT_LOOKS = 3 };
    return call->done_writes - call->start_writes >= EXACT_LOOKS;
}

/* Each item by itself: was there a version with it, or one without it? One that was added twice,
 * and then deleted while the read was under way, may be seen without the second addition. */
static bool matches_by_item(const struct oracle *o, const struct sim_call *call, uint32_t from)
{
    enum { WITH = 1, WITHOUT = 2 };
    static uint8_t seen[ITEMS_MAX];
    static bool in[ITEMS_MAX];
    const struct list_call *c = &call->call;
    uint64_t least = 0, most = 0;
    bool good = true;
    for (unsigned id = 0; id < ITEMS_MAX; id++) {
        seen[id] = o->list[call->list].deleted_at[id] >= call->asked ? WITHOUT : 0;
    }
    for (uint32_t v = from; v <= call->done_version; v++) {
        const struct ids *items = &o->list[call->list].versions[v].items;
        memset(in, 0, sizeof in);
        for (uint32_t i = 0; i < items->count; i++) {
            in[items->ids[i]] = true;
        }
        for (unsigned id = 0; id < ITEMS_MAX; id++) {
            seen[id] |= in[id] ? WITH : WITHOUT;
        }
    }
    for (unsigned id = 0; id < ITEMS_MAX; id++) {
        bool asked = c->verb == LIST_GET;
        for (size_t i = 0; c->verb == LIST_HAS && i < c->item_count; i++) {
            asked = asked || call->ids[i] == id;
        }
        bool told = ids_has(&call->answer, (uint16_t)id);
        good = good && (!told || (seen[id] & WITH)) && (told || !asked || (seen[id] & WITHOUT));
        least += seen[id] == WITH;
        most += (seen[id] & WITH) != 0;
    }
    bool counted = c->verb == LIST_LEN || c->verb == LIST_STAT;
    uint64_t count = c->verb == LIST_LEN ? c->number : c->stat.items;
    return counted ? count >= least && count <= most : good;
}

/* The version number of the answer must stand for that content. No answer to an lhas shows one. */
static bool version_matches(const struct oracle *o, const struct sim_call *call, uint32_t version)
{
    const struct model_list *l = &o->list[call->list];
    if (is_pair(o) || !call->call.wants_version) {
        return true; /* of a pair: a mixture of two numbers */
    }
    if (!l->versions[version].exists) {
        return call->call.version == 0;
    }
    return oracle_version_is(o, call->list, call->call.version, version);
}

/* Is it about the head, and not about what the list holds? */
static bool is_of_head(const struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    return verb == LIST_TOUCH || verb == LIST_MIGRATE ||
           (verb == LIST_TTL && call->call.item_count == 0);
}

static void judge_read(struct oracle *o, struct session_model *session, struct sim_call *call)
{
    const struct ids *answer = &call->answer;
    if (!oracle_parse_answer(o, call, &call->answer)) {
        wrong(o, call, "malformed answer");
    }
    uint32_t from = call->start_version, floor = session->floor[call->list];
    bool found = false;
    for (uint32_t v = from > floor ? from : floor; v <= call->done_version && !found; v++) {
        const struct version *version = &o->list[call->list].versions[v];
        if ((!version->open || is_of_head(call)) && read_matches(o, call, answer, version) &&
            (call->call.verb == LIST_HAS || version_matches(o, call, v))) {
            /* No floor for later reads: those of one session that are under way together may
             * overtake each other. */
            session->seen[call->list] =
                v > session->seen[call->list] ? v : session->seen[call->list];
            found = true;
        }
    }
    bool excused = (call->damage_seen && o->miss_damaged && call->call.status == LIST_MISSING) ||
                   (!found && is_pair(o) && is_fast(call) &&
                    matches_by_item(o, call, from > floor ? from : floor));
    if (!found && !excused) {
        printf("  answered (%u):", answer->count);
        for (uint32_t i = 0; i < answer->count && i < 60; i++) {
            printf(" %u", (unsigned)answer->ids[i]);
        }
        printf("\n");
        wrong(o, call, "no state of the list during the call would give this answer");
    }
}

/* Clients see several versions of one content, as compactions go on. */
static bool has_several(const struct oracle *o, const struct sim_call *call, uint32_t version)
{
    const struct model_list *l = &o->list[call->list];
    for (size_t i = 0; i < l->mark_count; i++) {
        if (l->marks[i].version == version && l->marks[i].seen != call->call.expected) {
            return true;
        }
    }
    return false;
}

/* May the version's cap refuse the additions, or that of the proxy's file those to a missing list?
 */
static bool cap_refuses(const struct sim_call *call, const struct version *v)
{
    struct version begun = {.max = call->cap_max, .refuses = call->cap_refuses};
    return call->refused /* between other changes of one request */ ||
           oracle_cap_refuses(v->exists ? v : &begun, call);
}

/* none: no item is in that version; of a damaged list no proxy can know that. */
static bool put_does_nothing(const struct oracle *o, const struct sim_call *call, uint32_t number,
                             bool none)
{
    const struct list_call *c = &call->call;
    bool same = oracle_version_is(o, call->list, c->expected, number);
    bool damaged = oracle_was_damaged(o, call);
    if (c->status == LIST_NOT_STORED) {
        bool is_nothing = none && (c->condition == LIST_IF_PRESENT || !damaged);
        return is_nothing == (c->condition == LIST_IF_PRESENT);
    }
    if (c->status == LIST_EXISTS) {
        return (!none || damaged) && (!same || has_several(o, call, number));
    }
    return none;
}

/* Would the change do nothing in that version, with this outcome? then: the version as it is at
 * that time. */
static bool does_nothing_now(const struct oracle *o, const struct sim_call *call, uint32_t number,
                             const struct version *then)
{
    const struct version *v = then;
    const struct list_call *c = &call->call;
    bool none = o->refuse ? !v->exists : v->items.count == 0;
    if (c->verb == LIST_COMPACT) {
        return c->status == LIST_OK ? call->tidy_seen || is_pair(o) : none;
    }
    if (c->verb == LIST_MIGRATE || (c->status == LIST_NOT_STORED && cap_refuses(call, v))) {
        return true;
    }
    if (c->verb == LIST_LEASE) {
        return (c->status == LIST_EXISTS) == v->exists;
    }
    if (c->verb == LIST_TOUCH) {
        return c->status == LIST_MISSING && none;
    }
    if (c->verb == LIST_PUT && c->condition == LIST_IF_LEASED && c->status != LIST_OK) {
        return c->status == LIST_EXISTS && leases_refused(o, call);
    }
    if (c->verb == LIST_COPY && c->status == LIST_NOT_STORED) {
        return c->condition == LIST_IF_MISSING && !none;
    }
    if (c->verb == LIST_PUT && c->status != LIST_OK) {
        return put_does_nothing(o, call, number, none);
    }
    if (c->verb == LIST_POP) {
        return c->status == LIST_OK && c->number == 0 && v->items.count == 0;
    }
    if (c->status == LIST_MISSING) {
        return o->refuse && !v->exists && c->verb != LIST_ADD && c->verb != LIST_ADDX &&
               c->verb != LIST_ADDT && c->verb != LIST_SET;
    }
    if (c->status == LIST_NOT_STORED) {
        return c->verb == LIST_CREATE
                   ? !none
                   : o->refuse && !v->exists &&
                         (c->verb == LIST_ADD || c->verb == LIST_ADDX || c->verb == LIST_ADDT);
    }
    if (c->verb == LIST_DROP || c->verb == LIST_CREATE) {
        return none && (c->verb == LIST_DROP || c->item_count == 0) && !o->refuse;
    }
    if (o->refuse && !v->exists) {
        return false;
    }
    if (call->recent && (c->verb == LIST_ADD || c->verb == LIST_ADDX)) {
        struct ids after = {0};
        ids_copy(&after, &v->items);
        oracle_apply_blind(&after, call);
        bool same = ids_equal(&after, &v->items);
        ids_fini(&after);
        return same && c->number == 0;
    }
    if (c->verb == LIST_ADDT) {
        return false;
    }
    const struct ids *all = &o->list[call->list].versions[number].items;
    for (size_t i = 0; i < c->item_count; i++) {
        bool in = ids_has(&v->items, call->ids[i]);
        if (in && ids_until(all, call->ids[i]) != 0) {
            return false; /* with a time: it would have none */
        }
        bool adds = c->verb == LIST_ADDX || (c->verb == LIST_ADD && !list_call_deletes(c, i));
        if (in != adds) {
            return false;
        }
    }
    return c->number == 0 && (c->verb != LIST_SET || v->items.count == 0);
}

static bool does_nothing(const struct oracle *o, const struct sim_call *call, uint32_t number)
{
    const struct version *v = &o->list[call->list].versions[number];
    bool nothing = false;
    int64_t now_s = call->from_s;
    do {
        struct version then;
        oracle_version_at(&then, v, now_s);
        nothing = does_nothing_now(o, call, number, &then);
        ids_fini(&then.items);
    } while (!nothing && oracle_next_second(call, v, &now_s));
    return nothing;
}

static bool was_missing(const struct oracle *o, const struct sim_call *call)
{
    for (uint32_t v = call->start_version; v <= call->done_version; v++) {
        if (!o->list[call->list].versions[v].exists) {
            return true;
        }
    }
    return false;
}

/* Is it a whole content beyond a cap that refuses? Then it is refused whatever the list holds. */
static bool is_beyond(const struct sim_call *call)
{
    const struct list_call *c = &call->call;
    bool whole = c->verb == LIST_SET || c->verb == LIST_PUT || c->verb == LIST_CREATE;
    struct ids items = {0};
    for (size_t i = 0; i < c->item_count; i++) {
        (void)ids_add(&items, call->ids[i]);
    }
    bool beyond = whole && call->cap_max > 0 && call->cap_refuses && items.count > call->cap_max;
    ids_fini(&items);
    return beyond;
}

static void judge_change(struct oracle *o, struct session_model *session, struct sim_call *call)
{
    const struct list_call *c = &call->call;
    uint32_t *floor = &session->floor[call->list];
    const uint32_t *seen = &session->seen[call->list];
    bool exact = c->verb == LIST_ADDX || c->verb == LIST_DELX || c->verb == LIST_POP;
    bool blind = c->verb == LIST_ADD || c->verb == LIST_DEL || c->verb == LIST_ADDT;
    if (is_beyond(call)) {
        if (call->applied > 0 || c->status != LIST_NOT_STORED) {
            wrong(o, call, "a content beyond the cap was not refused");
        }
        return;
    }
    if ((exact || blind) && c->status != LIST_OK) {
        leases_note_refused(o, call);
    }
    if (call->is_void && c->status == LIST_OK) {
        wrong(o, call, "done, though the list was missing, and no client had a lease to fill it");
    }
    if (c->verb == LIST_LEASE && !leases_answered(o, call)) {
        wrong(o, call, "no lease would give this answer");
    }
    if (call->applied > 0 && (c->status == LIST_OK || c->verb == LIST_DROP)) {
        bool counts = exact || joint_call_stores(call);
        if (counts && (c->number < call->expected || c->number > call->expected + call->more)) {
            wrong(o, call, "wrong number");
        }
        if (c->verb == LIST_POP && !pops_answered(o, call)) {
            wrong(o, call, "other items than were taken off");
        }
        if (call->applied_version < *floor) {
            wrong(o, call, "took effect before an earlier call of its session");
        }
        if (call->applied_version < *seen + call->made_version) {
            wrong(o, call, "an earlier read of its session saw it");
        }
        if (c->verb == LIST_DROP && o->refuse && !was_missing(o, call)) {
            wrong(o, call, "the list is still there");
        }
        *floor = call->applied_version;
        return;
    }
    if (call->applied > 0) {
        wrong(o, call, "took effect, but was answered otherwise");
    }
    uint32_t from = call->start_version > *floor ? call->start_version : *floor;
    from = from > *seen ? from : *seen;
    for (uint32_t v = from; v <= call->done_version; v++) {
        bool may = !o->list[call->list].versions[v].open || is_of_head(call) ||
                   call->call.verb == LIST_COMPACT;
        if (may && does_nothing(o, call, v)) {
            *floor = v;
            return;
        }
    }
    wrong(o, call, "answered, but did not take effect");
}

static void judge_error(struct oracle *o, struct sim_call *call)
{
    if (call->applied > 0 || call->commits > 0) {
        wrong(o, call, "refused, but took effect");
    }
    if (call->call.error[0] == '\0') {
        wrong(o, call, "an error without a text");
    }
    if (strstr(call->call.error, "damaged") != NULL && !call->damage_seen) {
        wrong(o, call, "a list is said to be damaged that is not");
    }
}

void oracle_judge(struct oracle *o, struct session_model *session, struct sim_call *call)
{
    if (call_unknown(call)) {
        return;
    }
    o->checked++;
    const char *lost = rollback_judge(call);
    if (lost != NULL) {
        wrong(o, call, lost);
    }
    if (call->call.status == LIST_CLIENT_ERROR || call->call.status == LIST_SERVER_ERROR) {
        judge_error(o, call);
    } else if (is_tx(call)) {
        const char *what = txs_judge(o, call);
        if (what != NULL) {
            wrong(o, call, what);
        }
    } else if (is_joint(call) && (!joint_call_stores(call) || call->call.status == LIST_MISSING)) {
        if (!joint_call_is_right(o, call)) {
            wrong(o, call, "at no instant would the lists together give this answer");
        }
    } else if (call->call.verb == LIST_PURGE) {
        const char *what = tags_judge(o, call);
        if (what != NULL) {
            wrong(o, call, what);
        }
    } else if (list_verb_reads(call->call.verb)) {
        judge_read(o, session, call);
    } else {
        judge_change(o, session, call);
    }
}
