/* SPDX-License-Identifier: BSD-3-Clause */
#include "native_history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

/* ---- content ---- */

static int place_of(const struct listing *c, uint8_t id)
{
    for (int i = 0; i < c->count; i++) {
        if (c->ids[i] == id) {
            return i;
        }
    }
    return -1;
}

/* Returns whether it was new. */
static bool put(struct listing *c, uint8_t id)
{
    if (place_of(c, id) >= 0) {
        return false;
    }
    CHECK(c->count < ITEM_IDS_MAX);
    c->ids[c->count++] = id;
    return true;
}

/* Returns whether it was there. */
static bool take(struct listing *c, uint8_t id)
{
    int at = place_of(c, id);
    if (at < 0) {
        return false;
    }
    c->count--;
    memmove(&c->ids[at], &c->ids[at + 1], (size_t)(c->count - at));
    return true;
}

static bool same_items(const struct listing *a, const struct listing *b)
{
    return a->count == b->count && memcmp(a->ids, b->ids, a->count) == 0;
}

bool listing_of_items(struct listing *listing, const struct ids *items, bool exists)
{
    listing->exists = exists;
    listing->count = 0;
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->ids[i] >= ITEM_IDS_MAX || listing->count == ITEM_IDS_MAX) {
            return false;
        }
        listing->ids[listing->count++] = (uint8_t)items->ids[i];
    }
    return true;
}

/* ---- calls ---- */

void history_init(struct history *h, const struct listing *first, bool refuse)
{
    h->refuse = refuse;
    h->clock = 0;
    h->count = 0;
    h->first = *first;
}

void history_fini(struct history *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        chain_fini(&h->calls[i].call.answer);
    }
    h->count = 0;
}

static struct history_call *next_call(struct history *h, char proxy, const struct call_spec *spec)
{
    CHECK(h->count < CALLS_MAX);
    struct history_call *call = &h->calls[h->count++];
    memset(call, 0, offsetof(struct history_call, answer));
    call->answer.count = 0;
    call->spec = spec;
    call->proxy = proxy;
    call->asked = ++h->clock;
    chain_init(&call->call.answer);
    return call;
}

struct history_call *history_ask(struct history *h, char proxy, const struct call_spec *spec,
                                 const struct list_policy *policy, struct list_session *session)
{
    struct history_call *call = next_call(h, proxy, spec);
    for (unsigned i = 0; i < spec->count; i++) {
        call->items[i] = item_text(spec->ids[i]);
    }
    call->call.verb = spec->verb;
    call->call.form = LIST_FORM_JOINED;
    call->call.policy = policy;
    call->call.session = session;
    call->call.items = call->items;
    call->call.item_count = spec->count;
    call->call.from = spec->from;
    call->call.to = spec->to;
    call->call.count = spec->from; /* of verbs that take one */
    call->call.owner = call;
    call->over = UINT32_MAX;
    return call;
}

/* Splits the answer at its delimiters. */
static bool parse_answer(struct history_call *call)
{
    struct chain *chain = &call->call.answer;
    char text[ITEM_IDS_MAX * ITEM_NAME_MAX];
    size_t used = 0;
    if (chain->bytes == 0) {
        return true;
    }
    if (chain->bytes >= sizeof text) {
        return false;
    }
    while (chain->bytes > 0) {
        struct iovec iov;
        CHECK(chain_iov(chain, &iov, 1) == 1);
        memcpy(text + used, iov.iov_base, iov.iov_len);
        used += iov.iov_len;
        chain_consume(chain, iov.iov_len);
    }
    for (size_t at = 0; at <= used;) {
        const char *end = memchr(text + at, ',', used - at);
        size_t len = end == NULL ? used - at : (size_t)(end - text) - at;
        uint16_t id;
        if (!item_of_name(slice_make(text + at, len), &id) || id >= ITEM_IDS_MAX ||
            call->answer.count == ITEM_IDS_MAX) {
            return false;
        }
        call->answer.ids[call->answer.count++] = (uint8_t)id;
        at += len + 1;
    }
    return true;
}

