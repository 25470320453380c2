/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys must stay where other clients find them. The expected owners were found by storing the keys
 * through those clients into running memcacheds and looking which of them had each: pylibmc 1.6.3
 * (libmemcached 1.0.18 API) with the behaviors named below, and nutcracker 0.5 (`hash: fnv1a_64`,
 * `distribution: ketama`).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "pool/locate/shard.h"

#define KEYS 11

/* NULL: 250 times k. */
static const char *const keys[KEYS] = {"foo", "bar", "hello", "key_1",   "user:1000",        NULL,
                                       "a",   "b",   "c",     "list:42", "xxxxxxxxxxxxxxxxx"};

static const struct endpoint four[] = {
    {"127.0.0.1", 21001}, {"127.0.0.1", 21002}, {"127.0.0.1", 21003}, {"127.0.0.1", 21004}};
static const struct endpoint unix_sockets[] = {{"/tmp/mclistd-test-1.sock", 0},
                                               {"/tmp/mclistd-test-2.sock", 0}};
static const struct endpoint with_v6[] = {
    {"127.0.0.1", 21001}, {"127.0.0.1", 21002}, {"::1", 21006}};
static const uint32_t same[] = {1, 1, 1, 1};
static const uint32_t rising[] = {1, 2, 3, 4};

static const struct {
    const char *client;
    enum pool_distribution distribution;
    enum pool_hash hash;
    const struct endpoint *endpoints;
    size_t count;
    const uint32_t *weights;
    size_t owners[KEYS];
} cases[] = {
    {"pylibmc, ketama_weighted",
     DISTRIBUTION_KETAMA_WEIGHTED,
     HASH_DEFAULT,
     four,
     4,
     same,
     {0, 0, 0, 3, 3, 2, 1, 3, 2, 1, 0}},
    {"pylibmc, ketama_weighted, weights",
     DISTRIBUTION_KETAMA_WEIGHTED,
     HASH_DEFAULT,
     four,
     4,
     rising,
     {2, 3, 1, 2, 3, 2, 2, 3, 3, 1, 0}},
    {"pylibmc, ketama",
     DISTRIBUTION_KETAMA,
     HASH_DEFAULT,
     four,
     4,
     same,
     {3, 1, 3, 1, 1, 2, 3, 1, 3, 2, 0}},
    {"pylibmc, no behaviors",
     DISTRIBUTION_MODULA,
     HASH_DEFAULT,
     four,
     4,
     same,
     {1, 1, 3, 1, 3, 0, 2, 3, 1, 3, 2}},
    {"pylibmc, hash md5",
     DISTRIBUTION_MODULA,
     HASH_MD5,
     four,
     4,
     same,
     {0, 3, 1, 0, 3, 3, 0, 2, 2, 3, 2}},
    {"pylibmc, hash crc",
     DISTRIBUTION_MODULA,
     HASH_CRC,
     four,
     4,
     same,
     {3, 3, 0, 1, 0, 3, 3, 2, 1, 3, 0}},
    {"nutcracker",
     DISTRIBUTION_KETAMA_WEIGHTED,
     HASH_FNV1A_64,
     four,
     4,
     same,
     {3, 3, 2, 0, 0, 1, 3, 3, 3, 1, 1}},
    {"pylibmc, ketama_weighted, unix sockets",
     DISTRIBUTION_KETAMA_WEIGHTED,
     HASH_DEFAULT,
     unix_sockets,
     2,
     same,
     {0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1}},
    {"pylibmc, ketama_weighted, IPv6",
     DISTRIBUTION_KETAMA_WEIGHTED,
     HASH_DEFAULT,
     with_v6,
     3,
     same,
     {2, 0, 0, 0, 2, 1, 1, 1, 0, 1, 0}},
};

static struct slice key_at(size_t i)
{
    static char longest[250];
    memset(longest, 'k', sizeof longest);
    return keys[i] != NULL ? slice_of(keys[i]) : slice_make(longest, sizeof longest);
}

static void keys_live_where_other_clients_put_them(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct server_config servers[4] = {0};
        struct pool_config config = {.name = "p",
                                     .servers = servers,
                                     .server_count = cases[c].count,
                                     .distribution = cases[c].distribution,
                                     .hash = cases[c].hash};
        for (size_t i = 0; i < cases[c].count; i++) {
            servers[i].endpoint = cases[c].endpoints[i];
            servers[i].weight = cases[c].weights[i];
        }
        char error[CONFIG_ERROR_MAX] = "";
        struct shard *shard = shard_create(&config, error);
        assert_non_null(shard);
        for (size_t i = 0; i < KEYS; i++) {
            size_t owner = shard_index(shard, key_at(i));
            if (owner != cases[c].owners[i]) {
                fail_msg("%s: key %zu: %zu instead of %zu", cases[c].client, i, owner,
                         cases[c].owners[i]);
            }
        }
        shard_destroy(&shard);
        assert_null(shard);
    }
}

