/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists that move from one server to another: proxies in both steps, which add to one list, read it
 * and drop it, in random orders of their requests. Requests are carried out in any order that their
 * connections allow; proxies die, and what they have sent arrives later or never.
 */
#include "list/moving/moving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "list/core/expiry.h"
#include "list/moving/places.h"

#define SERVERS 2
#define PROXIES_MAX 4
#define UNDER_WAY_MAX 64
#define ITEMS_MAX 64
#define ROOM 64
#define NOW_S 1795229329
#define BYTES_MAX 4096

struct stored {
    struct block *value; /* NULL: nothing */
    uint64_t cas;
    uint32_t flags;
    int64_t ttl_s;
};

struct world;

/* A request that was sent, and its answer on the way back. */
struct sent {
    struct list_request copy;
    struct list_request *original; /* NULL: its proxy has died */
    struct world *world;
    unsigned proxy;
    bool executed;
    struct be_reply reply;
};

enum call_kind { CALL_ADD, CALL_READ };

/* What a proxy is asked for; one call at a time. */
struct call {
    struct list_request request;
    char room[ROOM];
    enum call_kind kind;
    unsigned item;
    uint64_t seen; /* how long the list was that was known to be there when it began */
    bool creates;  /* it is about to make the list */
    bool busy;
};

struct test_proxy {
    struct moving *moving;
    struct world *world;
    struct call call;
};

struct world {
    struct rng rng;
    struct stored servers[SERVERS];
    uint64_t last_cas;
    struct test_proxy proxies[PROXIES_MAX];
    unsigned proxy_count;
    struct sent *under_way[UNDER_WAY_MAX];
    size_t under_way_count;
    bool acknowledged[ITEMS_MAX], refused[ITEMS_MAX];
    unsigned item_count;
    struct block *longest; /* the longest log that was read: all others begin it or are begun by it
                            */
    struct metrics metrics;
};

/* --- servers -------------------------------------------------------------------------------- */

static struct block *joined(struct slice a, struct slice b)
{
    struct block *block = block_new_exact(a.len + b.len + 1);
    block_append(&block, a.p == NULL ? "" : a.p, a.len);
    block_append(&block, b.p == NULL ? "" : b.p, b.len);
    return block;
}

static void store(struct world *w, struct stored *at, struct block *value, uint32_t flags)
{
    block_unref(&at->value);
    at->value = value;
    at->flags = flags;
    at->cas = ++w->last_cas;
}

static enum be_status carry_out(struct world *w, struct stored *at, const struct list_request *r,
                                struct be_reply *reply)
{
    switch ((int)r->be.verb) {
    case BE_GET:
        if (at->value == NULL) {
            return BE_MISS;
        }
        reply->block = block_ref(at->value);
        reply->value = slice_make(at->value->data, at->value->used);
        reply->cas = at->cas;
        reply->flags = at->flags;
        reply->ttl_s = -1;
        return BE_HIT;
    case BE_ADD:
        if (at->value != NULL) {
            return BE_NOT_STORED;
        }
        store(w, at, joined(r->be.value, SLICE_NONE), r->be.flags);
        return BE_STORED;
    case BE_CAS:
    case BE_CAS_DELETE:
        if (at->value == NULL) {
            return BE_NOT_FOUND;
        }
        if (at->cas != r->be.cas) {
            return BE_EXISTS;
        }
        store(w, at, r->be.verb == BE_CAS ? joined(r->be.value, SLICE_NONE) : NULL, r->be.flags);
        return BE_STORED;
    default:
        fail_msg("verb %d", (int)r->be.verb);
        return BE_REFUSED;
    }
}

static void execute(struct world *w, struct sent *s)
{
    s->reply = (struct be_reply){.epoch = s->copy.pool_index + 1, .ttl_s = -1};
    s->reply.status = carry_out(w, &w->servers[s->copy.pool_index], &s->copy, &s->reply);
    s->executed = true;
}

static void take_off(struct world *w, size_t at)
{
    struct sent *s = w->under_way[at];
    block_unref(&s->reply.block);
    block_unref(&s->copy.be.block);
    free(s);
    w->under_way[at] = w->under_way[--w->under_way_count];
}

/* --- clients -------------------------------------------------------------------------------- */

