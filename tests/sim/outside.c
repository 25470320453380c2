/* SPDX-License-Identifier: BSD-3-Clause */
#include "outside.h"

#include <stdio.h>
#include <stdlib.h>

struct outside *outside_create(struct oracle *oracle, const struct format *format, unsigned items)
{
    struct outside *o = calloc(1, sizeof *o);
    CHECK(o != NULL);
    *o = (struct outside){
        .oracle = oracle, .format = format, .lists = oracle->lists, .items = items};
    TAILQ_INIT(&o->under_way);
    for (unsigned i = 0; i < o->lists; i++) {
        o->list[i].words = calloc(ITEMS_MAX, sizeof(struct word));
        o->list[i].ring = calloc(ITEMS_MAX, sizeof(struct ring_word));
        CHECK(o->list[i].words != NULL && o->list[i].ring != NULL);
        for (unsigned id = 0; id < ITEMS_MAX; id++) {
            o->list[i].words[id].out_since = 1;
        }
    }
    oracle->moment = 1;
    return o;
}

void outside_destroy(struct outside **slot)
{
    struct outside *o = *slot;
    *slot = NULL;
    if (o == NULL) {
        return;
    }
    for (unsigned i = 0; i < o->lists; i++) {
        free(o->list[i].words);
        free(o->list[i].ring);
        free(o->list[i].numbers);
    }
    free(o);
}

static bool is_ring(const struct outside *o)
{
    return o->format->dialect == DIALECT_RING;
}

static bool counts(const struct outside *o)
{
    return o->format->dialect == DIALECT_PAIRED;
}

/* Where a deletion may be lost (docs/dialects.md), or, for a reader, missed: parts are not read at
 * one instant. */
static bool may_come_back(const struct outside *o, const struct sim_call *call)
{
    enum list_dialect d = o->format->dialect;
    if (call != NULL && !o->quiet) {
        return true;
    }
    return (d == DIALECT_FLIP || d == DIALECT_MARKER || d == DIALECT_PAIRED) && !o->strict;
}

/* Additions win where two logs change places, but those of before an ldrop are gone. A folding that
 * was slower looks once more behind its copy, unless it cannot. */
static bool may_stay_back(const struct word *w, uint64_t asked)
{
    return w->dropped_since == 0 || w->dropped_since >= asked;
}

/* An addition may win over a deletion that is newer where they stand in two logs; not where a copy
 * begins with it. A failover brings back what a log was; a log of marker that finds no room is
 * written anew as it is closed, so that a copy which is brought up to date at that moment is not of
 * it any more; and an ldrop removes one log after the other, also one that became active since it
 * looked. */
static bool is_for_good(const struct outside *o, const struct word *w, const struct sim_call *call)
{
    const struct outside_list *l = &o->list[call->list];
    enum list_dialect d = o->format->dialect;
    bool two_logs = d == DIALECT_FLIP || d == DIALECT_MARKER;
    bool fails_over = o->oracle->cluster.stores[0].vbuckets != NULL;
    return two_logs && !fails_over && w->add_over < call->copied_at && l->clearing == 0 &&
           l->clear_over < call->copied_at && l->copied_at != 0;
}

static bool is_out_for_good(const struct outside_list *l, const struct word *w)
{
    return w->out_for_good && l->clearing == 0 && l->clear_over < w->out_since;
}

static bool clears(const struct sim_call *call)
{
    return call->call.verb == LIST_SET || call->call.verb == LIST_DROP;
}

static bool adds(const struct sim_call *call)
{
    return call->call.verb == LIST_ADD || call->call.verb == LIST_SET;
}

static bool changes(const struct sim_call *call)
{
    return adds(call) || clears(call) || call->call.verb == LIST_DEL;
}

static bool has_id(const struct sim_call *call, uint16_t id)
{
    for (size_t i = 0; i < call->call.item_count; i++) {
        if (call->ids[i] == id) {
            return true;
        }
    }
    return false;
}

static bool is_first(const struct sim_call *call, size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (call->ids[before] == call->ids[i]) {
            return false;
        }
    }
    return true;
}

