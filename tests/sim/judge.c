/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judging answers: each must be right at one instant between question and answer, and the instants
 * of a session's calls must come in its order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "oracle.h"

bool call_unknown(const struct sim_call *call)
{
    return call->abandoned ||
           (call->call.status == LIST_SERVER_ERROR && strstr(call->call.error, "unknown") != NULL);
}

static const char *status_name(enum list_status status)
{
    static const char *const names[] = {"OK",     "MISSING",      "NOT_STORED",
                                        "EXISTS", "CLIENT_ERROR", "SERVER_ERROR"};
    return names[status];
}

void call_describe(const struct sim_call *call, char *out, size_t cap)
{
    int n = snprintf(out, cap, "call %llu p%u c%u %s %s", (unsigned long long)call->number,
                     call->proxy, call->session, list_verb_word(call->call.verb), call->key);
    for (size_t i = 0; i < call->call.item_count && (size_t)n < cap; i++) {
        const char *sign = call->call.ops == NULL              ? ""
                           : list_call_deletes(&call->call, i) ? "-"
                                                               : "+";
        n += snprintf(out + n, cap - (size_t)n, " %s%u", sign, (unsigned)call->ids[i]);
    }
    static const char *const conditions[] = {"", " if missing", " if present", " if version",
                                             " if leased"};
    if ((size_t)n < cap) {
        n += snprintf(out + n, cap - (size_t)n, "%s", conditions[call->call.condition]);
    }
    if ((size_t)n < cap && list_verb_has(call->call.verb, LIST_RANGES)) {
        n += snprintf(out + n, cap - (size_t)n, " %lld %lld", (long long)call->call.from,
                      (long long)call->call.to);
    }
    if ((size_t)n < cap && call->done && !call->abandoned) {
        snprintf(out + n, cap - (size_t)n, " -> %s %llu %s", status_name(call->call.status),
                 (unsigned long long)call->call.number, call->call.error);
    }
}