/* No read shows another order than others, or less than one that had ended when it began. */
static void check_read(struct world *w, struct call *call, struct slice value)
{
    struct slice known =
        w->longest == NULL ? SLICE_LIT("^1\n") : slice_make(w->longest->data, w->longest->used);
    size_t same = known.len < value.len ? known.len : value.len;
    assert_memory_equal(known.p, value.p, same);
    assert_true(value.len >= call->seen);
    if (value.len > known.len) {
        block_unref(&w->longest);
        w->longest = joined(value, SLICE_NONE);
    }
}

static void ask(struct test_proxy *p, enum be_verb verb, const char *begin)
{
    struct call *c = &p->call;
    block_unref(&c->request.be.block);
    c->request = (struct list_request){.key = "k#", .be.verb = verb};
    request_set_key(&c->request, 2);
    if (verb != BE_GET) {
        char text[32];
        int n = snprintf(text, sizeof text, "%s+2:%02u", begin, c->item);
        c->request.be.block = joined(slice_make(text, (size_t)n), SLICE_NONE);
        c->request.be.value = slice_make(c->request.be.block->data, c->request.be.block->used);
    }
    moving_submit(p->moving, &c->request, false);
}

static void begin_call(struct test_proxy *p)
{
    struct world *w = p->world;
    struct call *c = &p->call;
    c->busy = true;
    c->kind = rng_below(&w->rng, 3) == 0 || w->item_count == ITEMS_MAX ? CALL_READ : CALL_ADD;
    c->seen = w->longest == NULL ? 0 : w->longest->used;
    if (c->kind == CALL_READ) {
        ask(p, BE_GET, "");
    } else {
        c->item = w->item_count++;
        ask(p, BE_APPEND, "");
    }
}

static void on_done(void *arg, struct list_request *request, const struct be_reply *reply)
{
    struct test_proxy *p = arg;
    struct world *w = p->world;
    struct call *c = &p->call;
    if (reply == NULL) {
        return; /* it dies */
    }
    assert_ptr_equal(request, &c->request);
    if (c->kind == CALL_READ) {
        if (reply->status == BE_HIT) {
            check_read(w, c, reply->value);
        } else {
            assert_int_equal(reply->status, BE_MISS);
            assert_int_equal(c->seen, 0);
        }
    } else if (reply->status == BE_STORED) {
        w->acknowledged[c->item] = true;
    } else if (reply->status == BE_NOT_STORED) {
        c->creates = !c->creates;
        ask(p, c->creates ? BE_ADD : BE_APPEND, c->creates ? "^1\n" : "");
        return;
    } else {
        assert_int_equal(reply->status, BE_DOWN);
        w->refused[c->item] = true;
    }
    c->busy = c->creates = false;
}

/* --- what happens --------------------------------------------------------------------------- */

static void send_all(struct world *w, unsigned proxy)
{
    struct test_proxy *p = &w->proxies[proxy];
    struct list_request *r;
    while (p->moving != NULL && (r = moving_take_request(p->moving)) != NULL) {
        struct sent *s = calloc(1, sizeof *s);
        CHECK(s != NULL && w->under_way_count < UNDER_WAY_MAX);
        *s = (struct sent){.copy = *r, .original = r, .world = w, .proxy = proxy};
        if (r->be.block != NULL) {
            s->copy.be.block = block_ref(r->be.block);
        }
        w->under_way[w->under_way_count++] = s;
    }
}

static void go_on(struct world *w, size_t at)
{
    struct sent *s = w->under_way[at];
    if (!s->executed) {
        execute(w, s);
    }
    if (s->original != NULL && rng_below(&w->rng, 2) == 0) {
        return; /* its answer comes later */
    }
    if (s->original != NULL) {
        moving_reply(w->proxies[s->proxy].moving, s->original, &s->reply);
    }
    take_off(w, at);
}

static void die(struct world *w, unsigned proxy)
{
    struct test_proxy *p = &w->proxies[proxy];
    for (size_t i = w->under_way_count; i-- > 0;) {
        struct sent *s = w->under_way[i];
        if (s->proxy == proxy && s->original != NULL) {
            s->original = NULL;
            if (s->executed || rng_below(&w->rng, 2) == 0) {
                take_off(w, i); /* never */
            }
        }
    }
    block_unref(&p->call.request.be.block);
    moving_destroy(&p->moving);
}

