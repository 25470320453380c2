/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times to live: which second a head may expire in after each write, and the clients that give
 * items other times in the servers themselves.
 */
#include <stdlib.h>

#include "base/array.h"
#include "list/core/expiry.h"
#include "txs.h"
#include "world.h"

static struct item *item_of(struct sim_world *w, const struct message *m)
{
    return store_find(&w->base.stores[m->flight.server], flight_key(&m->flight),
                      world_now(&w->base).wall_s);
}

/* "?" stands in the header. */
static bool says_absent(const struct item *item)
{
    struct slice value = item_value(item);
    const char *end = value.len > 0 ? memchr(value.p, '\n', value.len) : NULL;
    return end != NULL && memchr(value.p, '?', (size_t)(end - value.p)) != NULL;
}

void message_before(struct sim_world *w, struct message *m)
{
    const struct item *item = item_of(w, m);
    m->end_count = 0;
    foreign_before(w);
    m->purpose.stored_bytes = item != NULL ? item->value->used : 0;
    m->was_absent = item != NULL && says_absent(item);
    if (item != NULL) {
        memcpy(m->ends_s, item->ends_s, item->end_count * sizeof *item->ends_s);
        m->end_count = item->end_count;
        m->ends_s[m->end_count++] = item->expires_s;
    }
}

/* Is that one of the seconds in which the item was to expire? -1: it has expired at once. */
static bool was_to_expire(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    int64_t clock_s = w->clocks_s[m->flight.server];
    for (unsigned i = 0; i < m->end_count; i++) {
        int64_t end_s = m->ends_s[i];
        if (end_s == at_s || (at_s < 0 && end_s != 0 && end_s <= clock_s)) {
            return true;
        }
    }
    return false;
}

static bool may_end(const struct item *item, int64_t at_s)
{
    for (unsigned i = 0; i < item->end_count; i++) {
        if (item->ends_s[i] == at_s) {
            return true;
        }
    }
    return item->expires_s == at_s;
}

/* flip, marker: a log that is made with a time to live, or gets a copy, has that of the other one
 * as it was read, which may be gone since, with another in its place. */
static bool expires_as_other(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    struct slice key = flight_key(&m->flight);
    if (w->p.dialect != DIALECT_FLIP && w->p.dialect != DIALECT_MARKER) {
        return false;
    }
    for (enum format_part part = FORMAT_A; part <= FORMAT_B; part++) {
        const struct item *other =
            format_find(&w->format, (unsigned)m->list, part, 0, world_now(&w->base).wall_s);
        if (other != NULL && !slice_equal(item_key(other), key) && may_end(other, at_s)) {
            return true;
        }
    }
    for (size_t i = 0; i < w->log_end_count; i++) {
        if (w->log_ends[i].list == m->list && w->log_ends[i].end_s == at_s) {
            return true;
        }
    }
    return false;
}

/* flip, marker: remembers each second in which a log of the list was to expire. */
static void note_log_end(struct sim_world *w, int list, int64_t end_s)
{
    if (w->p.dialect != DIALECT_FLIP && w->p.dialect != DIALECT_MARKER) {
        return;
    }
    for (size_t i = 0; i < w->log_end_count; i++) {
        if (w->log_ends[i].list == list && w->log_ends[i].end_s == end_s) {
            return;
        }
    }
    w->log_ends = array_room(w->log_ends, w->log_end_count, &w->log_end_cap, sizeof *w->log_ends);
    w->log_ends[w->log_end_count++] = (struct log_end){list, end_s};
}

/* Is that so many seconds from now on? More than a month is sent as a moment, by a clock that was
 * read before. */
static bool is_from_now(const struct sim_world *w, const struct message *m, int64_t at_s,
                        int64_t left_s)
{
    int64_t late_s = w->clocks_s[m->flight.server] + left_s - at_s;
    /* So is what a put gives a list whose sublists end. */
    bool looked = left_s > EXPTIME_RELATIVE_MAX_S || m->purpose.kind == PURPOSE_PUT;
    return late_s == 0 || (looked && late_s > 0 && late_s < LOOK_AGE_MAX_S);
}

/* May it have been renewed? Only one that expires, and would do so earlier. */
static bool may_be_renewed(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    /* With sublists that end it goes as far as they live at first. */
    bool less = at_s < w->clocks_s[m->flight.server] + w->p.ttl_s;
    if (w->p.ttl_renew == TTL_RENEW_NEVER || !(less || is_from_now(w, m, at_s, w->p.ttl_s))) {
        return false;
    }
    for (unsigned i = 0; i < m->end_count; i++) {
        if (m->ends_s[i] != 0 && m->ends_s[i] <= at_s) {
            return true;
        }
    }
    return false;
}

