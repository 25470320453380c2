/* SPDX-License-Identifier: BSD-3-Clause */
/* What the type of a pool means for its settings, and passwords. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_config.h"

#define LOGIN "bucket = b\nusername = u\npassword_file = /p\n"
#define DOCUMENTS "[pool docs]\ntype = couchbase\n" LOGIN
#define NAME_OF_40 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define LISTS "[pool cache]\nservers = c:1\n[lists]\npool = cache\n"

static void test_ports_and_defaults(void **state)
{
    (void)state;
    struct config *c = good("[pool docs]\nservers = a, b:1, [::1]\ntype = couchbase\n" LOGIN);
    const struct pool_config *pool = &c->pools[0];
    assert_int_equal(pool->type, POOL_COUCHBASE);
    assert_string_equal(pool->servers[0].name, "a:11210");
    assert_string_equal(pool->servers[1].name, "b:1");
    assert_string_equal(pool->servers[2].name, "[::1]:11210");
    assert_int_equal(pool->servers[0].endpoint.port, 11210);
    assert_int_equal(pool->durability, POOL_DURABILITY_NONE);
    assert_int_equal(pool->network, NETWORK_AUTO);
    assert_false(pool->plain_login);
    assert_int_equal(pool->connect_timeout_ms, 7000);
    assert_int_equal(pool->durable_timeout_ms, 6000);
    assert_int_equal(c->deadline_ms, 12000);
    config_destroy(&c);
    c = good("[proxy]\ndeadline_ms = 9\n" DOCUMENTS
             "servers = a\nconnect_timeout_ms = 500\ndurable_timeout_ms = 7\n" LISTS);
    assert_int_equal(c->pools[0].connect_timeout_ms, 500);
    assert_int_equal(c->pools[1].connect_timeout_ms, 500);
    assert_int_equal(c->deadline_ms, 9);
    config_destroy(&c);
    accepted(DOCUMENTS "servers = a\ndurability = majority\nnetwork = external\n" LISTS);
    accepted(DOCUMENTS "servers = a\n[lists]\n");
    c = good(DOCUMENTS "servers = a, b:1\ntls = yes\ntls_ca = /c\n");
    assert_string_equal(c->pools[0].servers[0].name, "a:11207");
    assert_string_equal(c->pools[0].servers[1].name, "b:1");
    config_destroy(&c);
    accepted("[pool m]\nservers = a, a:11210\ntype = memcached\n");
}

static void test_keys_of_another_type(void **state)
{
    (void)state;
    refused("[pool m]\nservers = a\nbucket = b\n",
            ":3: [pool m]: bucket: type = memcached does not use it; expected with type = "
            "couchbase");
    refused("[pool docs]\nhash = crc\ntype = couchbase\nservers = a\n" LOGIN,
            ":2: [pool docs]: hash: type = couchbase does not use it; expected with type = "
            "memcached");
    refused(DOCUMENTS "servers = a\ndistribution = modula\n",
            ":7: [pool docs]: distribution: type = couchbase does not use it; expected with type "
            "= memcached");
    refused(DOCUMENTS "servers = a\ntls_ca = /c\n",
            ":7: [pool docs]: tls_ca: tls = no does not use it; expected with tls = yes");
    refused("[pool docs]\ntype = couch\n",
            ":2: type: 'couch' is not known; expected memcached or couchbase");
}

static void test_what_must_be_given(void **state)
{
    (void)state;
    refused("[pool docs]\ntype = couchbase\nservers = a\n",
            ":1: [pool docs]: no bucket; expected bucket = NAME with type = couchbase");
    refused("[pool docs]\ntype = couchbase\nservers = a\nbucket = b\n",
            ":1: [pool docs]: no username; expected username = NAME with type = couchbase");
    refused(DOCUMENTS, ":1: [pool docs]: no servers; expected servers = host:port, ...");
    refused("[pool docs]\ntype = couchbase\nservers = a\nbucket = a b\nusername = u\n"
            "password_file = /p\n",
            ":4: [pool docs]: bucket: expected 1 to 100 letters, digits, _, -, . or %");
    refused("[pool docs]\ntype = couchbase\nservers = a\nbucket = b/c\nusername = u\n",
            ":4: [pool docs]: bucket: expected 1 to 100 letters, digits, _, -, . or %");
}

static void test_collections(void **state)
{
    (void)state;
    struct config *c = good(DOCUMENTS "servers = a\n");
    assert_false(config_has_collection(&c->pools[0]));
    config_destroy(&c);
    c = good(DOCUMENTS "servers = a\ncollection = carts\n[lists]\ndialect = paired\n"
                       "delete_name = " NAME_OF_40 "%s\n");
    assert_true(config_has_collection(&c->pools[0]));
    assert_string_equal(c->pools[0].scope, "_default");
    assert_int_equal(config_list_policy(c, SLICE_LIT("x"))->key_bytes_max, 206);
    config_destroy(&c);
    accepted(DOCUMENTS "servers = a\nscope = shop\ncollection = carts-%_1\n");
    refused(DOCUMENTS "servers = a\nscope = shop\n",
            ":7: [pool docs]: scope = shop: it has no collection _default, which only scope "
            "_default has; expected collection = NAME with it");
    refused(DOCUMENTS "servers = a\ncollection = _carts\n",
            ":7: [pool docs]: collection: expected 1 to 251 letters, digits, _, - or %, not _ or % "
            "at the beginning");
    refused(DOCUMENTS "servers = a\nscope = a.b\ncollection = carts\n",
            ":7: [pool docs]: scope: expected 1 to 251 letters, digits, _, - or %, not _ or % at "
            "the beginning");
    refused("[pool m]\nservers = a\ncollection = b\n",
            ":3: [pool m]: collection: type = memcached does not use it; expected with type = "
            "couchbase");
}

static void test_servers_of_a_cluster(void **state)
{
    (void)state;
    refused(DOCUMENTS "servers = unix:/x\n",
            ":6: [pool docs]: unix:/x is a unix socket; expected host:port with type = couchbase");
    refused(DOCUMENTS "servers = a 3\n",
            ":6: [pool docs]: a:11211 has a weight; expected none with type = couchbase");
    refused(DOCUMENTS "servers = a, a:11210\n",
            ":6: [pool docs]: 'a:11210' is named twice; expected each server once");
}

static void test_the_port_for_http_is_refused(void **state)
{
    (void)state;
    refused(DOCUMENTS "servers = http://a:8091\n",
            ":6: servers: 'http://a:8091' is an address for HTTP; expected that of the "
            "data port");
    refused("[pool m]\nservers = couchbase://a\n",
            ":2: [pool m]: couchbase://a:11211 is no address of a memcached; expected with type = "
            "couchbase");
}

static void test_connection_strings(void **state)
{
    (void)state;
    struct config *c = good(DOCUMENTS "servers = couchbase://db.example.com\n");
    const struct pool_config *pool = &c->pools[0];
    assert_true(pool->servers[0].by_srv && !pool->tls);
    assert_string_equal(pool->servers[0].name, "couchbase://db.example.com");
    assert_int_equal(pool->servers[0].endpoint.port, 11210);
    config_destroy(&c);
    c = good(DOCUMENTS "servers = couchbases://db.example.com\ntls_ca = /c\n");
    pool = &c->pools[0];
    assert_true(pool->servers[0].by_srv && pool->tls);
    assert_int_equal(pool->servers[0].endpoint.port, 11207);
    config_destroy(&c);
    c = good(DOCUMENTS "servers = couchbases://a, couchbases://b:1\ntls = yes\n");
    pool = &c->pools[0];
    assert_true(!pool->servers[0].by_srv && !pool->servers[1].by_srv && pool->tls);
    assert_string_equal(pool->servers[0].name, "couchbases://a:11207");
    assert_string_equal(pool->servers[1].name, "couchbases://b:1");
    config_destroy(&c);
    c = good(DOCUMENTS "servers = couchbase://a:11210\n");
    assert_false(c->pools[0].servers[0].by_srv);
    config_destroy(&c);
    refused(DOCUMENTS "servers = couchbases://a\ntls = no\n",
            ":6: [pool docs]: couchbases://a is with TLS; expected tls = yes");
    refused(DOCUMENTS "servers = couchbase://a\ntls = yes\n",
            ":6: [pool docs]: couchbase://a is without TLS; expected couchbases://a");
    refused(DOCUMENTS "servers = couchbases://a, couchbase://b\n",
            ":6: [pool docs]: couchbase://b is without TLS; expected couchbases://b");
    refused(DOCUMENTS "servers = couchbase://b, couchbases://a\n",
            ":6: [pool docs]: couchbases://a is with TLS; expected couchbases:// in front of all "
            "servers");
    refused(DOCUMENTS "servers = couchbase://a/bucket?network=external\n",
            ":6: servers: 'a/bucket?network=external' is more than host or host:port; expected "
            "bucket and others as keys of their own");
    refused("[pool m]\nservers = couchbase://a\n",
            ":2: [pool m]: couchbase://a:11211 is no address of a memcached; expected with type = "
            "couchbase");
}

static void test_certificates(void **state)
{
#define BY_CERTIFICATE "[pool docs]\ntype = couchbase\nservers = a\nbucket = b\n"
    (void)state;
    accepted(BY_CERTIFICATE "tls = yes\ntls_cert = /c\ntls_key = /k\n");
    refused(BY_CERTIFICATE "tls_cert = /c\ntls_key = /k\n",
            ":5: [pool docs]: tls_cert: tls = no does not use it; expected with tls = yes");
    refused(BY_CERTIFICATE "tls = yes\ntls_cert = /c\n",
            ":6: [pool docs]: tls_cert: without tls_key; expected both");
    refused(DOCUMENTS "servers = a\ntls = yes\ntls_key = /k\n",
            ":8: [pool docs]: tls_key: without tls_cert; expected both");
    refused(BY_CERTIFICATE "tls = yes\ntls_cert = /c\ntls_key = /k\nusername = u\n",
            ":8: [pool docs]: username: tls_cert tells the user; expected one of the two");
    refused(BY_CERTIFICATE "tls = yes\ntls_cert = /c\ntls_key = /k\npassword_file = /p\n",
            ":8: [pool docs]: password_file: tls_cert tells the user; expected one of the two");
}

static void test_what_other_sections_ask_for(void **state)
{
    (void)state;
    refused("[proxy]\nallow_flush_all = yes\n" DOCUMENTS "servers = a\n",
            ":2: [proxy]: allow_flush_all = yes: pool docs is of type couchbase, which has no "
            "flush_all; expected no");
    refused("[proxy]\nallow_flush_all = keep_lists\npool = m\n[pool m]\nservers = a\n[lists]\n"
            "pool = n\n[pool n]\nservers = b\n[route x]\npool = docs\n" DOCUMENTS "servers = a\n",
            ":2: [proxy]: allow_flush_all = keep_lists: pool docs is of type couchbase, which has "
            "no flush_all; expected no");
}

static void test_lists_on_couchbase(void **state)
{
    (void)state;
    struct config *c = good(LISTS "touch_interval_s = 9\nplacement = head\n" DOCUMENTS
                                  "servers = a\n[lists x]\npool = docs\n");
    assert_int_equal(c->list_count, 2);
    assert_int_equal(c->lists[0].pool_type, POOL_MEMCACHED);
    assert_int_equal(c->lists[0].placement, PLACEMENT_HEAD);
    assert_int_equal(c->lists[0].touch_interval_s, 9);
    assert_int_equal(c->lists[1].pool_type, POOL_COUCHBASE);
    assert_int_equal(c->lists[1].placement, PLACEMENT_SPREAD);
    assert_int_equal(c->lists[1].touch_interval_s, 0);
    config_destroy(&c);
    refused(
        DOCUMENTS "servers = a\n[lists]\norder = recent\nplacement = head\n",
        ":9: [lists]: placement = head: its pool is of type couchbase, where each item lives on "
        "the node of its own key; expected spread");
    refused(DOCUMENTS "servers = a\n[lists]\ntouch_interval_s = 60\n",
            ":8: [lists]: touch_interval_s: its pool is of type couchbase, which forgets no items "
            "that are not in use; expected 0");
}

static void write_password(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
}

static void test_passwords(void **state)
{
    (void)state;
    char path[] = "/tmp/test_password.XXXXXX", text[512], error[CONFIG_ERROR_MAX];
    char long_one[CONFIG_PASSWORD_MAX + 2];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof text,
             "[pool docs]\ntype = couchbase\nservers = a\nbucket = b\nusername = u\n"
             "password_file = %s\n",
             path);
    struct config *c = good(text);
    assert_int_equal(config_read_passwords(c, error), -1);
    assert_non_null(strstr(error, ":6: [pool docs]: password_file: /tmp/test_password."));
    assert_non_null(strstr(error, " has no password in its first line; expected 1 to 255 bytes"));
    write_password(path, "pencil", 6);
    assert_int_equal(config_read_passwords(c, error), 0);
    assert_string_equal(c->pools[0].password, "pencil");
    write_password(path, "two words\r\nmore\n", 16);
    assert_int_equal(config_read_passwords(c, error), 0);
    assert_string_equal(c->pools[0].password, "two words");
    memset(long_one, 'x', sizeof long_one);
    write_password(path, long_one, CONFIG_PASSWORD_MAX);
    assert_int_equal(config_read_passwords(c, error), 0);
    assert_int_equal(strlen(c->pools[0].password), CONFIG_PASSWORD_MAX);
    write_password(path, long_one, CONFIG_PASSWORD_MAX + 1);
    assert_int_equal(config_read_passwords(c, error), -1);
    write_password(path, "a\0b", 3);
    assert_int_equal(config_read_passwords(c, error), -1);
    unlink(path);
    assert_int_equal(config_read_passwords(c, error), -1);
    assert_non_null(strstr(error, " cannot be opened: No such file or directory"));
    config_destroy(&c);
    c = good("[pool docs]\ntype = couchbase\nservers = a\nbucket = b\nusername = u\n");
    assert_int_equal(config_read_passwords(c, error), 0);
    assert_string_equal(c->pools[0].password, "");
    config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports_and_defaults),
        cmocka_unit_test(test_keys_of_another_type),
        cmocka_unit_test(test_what_must_be_given),
        cmocka_unit_test(test_collections),
        cmocka_unit_test(test_servers_of_a_cluster),
        cmocka_unit_test(test_the_port_for_http_is_refused),
        cmocka_unit_test(test_connection_strings),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_what_other_sections_ask_for),
        cmocka_unit_test(test_lists_on_couchbase),
        cmocka_unit_test(test_passwords),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