static void start(struct world *w, unsigned proxy, enum moving_step step)
{
    struct test_proxy *p = &w->proxies[proxy];
    *p = (struct test_proxy){.world = w};
    p->moving = moving_create(0, 1, ROOM, BYTES_MAX, &w->rng, &w->metrics, on_done, p);
    moving_update(p->moving, step, NOW_S);
}

static bool any_busy(const struct world *w)
{
    bool busy = w->under_way_count > 0;
    for (unsigned i = 0; i < w->proxy_count; i++) {
        busy = busy || (w->proxies[i].moving != NULL && w->proxies[i].call.busy);
    }
    return busy;
}

static void step(struct world *w, bool calls)
{
    unsigned proxy = (unsigned)rng_below(&w->rng, w->proxy_count);
    struct test_proxy *p = &w->proxies[proxy];
    if (calls && rng_below(&w->rng, 4) == 0 && p->moving != NULL && !p->call.busy) {
        begin_call(p);
    } else if (calls && rng_below(&w->rng, 60) == 0 && p->moving != NULL) {
        die(w, proxy);
        start(w, proxy, rng_below(&w->rng, 2) == 0 ? MOVING_LEARN : MOVING_MOVE);
    } else if (w->under_way_count > 0) {
        go_on(w, rng_below(&w->rng, w->under_way_count));
    }
    for (unsigned i = 0; i < w->proxy_count; i++) {
        send_all(w, i);
    }
}

/* How often the item stands in the log. */
static unsigned count_of(struct slice log, unsigned item)
{
    char text[16];
    int n = snprintf(text, sizeof text, "+2:%02u", item);
    unsigned count = 0;
    for (size_t i = 0; i + (size_t)n <= log.len; i++) {
        count += memcmp(log.p + i, text, (size_t)n) == 0;
    }
    return count;
}

static void check_end(struct world *w)
{
    struct slice log =
        w->longest == NULL ? SLICE_NONE : slice_make(w->longest->data, w->longest->used);
    for (unsigned i = 0; i < w->item_count; i++) {
        unsigned count = count_of(log, i);
        assert_true(count <= 1);
        assert_true(count == 1 || !w->acknowledged[i]);
        assert_true(count == 0 || !w->refused[i]);
    }
}

/* Returns how often a list was moved. */
static uint64_t run_seed(uint64_t seed, unsigned steps)
{
    struct world w = {.proxy_count = 0};
    rng_init_seed(&w.rng, seed);
    w.proxy_count = 2 + (unsigned)rng_below(&w.rng, PROXIES_MAX - 1);
    for (unsigned i = 0; i < w.proxy_count; i++) {
        start(&w, i, rng_below(&w.rng, 2) == 0 ? MOVING_LEARN : MOVING_MOVE);
    }
    for (unsigned i = 0; i < steps; i++) {
        step(&w, true);
    }
    while (any_busy(&w)) {
        step(&w, false);
    }
    /* A last read, by a proxy that moves it. */
    die(&w, 0);
    start(&w, 0, MOVING_MOVE);
    w.proxies[0].call.busy = true;
    w.proxies[0].call.kind = CALL_READ;
    w.proxies[0].call.seen = w.longest == NULL ? 0 : w.longest->used;
    ask(&w.proxies[0], BE_GET, "");
    send_all(&w, 0);
    while (any_busy(&w)) {
        step(&w, false);
    }
    check_end(&w);
    assert_int_equal(metric_get(&w.metrics, METRIC_list_moves_double), 0);
    assert_true(w.servers[0].value == NULL || w.servers[0].value->data[1] == '>');
    for (unsigned i = 0; i < w.proxy_count; i++) {
        die(&w, i);
    }
    block_unref(&w.longest);
    for (unsigned i = 0; i < SERVERS; i++) {
        block_unref(&w.servers[i].value);
    }
    return metric_get(&w.metrics, METRIC_list_moves);
}

static void test_adds_and_reads_in_any_order_while_a_list_moves(void **state)
{
    (void)state;
    const char *more = getenv("MOVING_SEEDS");
    uint64_t seeds = more == NULL ? 3000 : strtoull(more, NULL, 10);
    uint64_t moves = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        moves += run_seed(seed, 60 + (unsigned)(seed % 300));
    }
    assert_true(moves > 0);
}

