/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of type couchbase with the fake cluster of tests/cluster: requests that are refused for
 * now or for another node, their order, their limits, and maps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/locate/shard.h"
#include "pool/pool.h"
#include "proto/server/binary.h"
#include "support_fake_cluster.h"

#define NODES 3
#define VBUCKETS 64

static uint16_t ports[NODES];
static struct config *config;
static struct event_base *base;
static struct now now;
static struct metrics metrics;
static struct pool *pool;
static unsigned order;

struct probe {
    struct exchange x;
    bool done;
    unsigned order; /* among the answers */
    struct be_reply reply;
    char key[KEY_BYTES_MAX + 1], text[512], value[64];
};

static void turn(void)
{
    pool_flush(pool);
    event_base_loop(base, EVLOOP_ONCE);
    now = clock_now();
}

static void until(const bool *done)
{
    while (!*done) {
        turn();
    }
}

static int setup(void **state)
{
    (void)state;
    char text[512], error[CONFIG_ERROR_MAX];
    if (fake_cluster_start(ports, NODES) < 0) {
        return -1;
    }
    config = config_create();
    snprintf(text, sizeof text, "127.0.0.1:%u", ports[1]);
    assert_int_equal(config_add_pool(config, "docs", text, error), 0);
    struct pool_config *p = &config->pools[0];
    p->type = POOL_COUCHBASE;
    snprintf(p->bucket, sizeof p->bucket, "lists");
    snprintf(p->username, sizeof p->username, "user");
    snprintf(p->password, sizeof p->password, "pencil");
    p->timeout_ms = 20000;
    p->durable_timeout_ms = 20000;
    p->connect_timeout_ms = 20000;
    base = event_base_new();
    now = clock_now();
    metrics = (struct metrics){0};
    order = 0;
    pool = pool_create(p, base, &now, &metrics, NULL, error);
    return pool == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    pool_destroy(&pool);
    event_base_free(base);
    config_destroy(&config);
    return fake_cluster_stop();
}

static void on_done(struct exchange *x, const struct be_reply *reply)
{
    struct probe *p = x->owner;
    assert_false(p->done);
    p->done = true;
    p->order = ++order;
    p->reply = *reply;
    snprintf(p->text, sizeof p->text, "%s", reply->text == NULL ? "" : reply->text);
    snprintf(p->value, sizeof p->value, "%.*s", SLICE_ARGS(reply->value));
}

/* A key of that node, which has every third vBucket at first. */
static void choose_key(char key[32], int node)
{
    for (int i = 0;; i++) {
        snprintf(key, 32, "key%d", i);
        if (shard_vbucket(slice_of(key), VBUCKETS) % NODES == node) {
            return;
        }
    }
}

static void submit(struct probe *p, enum be_verb verb, const char *key, const char *value)
{
    *p = (struct probe){.x = {.op.verb = verb, .done = on_done, .owner = p}};
    snprintf(p->key, sizeof p->key, "%s", key);
    p->x.op.key = slice_of(p->key);
    p->x.op.value = slice_of(value);
    pool_submit(pool, p->x.op.key, &p->x);
    assert_false(p->done); /* never from within */
}

static enum be_status ask(struct probe *p, enum be_verb verb, const char *key, const char *value)
{
    submit(p, verb, key, value);
    until(&p->done);
    return p->reply.status;
}

static void before_the_first_map(void **state)
{
    (void)state;
    struct probe probes[12];
    char key[32];
    for (int i = 0; i < 12; i++) {
        choose_key(key, i % NODES);
        submit(&probes[i], i < NODES ? BE_SET : BE_APPEND, key, "x");
    }
    for (int i = 0; i < 12; i++) {
        until(&probes[i].done);
        assert_int_equal(probes[i].reply.status, BE_STORED);
    }
    for (int i = 0; i < NODES; i++) {
        choose_key(key, i);
        assert_int_equal(ask(&probes[0], BE_FETCH, key, ""), BE_HIT);
        assert_string_equal(probes[0].value, "xxxx");
    }
    assert_int_equal(metric_get(&metrics, METRIC_cluster_maps), 1);
}