bool history_answer(struct history *h, struct history_call *call)
{
    const struct list_call *c = &call->call;
    bool error = c->status == LIST_SERVER_ERROR || c->status == LIST_CLIENT_ERROR;
    call->over = ++h->clock;
    call->end = call_end_of(c);
    if (error) {
        return c->error[0] != '\0';
    }
    return parse_answer(call);
}

void history_crash(struct history *h, char proxy)
{
    h->clock++;
    for (unsigned i = 0; i < h->count; i++) {
        struct history_call *call = &h->calls[i];
        if (call->proxy == proxy && call->end == CALL_OPEN) {
            call->end = CALL_UNKNOWN;
            call->over = h->clock;
        }
    }
}

void history_settle(struct history *h)
{
    h->clock++;
    for (unsigned i = 0; i < h->count; i++) {
        if (h->calls[i].end == CALL_UNKNOWN) {
            h->calls[i].over = h->clock;
        }
    }
}

void history_observe(struct history *h, const struct listing *listing)
{
    static const struct call_spec look = {.verb = LIST_GET};
    struct history_call *call = next_call(h, 'o', &look);
    call->call.verb = LIST_GET;
    call->call.number = listing->count;
    call->call.status =
        listing->count > 0 || (h->refuse && listing->exists) ? LIST_OK : LIST_MISSING;
    call->answer = *listing;
    call->end = CALL_DONE;
    call->over = ++h->clock;
}

void history_may_drop(struct history *h)
{
    static const struct call_spec drop = {.verb = LIST_DROP};
    struct history_call *call = next_call(h, 'd', &drop);
    call->call.verb = LIST_DROP;
    call->asked = 0;
    call->over = ++h->clock;
    call->end = CALL_UNKNOWN;
}

/* ---- what calls do ---- */

/* Was that number answered, if any was? */
static bool number_is(const struct history_call *call, uint64_t number)
{
    return call->end != CALL_DONE || call->call.number == number;
}

static bool does_add(const struct history *h, const struct history_call *call, struct listing *now)
{
    const struct list_call *c = &call->call;
    const struct call_spec *s = call->spec;
    uint64_t added = 0;
    if (c->status == LIST_NOT_STORED) {
        return h->refuse && !now->exists;
    }
    if (h->refuse && !now->exists) {
        return false;
    }
    now->exists = true;
    for (unsigned i = 0; i < s->count; i++) {
        added += put(now, s->ids[i]);
    }
    return c->verb != LIST_ADDX || number_is(call, added);
}

static bool does_del(const struct history *h, const struct history_call *call, struct listing *now)
{
    const struct list_call *c = &call->call;
    const struct call_spec *s = call->spec;
    uint64_t removed = 0;
    if (c->status == LIST_MISSING) {
        return h->refuse && !now->exists;
    }
    if (h->refuse && !now->exists) {
        return false;
    }
    for (unsigned i = 0; i < s->count; i++) {
        removed += take(now, s->ids[i]);
    }
    return c->verb != LIST_DELX || number_is(call, removed);
}

/* As many as were asked for: the log of these worlds has room for them. */
static bool does_pop(const struct history_call *call, struct listing *now)
{
    int count = call->spec->from, taken = 0;
    bool answered = call->end == CALL_DONE;
    while (taken < abs(count) && now->count > 0) {
        uint8_t id = now->ids[count < 0 ? now->count - 1 : 0];
        if (answered && (taken >= call->answer.count || call->answer.ids[taken] != id)) {
            return false;
        }
        (void)take(now, id);
        taken++;
    }
    return !answered || (call->answer.count == taken && call->call.number == (uint64_t)taken);
}

static bool does_set(const struct history *h, const struct history_call *call, struct listing *now)
{
    const struct list_call *c = &call->call;
    const struct call_spec *s = call->spec;
    if (c->verb == LIST_CREATE) {
        bool there = h->refuse ? now->exists : now->count > 0;
        if (there || c->status == LIST_NOT_STORED) {
            return there && c->status == LIST_NOT_STORED;
        }
    }
    now->exists = true;
    now->count = 0;
    for (unsigned i = 0; i < s->count; i++) {
        put(now, s->ids[i]);
    }
    return c->status != LIST_MISSING;
}