/* What a server answers that holds this, or nothing: NULL. The caller lets go of the block. */
static struct be_reply reply_of(const char *value)
{
    struct be_reply reply = {.status = BE_MISS, .ttl_s = -1, .cas = 1, .epoch = 1};
    if (value != NULL) {
        reply.status = BE_HIT;
        reply.block = joined(slice_of(value), SLICE_NONE);
        reply.value = slice_make(reply.block->data, reply.block->used);
    }
    return reply;
}

static enum place_kind kind_of(const char *text)
{
    struct be_reply reply = reply_of(text);
    struct place place = {0};
    place_read(&place, &reply);
    enum place_kind kind = place.kind;
    struct head *head = place_open(&place, SLICE_LIT("k"));
    bool movable = place_stay(&place, head).why == NULL;
    head_unref(&head);
    place_forget(&place);
    block_unref(&reply.block);
    return movable ? PLACE_NOTHING : kind;
}

static void test_what_a_server_holds(void **state)
{
    (void)state;
    /* PLACE_NOTHING: a head that can be moved as it is. */
    assert_int_equal(kind_of("^1\n"), PLACE_NOTHING);
    assert_int_equal(kind_of("^1\n+1:a-1:a!0:"), PLACE_NOTHING);
    assert_int_equal(kind_of("^1 #3.drop\n+1:a"), PLACE_NOTHING);
    assert_int_equal(kind_of("^1 #3.drop -aaaaaaaaaaaaa.1\n+1:a"), PLACE_HEAD);
    assert_int_equal(kind_of("^1 aaaaaaaaaaaaa.1:90:3\n+1:a"), PLACE_NOTHING);
    assert_int_equal(kind_of("^1 ?0.0\n"), PLACE_NOTHING);
    assert_int_equal(kind_of("^1 @1795229329 aaaaaaaaaaaaa.1:90:3\n"), PLACE_NOTHING);
    assert_int_equal(kind_of("^1\n+1:a~26:aaaaaaaaaaaaa.3.1795229329"), PLACE_HEAD);
    assert_int_equal(kind_of("^1\n+1:"), PLACE_HEAD);
    assert_int_equal(kind_of("something else"), PLACE_HEAD);
    assert_int_equal(kind_of("^1 >aaaaaaaaaaaaa.17\n+1:a"), PLACE_COPY);
    assert_int_equal(kind_of("^1 >aaaaaaaaaaaaa\n+1:a"), PLACE_HEAD);
    assert_int_equal(kind_of("^1 >aaaaaaaaaaaaa.\n+1:a"), PLACE_HEAD);
    assert_int_equal(kind_of("^1 >aaaaaaaaaaaaa.1"), PLACE_COPY);
    assert_int_equal(kind_of("^> aaaaaaaaaaaaa\n"), PLACE_MARK);
}

static void read_place(struct place *place, const char *text)
{
    struct be_reply reply = reply_of(text);
    place_read(place, &reply);
    block_unref(&reply.block);
}

/* reply_of gives the number 1. */
static void test_a_copy_is_of_one_head(void **state)
{
    (void)state;
    struct place head = {0}, copy = {0};
    read_place(&head, "^1 #3.drop\n+1:a");
    read_place(&copy, "^1 >aaaaaaaaaaaaa.1 #3.drop\n+1:a");
    assert_true(place_is_copy_of(&copy, &head));
    read_place(&copy, "^1 >aaaaaaaaaaaaa.12 #3.drop\n+1:a");
    assert_false(place_is_copy_of(&copy, &head));
    read_place(&copy, "^1 >aaaaaaaaaaaaa.1 #3.drop\n+1:b");
    assert_false(place_is_copy_of(&copy, &head));
    place_forget(&head);
    place_forget(&copy);
}

