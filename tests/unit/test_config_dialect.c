/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists in other formats: which keys go with which, what their bytes and names must be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/table.h"
#include "support_config.h"

#define BYTE "one character or \\xNN (# and ; are \\x23 and \\x3b)"
#define ENTRY "%v, and %n and %t if wanted, %n first or last, with text between them"
#define NAME "a name with one %s for the list's key (\\xNN is allowed)"

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

static void test_bad_values(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"add_sign", "++", "'++' is not one byte; expected " BYTE},
        {"closed_mark", "#", "'' is not one byte; expected " BYTE},
        {"delete_sign", "none", "'none' is not one byte; expected " BYTE},
        {"deleted_delimiter", "x",
         "'x' is in too many items; expected a punctuation character or \\xNN (# and ; are \\x23 "
         "and \\x3b)"},
        {"add_name", "follow", "'follow' lacks %s; expected " NAME},
        {"add_name", "", "'' lacks %s; expected " NAME},
        {"a_name", "%s%s", "'%s%s' has %s more than once; expected " NAME},
        {"b_name", "%d%s", "'%d%s' has a % that is not part of %s; expected " NAME},
        {"b_name", "%s%", "'%s%' has a % that is not part of %s; expected " NAME},
        {"seq_name", "%s seq", "'%s seq' is no name that memcached takes; expected " NAME},
        {"slot_name", "%s\\x7f", "'%s\\x7f' is no name that memcached takes; expected " NAME},
        {"slot_name", "%s\\x00", "'%s\\x00' is no name that memcached takes; expected " NAME},
        {"slot_name", "%s\\n", "'%s\\n' is too long, or has a \\ without xNN; expected " NAME},
        {"capacity", "0", "'0' is out of range; expected 1 to 1000000"},
        {"compact_chance", "1000000001", "'1000000001' is out of range; expected 0 to 1000000000"},
        {"counter_wraps", "on", "'on' is not known; expected yes or no"},
        {"slot", "%n", "'%n' lacks %v; expected " ENTRY},
        {"slot", "", "'' lacks %v; expected " ENTRY},
        {"slot", "%v%t", "'%v%t' has a field twice, or nothing between two; expected " ENTRY},
        {"slot", "%v %v", "'%v %v' has a field twice, or nothing between two; expected " ENTRY},
        {"slot", "%v %s", "'%v %s' has a % that is not part of %v, %n or %t; expected " ENTRY},
        {"slot", "%v %", "'%v %' has a % that is not part of %v, %n or %t; expected " ENTRY},
        {"slot", "(%v %t)",
         "'(%v %t)' has text before its fields, or behind them; expected " ENTRY},
        {"slot", "%v 1 %t", "'%v 1 %t' has a digit, or a byte that is no text; expected " ENTRY},
        {"slot", "%v\\x00%t",
         "'%v\\x00%t' has a digit, or a byte that is no text; expected " ENTRY},
        {"slot", "%v\\%t", "'%v\\%t' is too long, or has a \\ without xNN; expected " ENTRY},
        {"slot", "%v %n %t", "'%v %n %t' has %n in its middle; expected " ENTRY},
        {"migrate", "simple", "'simple' is not known; expected no or native"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char ini[128];
        char expected[256];
        (void)snprintf(ini, sizeof ini, "[lists]\n%s = %s\n", wrong[i][0], wrong[i][1]);
        (void)snprintf(expected, sizeof expected, ":2: %s: %s", wrong[i][0], wrong[i][2]);
        refused(ini, expected);
    }
}

static void test_keys_of_other_dialects(void **state)
{
    (void)state;
    refused("[lists x]\ndialect = simple\n\ncapacity = 5\n",
            ":4: [lists x]: capacity: dialect = simple does not use it; expected with ring");
    refused("[lists x]\nplacement = head\ndialect = ring\n",
            ":2: [lists x]: placement: dialect = ring does not use it; expected with native, or "
            "with migrate = native");
    refused("[lists]\nadd_sign = +\n",
            ":2: [lists]: add_sign: dialect = native does not use it; expected with signed, flip, "
            "marker, sublists");
    refused("[lists x]\ndialect = signed\nsublist_limit_bytes = 64k\n",
            ":3: [lists x]: sublist_limit_bytes: dialect = signed does not use it; expected with "
            "native, sublists, or with migrate = native");
    /* The dialect may come from [lists]. */
    refused("[lists x]\ncache_bytes = 0\n[lists]\ndialect = paired\n",
            ":2: [lists x]: cache_bytes: dialect = paired does not use it; expected with native, "
            "or with migrate = native");
    accepted("[lists x]\ndialect = sublists\nsublist_limit_bytes = 64k\n");
    accepted("[lists x]\ndialect = flip\nmigrate = native\nplacement = spread\non_damaged = miss\n"
             "announcement_grace_s = 5\ntouch_interval_s = 0\ncache_bytes = 0\n");
    /* What is inherited and not used does not matter. */
    accepted("[lists]\nplacement = spread\ncache_bytes = 1g\n[lists x]\ndialect = simple\n");
    accepted("[lists]\nsublist_limit_bytes = 600\nmax_item_bytes = 500\ncache_bytes = 1k\n"
             "[lists x]\ndialect = simple\nmax_item_bytes = 5000\n");
    accepted("[lists]\ndialect = signed\nlog_limit_bytes = 1k\nlog_hard_limit_bytes = 4k\n"
             "max_item_bytes = 100\nfold_memory_bytes = 256k\non_missing = create\n");
}

