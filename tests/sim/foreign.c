/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreign.h"

#include <stdio.h>
#include <stdlib.h>

#include "list/core/engine_state.h"
#include "world.h"

static struct foreign_list *list_at(struct sim_world *w, unsigned list)
{
    return &w->foreign.lists[list - FOREIGN_FIRST];
}

static struct store *store_of(const struct foreign_list *f)
{
    return cluster_store(&f->world->base.cluster, slice_make(f->key, f->key_len));
}

/* While lists move, one that a proxy was about to make on the old server is what counts from then
 * on; the value stands where it was put. Nodes change places, with what they hold. */
static const struct item *find_value(const struct foreign_list *f)
{
    struct store *store = f->world->base.cluster.moving ? f->store : store_of(f);
    return store_find(store, slice_make(f->key, f->key_len), world_now(&f->world->base).wall_s);
}

static bool is_intact(const struct foreign_list *f)
{
    const struct item *item = find_value(f);
    return item != NULL && item->cas == f->cas && item->flags == f->flags &&
           slice_equal(item_value(item), slice_make(f->value->data, f->value->used));
}

static void forget(struct foreign_list *f)
{
    f->stands = false;
    block_unref(&f->value);
}

/* Does the index name that sublist, the way in which a client by hand reads it? newest: any. */
static bool index_names(const struct foreign_list *f, uint64_t number)
{
    const struct format *format = &f->world->format;
    struct slice item,
        rest = format_value(format, f->list, FORMAT_KEY, 0, world_now(&f->world->base).wall_s);
    uint64_t found;
    bool named = false;
    char sign;
    while (signed_take(format, &rest, &sign, &item)) {
        if (slice_to_u64(item, &found) && found == number) {
            named = sign == format->plus;
        }
    }
    return named;
}

static void choose_part(struct foreign_list *f)
{
    const struct format *format = &f->world->format;
    uint64_t n = rng_below(&f->rng, 4), newest;
    f->part = FORMAT_KEY;
    f->number = 0;
    if (format->dialect == DIALECT_PAIRED) {
        f->part = n < 2 ? FORMAT_ADDS : FORMAT_DELETES;
    } else if (format->dialect == DIALECT_FLIP || format->dialect == DIALECT_MARKER) {
        bool pointer = n == 0 && format->dialect == DIALECT_FLIP;
        f->part = pointer ? FORMAT_ACTIVE : n < 3 ? FORMAT_A : FORMAT_B;
    } else if (format->dialect == DIALECT_RING) {
        f->part = n == 0 ? FORMAT_SEQ : FORMAT_SLOT;
        f->number = n == 0 ? 0 : rng_below(&f->rng, format->capacity);
    } else if (format->dialect == DIALECT_SUBLISTS && n > 0 &&
               index_newest(
                   format,
                   format_value(format, f->list, FORMAT_KEY, 0, world_now(&f->world->base).wall_s),
                   &newest)) {
        f->part = FORMAT_SUBLIST;
        f->number = newest;
    }
    if (f->world->p.dialect == DIALECT_NATIVE) {
        f->key_len = (uint8_t)snprintf(f->key, sizeof f->key, "L%u#", f->list);
    } else {
        f->key_len = (uint8_t)format_key(format, f->list, f->part, f->number, f->key);
    }
}

static void put(struct foreign_list *f)
{
    struct sim_world *w = f->world;
    char shown[96];
    forget(f);
    choose_part(f);
    struct be_operation r = {.verb = BE_SET, .key = slice_make(f->key, f->key_len)};
    struct be_reply reply = {0};
    f->value = foreign_value(f, &f->flags);
    r.flags = f->flags;
    r.value = slice_make(f->value->data, f->value->used);
    r.durable = true; /* of nodes: what becomes of foreign values in a failover is no matter here */
    f->store = store_of(f);
    store_execute(f->store, &r, world_now(&w->base).wall_s, &reply);
    trace(&w->base, "foreign set %s %u -> %s  %s", f->key, f->flags, be_status_name(reply.status),
          slice_escape(r.value, shown, sizeof shown));
    const struct item *item = find_value(f);
    f->stands = reply.status == BE_STORED;
    f->cas = item == NULL ? 0 : item->cas;
    f->since = ++w->foreign.moment;
    for (unsigned p = 0; p < w->p.proxies; p++) {
        f->of[p].met = false;
    }
}