/* All are refused once, in the order in which they were sent: so they are done in that order. */
static void refused_ones_keep_their_order(void **state)
{
    (void)state;
    struct probe first, probes[9], behind, last;
    char key[32];
    choose_key(key, 0);
    ask(&first, BE_SET, key, "");
    fake_cluster_tell("refuse 0 86 86 86 86 86 86 86 86 86");
    for (int i = 0; i < 9; i++) {
        static const char *const words[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
        submit(&probes[i], BE_APPEND, key, words[i]);
    }
    while (probes[0].x.server != NULL) {
        turn();
    }
    submit(&behind, BE_APPEND, key, "+"); /* waits with them */
    for (int i = 0; i < 9; i++) {
        until(&probes[i].done);
        assert_int_equal(probes[i].reply.status, BE_STORED);
        assert_int_equal(probes[i].order, i + 2);
    }
    until(&behind.done);
    assert_int_equal(behind.reply.status, BE_STORED);
    ask(&last, BE_FETCH, key, "");
    assert_string_equal(last.value, "123456789+");
    assert_int_equal(metric_get(&metrics, METRIC_cluster_retries), 9);
}

/* The first one is refused, the second one, on its way already, is done: then it is too late for
 * the first. What is submitted meanwhile waits. */
static void no_request_comes_after_a_later_one(void **state)
{
    (void)state;
    struct probe first, refused, done, other, last;
    char key[32];
    choose_key(key, 0);
    ask(&first, BE_SET, key, "0");
    fake_cluster_tell("refuse 0 86");
    submit(&refused, BE_SET, key, "1");
    submit(&done, BE_SET, key, "2");
    until(&done.done);
    assert_int_equal(done.reply.status, BE_STORED);
    until(&refused.done);
    assert_int_equal(refused.reply.status, BE_REFUSED);
    assert_int_equal(refused.reply.code, BINARY_STATUS_TEMPORARY);
    assert_string_equal(refused.text, "pool docs: temporary failure (0x86), nothing done");
    ask(&last, BE_FETCH, key, "");
    assert_string_equal(last.value, "2");
    /* Another key of the vBucket is not concerned. */
    fake_cluster_tell("refuse 0 86");
    submit(&refused, BE_SET, key, "3");
    uint16_t vbucket = shard_vbucket(slice_of(key), VBUCKETS);
    char same[32];
    for (int i = 1000;; i++) {
        snprintf(same, sizeof same, "key%d", i);
        if (shard_vbucket(slice_of(same), VBUCKETS) == vbucket) {
            break;
        }
    }
    submit(&other, BE_SET, same, "x");
    until(&refused.done);
    until(&other.done);
    assert_int_equal(refused.reply.status, BE_STORED);
    assert_int_equal(other.reply.status, BE_STORED);
}

static size_t nodes_up(void)
{
    struct server_stats stats[POOL_SERVERS_MAX];
    size_t n = pool_stats(pool, stats, POOL_SERVERS_MAX), up = 0;
    for (size_t i = 0; i < n; i++) {
        up += strcmp(stats[i].state, "up") == 0;
    }
    return up;
}

static void until_nodes_up(size_t up)
{
    while (nodes_up() != up) {
        turn();
    }
}

/* It does nothing more before another login, and says so to each request: none was done. */
static void a_node_that_wants_another_login(void **state)
{
    static const char *const commands[] = {"expire 0", "unselect 0"};
    (void)state;
    struct probe first, probes[9], last;
    char key[32];
    choose_key(key, 0);
    for (int round = 0; round < 2; round++) {
        ask(&first, BE_SET, key, "");
        until_nodes_up(NODES);
        fake_cluster_tell(commands[round]);
        for (int i = 0; i < 9; i++) {
            static const char *const words[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
            submit(&probes[i], BE_APPEND, key, words[i]);
        }
        for (int i = 0; i < 9; i++) {
            until(&probes[i].done);
            assert_int_equal(probes[i].reply.status, BE_STORED);
        }
        ask(&last, BE_FETCH, key, "");
        assert_string_equal(last.value, "123456789");
    }
    assert_int_equal(metric_get(&metrics, METRIC_backend_connects), NODES + 2);
    assert_int_equal(metric_get(&metrics, METRIC_outcomes_unknown), 0);
}

static void stop_one_of(const char *command, size_t up)
{
    until_nodes_up(up);
    fake_cluster_tell(command);
    while (nodes_up() == up) {
        turn();
    }
}

/* What cannot be sent there goes where the next map says, though the proxy has not heard of it. */
static void a_node_that_leaves_takes_no_request_along(void **state)
{
    (void)state;
    struct probe probe;
    char key[32];
    for (int node = 2; node > 0; node--) {
        choose_key(key, node);
        assert_int_equal(ask(&probe, BE_SET, key, "x"), BE_STORED);
        fake_cluster_tell(node == 2 ? "failover 2" : "failover 1");
        stop_one_of(node == 2 ? "stop 2" : "stop 1", (size_t)node + 1);
        assert_int_equal(ask(&probe, BE_SET, key, "y"), BE_STORED);
    }
    /* The cluster knows of nothing: that is heard once, and then errors come at once. */
    choose_key(key, 0);
    fake_cluster_tell("add");
    stop_one_of("stop 0", 2);
    assert_int_equal(ask(&probe, BE_SET, key, "x"), BE_DOWN);
}

static void withdrawn_while_it_waits(void **state)
{
    (void)state;
    struct probe first, waits, last;
    char key[32];
    choose_key(key, 0);
    ask(&first, BE_SET, key, "0");
    /* For 661 ms at least. */
    fake_cluster_tell("refuse 0 86 86 86 86 86 86");
    submit(&waits, BE_SET, key, "1");
    while (metric_get(&metrics, METRIC_cluster_retries) < 3 || waits.x.server != NULL) {
        turn();
    }
    assert_true(pool_withdraw(&waits.x));
    assert_false(waits.done);
    until(&waits.done);
    assert_int_equal(waits.reply.status, BE_DOWN);
    assert_string_equal(waits.text, "pool docs: withdrawn, not sent");
    ask(&last, BE_FETCH, key, "");
    assert_string_equal(last.value, "0");
}

static void more_may_wait_than_there_is_room_for(void **state)
{
    (void)state;
    struct probe probes[4];
    config->pools[0].max_pending = 3;
    for (int i = 0; i < 4; i++) {
        submit(&probes[i], BE_SET, "k", "x");
    }
    until(&probes[3].done);
    assert_int_equal(probes[3].reply.status, BE_DOWN);
    assert_string_equal(probes[3].text, "pool docs: queue full");
    until(&probes[2].done);
    assert_int_equal(probes[2].reply.status, BE_STORED);
}

static void the_end_of_the_pool_ends_what_waits(void **state)
{
    (void)state;
    struct probe early, held;
    char key[32], error[CONFIG_ERROR_MAX];
    submit(&early, BE_SET, "k", "x");
    pool_destroy(&pool);
    assert_true(early.done && early.reply.status == BE_DOWN);
    assert_string_equal(early.text, "pool docs: shutting down, not sent");
    pool = pool_create(&config->pools[0], base, &now, &metrics, NULL, error);
    choose_key(key, 0);
    ask(&held, BE_SET, key, "0");
    fake_cluster_tell("refuse 0 86 86 86 86 86 86");
    submit(&held, BE_SET, key, "1");
    while (metric_get(&metrics, METRIC_cluster_retries) < 3 || held.x.server != NULL) {
        turn();
    }
    pool_destroy(&pool);
    assert_true(held.done && held.reply.status == BE_REFUSED);
}

static void moved_keys_and_nodes_that_leave(void **state)
{
    (void)state;
    struct probe probe;
    struct server_stats stats[POOL_SERVERS_MAX];
    char key[32];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(ask(&probe, BE_SET, key, "old,"), BE_STORED);
    }
    assert_int_equal(pool_stats(pool, stats, POOL_SERVERS_MAX), NODES);
    fake_cluster_tell("add");
    fake_cluster_tell("rebalance");
    fake_cluster_tell("failover 1"); /* which is the node that the file names */
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(ask(&probe, BE_APPEND, key, "new,"), BE_STORED);
        assert_int_equal(ask(&probe, BE_FETCH, key, ""), BE_HIT);
        assert_string_equal(probe.value, "old,new,");
    }
    while (pool_stats(pool, stats, POOL_SERVERS_MAX) != NODES) {
        turn();
    }
    for (size_t i = 0; i < NODES; i++) {
        assert_null(strstr(stats[i].name, config->pools[0].servers[0].name));
    }
}