/* Where nothing takes long, each rewriting renews what has clearly less. */
static bool must_be_renewed(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    int64_t end_s = w->clocks_s[m->flight.server] + w->p.ttl_s - LOOK_AGE_MAX_S;
    bool cut = w->p.dialect == DIALECT_NATIVE; /* it goes as far as the sublists live */
    if (w->p.ttl_renew == TTL_RENEW_NEVER || m->end_count != 1 || w->p.touches > 0 || cut) {
        return false;
    }
    return m->ends_s[0] != 0 && m->ends_s[0] < end_s && at_s < end_s;
}

/* The call that gives the list a time, if one does. */
static const struct list_call *touch_of(const struct message *m)
{
    for (size_t i = 0; i < m->purpose.count; i++) {
        if (m->purpose.calls[i]->call.has_exptime) {
            return &m->purpose.calls[i]->call;
        }
    }
    return NULL;
}

/* What an EXPTIME means to memcached; -1: gone at once. */
static int64_t end_of(const struct sim_world *w, const struct message *m, int64_t exptime)
{
    int64_t clock_s = w->clocks_s[m->flight.server];
    int64_t end_s = exptime > EXPTIME_RELATIVE_MAX_S ? exptime : clock_s + exptime;
    return exptime == 0 ? 0 : end_s <= clock_s ? -1 : end_s;
}

/* What an absent head names must be found again: it has no time to live from then on. */
static bool is_announced_in(const struct message *m, int64_t at_s)
{
    struct slice value = m->flight.request.be.value;
    return m->was_absent && at_s == 0 &&
           (memchr(value.p, '~', value.len) != NULL || memchr(value.p, '*', value.len) != NULL ||
            memchr(value.p, '-', value.len) != NULL);
}

static void check_given(const struct sim_world *w, const struct message *m,
                        const struct list_call *touch, int64_t at_s)
{
    int64_t end_s = end_of(w, m, touch->exptime);
    /* Where sublists end, the seconds are counted from a look at the clock on. */
    int64_t early_s = end_s - (at_s < 0 ? w->clocks_s[m->flight.server] : at_s);
    bool looked = end_s > 0 && early_s >= 0 && early_s < LOOK_AGE_MAX_S &&
                  touch->exptime <= EXPTIME_RELATIVE_MAX_S;
    if (at_s != end_s && !looked) {
        sim_violation("%.*s was to expire at %lld by a client's EXPTIME, and does at %lld",
                      SLICE_ARGS(flight_key(&m->flight)), (long long)end_s, (long long)at_s);
    }
}

static void check_rewritten(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    const struct slice key = flight_key(&m->flight);
    bool begins = m->purpose.kind == PURPOSE_PUT &&
                  (w->p.ttl_s > 0 ? is_from_now(w, m, at_s, w->p.ttl_s) : at_s == 0);
    if (!begins && !was_to_expire(w, m, at_s) && !may_be_renewed(w, m, at_s) &&
        !is_announced_in(m, at_s) && !expires_as_other(w, m, at_s)) {
        sim_violation("%.*s was to expire at %lld by its server's clock; rewritten it does at %lld",
                      SLICE_ARGS(key), (long long)m->ends_s[m->end_count - 1], (long long)at_s);
    }
    if (must_be_renewed(w, m, at_s)) {
        sim_violation("%.*s expires at %lld; rewritten it is not renewed", SLICE_ARGS(key),
                      (long long)at_s);
    }
}

/* As list/core/settle.c. */
#define PLACE_S (60 * 60)

static bool begins_well(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    struct slice value = m->flight.request.be.value;
    if (slice_starts_with(value, SLICE_LIT("^1 ?0.0\n~"))) {
        return at_s == 0; /* a head to announce in: what is written is found as long as it stands */
    }
    if (slice_equal(value, SLICE_LIT("^1 ?0.0\n"))) {
        return is_from_now(w, m, at_s, PLACE_S); /* a missing list's: its node is to prove itself */
    }
    if (m->purpose.kind == PURPOSE_COMPACT) {
        /* An lput announces in a head of its own. */
        return at_s == 0 || is_from_now(w, m, at_s, w->p.ttl_s);
    }
    if (m->was_absent && txs_is_primary(&w->oracle, (unsigned)m->list)) {
        return at_s == 0; /* a list that others ask for what was decided does not expire */
    }
    if (w->p.ttl_s > 0) {
        return is_from_now(w, m, at_s, w->p.ttl_s);
    }
    return m->flight.request.be.exptime == 0 || expires_as_other(w, m, at_s);
}

