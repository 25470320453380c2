/* SPDX-License-Identifier: BSD-3-Clause */
/* What clusters say of themselves, and what they must not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/server/cluster_map.h"

#define BUCKETS "\"vBucketServerMap\":{\"hashAlgorithm\":\"CRC\",\"numReplicas\":1,"
#define TWO_SERVERS BUCKETS "\"serverList\":[\"$HOST:11210\",\"10.0.0.2:11210\"],"
#define FOUR_VBUCKETS "\"vBucketMap\":[[0,1],[1,0],[-1,0],[1,-1]]}"
#define SMALL "{\"rev\":7,\"nodeLocator\":\"vbucket\"," TWO_SERVERS FOUR_VBUCKETS "}"

static char error[CLUSTER_ERROR_MAX];

static struct cluster_map *parse_in(const char *json, const char *network)
{
    struct cluster_view view = {.host = SLICE_LIT("10.0.0.1"), .network = slice_of(network)};
    /* Without the NUL, so that a sanitizer sees the first byte read beyond the text. */
    size_t len = strlen(json);
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy + 1, json, len);
    struct cluster_map *map = cluster_map_parse(slice_make(copy + 1, len), &view, error);
    free(copy);
    return map;
}

static struct cluster_map *parse(const char *json)
{
    struct cluster_map *map = parse_in(json, "");
    if (map == NULL) {
        fail_msg("%s", error);
    }
    return map;
}

static void refused(const char *json, const char *reason)
{
    assert_null(parse_in(json, ""));
    assert_string_equal(error, reason);
}

static void expect_node(const struct cluster_map *map, size_t i, const char *host, uint16_t port)
{
    assert_true(i < map->node_count);
    assert_string_equal(map->nodes[i].host, host);
    assert_int_equal(map->nodes[i].port, port);
}

static void nodes_and_vbuckets(void **state)
{
    (void)state;
    struct cluster_map *map = parse(SMALL);
    assert_true(map->epoch == -1 && map->revision == 7);
    assert_int_equal(map->node_count, 2);
    expect_node(map, 0, "10.0.0.1", 11210);
    expect_node(map, 1, "10.0.0.2", 11210);
    assert_int_equal(map->vbucket_count, 4);
    assert_int_equal(map->short_count, 1);
    static const int owners[] = {0, 1, -1, 1};
    for (uint16_t i = 0; i < 4; i++) {
        assert_int_equal(cluster_map_owner(map, i, false), owners[i]);
        assert_int_equal(cluster_map_owner(map, i, true), owners[i]);
    }
    cluster_map_destroy(&map);
    assert_null(map);
}

static void a_rebalance_says_where_vbuckets_go(void **state)
{
    (void)state;
    struct cluster_map *map = parse("{\"rev\":1," TWO_SERVERS
                                    "\"vBucketMap\":[[0],[0]],\"vBucketMapForward\":[[1],[-1]]}}");
    assert_int_equal(cluster_map_owner(map, 0, false), 0);
    assert_int_equal(cluster_map_owner(map, 0, true), 1);
    assert_int_equal(cluster_map_owner(map, 1, true), 0);
    cluster_map_destroy(&map);
}

static void addresses_of_each_kind(void **state)
{
    (void)state;
    struct cluster_map *map = parse(
        "{\"rev\":1," BUCKETS "\"serverList\":[\"[::1]:11210\",\"db-2.example:1\",\"$HOST:2\"],"
        "\"vBucketMap\":[[2]]}}");
    expect_node(map, 0, "::1", 11210);
    expect_node(map, 1, "db-2.example", 1);
    expect_node(map, 2, "10.0.0.1", 2);
    cluster_map_destroy(&map);
    /* An IPv6 address that the proxy has connected to is put in without brackets as well. */
    struct cluster_view view = {.host = SLICE_LIT("fe80::1")};
    map = cluster_map_parse(SLICE_LIT(SMALL), &view, error);
    assert_non_null(map);
    expect_node(map, 0, "fe80::1", 11210);
    cluster_map_destroy(&map);
}

#define EXTENDED \
    "\"nodesExt\":[{\"services\":{\"mgmt\":8091},\"hostname\":\"10.0.0.9\"}," \
    "{\"services\":{\"kv\":11210},\"hostname\":\"10.0.0.2\",\"alternateAddresses\":{\"external\":" \
    "{" \
    "\"hostname\":\"two.example\",\"ports\":{\"kv\":32002}}}}," \
    "{\"services\":{\"kv\":11210},\"thisNode\":true,\"alternateAddresses\":{\"external\":{" \
    "\"hostname\":\"one.example\"}}}],"

/* nodesExt may be in another order, and know nodes without data. */
static void addresses_of_another_network(void **state)
{
    (void)state;
    const char *json = "{\"rev\":1," EXTENDED TWO_SERVERS FOUR_VBUCKETS "}";
    struct cluster_map *map = parse_in(json, "external");
    assert_non_null(map);
    expect_node(map, 0, "one.example", 11210);
    expect_node(map, 1, "two.example", 32002);
    cluster_map_destroy(&map);
    map = parse(json);
    expect_node(map, 1, "10.0.0.2", 11210);
    cluster_map_destroy(&map);
    assert_null(parse_in(json, "internet"));
    assert_string_equal(error, "has no address of the network internet for 10.0.0.1");
    assert_null(parse_in(SMALL, "external"));
}