/* A list remembers who has answered for it, and an answer that says so may be written later. */
static void the_name_of_a_node_outlives_it(void **state)
{
    (void)state;
    struct probe probe;
    struct server_stats stats[POOL_SERVERS_MAX];
    char key[32];
    choose_key(key, 1);
    assert_int_equal(ask(&probe, BE_SET, key, "x"), BE_STORED);
    const char *name = probe.reply.caps->server_name;
    fake_cluster_tell("failover 1");
    while (pool_stats(pool, stats, POOL_SERVERS_MAX) != NODES - 1) {
        turn();
    }
    assert_string_equal(name, config->pools[0].servers[0].name);
}

/* No replica was there: such requests end at once, also those that were held, and are done again
 * when the cluster has given their vBuckets a node. */
static void vbuckets_without_a_node(void **state)
{
    (void)state;
    struct probe held, same, other, probes[20];
    char key[32], text[128], kept[32];
    choose_key(key, 2);
    choose_key(kept, 0);
    assert_int_equal(ask(&held, BE_SET, key, "x"), BE_STORED);
    fake_cluster_tell("refuse 2 86 86 86 86 86 86");
    submit(&held, BE_SET, key, "y");
    while (held.x.attempts < 3 || held.x.server != NULL) {
        turn();
    }
    submit(&same, BE_FETCH, key, "");
    assert_int_equal(metric_get(&metrics, METRIC_cluster_vbuckets_without_node), 0);
    fake_cluster_tell("lose 2");
    until(&held.done);
    until(&same.done);
    uint16_t vbucket = shard_vbucket(slice_of(key), VBUCKETS);
    snprintf(text, sizeof text,
             "pool docs: no node has vBucket %u, which this key is in, nothing done", vbucket);
    assert_int_equal(same.reply.status, BE_DOWN);
    assert_string_equal(same.text, text);
    assert_int_equal(metric_get(&metrics, METRIC_cluster_vbuckets), VBUCKETS);
    assert_int_equal(metric_get(&metrics, METRIC_cluster_vbuckets_without_node), VBUCKETS / NODES);
    for (int i = 0; i < 20; i++) {
        submit(&probes[i], i % 2 == 0 ? BE_SET : BE_FETCH, key, "z");
    }
    turn();
    for (int i = 0; i < 20; i++) {
        assert_true(probes[i].done && probes[i].reply.status == BE_DOWN);
        assert_string_equal(probes[i].text, text);
    }
    assert_int_equal(ask(&other, BE_SET, kept, "x"), BE_STORED);
    fake_cluster_tell("rebalance");
    while (metric_get(&metrics, METRIC_cluster_vbuckets_without_node) > 0) {
        turn();
    }
    assert_int_equal(ask(&other, BE_SET, key, "x"), BE_STORED);
}