/* The head of a lease goes by itself, but not before the lease; one that names anything stays. */
static void check_lease(const struct sim_world *w, const struct message *m, int64_t at_s)
{
    enum { LEAST_S = 1 + 60, MOST_S = 3 + 60 };
    int64_t clock_s = w->clocks_s[m->flight.server];
    bool good = at_s >= clock_s + LEAST_S && at_s <= clock_s + MOST_S;
    if (!good && !(at_s == 0 && m->flight.request.be.verb == BE_CAS)) {
        sim_violation("%.*s of a lease expires at %lld", SLICE_ARGS(flight_key(&m->flight)),
                      (long long)at_s);
    }
}

/* A client gives it another time: to a node that is another version of the document. */
static void touch_item(struct sim_world *w, unsigned server, struct item *item, int64_t end_s)
{
    struct store *store = &w->base.stores[server];
    if (store->vbuckets != NULL && item->expires_s != end_s) {
        item->cas = store_next_cas(store, item_key(item), world_now(&w->base).wall_s);
    }
    item->expires_s = end_s;
}

/* The moment until which an item was to live that is gone at once, since its proxy has slept beyond
 * it; -1: there was none. */
static int64_t over_by_now(const struct sim_world *w, const struct message *m)
{
    int64_t exptime = m->flight.request.be.exptime;
    bool is_over = exptime > EXPTIME_RELATIVE_MAX_S && exptime <= w->clocks_s[m->flight.server];
    return is_over ? exptime : -1;
}

/* Rewriting keeps the very second of the server's clock, or renews it. By hand it is not kept. What
 * is made without a time is given one at once by another client. */
void lives_check(struct sim_world *w, const struct message *m)
{
    struct item *item = item_of(w, m);
    int64_t at_s = item == NULL ? -1 : item->expires_s;
    int64_t meant_s = item == NULL ? over_by_now(w, m) : at_s;
    bool begins = m->flight.request.be.verb == BE_ADD ||
                  (m->flight.request.be.verb == BE_CAS && m->was_absent && item != NULL &&
                   !says_absent(item));
    const struct list_call *touch = m->proxy == NULL ? NULL : touch_of(m);
    if (m->purpose.kind == PURPOSE_LEASE) {
        check_lease(w, m, at_s);
    } else if (touch != NULL && (begins || m->flight.request.be.verb == BE_CAS)) {
        check_given(w, m, touch, at_s);
    } else if (m->flight.request.be.verb == BE_CAS && m->proxy != NULL && !begins) {
        check_rewritten(w, m, meant_s);
    } else if (begins && m->proxy != NULL && !begins_well(w, m, meant_s)) {
        sim_violation("%.*s was made to expire at %lld", SLICE_ARGS(flight_key(&m->flight)),
                      (long long)meant_s);
    }
    if (w->p.dialect == DIALECT_NATIVE && !sim_loses(w)) {
        struct slice list = slice_of(w->oracle.list[m->list].key);
        const char *wrong =
            model_lives(&w->base.cluster, list, world_now(&w->base).wall_s, lives_all_end(&w->p));
        if (wrong != NULL) {
            sim_violation("%.*s# %s", SLICE_ARGS(list), wrong);
        }
    }
    if (item != NULL) {
        item->end_count = 0;
    }
    if (item != NULL && begins && m->purpose.kind != PURPOSE_LEASE && item->expires_s == 0 &&
        touch == NULL && w->p.expiry_s > 0) {
        touch_item(w, m->flight.server, item, w->clocks_s[m->flight.server] + w->p.expiry_s);
    }
    if (item != NULL) {
        note_log_end(w, m->list, item->expires_s);
    }
}

/* The item that the request has copied, or NULL: it is not there any more. */
static const struct item *copied_item(struct sim_world *w, const struct message *m,
                                      struct slice copy)
{
    enum { TOKEN_AT = sizeof "^1 >" - 1, CAS_AT = TOKEN_AT + 13 + 1 };
    int64_t now_s = world_now(&w->base).wall_s;
    struct slice key = flight_key(&m->flight), placement = request_placement(&m->flight.request);
    const struct item *item =
        store_find(cluster_place(&w->base.cluster, placement, false), key, now_s);
    return item != NULL && item->cas == strtoull(copy.p + CAS_AT, NULL, 10) ? item : NULL;
}