/* ---- clients ---- */

struct collected {
    const struct sim_world *w;
    unsigned list;
    struct slice keys[STORE_BUCKETS];
    size_t count;
};

static void collect_own(void *arg, const struct item *item)
{
    struct collected *c = arg;
    char prefix[16];
    enum format_part part;
    uint64_t number;
    struct slice key = item_key(item);
    int n = snprintf(prefix, sizeof prefix, "L%u#", c->list);
    bool own = c->w->p.dialect == DIALECT_NATIVE
                   ? slice_starts_with(key, slice_make(prefix, (size_t)n))
                   : format_list(&c->w->format, key, &part, &number) == (int)c->list;
    if (own && c->count < STORE_BUCKETS) {
        c->keys[c->count++] = key;
    }
}

static void delete_all(struct foreign_list *f)
{
    static struct collected c;
    struct sim_world *w = f->world;
    trace(&w->base, "foreign deletes all of L%u", f->list);
    for (unsigned s = 0; s < w->p.servers; s++) {
        c.w = w;
        c.list = f->list;
        c.count = 0;
        store_each(&w->base.stores[s], collect_own, &c);
        for (size_t i = 0; i < c.count; i++) {
            store_evict(&w->base.stores[s], c.keys[i]);
        }
    }
    forget(f);
}

void foreign_act(struct foreign_list *f)
{
    struct sim_world *w = f->world;
    uint64_t n = rng_below(&f->rng, 8);
    if (w->quiet) {
        return;
    }
    if (f->stands ? n < 3 : n < 6) {
        put(f);
    } else if (n == 6) {
        delete_all(f);
    }
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&f->rng, 40 * w->p.think_us),
                EVENT_FOREIGN, f, 0);
}

static enum list_verb choose_verb(struct rng *rng)
{
    static const enum list_verb verbs[] = {LIST_ADD, LIST_ADD,  LIST_ADD,   LIST_ADD,     LIST_ADD,
                                           LIST_DEL, LIST_DEL,  LIST_DEL,   LIST_SET,     LIST_GET,
                                           LIST_GET, LIST_HAS,  LIST_RANGE, LIST_COMPACT, LIST_STAT,
                                           LIST_LEN, LIST_ADDX, LIST_DELX};
    uint64_t n = rng_below(rng, 100);
    if (n < 6) {
        return n < 4 ? LIST_DROP : LIST_CREATE;
    }
    enum list_verb verb = verbs[rng_below(rng, sizeof verbs / sizeof verbs[0])];
    return verb == LIST_RANGE && n % 2 == 0 ? LIST_REVRANGE : verb;
}

static const struct list *known_list(const struct sim_proxy *p, const struct sim_call *call)
{
    return p->base.engine == NULL ? NULL : lists_find(&p->base.engine->lists, slice_of(call->key));
}

/* May the ldrop still do something? Also behind its answer, until its proxy has done with the list,
 * and what that has sent by then has arrived. */
static bool may_drop(const struct sim_world *w, struct sim_call *call)
{
    const struct sim_proxy *p = &w->proxies[call->proxy];
    const struct list *list = known_list(p, call);
    if (!call->done && !call->abandoned) {
        return true;
    }
    if (call->settled_us == UINT64_MAX && (list == NULL || list->ops == 0)) {
        call->settled_us = p->last_arrival_us;
    }
    return call->settled_us >= w->base.now_us;
}

static bool is_being_dropped(struct foreign_list *f)
{
    bool any = false;
    for (unsigned i = 0; i < FOREIGN_DROPS_MAX; i++) {
        if (f->drops[i] != NULL && !may_drop(f->world, f->drops[i])) {
            f->drops[i] = NULL;
        }
        any = any || f->drops[i] != NULL;
    }
    return any;
}

/* The place for one more ldrop; NULL: there are too many under way. */
static struct sim_call **drop_place(struct foreign_list *f)
{
    for (unsigned i = 0; i < FOREIGN_DROPS_MAX; i++) {
        if (f->drops[i] == NULL) {
            return &f->drops[i];
        }
    }
    return NULL;
}