void outside_wrong(const struct outside *o, unsigned list, const struct sim_call *call,
                   const struct ids *seen, const char *what, uint16_t id)
{
    char text[512] = "what is stored";
    const struct word *w = &o->list[list].words[id];
    if (call != NULL) {
        call_describe(call, text, sizeof text);
    }
    printf("  seen (%u):", seen->count);
    for (uint32_t i = 0; i < seen->count && i < 200; i++) {
        printf(" %u", (unsigned)seen->ids[i]);
    }
    printf(
        "\n  moments: now %llu, asked %llu; in since %llu, out since %llu, an add over at %llu, a "
        "deletion at %llu\n",
        (unsigned long long)o->oracle->moment, (unsigned long long)(call == NULL ? 0 : call->asked),
        (unsigned long long)w->in_since, (unsigned long long)w->out_since,
        (unsigned long long)w->add_over, (unsigned long long)w->delete_over);
    sim_violation("L%u: item %u %s: %s", list, (unsigned)id, what, text);
}

/* ---- what is said ---- */

/* Where items are counted, folding may take place at any time: more than one of an item is as good
 * as one, less than none as none. */
static void settle_count(const struct outside *o, const struct outside_list *l, struct word *w)
{
    bool in = w->net_least >= 1 && w->deleting == 0 && l->clearing == 0;
    w->in_since = !in ? 0 : w->in_since != 0 ? w->in_since : o->oracle->moment;
}

static void ask_to_clear(struct outside *o, struct outside_list *l)
{
    l->clearing++;
    for (unsigned id = 0; id < o->items; id++) {
        l->words[id].in_since = 0;
    }
}

void outside_asked(struct outside *o, struct sim_call *call)
{
    struct outside_list *l = &o->list[call->list];
    call->ring_counter = l->counter;
    call->copied_at = l->copied_at;
    if (!changes(call)) {
        return;
    }
    TAILQ_INSERT_TAIL(&o->under_way, call, under_way);
    if (is_ring(o)) {
        ring_asked(o, call);
        return;
    }
    if (clears(call)) {
        ask_to_clear(o, l);
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        struct word *w = &l->words[call->ids[i]];
        if (adds(call)) {
            w->adding++;
            w->adds++;
            w->net_most++;
            w->out_since = w->dropped_since = 0;
            w->out_for_good = false;
        } else {
            w->deleting++;
            w->in_since = 0;
        }
    }
}

/* Nothing could have deleted the item while the call was under way. */
static bool undisturbed_add(const struct outside_list *l, const struct word *w, uint64_t asked)
{
    return w->deleting == 0 && l->clearing == 0 && w->delete_over < asked && l->clear_over < asked;
}

static bool undisturbed_delete(const struct word *w, uint64_t asked)
{
    return w->adding == 0 && w->add_over < asked;
}

static void add_over(struct outside *o, struct outside_list *l, const struct sim_call *call,
                     uint16_t id, bool first, bool acknowledged)
{
    struct word *w = &l->words[id];
    w->adding--;
    w->add_over = o->oracle->moment;
    if (!acknowledged || !first) {
        return;
    }
    bool undisturbed = undisturbed_add(l, w, call->asked);
    if (!counts(o)) {
        w->in_since = !undisturbed || w->in_since != 0 ? w->in_since : o->oracle->moment;
        return;
    }
    if (call->call.verb == LIST_ADD) {
        /* Folded between an addition and a deletion behind it, it is worth nothing. */
        w->net_least += w->delete_over < call->asked && l->clear_over < call->asked;
    } else if (undisturbed && w->net_least < 1) {
        w->net_least = 1;
    }
    settle_count(o, l, w);
}

static void delete_over(struct outside *o, struct outside_list *l, const struct sim_call *call,
                        uint16_t id, bool acknowledged)
{
    struct word *w = &l->words[id];
    w->deleting--;
    w->delete_over = o->oracle->moment;
    w->net_least = (w->net_least > 1 ? 1 : w->net_least) - 1;
    w->deletes_beside_clears += l->clearing > 0;
    if (acknowledged && undisturbed_delete(w, call->asked)) {
        w->net_most -= w->net_most > 0;
        if (!counts(o) || w->net_most == 0) {
            w->out_since = o->oracle->moment;
            w->out_for_good = w->out_for_good || is_for_good(o, w, call);
        }
    }
    if (counts(o)) {
        settle_count(o, l, w);
    }
}