void lives_check_moved(struct sim_world *w, const struct message *m)
{
    const struct item *item = item_of(w, m), *from;
    struct slice value = item == NULL ? SLICE_NONE : item_value(item);
    int64_t from_s;
    if (slice_starts_with(value, SLICE_LIT("^1 >"))) {
        if ((from = copied_item(w, m, value)) == NULL) {
            return; /* its mover is late, and its mark comes in vain */
        }
        from_s = from->expires_s;
    } else if (slice_starts_with(value, SLICE_LIT("^1")) && m->end_count > 0) {
        from_s = m->ends_s[m->end_count - 1];
    } else {
        return;
    }
    /* A time of more than a month goes by the proxy's clock. */
    bool far = from_s > w->clocks_s[m->flight.server] + EXPTIME_RELATIVE_MAX_S;
    int64_t late_s = LOOK_AGE_MAX_S + (far ? DAY_S : 0), at_s = item->expires_s;
    if ((from_s == 0) != (at_s == 0) || at_s < from_s - (far ? late_s : 1) ||
        at_s > from_s + late_s) {
        sim_violation("%.*s was to expire at %lld, and on its new server does at %lld",
                      SLICE_ARGS(flight_key(&m->flight)), (long long)from_s, (long long)at_s);
    }
}

int64_t lives_choose(struct sim_world *w, struct rng *rng)
{
    int64_t clock_s = w->clocks_s[rng_below(rng, w->p.servers)];
    uint64_t n = rng_below(rng, w->p.touches > 1 ? 8 : 4);
    if (n < 2) {
        return n == 0 ? 0 : 1000000 + (int64_t)rng_below(rng, 1000);
    }
    if (n == 2) {
        return clock_s + 2 * EXPTIME_RELATIVE_MAX_S + (int64_t)rng_below(rng, 1000);
    }
    return n == 3 ? EXPTIME_RELATIVE_MAX_S : n == 7 ? -1 : 1 + (int64_t)rng_below(rng, 4);
}

/* A client gives an item a time to live, as `touch` does. */
void lives_touch(struct sim_world *w, unsigned server, struct slice key)
{
    int64_t now_s = world_now(&w->base).wall_s, clock_s = w->clocks_s[server];
    bool head = key.len > 0 && (key.p[key.len - 1] == '#' || w->p.dialect != DIALECT_NATIVE);
    struct item *item = key.len == 0 ? NULL : store_find(&w->base.stores[server], key, now_s);
    if (item != NULL && clock_key_is(key)) {
        item->expires_s = clock_s + 1 + (int64_t)rng_below(&w->rng, 1000);
        trace(&w->base, "s%u: a client touches the clock item %.*s", server, SLICE_ARGS(key));
        return;
    }
    if (item == NULL || item->end_count == ITEM_ENDS_MAX ||
        (!head && (!sim_loses(w) || rng_below(&w->rng, 4) != 0))) {
        return;
    }
    int64_t exptime = 1 + (int64_t)rng_below(&w->rng, 3);
    if (w->p.touches > 0) {
        exptime = lives_choose(w, &w->rng);
        exptime = exptime < 0 ? 1 : exptime;
    }
    int64_t end_s = exptime == 0                       ? 0
                    : exptime > EXPTIME_RELATIVE_MAX_S ? exptime
                                                       : clock_s + exptime;
    if (item->expires_s != 0 && (end_s == 0 || end_s > item->expires_s)) {
        return; /* its sublists may end before: see check_touched() */
    }
    item->ends_s[item->end_count++] = item->expires_s;
    touch_item(w, server, item, end_s);
    trace(&w->base, "s%u lets %.*s expire at %lld", server, SLICE_ARGS(key),
          (long long)item->expires_s);
    for (unsigned list = 0; list < w->p.lists; list++) {
        oracle_note_life(&w->oracle, list, now_s);
        if (w->p.couchbase != COUCHBASE_NOT) {
            oracle_note_mark(&w->oracle, list, now_s);
        }
    }
}

bool lives_end(const struct params *p)
{
    bool begin = p->ttl_s > 0 && p->ttl_s < 4 * DAY_S; /* the end takes two days */
    return p->faults[FAULT_EXPIRY] > 0 || p->touches > 1 || begin;
}

bool lives_all_end(const struct params *p)
{
    return p->touches == 0 && p->ttl_s > 0;
}