static void test_how_long_a_copy_lives(void **state)
{
    (void)state;
    enum { MONTH_S = 60 * 60 * 24 * 30 };
    const int64_t rows[][2] = {{-1, 0},
                               {0, 1},
                               {7, 7},
                               {MONTH_S, MONTH_S},
                               {MONTH_S + 1, NOW_S + MONTH_S + 1},
                               {INT32_MAX, INT32_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct be_reply reply = {.ttl_s = rows[i][0]};
        assert_int_equal(place_exptime(&reply, NOW_S), rows[i][1]);
    }
}

/* A proxy's clock that is ahead of the server's would add that twice. */
static void test_a_moved_head_lives_no_longer_than_its_sublists(void **state)
{
    (void)state;
    enum { LEFT_S = 60 * 60 * 24 * 31, UNTIL_S = NOW_S + LEFT_S - 10 };
    static const char *const versions[] = {"^1", "^1 >aaaaaaaaaaaaa.1"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char value[96];
        struct place place = {0};
        (void)snprintf(value, sizeof value, "%s @%d bbbbbbbbbbbbb.1:90:3\n", versions[i], UNTIL_S);
        read_place(&place, value);
        place.reply.ttl_s = LEFT_S;
        assert_int_equal(place_exptime_of_head(&place, SLICE_LIT("k"), NOW_S), UNTIL_S);
        assert_int_equal(place_exptime_of_head(&place, SLICE_LIT("k"), NOW_S - 20),
                         NOW_S - 20 + LEFT_S);
        place.reply.ttl_s = 7;
        assert_int_equal(place_exptime_of_head(&place, SLICE_LIT("k"), NOW_S), 7);
        place_forget(&place);
    }
}

/* --- what is kept of many lists ------------------------------------------------------------- */

#define LISTS 64 /* more than BYTES_MAX has room for */

static void on_any_done(void *arg, struct list_request *request, const struct be_reply *reply)
{
    (void)request;
    (void)reply;
    ++*(unsigned *)arg;
}

static void make_get(struct list_request *r, unsigned list)
{
    *r = (struct list_request){.be.verb = BE_GET};
    (void)snprintf(r->key, sizeof r->key, "k%02u#", list % 100);
    request_set_key(r, 4);
}

static void reply_with(struct moving *moving, struct list_request *sent, const char *value)
{
    struct be_reply reply = reply_of(value);
    moving_reply(moving, sent, &reply);
    block_unref(&reply.block);
}

/* Asks for the list, whose head is on the old server. */
static void read_list(struct moving *moving, unsigned list, const char *head)
{
    struct list_request request;
    make_get(&request, list);
    moving_submit(moving, &request, false);
    struct list_request *sent = moving_take_request(moving);
    assert_true(sent->is_own && sent->pool_index == 0);
    reply_with(moving, sent, head);
}

/* Is it known where the list is? Then what lies beside its head is asked for at once. */
static bool is_known(struct moving *moving, unsigned list)
{
    struct list_request request;
    make_get(&request, list);
    request.key[request.be.key.len++] = 'x';
    moving_submit(moving, &request, false);
    struct list_request *sent = moving_take_request(moving);
    bool known = sent == &request;
    reply_with(moving, sent, "^1\n");
    if (!known) {
        assert_ptr_equal(moving_take_request(moving), &request);
        reply_with(moving, &request, "");
    }
    return known;
}

/* Its old server holds nothing under that key, which lies where the list does. */
static bool is_asked_for_again(enum be_verb verb, const char *key)
{
    struct rng rng;
    struct metrics metrics = {0};
    unsigned done = 0;
    rng_init_seed(&rng, 1);
    struct moving *moving =
        moving_create(0, 1, ROOM, BYTES_MAX, &rng, &metrics, on_any_done, &done);
    read_list(moving, 0, "^1\n");
    struct list_request request;
    make_get(&request, 0);
    request.be.verb = verb;
    request.be.key.len = strlen(key);
    request.placement_at = (uint8_t)request.be.key.len;
    memcpy(request.key + request.placement_at, request.key, request.placement_len);
    memcpy(request.key, key, request.be.key.len);
    moving_submit(moving, &request, false);
    assert_ptr_equal(moving_take_request(moving), &request);
    assert_int_equal(request.pool_index, 0);
    reply_with(moving, &request, NULL);
    struct list_request *sent = moving_take_request(moving);
    bool again = sent != NULL;
    if (again) {
        reply_with(moving, sent, "^1\n");
    }
    assert_int_equal(done, 2);
    moving_destroy(&moving);
    return again;
}

static void test_what_is_missed_may_have_gone_with_its_list(void **state)
{
    (void)state;
    assert_true(is_asked_for_again(BE_GET, "k00#aaaaaaaaaaaaa.0"));
    assert_true(is_asked_for_again(BE_PROBE, "k00#aaaaaaaaaaaaa.0"));
    /* What was asked for behind it may have been answered: its second would be a later one. */
    assert_false(is_asked_for_again(BE_GET, CLOCK_KEY_PREFIX "0"));
}

static void test_lists_that_were_not_used_lately_are_forgotten(void **state)
{
    (void)state;
    struct rng rng;
    struct metrics metrics = {0};
    unsigned done = 0, known = 0;
    rng_init_seed(&rng, 1);
    int64_t before = (int64_t)memory_held_here();
    struct moving *moving =
        moving_create(0, 1, ROOM, BYTES_MAX, &rng, &metrics, on_any_done, &done);
    for (unsigned i = 0; i < LISTS; i++) {
        read_list(moving, i, "^1\n");
    }
    assert_int_equal(done, LISTS);
    assert_true(is_known(moving, LISTS - 1));
    for (unsigned i = 0; i < LISTS; i++) {
        known += is_known(moving, i);
    }
    assert_true(known < LISTS / 2);
    moving_destroy(&moving);
    assert_int_equal((int64_t)memory_held_here(), before);
}

/* These are not forgotten: none may go, and there is an end to looking for some. */
static void test_lists_whose_sublists_are_on_their_way_are_kept(void **state)
{
    (void)state;
    struct rng rng;
    struct metrics metrics = {0};
    unsigned done = 0;
    rng_init_seed(&rng, 1);
    int64_t before = (int64_t)memory_held_here();
    struct moving *moving =
        moving_create(0, 1, ROOM, BYTES_MAX, &rng, &metrics, on_any_done, &done);
    moving_update(moving, MOVING_MOVE, NOW_S);
    for (unsigned i = 0; i < LISTS; i++) {
        read_list(moving, i, "^1 aaaaaaaaaaaaa.1:90:3\n");
        struct list_request *probe = moving_take_request(moving);
        assert_true(probe->is_own && probe->be.verb == BE_PROBE && probe->pool_index == 1);
    }
    assert_int_equal(done, LISTS);
    assert_true((int64_t)memory_held_here() > before);
    moving_destroy(&moving);
    assert_int_equal((int64_t)memory_held_here(), before);
}

/* --- single rules --------------------------------------------------------------------------- */

#define MARK "^> aaaaaaaaaaaaa\n"
#define OTHER_COPY "^1 >bbbbbbbbbbbbb.1\n"

struct scene {
    struct rng rng;
    struct metrics metrics;
    unsigned done;
    struct moving *moving;
    struct list_request request;
};

static void begin_scene_with(struct scene *s, enum moving_step step, enum be_verb verb,
                             bool old_is_gone)
{
    *s = (struct scene){0};
    rng_init_seed(&s->rng, 1);
    s->moving = moving_create(0, 1, ROOM, BYTES_MAX, &s->rng, &s->metrics, on_any_done, &s->done);
    moving_update(s->moving, step, NOW_S);
    make_get(&s->request, 0);
    s->request.be.verb = verb;
    moving_submit(s->moving, &s->request, old_is_gone);
}

static void begin_scene(struct scene *s, enum moving_step step, enum be_verb verb)
{
    begin_scene_with(s, step, verb, false);
}

/* The next request looks at that server, and finds this. */
static void look(struct scene *s, uint32_t pool, const char *value)
{
    struct list_request *sent = moving_take_request(s->moving);
    assert_true(sent->is_own && sent->be.verb == BE_GET && sent->pool_index == pool);
    reply_with(s->moving, sent, value);
}

/* A sublist is asked for where its list was found, and is gone from there when the request comes:
 * the list has moved meanwhile. */
static void test_a_sublist_is_missed_where_its_list_is_alone(void **state)
{
    (void)state;
    struct scene s;
    begin_scene(&s, MOVING_LEARN, BE_GET);
    look(&s, 0, "^1 aaaaaaaaaaaaa.1:90:3\n");
    struct list_request request;
    make_get(&request, 1);
    request.key[request.be.key.len++] = 'x';
    moving_submit(s.moving, &request, false);
    look(&s, 0, "^1 aaaaaaaaaaaaa.1:90:3\n");
    assert_ptr_equal(moving_take_request(s.moving), &request);
    assert_int_equal(request.pool_index, 0);
    reply_with(s.moving, &request, NULL);
    look(&s, 0, MARK);
    look(&s, 1, "^1 aaaaaaaaaaaaa.1:90:3\n");
    assert_ptr_equal(moving_take_request(s.moving), &request);
    assert_int_equal(request.pool_index, 1);
    reply_with(s.moving, &request, "^1 0\n+1:x");
    assert_int_equal(s.done, 2);
    moving_destroy(&s.moving);
}

static void test_a_copy_of_another_mark_is_taken_away(void **state)
{
    (void)state;
    struct scene s;
    begin_scene(&s, MOVING_LEARN, BE_GET);
    look(&s, 0, MARK);
    look(&s, 1, OTHER_COPY);
    look(&s, 0, MARK);
    struct list_request *sent = moving_take_request(s.moving);
    assert_true(sent->be.verb == BE_CAS_DELETE && sent->pool_index == 1);
    moving_destroy(&s.moving);
}

static void test_a_list_is_made_behind_a_mark(void **state)
{
    (void)state;
    struct scene s;
    begin_scene(&s, MOVING_MOVE, BE_ADD);
    look(&s, 0, NULL);
    look(&s, 1, NULL);
    struct list_request *sent = moving_take_request(s.moving);
    assert_true(sent->is_own && sent->be.verb == BE_ADD && sent->pool_index == 0);
    moving_destroy(&s.moving);
}

/* By the clock of its head's new server the list may live as long as by that of its old one. */
static void test_a_copied_sublist_lives_longer_by_what_clocks_differ(void **state)
{
    (void)state;
    struct scene s;
    begin_scene(&s, MOVING_MOVE, BE_GET);
    look(&s, 0, "^1 @1795229329 aaaaaaaaaaaaa.1:90:3\n");
    struct list_request *sent = moving_take_request(s.moving);
    assert_true(sent->be.verb == BE_PROBE && sent->pool_index == 1);
    reply_with(s.moving, sent, NULL);
    sent = moving_take_request(s.moving);
    assert_true(sent->be.verb == BE_GET && sent->pool_index == 0);
    struct be_reply reply = reply_of("+1:a");
    reply.ttl_s = 7;
    moving_reply(s.moving, sent, &reply);
    block_unref(&reply.block);
    sent = moving_take_request(s.moving);
    assert_true(sent->be.verb == BE_ADD && sent->pool_index == 1);
    assert_int_equal(sent->be.exptime, SERVER_SKEW_S + 7);
    moving_destroy(&s.moving);
}

static void test_an_old_server_that_is_gone_holds_nothing(void **state)
{
    (void)state;
    const enum moving_step steps[] = {MOVING_LEARN, MOVING_MOVE};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct scene s;
        struct be_reply done = {.status = BE_STORED, .ttl_s = -1, .epoch = 1};
        begin_scene_with(&s, steps[i], BE_ADD, true);
        look(&s, 1, OTHER_COPY);
        struct list_request *sent = moving_take_request(s.moving);
        assert_true(sent->be.verb == BE_CAS_DELETE && sent->pool_index == 1);
        moving_reply(s.moving, sent, &done);
        look(&s, 1, NULL);
        assert_ptr_equal(moving_take_request(s.moving), &s.request);
        assert_int_equal(s.request.pool_index, 1);
        moving_destroy(&s.moving);
    }
}