static bool does_drop(const struct history *h, const struct history_call *call, struct listing *now)
{
    const struct list_call *c = &call->call;
    if (c->status == LIST_MISSING) {
        return h->refuse && !now->exists;
    }
    if (h->refuse && !now->exists) {
        return false;
    }
    now->exists = false;
    now->count = 0;
    return true;
}

static bool reads_has(const struct history_call *call, const struct listing *now)
{
    uint8_t found = 0;
    for (unsigned i = 0; i < call->spec->count; i++) {
        if (place_of(now, call->spec->ids[i]) >= 0) {
            if (found >= call->answer.count || call->answer.ids[found] != call->spec->ids[i]) {
                return false;
            }
            found++;
        }
    }
    return found == call->answer.count && (found == 0) == (call->call.status == LIST_MISSING);
}

static bool reads_beside(const struct history_call *call, const struct listing *now)
{
    int step = call->call.verb == LIST_AFTER ? 1 : -1;
    int at = place_of(now, call->spec->ids[0]), found = 0;
    bool missing = at < 0;
    for (at += step; !missing && at >= 0 && at < now->count && found < call->spec->from;
         at += step) {
        if (found >= call->answer.count || call->answer.ids[found] != now->ids[at]) {
            return false;
        }
        found++;
    }
    return call->answer.count == found && missing == (call->call.status == LIST_MISSING);
}

static bool reads_random(const struct history_call *call, const struct listing *now)
{
    int wanted = call->spec->from < now->count ? call->spec->from : now->count;
    for (int i = 0; i < call->answer.count; i++) {
        const uint8_t *ids = call->answer.ids;
        if (place_of(now, ids[i]) < 0 || memchr(ids, ids[i], (size_t)i) != NULL) {
            return false;
        }
    }
    return call->answer.count == wanted;
}

static void cut(const struct listing *now, int from, int to, bool back, struct listing *out)
{
    int n = now->count;
    from = from < 0 ? n + from : from;
    to = to < 0 ? n + to : to;
    from = from < 0 ? 0 : from;
    to = to >= n ? n - 1 : to;
    out->exists = now->exists;
    out->count = 0;
    for (int i = from; i <= to; i++) {
        out->ids[out->count++] = now->ids[back ? n - 1 - i : i];
    }
}

/* lget, lrange, lrevrange, lhas, llen: would that content be answered like this? */
static bool reads(const struct history *h, const struct history_call *call,
                  const struct listing *now)
{
    const struct list_call *c = &call->call;
    struct listing wanted;
    if (c->verb == LIST_LEN) {
        return c->number == now->count;
    }
    if (c->number != call->answer.count) {
        return false;
    }
    if (c->verb == LIST_HAS) {
        return reads_has(call, now);
    }
    if (list_verb_has(c->verb, LIST_PAGES)) {
        return reads_beside(call, now);
    }
    if (c->verb == LIST_RANDOM) {
        return reads_random(call, now);
    }
    bool all = !list_verb_has(c->verb, LIST_RANGES);
    cut(now, all ? 0 : call->spec->from, all ? -1 : call->spec->to, c->verb == LIST_REVRANGE,
        &wanted);
    bool missing = wanted.count == 0 && !(h->refuse && now->exists);
    return same_items(&wanted, &call->answer) && missing == (c->status == LIST_MISSING);
}

static bool does(const struct history *h, const struct history_call *call, struct listing *now)
{
    const struct list_call *c = &call->call;
    switch (c->verb) {
    case LIST_ADD:
    case LIST_ADDX:
        return does_add(h, call, now);
    case LIST_DEL:
    case LIST_DELX:
        return does_del(h, call, now);
    case LIST_POP:
        return does_pop(call, now);
    case LIST_SET:
    case LIST_CREATE:
        return does_set(h, call, now);
    case LIST_DROP:
        return does_drop(h, call, now);
    case LIST_COMPACT:
        return !h->refuse || (c->status == LIST_MISSING) == !now->exists;
    default:
        CHECK(list_verb_reads(c->verb) && c->verb != LIST_STAT);
        return reads(h, call, now);
    }
}