/* Keys of all lengths, again and again, more of them than are remembered: always what libmemcached
 * says. */
static void remembered_keys_stay_where_they_were(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static char texts[MANY][250];
    static struct slice many[MANY];
    static size_t owners[MANY], indexes[MANY];
    static const uint32_t sizes[] = {0, 127, 128, 1000, 65536, 4 << 20};
    struct server_config servers[4] = {0};
    for (size_t i = 0; i < 4; i++) {
        servers[i] = (struct server_config){.endpoint = four[i], .weight = 1};
    }
    struct pool_config config = {.name = "p", .servers = servers, .server_count = 4};
    for (size_t i = 0; i < MANY; i++) {
        int len = snprintf(texts[i], sizeof texts[i], "%zu", i);
        size_t padded = 1 + i % 80;
        memset(texts[i] + len, 'k', sizeof texts[i] - (size_t)len);
        many[i] = slice_make(texts[i], padded > (size_t)len ? padded : (size_t)len);
    }
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        char error[CONFIG_ERROR_MAX] = "";
        config.hash_cache_bytes = sizes[s];
        struct shard *shard = shard_create(&config, error);
        assert_non_null(shard);
        for (size_t round = 0; round < 3; round++) {
            for (size_t i = 0; i < MANY; i++) {
                size_t owner = shard_index(shard, many[i]);
                owners[i] = s == 0 ? owner : owners[i];
                assert_int_equal(owner, owners[i]);
            }
            shard_indexes(shard, many, MANY, indexes);
            assert_memory_equal(indexes, owners, sizeof owners);
        }
        shard_destroy(&shard);
    }
}

static void one_server_owns_everything(void **state)
{
    (void)state;
    struct server_config server = {.endpoint = {"localhost", 11211}, .weight = 1};
    struct pool_config config = {.name = "p", .servers = &server, .server_count = 1};
    char error[CONFIG_ERROR_MAX];
    struct shard *shard = shard_create(&config, error);
    assert_non_null(shard);
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(shard_index(shard, key_at(i)), 0);
    }
    shard_destroy(&shard);
}

static void the_most_servers_work_and_one_more_is_refused(void **state)
{
    (void)state;
    static struct server_config servers[CONFIG_SERVERS_MAX + 1];
    struct pool_config config = {
        .name = "p", .servers = servers, .server_count = CONFIG_SERVERS_MAX};
    char error[CONFIG_ERROR_MAX] = "";
    for (size_t i = 0; i <= CONFIG_SERVERS_MAX; i++) {
        servers[i].weight = 1;
        servers[i].endpoint.port = 11211;
        snprintf(servers[i].endpoint.host, sizeof servers[i].endpoint.host, "10.0.0.%zu", i);
    }
    struct shard *shard = shard_create(&config, error);
    assert_non_null(shard);
    assert_true(shard_index(shard, SLICE_LIT("foo")) < CONFIG_SERVERS_MAX);
    shard_destroy(&shard);
    config.server_count++;
    assert_null(shard_create(&config, error));
    assert_string_equal(error, "pool p: 1 to 100 servers are needed, there are 101");
    config.server_count = 0;
    assert_null(shard_create(&config, error));
}

/* From Couchbase's clients: ((CRC-32 >> 16) & 0x7fff) & (count - 1). */
static void vbuckets_are_where_couchbase_has_them(void **state)
{
    (void)state;
    char longest[250];
    memset(longest, 'k', sizeof longest);
    const struct {
        struct slice key;
        uint16_t of_1024, of_64;
    } rows[] = {
        {SLICE_LIT("foo"), 115, 51},       {SLICE_LIT("bar"), 767, 63},
        {SLICE_LIT("hello"), 528, 16},     {SLICE_LIT("key_1"), 997, 37},
        {SLICE_LIT("user:1000"), 884, 52}, {slice_make(longest, sizeof longest), 151, 23},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(shard_vbucket(rows[i].key, 1024), rows[i].of_1024);
        assert_int_equal(shard_vbucket(rows[i].key, 64), rows[i].of_64);
        assert_int_equal(shard_vbucket(rows[i].key, 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vbuckets_are_where_couchbase_has_them),
        cmocka_unit_test(keys_live_where_other_clients_put_them),
        cmocka_unit_test(remembered_keys_stay_where_they_were),
        cmocka_unit_test(one_server_owns_everything),
        cmocka_unit_test(the_most_servers_work_and_one_more_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