/* Does the counter reach that slot? Where it says nothing, or is set back, all slots count. */
static bool counts_slot(const struct foreign_list *f)
{
    const struct format *format = &f->world->format;
    uint64_t counter = 0;
    struct slice text =
        format_value(format, f->list, FORMAT_SEQ, 0, world_now(&f->world->base).wall_s);
    while (text.len > 0 && text.p[text.len - 1] == ' ') {
        text.len--;
    }
    return slice_to_u64(text, &counter) && (format->counter_wraps || counter >= f->number);
}

static struct sim_call *submit(struct asker *a, struct foreign_list *f, enum list_verb verb)
{
    struct sim_proxy *p = a->proxy;
    struct sim_world *w = p->world;
    struct acquaintance *of = &f->of[p->number];
    struct sim_call *call = call_new(w, verb, f->list);
    bool takes = verb <= LIST_CREATE || verb == LIST_HAS;
    call->proxy = p->number;
    call->session = p->number * CLIENTS_MAX;
    call->call.policy = &p->config->lists[0];
    call->call.session = &a->session;
    call->call.to = 5;
    call->call.item_count = takes ? 1 + rng_below(&a->rng, 2) : 0;
    for (size_t i = 0; i < call->call.item_count; i++) {
        call->ids[i] = (uint16_t)rng_below(&a->rng, w->p.items);
        call->items[i] = item_text(call->ids[i]);
    }
    if (ranges_have(&w->p.without_calls, call->number)) {
        free(call);
        return NULL;
    }
    if (verb == LIST_DROP) {
        *drop_place(f) = call;
    }
    const struct list *list = known_list(p, call);
    (void)is_being_dropped(f);
    of->alone = list == NULL || (list->ops == 0 && TAILQ_EMPTY(&list->queue));
    of->last_call = call->number;
    call->asked = ++w->foreign.moment;
    call->slot_counted = f->part == FORMAT_SLOT && counts_slot(f);
    sim_add_call(w, call);
    w->calls_pending++;
    trace_call(w, call);
    call_set_deadline(w, call);
    engine_submit(p->base.engine, &call->call, sim_now(p));
    sim_proxy_turn(p);
    return call;
}

static void plan_asker(struct asker *a)
{
    struct sim_world *w = a->proxy->world;
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&a->rng, 4 * w->p.think_us), EVENT_ASKER,
                a, a->proxy->life);
}

void foreign_ask(struct asker *a)
{
    struct sim_world *w = a->proxy->world;
    if (w->quiet || a->proxy->base.engine == NULL || w->calls_made >= w->p.ops) {
        return;
    }
    struct foreign_list *f = &w->foreign.lists[rng_below(&a->rng, w->p.foreign)];
    enum list_verb verb = choose_verb(&a->rng);
    if (verb != LIST_DROP || drop_place(f) != NULL) {
        (void)submit(a, f, verb);
    }
    plan_asker(a);
}

void foreign_proxy_started(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    if (w->p.foreign == 0) {
        return;
    }
    struct asker *a = &w->foreign.askers[p->number];
    a->proxy = p;
    a->session = (struct list_session){0};
    rng_init_seed(&a->rng, w->p.seed * 32452843 + p->number + 1000 * p->life);
    for (unsigned i = 0; i < w->p.foreign; i++) {
        w->foreign.lists[i].of[p->number] = (struct acquaintance){0};
    }
    plan_asker(a);
}

void foreign_start(struct sim_world *w)
{
    for (unsigned i = 0; i < w->p.foreign; i++) {
        struct foreign_list *f = &w->foreign.lists[i];
        *f = (struct foreign_list){.world = w, .list = FOREIGN_FIRST + i};
        rng_init_seed(&f->rng, w->p.seed * 49979687 + i);
        if (i % 2 == 0) {
            put(f);
        }
        events_plan(&w->events, w->base.now_us + 1 + rng_below(&f->rng, 40 * w->p.think_us),
                    EVENT_FOREIGN, f, 0);
    }
}

void foreign_fini(struct sim_world *w)
{
    for (unsigned i = 0; i < w->p.foreign; i++) {
        forget(&w->foreign.lists[i]);
    }
}

/* ---- requests ---- */

static bool find_part(const struct sim_world *w, const struct message *m, enum format_part *part,
                      uint64_t *number)
{
    struct slice key = flight_key(&m->flight);
    *part = FORMAT_KEY;
    *number = 0;
    if (w->p.dialect == DIALECT_NATIVE) {
        return key.p[key.len - 1] == '#';
    }
    return format_list(&w->format, key, part, number) >= 0;
}