/* ---- the search for an order ---- */

struct search {
    const struct history *h;
    const struct listing *last;
    uint32_t all;      /* calls that had an effect, or may have had one */
    uint32_t optional; /* of these, the latter */
};

/* Calls that cannot take effect any more once this one has. */
static uint32_t over_before(const struct search *s, unsigned next)
{
    const struct history_call *call = &s->h->calls[next];
    uint32_t over = 0;
    for (unsigned i = 0; i < s->h->count; i++) {
        const struct history_call *other = &s->h->calls[i];
        /* What got no answer may arrive behind what its session asked for later. */
        bool same_session = other->proxy == call->proxy && i < next && other->end != CALL_UNKNOWN;
        if (i != next && (other->over < call->asked || same_session)) {
            over |= 1u << i;
        }
    }
    return over & s->all;
}

static bool explain(const struct search *s, const struct listing *now, uint32_t done)
{
    const struct history *h = s->h;
    if (((s->all & ~done) & ~s->optional) == 0 && same_items(now, s->last) &&
        (!h->refuse || now->exists == s->last->exists)) {
        return true;
    }
    for (unsigned i = 0; i < h->count; i++) {
        uint32_t bit = 1u << i;
        if ((s->all & ~done & bit) == 0) {
            continue;
        }
        uint32_t skipped = over_before(s, i) & ~done;
        if ((skipped & ~s->optional) != 0) {
            continue;
        }
        struct listing then = *now;
        if (does(h, &h->calls[i], &then) && explain(s, &then, done | bit | skipped)) {
            return true;
        }
    }
    return false;
}

bool history_explains(const struct history *h, const struct listing *last)
{
    struct search s = {.h = h, .last = last};
    for (unsigned i = 0; i < h->count; i++) {
        const struct history_call *call = &h->calls[i];
        bool reads_only = list_verb_reads(call->spec->verb);
        bool open = call->end == CALL_UNKNOWN || call->end == CALL_OPEN;
        if (call->end == CALL_REFUSED ||
            (open && (reads_only || call->spec->verb == LIST_COMPACT))) {
            continue;
        }
        s.all |= 1u << i;
        s.optional |= open ? 1u << i : 0;
    }
    return explain(&s, &h->first, 0);
}

/* ---- texts ---- */

static void PRINTF_LIKE(4, 5) append(char *out, size_t cap, size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out + *used, cap - *used, format, args);
    va_end(args);
    *used += n > 0 ? (size_t)n : 0;
    *used = *used < cap ? *used : cap - 1;
}

void listing_describe(const struct listing *listing, char *out, size_t cap)
{
    size_t used = 0;
    append(out, cap, &used, "%s", listing->exists || listing->count > 0 ? "(" : "no list (");
    for (unsigned i = 0; i < listing->count; i++) {
        append(out, cap, &used, i == 0 ? "%u" : " %u", (unsigned)listing->ids[i]);
    }
    append(out, cap, &used, ")");
}

void call_describe(const struct history_call *call, char *out, size_t cap)
{
    static const char *const statuses[] = {"OK", "MISSING", "NOT_STORED", "CLIENT_ERROR",
                                           "SERVER_ERROR"};
    const struct list_call *c = &call->call;
    size_t used = 0;
    append(out, cap, &used, "%c %s", call->proxy, list_verb_word(call->spec->verb));
    for (unsigned i = 0; i < call->spec->count; i++) {
        append(out, cap, &used, " %u", (unsigned)call->spec->ids[i]);
    }
    if (call->end == CALL_OPEN || (call->end == CALL_UNKNOWN && c->error[0] == '\0')) {
        append(out, cap, &used, " -> no answer");
        return;
    }
    append(out, cap, &used, " -> %s %llu", statuses[c->status], (unsigned long long)c->number);
    for (unsigned i = 0; i < call->answer.count; i++) {
        append(out, cap, &used, i == 0 ? ": %u" : " %u", (unsigned)call->answer.ids[i]);
    }
    append(out, cap, &used, " %s", c->error);
}