static void clear_over(struct outside *o, struct outside_list *l, const struct sim_call *call,
                       bool acknowledged)
{
    l->clearing--;
    for (unsigned id = 0; id < o->items; id++) {
        struct word *w = &l->words[id];
        /* A deletion that came just behind it stands there alone. */
        w->net_least = (w->net_least > 0 ? 0 : w->net_least) - (int64_t)w->deletes_beside_clears;
        w->deletes_beside_clears = 0;
        if (acknowledged && !has_id(call, (uint16_t)id) && undisturbed_delete(w, call->asked)) {
            w->net_most = 0;
            w->out_since = o->oracle->moment;
            w->dropped_since = call->call.verb == LIST_DROP ? o->oracle->moment : 0;
        }
        if (counts(o)) {
            settle_count(o, l, w);
        }
    }
}

/* It was not done and never will be. */
static void refused(struct outside *o, struct outside_list *l, const struct sim_call *call)
{
    l->clearing -= clears(call);
    for (size_t i = 0; i < call->call.item_count; i++) {
        struct word *w = &l->words[call->ids[i]];
        if (adds(call)) {
            w->adding--;
            w->adds--;
            w->net_most -= w->net_most > 0;
        } else {
            w->deleting--;
        }
        if (counts(o)) {
            settle_count(o, l, w);
        }
    }
}

/* The call cannot take effect any more. */
static void over(struct outside *o, struct sim_call *call, bool acknowledged)
{
    struct outside_list *l = &o->list[call->list];
    TAILQ_REMOVE(&o->under_way, call, under_way);
    if (is_ring(o)) {
        ring_over(o, call, acknowledged);
        return;
    }
    if (clears(call)) {
        clear_over(o, l, call, acknowledged);
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        if (adds(call)) {
            add_over(o, l, call, call->ids[i], is_first(call, i), acknowledged);
        } else {
            delete_over(o, l, call, call->ids[i], acknowledged);
        }
    }
    if (clears(call)) {
        l->clear_over = o->oracle->moment;
    }
}

void outside_time(struct outside *o, uint64_t now_us)
{
    struct sim_call *call, *next;
    o->now_us = now_us;
    for (call = TAILQ_FIRST(&o->under_way); call != NULL; call = next) {
        next = TAILQ_NEXT(call, under_way);
        if (call->done && call->settled_us < now_us) {
            o->oracle->moment++;
            over(o, call, false);
        }
    }
}

/* ---- what is seen ---- */

static void check_seen(struct outside *o, unsigned list, const struct ids *seen, uint64_t asked,
                       const struct sim_call *call)
{
    static uint8_t times[ITEMS_MAX];
    struct outside_list *l = &o->list[list];
    memset(times, 0, o->items);
    for (uint32_t i = 0; i < seen->count; i++) {
        uint16_t id = seen->ids[i];
        const struct word *w = &l->words[id];
        if (id >= o->items || w->adds == 0) {
            outside_wrong(o, list, call, seen, "was never added", id);
        }
        if (times[id]++ > 0) {
            outside_wrong(o, list, call, seen, "is shown twice", id);
        }
        if (w->out_since != 0 && w->out_since < asked) {
            if (!may_come_back(o, call) || ((call == NULL || o->quiet) &&
                                            (!may_stay_back(w, asked) || is_out_for_good(l, w)))) {
                outside_wrong(o, list, call, seen, "has come back", id);
            }
            o->came_back++;
        }
    }
}

static void check_complete(struct outside *o, unsigned list, const struct ids *seen, uint64_t asked,
                           const struct sim_call *call)
{
    static bool shown[ITEMS_MAX];
    struct outside_list *l = &o->list[list];
    memset(shown, 0, sizeof shown);
    for (uint32_t i = 0; i < seen->count; i++) {
        shown[seen->ids[i]] = true;
    }
    for (unsigned id = 0; id < o->items; id++) {
        const struct word *w = &l->words[id];
        bool wanted = call == NULL || call->call.verb != LIST_HAS || has_id(call, (uint16_t)id);
        if (wanted && w->in_since != 0 && w->in_since < asked && !shown[id]) {
            outside_wrong(o, list, call, seen, "is lost", (uint16_t)id);
        }
    }
}