/* memcached would remove the item for want of memory, if that were an ms in mode A. */
static void test_an_append_is_a_cas_of_the_head_that_was_looked_at(void **state)
{
    (void)state;
    struct scene s;
    begin_scene(&s, MOVING_LEARN, BE_APPEND);
    s.request.be.value = SLICE_LIT("+1:x");
    look(&s, 0, "^1\n");
    assert_ptr_equal(moving_take_request(s.moving), &s.request);
    assert_int_equal(s.request.be.verb, BE_CAS);
    assert_true(slice_equal(s.request.be.value, SLICE_LIT("^1\n+1:x")));
    assert_true(s.request.be.cas == 1 && s.request.be.epoch == 1);
    moving_reply(s.moving, &s.request, &(struct be_reply){.status = BE_TOO_LARGE});
    assert_int_equal(s.done, 1);
    assert_int_equal(s.request.be.verb, BE_APPEND);
    assert_true(slice_equal(s.request.be.value, SLICE_LIT("+1:x")));
    moving_destroy(&s.moving);
}

/* A head for a put to announce in: what a worker that still knows the list appended to it would be
 * answered as done, and no reader would see it. */
static void test_no_change_is_appended_where_a_head_says_that_the_list_is_missing(void **state)
{
    (void)state;
    const struct {
        const char *head;
        bool needs_list, goes;
    } rows[] = {{"^1 ?0.0\n~26:aaaaaaaaaaaaa.3.1795229329", true, false},
                {"^1 ?0.0\n~26:aaaaaaaaaaaaa.3.1795229329", false, true},
                {"^1 ?2483958411013262.1795229439\n", true, true},
                {"^1 ?0.0\n!0:", true, true},
                {"^1\n", true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene s;
        begin_scene(&s, MOVING_LEARN, BE_APPEND);
        s.request.be.value = SLICE_LIT("+1:x");
        s.request.needs_list = rows[i].needs_list;
        look(&s, 0, rows[i].head);
        assert_int_equal(s.done, !rows[i].goes);
        assert_int_equal(moving_take_request(s.moving) == &s.request, rows[i].goes);
        if (rows[i].goes) {
            moving_reply(s.moving, &s.request, &(struct be_reply){.status = BE_STORED});
        }
        moving_destroy(&s.moving);
    }
}

static void on_status(void *arg, struct list_request *request, const struct be_reply *reply)
{
    (void)request;
    *(enum be_status *)arg = reply->status;
}

/* It has moved, and the old server has lost its mark: an ldrop that had read it there must not call
 * it missing. */
static void test_a_head_that_is_gone_from_its_server_may_have_moved(void **state)
{
    (void)state;
    const enum be_verb verbs[] = {BE_CAS, BE_CAS_DELETE};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        enum be_status status = BE_LOST;
        struct metrics metrics = {0};
        struct moving *moving =
            moving_create(0, 1, ROOM, BYTES_MAX, NULL, &metrics, on_status, &status);
        read_list(moving, 0, "^1\n");
        assert_int_equal(status, BE_HIT);
        struct list_request request;
        make_get(&request, 0);
        request.be.verb = verbs[i];
        request.be.cas = request.be.epoch = 1;
        moving_submit(moving, &request, false);
        assert_ptr_equal(moving_take_request(moving), &request);
        assert_int_equal(request.pool_index, 0);
        moving_reply(moving, &request, &(struct be_reply){.status = BE_NOT_FOUND, .epoch = 1});
        assert_int_equal(status, BE_EXISTS);
        moving_destroy(&moving);
    }
}