#define ENCRYPTED \
    "\"nodesExt\":[{\"services\":{\"kv\":11210,\"kvSSL\":11207},\"thisNode\":true," \
    "\"alternateAddresses\":{\"external\":{\"hostname\":\"one.example\"}}}," \
    "{\"services\":{\"kv\":11210,\"kvSSL\":11217},\"hostname\":\"10.0.0.2\"," \
    "\"alternateAddresses\":{\"external\":{\"hostname\":\"two.example\",\"ports\":{\"kv\":1," \
    "\"kvSSL\":32007}}}}],"

static void ports_for_tls(void **state)
{
    (void)state;
    const char *json = "{\"rev\":1," ENCRYPTED TWO_SERVERS FOUR_VBUCKETS "}";
    struct cluster_view view = {.host = SLICE_LIT("10.0.0.1"), .tls = true};
    struct cluster_map *map = cluster_map_parse(slice_of(json), &view, error);
    assert_non_null(map);
    expect_node(map, 0, "10.0.0.1", 11207);
    expect_node(map, 1, "10.0.0.2", 11217);
    cluster_map_destroy(&map);
    view.network = SLICE_LIT("external");
    map = cluster_map_parse(slice_of(json), &view, error);
    assert_non_null(map);
    expect_node(map, 0, "one.example", 11207);
    expect_node(map, 1, "two.example", 32007);
    cluster_map_destroy(&map);
    view.network = SLICE_NONE;
    assert_null(cluster_map_parse(SLICE_LIT(SMALL), &view, error));
    assert_string_equal(error, "has no port for TLS of 10.0.0.1");
}

/* One node without what the proxy needs of it: the others can be used. */
static void nodes_without_an_address(void **state)
{
    (void)state;
    struct cluster_map *map = parse_in(
        "{\"rev\":1,\"nodesExt\":[{\"services\":{\"kv\":11210}},"
        "{\"hostname\":\"10.0.0.2\",\"services\":{\"kv\":11210},"
        "\"alternateAddresses\":{\"external\":{\"hostname\":\"two.example\"}}}]," TWO_SERVERS
            FOUR_VBUCKETS "}",
        "external");
    assert_non_null(map);
    assert_int_equal(map->nodes[0].port, 0);
    assert_string_equal(map->nodes[0].problem,
                        "has no address of the network external for 10.0.0.1");
    expect_node(map, 1, "two.example", 11210);
    assert_string_equal(map->nodes[1].problem, "");
    assert_int_equal(cluster_map_owner(map, 0, false), 0);
    cluster_map_destroy(&map);
    struct cluster_view view = {.host = SLICE_LIT("10.0.0.1"), .tls = true};
    map = cluster_map_parse(
        SLICE_LIT(
            "{\"rev\":1,\"nodesExt\":[{\"services\":{\"kv\":11210,\"kvSSL\":11207}},"
            "{\"hostname\":\"10.0.0.2\",\"services\":{\"kv\":11210}}]," TWO_SERVERS FOUR_VBUCKETS
            "}"),
        &view, error);
    assert_non_null(map);
    expect_node(map, 0, "10.0.0.1", 11207);
    assert_string_equal(map->nodes[1].problem, "has no port for TLS of 10.0.0.2");
    cluster_map_destroy(&map);
    map = parse("{\"rev\":1," BUCKETS "\"serverList\":[\"a\",\"b:2\",3],\"vBucketMap\":[[1]]}}");
    assert_string_equal(map->nodes[0].problem, "names a server without a port");
    expect_node(map, 1, "b", 2);
    assert_string_equal(map->nodes[2].problem, "has a server that is no text");
    cluster_map_destroy(&map);
}

static const char *guess(const char *json, const char *host, uint16_t port, const char *address)
{
    static char network[CLUSTER_NETWORK_MAX + 1];
    struct cluster_view view = {
        .host = slice_of(host), .port = port, .address = slice_of(address), .guess_network = true};
    struct cluster_map *map = cluster_map_parse(slice_of(json), &view, error);
    assert_non_null(map);
    snprintf(network, sizeof network, "%s", map->network);
    cluster_map_destroy(&map);
    return network;
}