static void __attribute__((noreturn))
wrong(const struct oracle *o, const struct sim_call *call, const char *what)
{
    char text[512];
    call_describe(call, text, sizeof text);
    const struct model_list *l = &o->list[call->list];
    printf("  versions %u..%u of %u, applied %u at %u; at the end of the call:",
           call->start_version, call->done_version, l->count, call->applied, call->applied_version);
    const struct version *v = &l->versions[call->done_version];
    for (uint32_t i = 0; i < v->items.count && i < 60; i++) {
        printf(" %u", (unsigned)v->items.ids[i]);
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

/* Takes the time away that a ring's entry has behind its item. */
static bool take_stamp(const struct oracle *o, const struct sim_call *call, struct slice *name)
{
    uint64_t seconds;
    if (o->format == NULL || o->format->dialect != DIALECT_RING || !o->format->stamp ||
        call->call.verb == LIST_HAS) {
        return true;
    }
    const char *blank = memrchr(name->p, ' ', name->len);
    if (blank == NULL) {
        return false;
    }
    size_t len = (size_t)(blank - name->p);
    struct slice digits = slice_make(blank + 1, name->len - len - 1);
    *name = slice_make(name->p, len);
    return slice_to_u64(digits, &seconds);
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
        good = good && take_stamp(o, call, &name) && item_of_name(name, &id);
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

/* Would the read be answered like this by that version? */
static bool read_matches(const struct oracle *o, const struct sim_call *call,
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
    if (c->verb == LIST_HAS) {
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

static bool is_pair(const struct oracle *o)
{
    return o->format != NULL && o->format->dialect == DIALECT_PAIRED;
}

/* A pair that changes too fast is not read at one instant: when its items are on different servers,
 * or when it has changed during each of the looks that wanted it to stay the same. */
static bool is_fast(const struct oracle *o, const struct sim_call *call)
{
    enum { EXACT_LOOKS = 3 };
    unsigned list = call->list;
    if (call->done_version - call->start_version >= EXACT_LOOKS) {
        return true;
    }
    char adds[KEY_BYTES_MAX + 1], deletes[KEY_BYTES_MAX + 1];
    size_t adds_len = format_key(o->format, list, FORMAT_ADDS, 0, adds);
    size_t deletes_len = format_key(o->format, list, FORMAT_DELETES, 0, deletes);
    return cluster_store(&o->cluster, slice_make(adds, adds_len)) !=
           cluster_store(&o->cluster, slice_make(deletes, deletes_len));
}

/* Each item by itself: was there a version with it, or one without it? One that was added twice,
 * and then deleted while the read was under way, may be seen without the second addition. */
static bool matches_by_item(const struct oracle *o, const struct sim_call *call, uint32_t from)
{
    enum { WITH = 1, WITHOUT = 2 };
    static uint8_t seen[ITEMS_MAX];
    const struct list_call *c = &call->call;
    uint64_t least = 0, most = 0;
    bool good = true;
    for (unsigned id = 0; id < ITEMS_MAX; id++) {
        seen[id] = o->list[call->list].deleted_at[id] >= call->asked ? WITHOUT : 0;
    }
    for (uint32_t v = from; v <= call->done_version; v++) {
        for (unsigned id = 0; id < ITEMS_MAX; id++) {
            bool in = ids_has(&o->list[call->list].versions[v].items, (uint16_t)id);
            seen[id] |= in ? WITH : WITHOUT;
        }
    }
    for (unsigned id = 0; id < ITEMS_MAX; id++) {
        bool asked = c->verb == LIST_GET;
        for (size_t i = 0; c->verb == LIST_HAS && i < c->item_count; i++) {
            asked = asked || call->ids[i] == id;
        }
        bool in = ids_has(&call->answer, (uint16_t)id);
        good = good && (!in || (seen[id] & WITH)) && (in || !asked || (seen[id] & WITHOUT));
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
    if (is_pair(o)) {
        return true; /* a mixture of two numbers */
    }
    if (!l->versions[version].exists) {
        return call->call.version == 0;
    }
    return oracle_version_is(o, call->list, call->call.version, version);
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
        if (read_matches(o, call, answer, &o->list[call->list].versions[v]) &&
            (call->call.verb == LIST_HAS || version_matches(o, call, v))) {
            /* No floor for later reads: those of one session that are under way together may
             * overtake each other. */
            session->seen[call->list] =
                v > session->seen[call->list] ? v : session->seen[call->list];
            found = true;
        }
    }
    bool excused = (call->damage_seen && o->miss_damaged && call->call.status == LIST_MISSING) ||
                   (!found && is_pair(o) && is_fast(o, call) &&
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

/* Would the change do nothing in that version, with this outcome? */
static bool does_nothing(const struct oracle *o, const struct sim_call *call,
                         const struct version *v)
{
    const struct list_call *c = &call->call;
    bool none = o->refuse ? !v->exists : v->items.count == 0;
    if (c->verb == LIST_COMPACT) {
        return c->status == LIST_OK ? call->tidy_seen || is_pair(o) : none;
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
    if (c->verb == LIST_PUT && c->status != LIST_OK) {
        uint32_t number = (uint32_t)(v - o->list[call->list].versions);
        bool same = oracle_version_is(o, call->list, c->expected, number);
        return c->status == LIST_NOT_STORED ? none == (c->condition == LIST_IF_PRESENT)
               : c->status == LIST_EXISTS   ? !none && (!same || has_several(o, call, number))
                                            : none;
    }
    if (c->status == LIST_MISSING) {
        return o->refuse && !v->exists && c->verb != LIST_ADD && c->verb != LIST_ADDX &&
               c->verb != LIST_SET;
    }
    if (c->status == LIST_NOT_STORED) {
        return c->verb == LIST_CREATE
                   ? !none
                   : o->refuse && !v->exists && (c->verb == LIST_ADD || c->verb == LIST_ADDX);
    }
    if (c->verb == LIST_DROP || c->verb == LIST_CREATE) {
        return none && (c->verb == LIST_DROP || c->item_count == 0) && !o->refuse;
    }
    if (o->refuse && !v->exists) {
        return false;
    }
    for (size_t i = 0; i < c->item_count; i++) {
        bool in = ids_has(&v->items, call->ids[i]);
        bool adds = c->verb == LIST_ADDX || (c->verb == LIST_ADD && !list_call_deletes(c, i));
        if (in != adds) {
            return false;
        }
    }
    return c->number == 0 && (c->verb != LIST_SET || v->items.count == 0);
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

static void judge_change(struct oracle *o, struct session_model *session, struct sim_call *call)
{
    const struct list_call *c = &call->call;
    uint32_t *floor = &session->floor[call->list];
    const uint32_t *seen = &session->seen[call->list];
    bool exact = c->verb == LIST_ADDX || c->verb == LIST_DELX;
    bool blind = c->verb == LIST_ADD || c->verb == LIST_DEL;
    if ((exact || blind) && c->status != LIST_OK) {
        leases_note_refused(o, call);
    }
    if (c->verb == LIST_LEASE && !leases_answered(o, call)) {
        wrong(o, call, "no lease would give this answer");
    }
    if (call->applied > 0 && (c->status == LIST_OK || c->verb == LIST_DROP)) {
        if (exact && c->number != call->expected) {
            wrong(o, call, "wrong number");
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
        if (does_nothing(o, call, &o->list[call->list].versions[v])) {
            *floor = v;
            return;
        }
    }
    wrong(o, call, "answered, but did not take effect");
}

static void judge_error(struct oracle *o, struct sim_call *call)
{
    /* With on_missing = refuse an ldrop empties a list first, and says so when it comes no further.
     */
    bool said = call->call.verb == LIST_DROP && strstr(call->call.error, "list emptied") != NULL;
    if (call->applied > 0 && !said) {
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
    if (call->call.status == LIST_CLIENT_ERROR || call->call.status == LIST_SERVER_ERROR) {
        judge_error(o, call);
    } else if (list_verb_reads(call->call.verb)) {
        judge_read(o, session, call);
    } else {
        judge_change(o, session, call);
    }
}