static void test_words_that_do_not_go_together(void **state)
{
    (void)state;
    refused("[lists x]\ndialect = native\nmigrate = native\n",
            ":3: [lists x]: migrate = native is for lists of another dialect; expected migrate = "
            "no with dialect = native");
    refused("[lists]\ndialect = ring\nmigrate = native\n\n[lists x]\ndialect = native\n",
            ":5: [lists x]: migrate = native is for lists of another dialect; expected migrate = "
            "no with dialect = native");
    refused("[lists x]\ndialect = simple\nmigrate = native\non_missing = refuse\n",
            ":4: [lists x]: on_missing = refuse is for dialect = native only; expected create "
            "with dialect = simple");
    refused("[lists x]\ndialect = flip\n[lists]\non_missing = refuse\n",
            ":1: [lists x]: on_missing = refuse is for dialect = native only; expected create "
            "with dialect = flip");
    accepted("[lists x]\ndialect = flip\non_missing = create\n[lists]\non_missing = refuse\n");
    refused("[lists x]\ndialect = simple\norder = recent\n",
            ":3: [lists x]: order: dialect = simple does not use it; expected with native");
    refused("[lists x]\ndialect = simple\nmax_items = 3\n",
            ":3: [lists x]: max_items: dialect = simple does not use it; expected with native");
    refused("[lists x]\ndialect = ring\nmax_items = 3\n",
            ":3: [lists x]: max_items: dialect = ring does not use it; expected with native, or "
            "with migrate = native");
    refused("[lists x]\ndialect = simple\non_damaged = miss\n",
            ":3: [lists x]: on_damaged: dialect = simple does not use it; expected with native, or "
            "with migrate = native");
    refused("[lists x]\ndialect = simple\norder = recent\nmigrate = native\n",
            ":3: [lists x]: order = recent: dialect = simple keeps items in their places; expected "
            "order = added until migrate = native is over");
    refused("[lists]\norder = recent\n[lists x]\ndialect = simple\nmigrate = native\n",
            ":5: [lists x]: order = recent: dialect = simple keeps items in their places; expected "
            "order = added until migrate = native is over");
    accepted("[lists]\norder = recent\n[lists x]\ndialect = simple\n");
    accepted("[lists x]\ndialect = ring\nmigrate = native\norder = recent\n"
             "capacity = 30\nmax_items = 30\n");
    refused("[lists x]\ndialect = ring\nmigrate = native\nmax_items = 30\n",
            ":4: [lists x]: max_items (30) is less than capacity (100), and entries would go; "
            "expected as much until migrate = native is over");
    refused("[lists x]\ndialect = ring\nslot = %n %v\ncounter_wraps = yes\n",
            ":3: [lists x]: slot = %n %v: numbers of a counter that is set back tell nothing; "
            "expected no %n with counter_wraps = yes");
    refused("[lists x]\ndialect = ring\nslot = %v,%t\n",
            ":3: [lists x]: slot = %v,%t holds the delimiter of lget; expected another delimiter");
    accepted("[lists x]\ndialect = ring\nslot = %v,%t\ndelimiter = none\n");
    refused("[lists x]\nmax_items = 32\n",
            ":2: [lists x]: max_items (32) items of max_item_bytes (1024) and 16 more must fit a "
            "quarter of log_hard_limit_bytes (131072); expected max_items = 31, or "
            "max_item_bytes = 1008, or log_hard_limit_bytes = 133120");
    accepted("[lists x]\nmax_items = 31\n");
    accepted("[lists x]\nmax_items = 32\nmax_item_bytes = 1008\n");
    accepted("[lists x]\nmax_items = 32\nlog_hard_limit_bytes = 133120\n");
    refused("[lists x]\nmax_items = 5000\n",
            ":2: [lists x]: max_items (5000) items of max_item_bytes (1024) and 16 more must fit a "
            "quarter of log_hard_limit_bytes (131072); expected max_items = 31");
    refused(
        "[lists x]\nmax_items = 3000\nmax_item_bytes = 40000\nlog_limit_bytes = 64k\n",
        ":2: [lists x]: max_items (3000) items of max_item_bytes (40000) and 16 more must fit a "
        "quarter of log_hard_limit_bytes (131072); expected max_items = 1 and max_item_bytes = "
        "32752");
    accepted("[lists x]\nmax_items = 1\nmax_item_bytes = 32752\nlog_limit_bytes = 64k\n");
    accepted("[lists]\nmax_items = 30\n[lists x]\ndialect = simple\n");
    refused("[lists x]\ndialect = simple\nmigrate = native\nmax_items = 3\n",
            ":4: [lists x]: max_items: dialect = simple has lists of any length; expected "
            "max_items = 0 until migrate = native is over");
}