/* With fewer vBuckets, and with more: each key is in another one. What waits, or comes back, is of
 * the old bucket. */
static void a_bucket_that_was_made_anew(void **state)
{
    static const char *const commands[] = {"anew 8", "anew 128"};
    (void)state;
    struct probe held, sent, after;
    for (int i = 0; i < 2; i++) {
        ask(&held, BE_SET, "held", "old");
        fake_cluster_tell("refuse 0 86 86 86 86 86 86");
        fake_cluster_tell("refuse 1 86 86 86 86 86 86");
        fake_cluster_tell("refuse 2 86 86 86 86 86 86");
        submit(&held, BE_SET, "held", "old");
        while (held.x.attempts < 3 || held.x.server != NULL) {
            turn();
        }
        fake_cluster_tell(commands[i]);
        assert_int_equal(ask(&sent, BE_SET, "sent0", "old"), BE_REFUSED);
        assert_int_equal(sent.reply.code, BINARY_STATUS_NOT_MY_VBUCKET);
        until(&held.done);
        assert_string_equal(held.text, "pool docs: temporary failure (0x86), nothing done");
        assert_int_equal(ask(&after, BE_SET, "held", "new"), BE_STORED);
        assert_int_equal(ask(&after, BE_SET, "sent0", "new"), BE_STORED);
    }
}

