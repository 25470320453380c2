/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that the proxy knows of Couchbase, together, with the fake cluster of tests/cluster: logging
 * in at each node, the map, the vBucket of a key, operations and their answers, another map.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pool/couchbase/wire_couchbase.h"
#include "pool/locate/shard.h"
#include "proto/server/binary.h"
#include "proto/server/cluster_map.h"
#include "support_fake_cluster.h"

#define NODES 3
#define VBUCKETS 64
#define ROOM ((size_t)1 << 20)
#define CONNECTIONS_MAX 8

struct connection {
    uint16_t port;
    int fd;
};

static uint16_t ports[NODES];
static struct connection connections[CONNECTIONS_MAX];
static size_t connection_count;
static struct cluster_map *map;
static struct scram_cache cache;
static struct wire_login login;
static char in[ROOM];
static uint32_t opaque;
static char error[HANDSHAKE_ERROR_MAX];

/* --- the cluster -------------------------------------------------------------------------------
 */

static int setup(void **state)
{
    (void)state;
    cache.filled = false;
    login = (struct wire_login){.bucket = SLICE_LIT("lists"),
                                .user = SLICE_LIT("user"),
                                .password = SLICE_LIT("pencil"),
                                .cache = &cache};
    return fake_cluster_start(ports, NODES);
}

static int teardown(void **state)
{
    (void)state;
    while (connection_count > 0) {
        close(connections[--connection_count].fd);
    }
    cluster_map_destroy(&map);
    return fake_cluster_stop();
}

/* --- connections -------------------------------------------------------------------------------
 */

static size_t receive(int fd, size_t len)
{
    assert_true(len < ROOM);
    ssize_t n = recv(fd, in + len, ROOM - len, 0);
    assert_true(n > 0);
    return len + (size_t)n;
}

static void send_all(int fd, struct slice bytes)
{
    if (bytes.len > 0) {
        assert_int_equal(send(fd, bytes.p, bytes.len, MSG_NOSIGNAL), bytes.len);
    }
}

static void take_map(struct slice json)
{
    char reason[CLUSTER_ERROR_MAX];
    struct cluster_view view = {.host = SLICE_LIT("127.0.0.1")};
    struct cluster_map *newer = cluster_map_parse(json, &view, reason);
    if (newer == NULL) {
        fail_msg("%s", reason);
    }
    if (cluster_map_is_newer(newer, map)) {
        cluster_map_destroy(&map);
        map = newer;
    } else {
        cluster_map_destroy(&newer);
    }
}