static void test_stored_delimiters(void **state)
{
    (void)state;
    refused("[lists x]\ndialect = simple\ndelimiter = none\n",
            ":3: [lists x]: delimiter: 'none' does not do: it is stored with dialect = simple");
    refused("[lists]\ndelimiter = none\n[lists x]\ndialect = paired\n",
            ":3: [lists x]: delimiter: 'none' does not do: it is stored with dialect = paired");
    refused("[lists]\ndelimiter = none\ndialect = tombstone\n",
            ":2: [lists]: delimiter: 'none' does not do: it is stored with dialect = tombstone");
    accepted("[lists]\ndelimiter = none\ndialect = signed\n");
    accepted("[lists]\ndelimiter = none\ndialect = ring\n");
}

static void test_equal_bytes(void **state)
{
    (void)state;
    refused("[lists x]\ndialect = tombstone\ndelimiter = |\n",
            ":3: [lists x]: delimiter and deleted_delimiter are both '|'; expected different "
            "bytes with dialect = tombstone");
    refused("[lists]\ndelimiter = |\n[lists x]\ndialect = tombstone\n",
            ":3: [lists x]: delimiter and deleted_delimiter are both '|'; expected different "
            "bytes with dialect = tombstone");
    refused("[lists x]\ndialect = signed\nadd_sign = \\x0a\ndelete_sign = \\x0a\n",
            ":4: [lists x]: add_sign and delete_sign are both '\\x0a'; expected different bytes "
            "with dialect = signed");
    refused("[lists x]\ndialect = sublists\nadd_sign = -\n",
            ":3: [lists x]: add_sign and delete_sign are both '-'; expected different bytes with "
            "dialect = sublists");
    refused("[lists x]\ndialect = marker\nclosed_mark = +\n",
            ":3: [lists x]: add_sign and closed_mark are both '+'; expected different bytes with "
            "dialect = marker");
    refused("[lists x]\ndialect = flip\ndelete_sign = \\x2c\n",
            ":3: [lists x]: delimiter and delete_sign are both ','; expected different bytes with "
            "dialect = flip");
    /* A byte of another dialect has no meaning. */
    accepted("[lists x]\ndialect = simple\ndelimiter = |\n");
    accepted("[lists x]\ndialect = signed\nadd_sign = ^\ndelete_sign = |\n");
}

static void test_signs_among_numbers(void **state)
{
    (void)state;
    refused("[lists x]\ndialect = sublists\nadd_sign = 0\n",
            ":3: [lists x]: add_sign: '0' is part of numbers, which stand between signs with "
            "dialect = sublists");
    refused("[lists x]\ndialect = flip\ndelete_sign = F\n",
            ":3: [lists x]: delete_sign: 'F' is part of notes (@NUMBER:HASH) with dialect = flip");
    refused("[lists x]\ndialect = marker\nadd_sign = :\n",
            ":3: [lists x]: add_sign: ':' is part of notes (@NUMBER:HASH) with dialect = marker");
    refused("[lists x]\ndialect = flip\nadd_sign = @\n",
            ":3: [lists x]: add_sign: '@' is part of notes (@NUMBER:HASH) with dialect = flip");
    accepted("[lists x]\ndialect = flip\nadd_sign = g\n");
    accepted("[lists x]\ndialect = signed\nadd_sign = 1\ndelete_sign = 0\n");
    accepted("[lists x]\ndialect = sublists\nadd_sign = a\ndelete_sign = @\n");
}

static void same_name(const char *keys, unsigned line, const char *names)
{
    char ini[256];
    char expected[256];
    (void)snprintf(ini, sizeof ini, "[lists x]\n%s", keys);
    (void)snprintf(expected, sizeof expected,
                   ":%u: [lists x]: %s may give the same name; expected two that never do", line,
                   names);
    refused(ini, expected);
}