/* --- collections --- */

static void use_collection(const char *scope, const char *collection)
{
    char error[CONFIG_ERROR_MAX];
    struct pool_config *p = &config->pools[0];
    pool_destroy(&pool);
    snprintf(p->scope, sizeof p->scope, "%s", scope);
    snprintf(p->collection, sizeof p->collection, "%s", collection);
    pool = pool_create(p, base, &now, &metrics, NULL, error);
    assert_non_null(pool);
}

static void one_key_in_several_collections(void **state)
{
    (void)state;
    struct probe probe;
    static const char *const paths[][2] = {
        {"_default", "_default"}, {"_default", "carts"}, {"shop", "carts"}};
    fake_cluster_tell("collection _default.carts");
    fake_cluster_tell("collection shop.carts");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++) {
            use_collection(paths[i][0], paths[i][1]);
            if (round == 0) {
                assert_int_equal(ask(&probe, BE_FETCH, "k", ""), BE_MISS);
                assert_int_equal(ask(&probe, BE_SET, "k", paths[i][0]), BE_STORED);
                assert_int_equal(ask(&probe, BE_APPEND, "k", paths[i][1]), BE_STORED);
                assert_int_equal(ask(&probe, BE_GET, "k", ""), BE_HIT);
            } else {
                char expected[32];
                snprintf(expected, sizeof expected, "%s%s", paths[i][0], paths[i][1]);
                assert_int_equal(ask(&probe, BE_FETCH, "k", ""), BE_HIT);
                assert_string_equal(probe.value, expected);
            }
        }
    }
}

/* On each of the nodes, and in the order of the requests. */
static void a_collection_that_was_made_anew(void **state)
{
    (void)state;
    static const char *const digits[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct probe probe, probes[9];
    char key[32];
    fake_cluster_tell("collection shop.carts");
    use_collection("shop", "carts");
    for (int node = 0; node < NODES; node++) {
        choose_key(key, node);
        assert_int_equal(ask(&probe, BE_SET, key, "old"), BE_STORED);
    }
    fake_cluster_tell("drop shop.carts");
    fake_cluster_tell("collection shop.carts");
    choose_key(key, 0);
    submit(&probe, BE_SET, key, "0");
    for (int i = 0; i < 9; i++) {
        submit(&probes[i], BE_APPEND, key, digits[i]);
    }
    until(&probes[8].done);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(probes[i].reply.status, BE_STORED);
        assert_int_equal(probes[i].order, (int)probe.order + 1 + i);
    }
    assert_int_equal(ask(&probe, BE_FETCH, key, ""), BE_HIT);
    assert_string_equal(probe.value, "0123456789");
    choose_key(key, 1);
    assert_int_equal(ask(&probe, BE_FETCH, key, ""), BE_MISS);
    assert_int_equal(metric_get(&metrics, METRIC_cluster_collections), 2);
}