static void on_read(void *arg, struct list_request *request, const struct be_reply *reply)
{
    (void)request;
    *(const struct be_caps **)arg = reply->caps;
}

/* The engine takes the largest item from there, and the server's name. */
static void test_a_read_says_which_server_has_answered(void **state)
{
    (void)state;
    static const struct be_caps server = {0};
    const struct be_caps *caps = NULL;
    struct metrics metrics = {0};
    struct list_request request;
    make_get(&request, 0);
    struct moving *moving = moving_create(0, 1, ROOM, BYTES_MAX, NULL, &metrics, on_read, &caps);
    moving_submit(moving, &request, false);
    struct be_reply reply = reply_of("^1\n");
    reply.caps = &server;
    moving_reply(moving, moving_take_request(moving), &reply);
    block_unref(&reply.block);
    assert_ptr_equal(caps, &server);
    moving_destroy(&moving);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_server_holds),
        cmocka_unit_test(test_a_copy_is_of_one_head),
        cmocka_unit_test(test_how_long_a_copy_lives),
        cmocka_unit_test(test_a_moved_head_lives_no_longer_than_its_sublists),
        cmocka_unit_test(test_a_copy_of_another_mark_is_taken_away),
        cmocka_unit_test(test_a_list_is_made_behind_a_mark),
        cmocka_unit_test(test_a_copied_sublist_lives_longer_by_what_clocks_differ),
        cmocka_unit_test(test_a_read_says_which_server_has_answered),
        cmocka_unit_test(test_an_append_is_a_cas_of_the_head_that_was_looked_at),
        cmocka_unit_test(test_no_change_is_appended_where_a_head_says_that_the_list_is_missing),
        cmocka_unit_test(test_a_head_that_is_gone_from_its_server_may_have_moved),
        cmocka_unit_test(test_an_old_server_that_is_gone_holds_nothing),
        cmocka_unit_test(test_what_is_missed_may_have_gone_with_its_list),
        cmocka_unit_test(test_a_sublist_is_missed_where_its_list_is_alone),
        cmocka_unit_test(test_lists_that_were_not_used_lately_are_forgotten),
        cmocka_unit_test(test_lists_whose_sublists_are_on_their_way_are_kept),
        cmocka_unit_test(test_adds_and_reads_in_any_order_while_a_list_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