static void test_names_that_meet(void **state)
{
    (void)state;
    same_name("dialect = paired\nadd_name = unfollow-%s\n", 3, "add_name and delete_name");
    same_name("dialect = paired\nadd_name = a%s\ndelete_name = %sa\n", 4,
              "add_name and delete_name");
    /* With the key "cab". */
    same_name("dialect = paired\nadd_name = cab%s.\ndelete_name = %sabc.\n", 4,
              "add_name and delete_name");
    accepted("[lists]\ndialect = paired\nadd_name = abc%s\ndelete_name = %sacb\n");
    accepted("[lists]\ndialect = paired\nadd_name = %s\ndelete_name = no-%s\n");
    same_name("dialect = marker\nb_name = %s.a\n", 3, "a_name and b_name");
    same_name("dialect = flip\nactive_name = %s.b\n", 3, "b_name and active_name");
    same_name("dialect = flip\na_name = %s\nactive_name = %s\n", 4, "a_name and active_name");
    /* A marker's logs have no pointer, a ring nothing of these. */
    accepted("[lists x]\ndialect = marker\na_name = %s.active\n");
}

static void test_numbered_names_that_meet(void **state)
{
    (void)state;
    same_name("dialect = ring\nseq_name = %s.7\n", 3, "seq_name and slot_name");
    same_name("dialect = ring\nseq_name = %s.0123456789\n", 3, "seq_name and slot_name");
    same_name("dialect = ring\nslot_name = %s\nseq_name = %s0\n", 3, "seq_name and slot_name");
    /* With the key "1". */
    same_name("dialect = ring\nslot_name = %s\nseq_name = 1%s\n", 3, "seq_name and slot_name");
    accepted("[lists x]\ndialect = ring\nseq_name = %s.\n");
    accepted("[lists x]\ndialect = ring\nseq_name = %s\nslot_name = %s\n");
    refused("[lists x]\ndialect = sublists\nsublist_name = %s\n",
            ":3: [lists x]: sublist_name: '%s' alone is the name of the list's index; expected "
            "more beside it");
    refused("[lists x]\ndialect = marker\nmigrate = native\na_name = %s#\n",
            ":4: [lists x]: a_name: a name may be that of a native list, KEY#; expected another "
            "with migrate = native");
    accepted("[lists x]\ndialect = marker\na_name = %s#\n");
    accepted("[lists x]\ndialect = flip\na_name = %s\n");
    refused("[lists x]\ndialect = flip\nmigrate = native\na_name = %s\n",
            ":4: [lists x]: a_name: '%s' alone is the name of the record of a list that moves; "
            "expected more beside it");
    accepted("[lists x]\ndialect = ring\nmigrate = native\nslot_name = %s\n");
    accepted("[lists x]\ndialect = paired\nmigrate = native\nadd_name = %s\ndelete_name = un%s\n");
    refused(
        "[lists x]\ndialect = paired\nmigrate = native\ndelete_name = %s\n",
        ":4: [lists x]: delete_name: '%s' alone is the name of the record of a list that moves; "
        "expected more beside it");
}

static void test_sublists_with_delimiters(void **state)
{
    (void)state;
    accepted("[lists x]\ndialect = sublists\nsublist_text = delimited\ndelimiter = |\n");
    refused("[lists x]\ndialect = sublists\nsublist_text = delimited\ndelimiter = none\n",
            ":4: [lists x]: delimiter: 'none' does not do: it is stored with dialect = sublists");
    refused(
        "[lists x]\ndialect = signed\nsublist_text = delimited\n",
        ":3: [lists x]: sublist_text: dialect = signed does not use it; expected with sublists");
    refused(
        "[lists x]\ndialect = sublists\nsublist_text = delimited\nbridge = signed\n",
        ":2: [lists x]: bridge = signed: additions and deletions are no single step in lists of "
        "this dialect; expected bridge = yes");
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
    accepted(ini);
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
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_keys_of_other_dialects),
        cmocka_unit_test(test_words_that_do_not_go_together),
        cmocka_unit_test(test_stored_delimiters),
        cmocka_unit_test(test_equal_bytes),
        cmocka_unit_test(test_signs_among_numbers),
        cmocka_unit_test(test_names_that_meet),
        cmocka_unit_test(test_numbered_names_that_meet),
        cmocka_unit_test(test_sublists_with_delimiters),
        cmocka_unit_test(test_room_for_keys),
        cmocka_unit_test(test_only_what_is_used_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