/* What waits ends, and what comes is refused, until it is there. */
static void a_collection_that_was_dropped(void **state)
{
    static const char text[] =
        "pool docs: bucket lists has no collection shop.carts (0x88), nothing done";
    (void)state;
    struct probe probe, read, behind;
    char key[32];
    choose_key(key, 0);
    fake_cluster_tell("collection shop.carts");
    use_collection("shop", "carts");
    assert_int_equal(ask(&probe, BE_SET, key, "old"), BE_STORED);
    fake_cluster_tell("drop shop.carts");
    submit(&probe, BE_SET, key, "lost");
    submit(&read, BE_GET, key, "");
    until(&read.done);
    assert_string_equal(probe.text, text);
    assert_int_equal(probe.reply.status, BE_REFUSED);
    assert_string_equal(read.text, text);
    assert_int_equal(ask(&behind, BE_APPEND, key, "x"), BE_REFUSED);
    assert_string_equal(behind.text, text);
    fake_cluster_tell("collection shop.carts");
    while (ask(&probe, BE_SET, key, "new") != BE_STORED) {
        assert_string_equal(probe.text, text);
        turn();
    }
}

static void a_collection_that_comes_late(void **state)
{
    (void)state;
    struct probe probe;
    use_collection("shop", "carts");
    assert_int_equal(ask(&probe, BE_SET, "k", "x"), BE_REFUSED);
    assert_string_equal(probe.text,
                        "pool docs: bucket lists has no scope shop (0x8c), nothing done");
    fake_cluster_tell("collection shop.others");
    while (strstr(probe.text, "no scope") != NULL) {
        assert_int_equal(ask(&probe, BE_SET, "k", "x"), BE_REFUSED);
        turn();
    }
    assert_string_equal(
        probe.text, "pool docs: bucket lists has no collection shop.carts (0x88), nothing done");
    fake_cluster_tell("collection shop.carts");
    while (ask(&probe, BE_SET, "k", "x") != BE_STORED) {
        turn();
    }
}

/* A node that has not heard of the new collection is believed nothing, and stores nothing in the
 * old one. */
static void a_node_that_lags(void **state)
{
    (void)state;
    struct probe probe, waits;
    char of_lagging[32], of_other[32];
    choose_key(of_lagging, 0);
    choose_key(of_other, 1);
    fake_cluster_tell("collection shop.carts");
    use_collection("shop", "carts");
    assert_int_equal(ask(&probe, BE_SET, of_lagging, "old"), BE_STORED);
    fake_cluster_tell("lag 0");
    fake_cluster_tell("drop shop.carts");
    fake_cluster_tell("collection shop.carts");
    assert_int_equal(ask(&probe, BE_SET, of_other, "new"), BE_STORED);
    submit(&waits, BE_APPEND, of_lagging, "x");
    while (waits.x.attempts < 3) {
        turn();
    }
    assert_int_equal(ask(&probe, BE_FETCH, of_other, ""), BE_HIT);
    assert_false(waits.done);
    fake_cluster_tell("hear 0");
    until(&waits.done);
    assert_int_equal(waits.reply.status, BE_NOT_STORED);
}

/* Its manifests count from the beginning. */
static void a_bucket_that_was_made_anew_with_its_collections(void **state)
{
    (void)state;
    struct probe probe;
    fake_cluster_tell("collection shop.others");
    fake_cluster_tell("collection shop.carts");
    use_collection("shop", "carts");
    assert_int_equal(ask(&probe, BE_SET, "k", "old"), BE_STORED);
    fake_cluster_tell("remake shop.carts");
    while (ask(&probe, BE_SET, "k", "new") != BE_STORED) {
        turn();
    }
}

static void the_default_collection_may_be_dropped_as_well(void **state)
{
    (void)state;
    struct probe probe;
    assert_int_equal(ask(&probe, BE_SET, "k", "x"), BE_STORED);
    fake_cluster_tell("drop _default._default");
    assert_int_equal(ask(&probe, BE_SET, "k", "x"), BE_REFUSED);
    assert_non_null(strstr(probe.text, ": the collection is not there (0x88)"));
}

static void keys_are_shorter_in_a_collection(void **state)
{
    (void)state;
    struct probe probe;
    char key[COLLECTION_KEY_BYTES_MAX + 2];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    assert_int_equal(ask(&probe, BE_SET, key, "x"), BE_STORED);
    fake_cluster_tell("collection shop.carts");
    use_collection("shop", "carts");
    assert_int_equal(ask(&probe, BE_SET, key, "x"), BE_DOWN);
    assert_string_equal(probe.text,
                        "pool docs: key too long, 246 bytes at most in a collection, nothing done");
    assert_int_equal(ask(&probe, BE_SET, key + 1, "x"), BE_STORED);
}