static void check_length(struct outside *o, const struct sim_call *call, uint64_t length)
{
    static const struct ids nothing;
    uint64_t least = 0, most = 0;
    for (unsigned id = 0; id < o->items; id++) {
        const struct word *w = &o->list[call->list].words[id];
        least += w->in_since != 0 && w->in_since < call->asked;
        most += w->adds > 0 &&
                (may_come_back(o, call) || w->out_since == 0 || w->out_since >= call->asked);
    }
    if (length < least || length > most) {
        printf("  %llu to %llu items\n", (unsigned long long)least, (unsigned long long)most);
        outside_wrong(o, call->list, call, &nothing, "or others are counted wrongly", 0);
    }
}

static void judge_read(struct outside *o, struct sim_call *call)
{
    const struct list_call *c = &call->call;
    if (c->verb == LIST_LEN || c->verb == LIST_STAT) {
        if (!is_ring(o)) {
            check_length(o, call, c->verb == LIST_LEN ? c->number : c->stat.items);
        }
        return;
    }
    if (!oracle_parse_answer(o->oracle, call, &call->answer) || c->number != call->answer.count) {
        outside_wrong(o, call->list, call, &call->answer, "or others: malformed answer", 0);
    }
    if (is_ring(o)) {
        ring_check(o, call->list, &call->answer, call->asked, call);
        return;
    }
    if (c->verb != LIST_HAS) {
        check_seen(o, call->list, &call->answer, call->asked, call);
    }
    if (!list_verb_has(c->verb, LIST_RANGES | LIST_PICKS)) {
        check_complete(o, call->list, &call->answer, call->asked, call);
    }
}

void outside_answered(struct outside *o, struct sim_call *call)
{
    enum list_status status = call->call.status;
    bool unknown = call_unknown(call);
    bool failed = status == LIST_SERVER_ERROR || status == LIST_CLIENT_ERROR;
    o->oracle->checked += !unknown;
    if (!changes(call)) {
        bool reads = list_verb_reads(call->call.verb);
        if (!unknown && !failed && reads) {
            judge_read(o, call);
        }
        return;
    }
    if (unknown && call->settled_us >= o->now_us) {
        return; /* its last message is still on its way */
    }
    if (!unknown && failed) {
        if (call->call.error[0] == '\0') {
            outside_wrong(o, call->list, call, &call->answer, "or others: an error without a text",
                          0);
        }
        TAILQ_REMOVE(&o->under_way, call, under_way);
        if (is_ring(o)) {
            ring_over(o, call, false);
        } else {
            refused(o, &o->list[call->list], call);
        }
        return;
    }
    over(o, call, !unknown);
}

/* Is that a log which is written anew, closed, and holds more than a number? */
static bool closes_anew(const struct outside *o, const struct list_request *request)
{
    enum { NUMBER_MAX = 64 };
    struct slice value = request->be.value;
    return o->format->dialect == DIALECT_MARKER && request->be.verb == BE_CAS &&
           value.len > NUMBER_MAX && value.p[0] == o->format->mark;
}

/* When did the last copy come that has become the list? */
static void note_parts(const struct outside *o, struct outside_list *l, const struct decoded *c)
{
    if (c->parts <= 1) {
        bool copied = l->parts > 1 && c->second_active != l->second_alone;
        l->copied_at = copied ? l->second_at : l->copied_at;
        l->second_alone = c->second_active;
    } else if (l->parts <= 1) {
        l->second_at = o->oracle->moment;
    }
    l->parts = c->parts;
}

void outside_executed(struct outside *o, unsigned list, const struct list_request *request,
                      bool stored, int64_t now_s)
{
    struct decoded *content = &o->oracle->content;
    format_decode(o->format, list, now_s, content);
    if (content->malformed != NULL) {
        outside_wrong(o, list, NULL, &content->items, content->malformed, 0);
    }
    o->oracle->moment++;
    if (is_ring(o)) {
        ring_check_counter(o, list, content->counter);
        if (request->be.verb == BE_SET) {
            ring_stored(o, list, request, stored);
        }
        ring_check(o, list, &content->items, o->oracle->moment, NULL);
        return;
    }
    note_parts(o, &o->list[list], content);
    if (stored && closes_anew(o, request)) {
        o->list[list].copied_at = 0;
    }
    check_seen(o, list, &content->items, o->oracle->moment, NULL);
    check_complete(o, list, &content->items, o->oracle->moment, NULL);
}
