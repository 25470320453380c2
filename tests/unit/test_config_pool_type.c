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
    c = good(DOCUMENTS "servers = a, b:1\ntls = yes\ntls_ca = /c\n");
    assert_string_equal(c->pools[0].servers[0].name, "a:11207");
    assert_string_equal(c->pools[0].servers[1].name, "b:1");
    config_destroy(&c);
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
        cmocka_unit_test(test_ports_and_defaults), cmocka_unit_test(test_collections),
        cmocka_unit_test(test_connection_strings), cmocka_unit_test(test_lists_on_couchbase),
        cmocka_unit_test(test_passwords),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