/* --- durable changes --- */

static void make_durable(void)
{
    char error[CONFIG_ERROR_MAX];
    pool_destroy(&pool);
    config->pools[0].durability = POOL_DURABILITY_MAJORITY;
    pool = pool_create(&config->pools[0], base, &now, &metrics, NULL, error);
    assert_non_null(pool);
}

/* It may take longer than other requests, and so may what stands behind it. */
static void a_durable_change_has_a_time_of_its_own(void **state)
{
    (void)state;
    struct probe first, slow, read;
    char key[32];
    config->pools[0].timeout_ms = 300;
    make_durable();
    choose_key(key, 0);
    while (ask(&first, BE_SET, key, "0") != BE_STORED) {
    }
    fake_cluster_tell("set durable_pause_ms 900");
    submit(&slow, BE_APPEND, key, "1");
    submit(&read, BE_FETCH, key, "");
    until(&read.done);
    assert_true(slow.done);
    assert_int_equal(slow.reply.status, BE_STORED);
    assert_string_equal(read.value, "01");
    config->pools[0].durable_timeout_ms = 200;
    assert_int_equal(ask(&slow, BE_APPEND, key, "2"), BE_LOST);
}

/* Another client's durable change is under way: the first one is refused. Had the second one gone
 * out with it, that would have been done, and the first one given up. */
static void durable_changes_of_a_key_take_turns(void **state)
{
    (void)state;
    struct probe first, probes[3], last, other;
    char key[32], same_node[32];
    make_durable();
    choose_key(key, 0);
    snprintf(same_node, sizeof same_node, "%s", key);
    ask(&first, BE_SET, key, "");
    for (int i = 0;
         shard_vbucket(slice_of(same_node), VBUCKETS) % NODES != 0 ||
         shard_vbucket(slice_of(same_node), VBUCKETS) == shard_vbucket(slice_of(key), VBUCKETS);
         i++) {
        snprintf(same_node, sizeof same_node, "other%d", i);
    }
    fake_cluster_tell("refuse 0 a2");
    submit(&probes[0], BE_APPEND, key, "1");
    submit(&probes[1], BE_APPEND, key, "2");
    submit(&probes[2], BE_APPEND, key, "3");
    submit(&last, BE_FETCH, key, "");
    submit(&other, BE_SET, same_node, "x");
    until(&last.done);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(probes[i].done);
        assert_int_equal(probes[i].reply.status, BE_STORED);
    }
    assert_true(probes[0].order < probes[1].order && probes[1].order < probes[2].order);
    assert_string_equal(last.value, "123");
    assert_true(other.done && other.order < probes[0].order);
    assert_int_equal(metric_get(&metrics, METRIC_cluster_retries), 1);
}

static void a_change_that_waits_for_its_turn_may_end_there(void **state)
{
    (void)state;
    struct probe first, held, waits, late, last;
    char key[32];
    make_durable();
    choose_key(key, 0);
    ask(&first, BE_SET, key, "0");
    fake_cluster_tell("refuse 0 a2 a2 a2 a2 a2");
    submit(&held, BE_APPEND, key, "1");
    submit(&waits, BE_APPEND, key, "2");
    submit(&late, BE_APPEND, key, "3");
    assert_true(pool_withdraw(&waits.x));
    until(&late.done);
    assert_true(held.done && held.reply.status == BE_STORED);
    assert_string_equal(waits.text, "pool docs: withdrawn, not sent");
    ask(&last, BE_FETCH, key, "");
    assert_string_equal(last.value, "013");

    config->pools[0].durable_timeout_ms = 300;
    fake_cluster_tell("refuse 0 86 86 86 86 86 86 86 86 86");
    submit(&held, BE_APPEND, key, "4");
    submit(&waits, BE_APPEND, key, "5");
    until(&waits.done);
    assert_true(held.done && held.reply.status == BE_REFUSED);
    assert_string_equal(waits.text, "pool docs: it could not be sent in time, nothing done");
    fake_cluster_tell("refuse 0");
    config->pools[0].durable_timeout_ms = 20000;
    fake_cluster_tell("refuse 0 86 86 86 86 86 86 86 86 86");
    submit(&held, BE_APPEND, key, "6");
    submit(&waits, BE_APPEND, key, "7");
    while (held.x.attempts < 3 || held.x.server != NULL) {
        turn();
    }
    pool_destroy(&pool);
    assert_true(held.done && held.reply.status == BE_REFUSED);
    assert_string_equal(waits.text, "pool docs: shutting down, not sent");
}

