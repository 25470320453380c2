/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists in other formats: their settings, and the room that their names leave for keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support_config.h"

static void test_values(void **state)
{
    (void)state;
    struct config *c = config_create();
    const struct list_policy *p = &c->lists[0];
    assert_int_equal(p->dialect, DIALECT_NATIVE);
    assert_int_equal(p->migrate, MIGRATE_NO);
    assert_string_equal(p->add_name, "follow-%s");
    assert_true(p->deleted_delimiter == '|' && p->add_sign == '+' && p->delete_sign == '-');
    assert_true(p->capacity == 100 && !p->counter_wraps && p->compact_chance == 100);
    assert_string_equal(p->slot, "%n %v");
    config_destroy(&c);
    c = good("[lists]\ndialect = marker\nadd_sign = \\x00\ndelete_sign = \\xFF\n"
             "closed_mark = z\na_name = \\x23%s-a\\xe4\nb_name = %s#;\ncompact_chance = 0\n");
    p = &c->lists[0];
    assert_true(p->add_sign == 0 && p->delete_sign == 255 && p->closed_mark == 'z');
    assert_string_equal(p->a_name, "#%s-a\xe4");
    assert_string_equal(p->b_name, "%s#;");
    assert_int_equal(p->compact_chance, 0);
    config_destroy(&c);
    c = good("[lists v-]\ndialect = ring\ncapacity = 1000000\nslot = %v\\x3b %t\n"
             "counter_wraps = yes\n"
             "[lists t-]\ndialect = tombstone\ndeleted_delimiter = \\x0a\nmigrate = native\n");
    p = config_list_policy(c, SLICE_LIT("v-1"));
    assert_true(p->dialect == DIALECT_RING && p->capacity == 1000000 && p->counter_wraps);
    assert_string_equal(p->slot, "%v; %t");
    p = config_list_policy(c, SLICE_LIT("t-1"));
    assert_true(p->deleted_delimiter == '\n' && p->migrate == MIGRATE_NATIVE);
    config_destroy(&c);
}

static unsigned longest_key(const char *keys)
{
    char ini[1024];
    (void)snprintf(ini, sizeof ini, "[lists x]\n%s", keys);
    struct config *c = good(ini);
    unsigned max = config_list_policy(c, SLICE_LIT("x"))->key_bytes_max;
    config_destroy(&c);
    return max;
}

static void test_room_for_keys(void **state)
{
    (void)state;
    char ini[1024];
    char much[260];
    memset(much, 'm', sizeof much);
    assert_int_equal(longest_key(""), 220);
    assert_int_equal(longest_key("dialect = simple\n"), 220);
    assert_int_equal(longest_key("dialect = ring\n"), 220);
    (void)snprintf(ini, sizeof ini, "dialect = paired\ndelete_name = %.30s%%s\n", much);
    assert_int_equal(longest_key(ini), 220);
    (void)snprintf(ini, sizeof ini, "dialect = paired\ndelete_name = %.31s%%s\n", much);
    assert_int_equal(longest_key(ini), 219);
    (void)snprintf(ini, sizeof ini, "dialect = sublists\nsublist_name = %.31s%%s\n", much);
    assert_int_equal(longest_key(ini), 209);
    (void)snprintf(ini, sizeof ini, "dialect = ring\nseq_name = %.249s%%s\n", much);
    assert_int_equal(longest_key(ini), 1);
    (void)snprintf(ini, sizeof ini, "[lists]\ndialect = flip\na_name = %.250s%%s\n", much);
    refused(ini,
            ":3: [lists]: a_name: it leaves 0 bytes for keys, of the 250 that a name may have; "
            "no key fits");
    (void)snprintf(ini, sizeof ini, "[lists]\ndialect = flip\na_name = %.253s%%s\n", much);
    refused(ini,
            ":3: [lists]: a_name: it leaves 0 bytes for keys, of the 250 that a name may have; "
            "no key fits");
    (void)snprintf(ini, sizeof ini, "[lists]\ndialect = ring\nslot_name = %.190s%%s\n", much);
    struct config *c = good(ini);
    config_destroy(&c);
    (void)snprintf(ini, sizeof ini,
                   "[lists]\ndialect = ring\nslot_name = %.190s%%s\n[lists %.50s]\n[lists %.51s]\n",
                   much, much, much);
    char expected[256];
    (void)snprintf(expected, sizeof expected,
                   ":5: [lists %.51s]: slot_name: it leaves 50 bytes for keys, of the 250 that a "
                   "name may have; no key fits",
                   much);
    refused(ini, expected);
}

static void count_setting(void *arg, const char *section, const char *key, const char *value,
                          const char *origin)
{
    (void)origin;
    (void)value;
    *(unsigned *)arg += strcmp(section, "lists x") == 0 &&
                        (strcmp(key, "placement") == 0 || strcmp(key, "add_sign") == 0);
}

/* Else the settings as they are printed would be no configuration. */
static void test_only_what_is_used_is_printed(void **state)
{
    (void)state;
    static const char *const files[] = {"[lists x]\n", "[lists x]\ndialect = signed\n",
                                        "[lists x]\ndialect = signed\nmigrate = native\n",
                                        "[lists x]\ndialect = simple\n"};
    static const unsigned wanted[] = {1, 1, 2, 0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct config *c = good(files[i]);
        unsigned found = 0;
        config_print(c, count_setting, &found);
        assert_int_equal(found, wanted[i]);
        config_destroy(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_room_for_keys),
        cmocka_unit_test(test_only_what_is_used_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