static bool is_numbered(enum format_part part)
{
    return part == FORMAT_SUBLIST || part == FORMAT_SLOT;
}

static bool is_standing(const struct foreign_list *f, const struct message *m)
{
    return f->stands && slice_equal(flight_key(&m->flight), slice_make(f->key, f->key_len));
}

/* May a proxy write to that part without a look at it? It has looked, and the part was the list's
 * then; a ring's slots are looked at together with the counter alone. */
void foreign_sent(struct sim_world *w, struct message *m)
{
    const struct acquaintance *of = &list_at(w, (unsigned)m->list)->of[m->proxy->number];
    enum format_part part;
    uint64_t number;
    m->sent = ++w->foreign.moment;
    if (!find_part(w, m, &part, &number)) {
        return;
    }
    m->may_write = (of->parts & 1u << part) != 0 &&
                   (!is_numbered(part) || of->numbered[number % CAPACITY_MAX]);
    if (of->nothing && slice_equal(m->flight.request.be.value, SLICE_LIT("!0:"))) {
        m->may_write = true; /* an ldrop appends also where its look has found nothing */
    }
    if (part == FORMAT_SLOT) {
        m->may_write = of->slots || (!of->met && of->numbered[number % CAPACITY_MAX]);
    }
}

/* A value may have gone by eviction, by a restart, or in its time. */
void foreign_before(struct sim_world *w)
{
    for (unsigned i = 0; i < FOREIGN_MAX; i++) {
        struct foreign_list *f = &w->foreign.lists[i];
        if (!f->stands || is_intact(f)) {
            continue;
        }
        if (find_value(f) != NULL || !sim_loses(w)) {
            sim_violation("%s: a foreign value has changed by itself", f->key);
        }
        forget(f);
    }
}

/* A part was read, or made. */
static void note_read(struct sim_world *w, const struct message *m)
{
    struct foreign_list *f = list_at(w, (unsigned)m->list);
    struct acquaintance *of = &f->of[m->proxy->number];
    bool native = w->p.dialect == DIALECT_NATIVE;
    bool read =
        m->flight.request.be.verb == BE_GET &&
        (m->flight.reply.status == BE_HIT || (m->flight.reply.status == BE_MISS && !native));
    bool made = m->flight.request.be.verb == BE_ADD && m->flight.reply.status == BE_STORED;
    enum format_part part;
    uint64_t number;
    if (native && m->flight.request.be.verb == BE_GET && find_part(w, m, &part, &number)) {
        of->nothing = m->flight.reply.status == BE_MISS;
    }
    if ((!read && !made) || !find_part(w, m, &part, &number)) {
        return;
    }
    if (is_standing(f, m)) {
        return; /* it is met when a call is refused: a read may be over before its answers come */
    }
    of->parts |= 1u << part;
    if (is_numbered(part)) {
        of->numbered[number % CAPACITY_MAX] = true;
    }
}

void foreign_executed(struct sim_world *w, const struct message *m)
{
    struct foreign_list *f = list_at(w, (unsigned)m->list);
    enum be_verb verb = m->flight.request.be.verb;
    bool blind = verb == BE_APPEND || verb == BE_PREPEND || verb == BE_INCR || verb == BE_SET;
    ++w->foreign.moment;
    if (m->flight.original != NULL) {
        note_read(w, m);
    }
    if (!f->stands || is_intact(f)) {
        return;
    }
    bool native = w->p.dialect == DIALECT_NATIVE;
    bool dropped = !native && is_being_dropped(f);
    bool unseen = blind && is_standing(f, m) && (m->sent < f->since || m->may_write);
    if (!dropped && !unseen) {
        char shown[96];
        struct slice value = slice_make(f->value->data, f->value->used);
        sim_violation("%s: p%u has changed a foreign value, flags %u, %s", f->key, m->proxy->number,
                      f->flags, slice_escape(value, shown, sizeof shown));
    }
    forget(f);
}

/* ---- answers ---- */

/* Has every such call to meet the value? What only adds and deletes looks at the part that it
 * writes to, and not even at that when it knows the list. */