/* A change whose turn comes since the one in front has ended goes out behind what is held. */
static void a_turn_that_ends_in_a_hold_overtakes_nothing(void **state)
{
    (void)state;
    struct probe first, other, ends, read, later;
    char key[32], same[32];
    make_durable();
    choose_key(key, 0);
    snprintf(same, sizeof same, "same");
    for (int i = 0;
         shard_vbucket(slice_of(same), VBUCKETS) != shard_vbucket(slice_of(key), VBUCKETS); i++) {
        snprintf(same, sizeof same, "same%d", i);
    }
    ask(&first, BE_SET, key, "old");
    fake_cluster_tell("refuse 0 86 86 86 86 86 86");
    submit(&other, BE_SET, same, "x");
    submit(&ends, BE_APPEND, key, "x");
    while (other.x.attempts < 3 || ends.x.attempts < 3 || other.x.server != NULL ||
           ends.x.server != NULL) {
        turn();
    }
    submit(&read, BE_FETCH, key, "");
    submit(&later, BE_SET, key, "new");
    assert_true(pool_withdraw(&ends.x));
    until(&read.done);
    until(&later.done);
    assert_string_equal(read.value, "old");
    assert_int_equal(later.reply.status, BE_STORED);
}

/* How many nodes that had a connection have none. */
static size_t let_go_of(void)
{
    struct server_stats stats[POOL_SERVERS_MAX];
    size_t n = pool_stats(pool, stats, POOL_SERVERS_MAX), idle = 0;
    for (size_t i = 0; i < n; i++) {
        idle += stats[i].connects > 0 && strcmp(stats[i].state, "idle") == 0;
    }
    return idle;
}

static void a_node_that_has_left_is_not_connected_again(void **state)
{
    (void)state;
    struct probe probe;
    struct server_stats stats[POOL_SERVERS_MAX];
    char key[32];
    for (int i = 0; i < NODES; i++) {
        choose_key(key, i);
        assert_int_equal(ask(&probe, BE_SET, key, "x"), BE_STORED);
    }
    fake_cluster_tell("failover 0");
    while (let_go_of() == 0) {
        turn();
    }
    /* As when no other node can be asked for the map. */
    pool_connect(pool);
    while (pool_stats(pool, stats, POOL_SERVERS_MAX) != NODES - 1) {
        turn();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_key_in_several_collections, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_that_was_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_that_was_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_that_comes_late, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_lags, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bucket_that_was_made_anew_with_its_collections, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_default_collection_may_be_dropped_as_well, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_are_shorter_in_a_collection, setup, teardown),
        cmocka_unit_test_setup_teardown(before_the_first_map, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_ones_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(no_request_comes_after_a_later_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_wants_another_login, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_leaves_takes_no_request_along, setup, teardown),
        cmocka_unit_test_setup_teardown(withdrawn_while_it_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(more_may_wait_than_there_is_room_for, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_the_pool_ends_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(moved_keys_and_nodes_that_leave, setup, teardown),
        cmocka_unit_test_setup_teardown(the_name_of_a_node_outlives_it, setup, teardown),
        cmocka_unit_test_setup_teardown(vbuckets_without_a_node, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bucket_that_was_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(a_durable_change_has_a_time_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(durable_changes_of_a_key_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_that_waits_for_its_turn_may_end_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_turn_that_ends_in_a_hold_overtakes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_that_has_left_is_not_connected_again, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