/* As Couchbase's own clients do: the one that the address that was reached belongs to. */
static void the_network_is_guessed(void **state)
{
    (void)state;
    const char *json =
        "{\"rev\":1,\"nodesExt\":[{\"services\":{\"kv\":11210},\"hostname\":\"10.0.0.1\","
        "\"alternateAddresses\":{\"external\":{\"hostname\":\"one.example\",\"ports\":{"
        "\"kv\":31001}}}},{\"services\":{\"kv\":11210},\"hostname\":\"10.0.0.2\"}]," BUCKETS
        "\"serverList\":[\"10.0.0.1:11210\",\"10.0.0.2:11210\"]," FOUR_VBUCKETS "}";
    assert_string_equal(guess(json, "10.0.0.1", 11210, ""), "");
    assert_string_equal(guess(json, "One.Example", 31001, ""), "external");
    assert_string_equal(guess(json, "one.example", 0, ""), "external");
    assert_string_equal(guess(json, "seed.example", 31001, ""), "");
    assert_string_equal(guess(json, "seed.example", 11210, "10.0.0.2"), "");
    /* All on one machine: the port tells them apart. */
    json = "{\"rev\":1,\"nodesExt\":[{\"services\":{\"kv\":11210},\"hostname\":\"h\","
           "\"alternateAddresses\":{\"outside\":{\"hostname\":\"h\",\"ports\":{\"kv\":31001}}}},"
           "{\"services\":{\"kv\":11211},\"alternateAddresses\":{\"outside\":{\"hostname\":"
           "\"203.0.113.1\"}}}]," BUCKETS "\"serverList\":[\"h:11210\",\"h:11211\"]," FOUR_VBUCKETS
           "}";
    assert_string_equal(guess(json, "h", 11210, ""), "");
    assert_string_equal(guess(json, "h", 31001, ""), "outside");
    assert_string_equal(guess(json, "h", 4, ""), "");
    assert_string_equal(guess(json, "seed.example", 11211, "203.0.113.1"), "outside");
}

static void maps_have_an_order(void **state)
{
    (void)state;
    struct cluster_map a = {.epoch = -1, .revision = 9}, b = {.epoch = 1, .revision = 2};
    assert_true(cluster_map_is_newer(&a, NULL));
    assert_true(cluster_map_is_newer(&b, &a) && !cluster_map_is_newer(&a, &b));
    assert_false(cluster_map_is_newer(&b, &b));
    a.epoch = 1;
    assert_true(cluster_map_is_newer(&a, &b) && !cluster_map_is_newer(&b, &a));
    b.revision = -1;
    assert_true(cluster_map_is_newer(&b, &a));
}

static void maps_that_cannot_be_used(void **state)
{
    (void)state;
    refused("", "has 0 bytes; expected 1 to 1048576");
    refused("{\"rev\":1} x", "is no JSON object: unexpected character");
    refused("{\"rev\":1}", "has no vBuckets");
    refused("{\"rev\":1,\"nodeLocator\":\"ketama\"}",
            "is of a memcached bucket; expected one of type Couchbase or Ephemeral");
    refused("{" TWO_SERVERS "\"vBucketMap\":[[0],[2]]}}",
            "gives vBucket 1 to a server that is not in its list");
    refused("{" TWO_SERVERS "\"vBucketMap\":[[0,-2],[1]]}}",
            "gives vBucket 0 to a server that is not in its list");
    refused("{" TWO_SERVERS "\"vBucketMap\":[[0],[\"1\"]]}}",
            "gives vBucket 1 to a server that is not in its list");
    refused("{" TWO_SERVERS "\"vBucketMap\":[[0],[]]}}", "has a vBucket 1 without a server");
    refused("{" TWO_SERVERS "\"vBucketMap\":[[0],1]}}", "has a vBucket 1 without a server");
    refused("{" TWO_SERVERS "\"vBucketMap\":[[0],[0],[0]]}}",
            "has 3 vBuckets; expected a power of two up to 32768");
    refused("{" TWO_SERVERS "\"vBucketMap\":[]}}",
            "has 0 vBuckets; expected a power of two up to 32768");
    refused("{\"vBucketServerMap\":{\"serverList\":[\"a:1\"],\"vBucketMap\":[[0]]}}",
            "asks for another hash than CRC");
    refused("{" BUCKETS "\"serverList\":[],\"vBucketMap\":[[0]]}}",
            "has 0 servers; expected 1 to 256");
    refused("{" BUCKETS "\"serverList\":[\"a\"],\"vBucketMap\":[[0]]}}",
            "names a server without a port");
    refused("{" BUCKETS "\"serverList\":[\"a:65536\"],\"vBucketMap\":[[0]]}}",
            "names a server with a port that cannot be used");
    refused("{" BUCKETS "\"serverList\":[\"a\\r\\nb:1\"],\"vBucketMap\":[[0]]}}",
            "names a host that cannot be used");
    refused("{" BUCKETS "\"serverList\":[1],\"vBucketMap\":[[0]]}}",
            "has a server that is no text");
    char deep[64];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    refused(deep, "is no JSON object: nesting too deep");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_and_vbuckets),
        cmocka_unit_test(a_rebalance_says_where_vbuckets_go),
        cmocka_unit_test(addresses_of_each_kind),
        cmocka_unit_test(addresses_of_another_network),
        cmocka_unit_test(ports_for_tls),
        cmocka_unit_test(nodes_without_an_address),
        cmocka_unit_test(the_network_is_guessed),
        cmocka_unit_test(maps_have_an_order),
        cmocka_unit_test(maps_that_cannot_be_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