static bool must_refuse(const struct foreign_list *f, const struct sim_call *call)
{
    const struct sim_world *w = f->world;
    bool native = w->p.dialect == DIALECT_NATIVE, ring = w->p.dialect == DIALECT_RING;
    if (f->part == FORMAT_SUBLIST && !index_names(f, f->number)) {
        return false;
    }
    if (f->part == FORMAT_SLOT &&
        (!call->slot_counted || list_verb_has(call->call.verb, LIST_RANGES))) {
        return false;
    }
    switch (call->call.verb) {
    case LIST_ADD:
    case LIST_DEL:
        return false;
    case LIST_SET:
        return !native;
    case LIST_COMPACT:
        return !ring;
    default:
        return true;
    }
}

static bool is_refusal(const struct sim_call *call)
{
    return call->call.status == LIST_SERVER_ERROR &&
           (strstr(call->call.error, " is not of dialect ") != NULL ||
            strstr(call->call.error, " holds no list that this version can read") != NULL);
}

/* The proxy has met a foreign value, and nothing else was under way: it knows nothing any more. */
static void note_refusal(struct foreign_list *f, const struct sim_call *call)
{
    struct acquaintance *of = &f->of[call->proxy];
    f->world->foreign_refused++;
    of->met = true;
    if (of->alone && of->last_call == call->number) {
        *of = (struct acquaintance){.met = true};
    }
}

void foreign_done(struct sim_world *w, struct sim_call *call)
{
    struct foreign_list *f = list_at(w, call->list);
    enum list_status status = call->call.status;
    bool failed = status == LIST_SERVER_ERROR || status == LIST_CLIENT_ERROR;
    char text[320];
    w->calls_pending--;
    w->last_answer_us = w->base.now_us;
    w->statuses[status]++;
    call->done = true;
    call->settled_us = UINT64_MAX;
    trace_call(w, call);
    call_describe(call, text, sizeof text);
    if (failed && call->call.error[0] == '\0') {
        sim_violation("an error without a text: %s", text);
    }
    if (is_refusal(call)) {
        note_refusal(f, call);
    } else if (call->call.verb == LIST_ADD || (call->call.verb == LIST_DROP && !failed)) {
        /* It has looked, or has emptied the ring: it knows that the counter is one. */
        f->of[call->proxy].slots = true;
    }
    /* What is longer than a cap that refuses is refused without a look. */
    bool beyond = status == LIST_NOT_STORED && call->call.policy->max_items > 0;
    if (!failed && !beyond && f->stands && is_intact(f) && f->since < call->asked &&
        must_refuse(f, call)) {
        sim_violation("answered, though %s is not of a list: %s", f->key, text);
    }
    chain_clear(&call->call.answer);
}

/* ---- the end ---- */

static struct sim_call *ask_at_last(struct foreign_list *f, unsigned proxy, enum list_verb verb)
{
    struct sim_world *w = f->world;
    struct sim_call *call = NULL;
    for (int tries = 0; tries < 3; tries++) {
        call = submit(&w->foreign.askers[proxy], f, verb);
        sim_rest(w, "at the end of what is foreign");
        if (call == NULL || call->call.status != LIST_SERVER_ERROR || is_refusal(call)) {
            break;
        }
        sim_let_pass(w, 1000000); /* a connection that has broken before is noticed now */
    }
    return call;
}

static void finish_list(struct foreign_list *f)
{
    struct sim_world *w = f->world;
    bool drops = w->p.dialect != DIALECT_NATIVE;
    for (unsigned p = 0; p < w->p.proxies; p++) {
        struct sim_call *call = ask_at_last(f, p, LIST_GET);
        bool named = f->part == FORMAT_SUBLIST ? index_names(f, f->number)
                     : f->part == FORMAT_SLOT  ? call != NULL && call->slot_counted
                                               : true;
        if (f->stands && is_intact(f) && named && call != NULL && !is_refusal(call)) {
            sim_violation("%s stands, and the last lget says: %s", f->key, call->call.error);
        }
    }
    struct sim_call *call = drops && drop_place(f) != NULL ? ask_at_last(f, 0, LIST_DROP) : NULL;
    if (call != NULL && call->call.status == LIST_SERVER_ERROR) {
        sim_violation("L%u cannot be dropped: %s", f->list, call->call.error);
    }
    delete_all(f);
}

void foreign_finish(struct sim_world *w)
{
    for (unsigned i = 0; i < w->p.foreign; i++) {
        (void)is_being_dropped(&w->foreign.lists[i]);
        finish_list(&w->foreign.lists[i]);
    }
}