/* A connection behind its handshake, or -1 with the reason in error. */
static int greet(uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {20, 0};
    struct handshake hs = {.login = &login, .nonce = "0123456789abcdef"};
    struct handshake_step step = {.in = SLICE_NONE};
    size_t len = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    /* A value is sent by itself: it must not wait for the acknowledgement of what is before it. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    enum handshake_result result = wire_couchbase.handshake(&hs, &step);
    while (result == HANDSHAKE_MORE) {
        send_all(fd, slice_make(step.send, step.send_len));
        len = receive(fd, len);
        step.in = slice_make(in, len);
        result = wire_couchbase.handshake(&hs, &step);
        memmove(in, step.in.p, result == HANDSHAKE_MORE ? step.in.len : 0);
        len = step.in.len;
    }
    if (result == HANDSHAKE_DONE) {
        assert_string_equal(hs.version, "7.6.0-fake");
        take_map(step.map);
        return fd;
    }
    memcpy(error, step.error, sizeof error);
    close(fd);
    return -1;
}

static int connection_to(uint16_t port)
{
    for (size_t i = 0; i < connection_count; i++) {
        if (connections[i].port == port) {
            return connections[i].fd;
        }
    }
    assert_true(connection_count < CONNECTIONS_MAX);
    int fd = greet(port);
    assert_true(fd >= 0);
    connections[connection_count++] = (struct connection){port, fd};
    return fd;
}

/* --- operations --------------------------------------------------------------------------------
 */

static struct be_reply ask_node(struct be_operation *op, int fd)
{
    static char text[WIRE_TEXT_MAX];
    const struct be_caps caps = {.server_name = "node"};
    char room[WIRE_FRONT_MAX];
    struct wire_answer answer = {.now_s = (int64_t)time(NULL)};
    enum wire_result result;
    struct slice tail;
    size_t len = 0;
    op->opaque = ++opaque;
    op->vbucket = shard_vbucket(op->key, map->vbucket_count);
    send_all(fd, wire_couchbase.encode(op, room, &tail));
    send_all(fd, be_has_value(op->verb) ? op->value : SLICE_NONE);
    do {
        len = receive(fd, len);
        result = wire_couchbase.decode(op, slice_make(in, len), &caps, &answer);
    } while (result == WIRE_MORE);
    assert_int_equal(result, WIRE_ANSWER);
    assert_int_equal(answer.size, len);
    memcpy(text, answer.text, sizeof text);
    answer.reply.text = text;
    return answer.reply;
}

/* Asks the node that the map names. */
static struct be_reply ask(struct be_operation op)
{
    uint16_t vbucket = shard_vbucket(op.key, map->vbucket_count);
    int owner = cluster_map_owner(map, vbucket, false);
    assert_true(owner >= 0);
    return ask_node(&op, connection_to(map->nodes[owner].port));
}

/* Until the next call. */
static struct slice key_of(int number)
{
    static char key[32];
    return slice_make(key, (size_t)snprintf(key, sizeof key, "user:%d", number));
}

static enum be_status put(enum be_verb verb, int number, const char *value)
{
    return ask((struct be_operation){.verb = verb, .key = key_of(number), .value = slice_of(value)})
        .status;
}

static void expect_content(int number, const char *wanted)
{
    struct be_reply reply = ask((struct be_operation){.verb = BE_FETCH, .key = key_of(number)});
    assert_int_equal(reply.status, BE_HIT);
    assert_true(slice_equal(reply.value, slice_of(wanted)));
}

/* --- tests -------------------------------------------------------------------------------------
 */

static void every_login_that_it_knows(void **state)
{
    (void)state;
    static const char *const mechanisms[] = {"SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"};
    for (size_t i = 0; i < 4; i++) {
        char command[64];
        snprintf(command, sizeof command, "set mechanisms %s", mechanisms[i]);
        fake_cluster_tell(command);
        login.plain = i == 3;
        int fd = greet(ports[i % NODES]);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(map->node_count, NODES);
    assert_int_equal(map->vbucket_count, VBUCKETS);
}

static void logins_that_fail(void **state)
{
    (void)state;
    login.password = SLICE_LIT("wrong");
    assert_int_equal(greet(ports[0]), -1);
    assert_string_equal(error, "it refuses user user: wrong user or password");
    cache.filled = false;
    login.password = SLICE_LIT("pencil");
    fake_cluster_tell("set lies yes");
    assert_int_equal(greet(ports[0]), -1);
    assert_string_equal(error, "it accepts the login, but does not know the password itself");
    fake_cluster_tell("set lies no");
    fake_cluster_tell("set iterations 4095");
    assert_int_equal(greet(ports[0]), -1);
    assert_string_equal(error, "its SCRAM iterations are fewer than 4096");
    fake_cluster_tell("set iterations 5000");
    login.bucket = SLICE_LIT("other");
    assert_int_equal(greet(ports[0]), -1);
    assert_string_equal(error, "user user has no access to bucket other, or it is not there");
}

static void each_key_on_its_node(void **state)
{
    (void)state;
    close(greet(ports[1]));
    for (int i = 0; i < 200; i++) {
        assert_int_equal(put(BE_ADD, i, "b"), BE_STORED);
        assert_int_equal(put(BE_ADD, i, "b"), BE_NOT_STORED);
        assert_int_equal(put(BE_APPEND, i, "c"), BE_STORED);
        assert_int_equal(put(BE_PREPEND, i, "a"), BE_STORED);
        expect_content(i, "abc");
    }
    assert_int_equal(connection_count, NODES);
    struct be_operation op = {.verb = BE_CAS_DELETE, .key = key_of(5), .cas = 1};
    assert_int_equal(ask(op).status, BE_EXISTS);
    op.cas = ask((struct be_operation){.verb = BE_FETCH, .key = key_of(5)}).cas;
    assert_int_equal(ask(op).status, BE_STORED);
    assert_int_equal(ask(op).status, BE_NOT_FOUND);
    assert_int_equal(put(BE_APPEND, 5, "x"), BE_NOT_STORED);
}

static void times_to_live_come_with_values(void **state)
{
    (void)state;
    close(greet(ports[0]));
    struct be_operation op = {
        .verb = BE_SET, .key = key_of(1), .value = SLICE_LIT("v"), .flags = 7, .exptime = 1000};
    assert_int_equal(ask(op).status, BE_STORED);
    struct be_reply reply = ask((struct be_operation){.verb = BE_GET, .key = key_of(1)});
    assert_true(reply.status == BE_HIT && reply.flags == 7 && reply.ttl_s > 900);
    assert_true(reply.ttl_s <= 1001 && slice_equal(reply.value, SLICE_LIT("v")));
    uint64_t cas = reply.cas;
    op = (struct be_operation){.verb = BE_TOUCH, .key = key_of(1), .exptime = 0};
    assert_int_equal(ask(op).status, BE_STORED);
    reply = ask((struct be_operation){.verb = BE_TIME, .key = key_of(1)});
    assert_true(reply.status == BE_HIT && reply.ttl_s == -1);
    assert_true(reply.cas != cas); /* not so on memcached */
    assert_int_equal(ask((struct be_operation){.verb = BE_GET, .key = key_of(2)}).status, BE_MISS);
    op.key = key_of(1);
    op.exptime = -1;
    assert_int_equal(ask(op).status, BE_STORED);
    assert_int_equal(ask((struct be_operation){.verb = BE_GET, .key = key_of(1)}).status, BE_MISS);
    assert_int_equal(ask((struct be_operation){.verb = BE_TIME, .key = key_of(1)}).status, BE_MISS);
}

/* A write that finds its vBucket moved was not done: it may go to the node that the new map names.
 */
static void a_rebalance_moves_keys(void **state)
{
    (void)state;
    int moved = 0;
    close(greet(ports[0]));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(put(BE_SET, i, "old,"), BE_STORED);
    }
    int64_t revision = map->revision;
    fake_cluster_tell("add");
    fake_cluster_tell("rebalance");
    for (int i = 0; i < 100; i++) {
        struct be_operation op = {.verb = BE_APPEND, .key = key_of(i), .value = SLICE_LIT("new,")};
        struct be_reply reply = ask(op);
        if (reply.status == BE_REFUSED) {
            assert_int_equal(reply.code, BINARY_STATUS_NOT_MY_VBUCKET);
            assert_string_equal(reply.text, "backend node: another node has this key (0x7)");
            assert_true(reply.has_value);
            take_map(reply.value);
            assert_true(map->revision > revision);
            moved++;
            reply = ask(op);
        }
        assert_int_equal(reply.status, BE_STORED);
        expect_content(i, "old,new,");
    }
    /* The first one brings the map for all others. */
    assert_int_equal(moved, 1);
    assert_int_equal(map->node_count, NODES + 1);
}

static void a_failover_gives_keys_to_the_others(void **state)
{
    (void)state;
    login.durable = true;
    close(greet(ports[1]));
    fake_cluster_tell("set replicas_lag yes");
    struct be_operation op = {.verb = BE_SET,
                              .key = key_of(3),
                              .value = SLICE_LIT("kept"),
                              .durability = BE_DURABILITY_MAJORITY};
    int owner = cluster_map_owner(map, shard_vbucket(op.key, VBUCKETS), false);
    assert_int_equal(ask(op).status, BE_STORED);
    assert_int_equal(put(BE_APPEND, 3, " and lost"), BE_STORED);
    char command[64];
    snprintf(command, sizeof command, "failover %d", owner);
    fake_cluster_tell(command);
    struct be_reply reply = ask((struct be_operation){.verb = BE_FETCH, .key = key_of(3)});
    assert_int_equal(reply.code, BINARY_STATUS_NOT_MY_VBUCKET);
    take_map(reply.value);
    assert_int_equal(map->node_count, NODES - 1);
    expect_content(3, "kept");
}

static void refusals_are_told_apart(void **state)
{
    (void)state;
    close(greet(ports[2]));
    struct be_operation op = {.verb = BE_SET, .key = key_of(3), .value = SLICE_LIT("v")};
    int owner = cluster_map_owner(map, shard_vbucket(op.key, VBUCKETS), false);
    char command[64];
    snprintf(command, sizeof command, "refuse %d 86 82 a3", owner);
    fake_cluster_tell(command);
    struct be_reply reply = ask(op);
    assert_true(reply.status == BE_REFUSED && reply.code == BINARY_STATUS_TEMPORARY);
    assert_int_equal(ask(op).status, BE_NO_MEMORY);
    assert_int_equal(ask(op).status, BE_LOST);
    assert_int_equal(ask(op).status, BE_STORED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_login_that_it_knows, setup, teardown),
        cmocka_unit_test_setup_teardown(logins_that_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(each_key_on_its_node, setup, teardown),
        cmocka_unit_test_setup_teardown(times_to_live_come_with_values, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rebalance_moves_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failover_gives_keys_to_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals_are_told_apart, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
