/* SPDX-License-Identifier: BSD-3-Clause */
/* Which values can be of a dialect's lists, and why others cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dialect/dialects.h"
#include "dialect/shared/grammar.h"

static struct list *list;
static struct list_policy policy;

static int setup(void **state)
{
    (void)state;
    policy = (struct list_policy){.delimiter = ',',
                                  .max_item_bytes = 10,
                                  .deleted_delimiter = '|',
                                  .add_sign = '+',
                                  .delete_sign = '-',
                                  .closed_mark = '^',
                                  .slot = "%n %v",
                                  .capacity = 10,
                                  .a_name = "%s.a",
                                  .b_name = "%s.b"};
    list = calloc(1, sizeof *list + 1);
    assert_non_null(list);
    list->policy = &policy;
    list->key_len = 1;
    list->key[0] = 'X';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(list->plugin_state);
    free(list);
    return 0;
}

static const char *reason_of(enum list_dialect dialect, enum cell_role role, uint32_t flags,
                             struct slice value)
{
    static char text[GRAMMAR_REASON_MAX];
    const struct cell cell = {.role = role,
                              .number = role == CELL_SLOT ? 7 : 0,
                              .state = CELL_THERE,
                              .flags = flags,
                              .value = value};
    policy.dialect = dialect;
    free(list->plugin_state);
    list->plugin_state = calloc(1, dialects.list_bytes(&policy));
    assert_non_null(list->plugin_state);
    dialects.list_init(list);
    return grammar_reason(list, &cell, text);
}

struct value {
    const char *text, *reason; /* NULL: it is of the format */
};

static void check(enum list_dialect dialect, enum cell_role role, const struct value *values)
{
    for (; values->text != NULL; values++) {
        const char *reason = reason_of(dialect, role, 0, slice_of(values->text));
        if (values->reason == NULL && reason != NULL) {
            fail_msg("\"%s\": %s", values->text, reason);
        } else if (values->reason != NULL && reason == NULL) {
            fail_msg("\"%s\" is taken for a list", values->text);
        } else if (values->reason != NULL) {
            assert_string_equal(reason, values->reason);
        }
    }
}

#define NO_END(byte) "no delimiter behind an item that ends like JSON or markup, at byte " byte
#define NO_SIGN "no sign at the beginning"

/* Of delimited text. */
static const struct value delimited[] = {
    {"", NULL},
    {"a,", NULL},
    {"user-1,b c,\xc3\xa4,", NULL},
    {"\tx\r\n,", NULL},
    {"0123456789,", NULL},
    {"a,a,", NULL},
    /* Without a delimiter behind the last item, and with several between two. */
    {"12345", NULL},
    {"hello", NULL},
    {"a,b", NULL},
    {",a,,b", NULL},
    {"a,b,,", NULL},
    {",", NULL},
    {"a,01234567890", "an item longer than max_item_bytes at byte 2"},
    {"^1:3", "no delimiter at the end"},
    {"\"a\"", NO_END("0")},
    {"<p>a</p>\r\n", NO_END("0")},
    {"[5,1,1,3]", NO_END("7")},
    {"{\"a\":1,\"b\":2}", NO_END("7")},
    {"[1,2],[3]", NO_END("6")},
    {"a:2:{i:0;}", NO_END("0")},
    {"01234567890,", "an item longer than max_item_bytes at byte 0"},
    {"a,01234567890,", "an item longer than max_item_bytes at byte 2"},
    {"\x1f\x8b,", "a control byte at byte 0"},
    {"a,b\x7f,", "a control byte at byte 3"},
    {NULL, NULL}};

static void test_delimited_text(void **state)
{
    static const struct value marked[] = {{"@5d0c81f2a4b69e37,a,,", NULL},
                                          {"a,@5d0c81f2a4b69e37,b,,@5d0c81f2a4b69e38,", NULL},
                                          {",@5d0c81f2a4b69e37,", NULL},
                                          {NULL, NULL}};
    (void)state;
    check(DIALECT_SIMPLE, CELL_KEY, delimited);
    check(DIALECT_TOMBSTONE, CELL_KEY, delimited);
    check(DIALECT_PAIRED, CELL_ADDS, delimited);
    check(DIALECT_PAIRED, CELL_DELETES, delimited);
    check(DIALECT_PAIRED, CELL_DELETES, marked);
}

static void test_which_values_are_mostly_lists(void **state)
{
    static const struct {
        const char *text;
        bool mostly;
    } values[] = {{"a,b,c,\x01", true},        {"\x01,a,b,c", false}, {"{\"a\":1}", false},
                  {"a,b,01234567890,", false}, {"|a,b,c,|d", true},   {"|a|b,c,d", false}};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const struct cell cell = {
            .role = CELL_KEY, .state = CELL_THERE, .value = slice_of(values[i].text)};
        assert_non_null(reason_of(DIALECT_TOMBSTONE, CELL_KEY, 0, cell.value));
        assert_int_equal(grammar_mostly_fits(list, &cell), values[i].mostly);
    }
}

static void test_deletions_before_a_bar(void **state)
{
    static const struct value values[] = {{"|", NULL},
                                          {"a,|a,b,", NULL},
                                          {"a,|", NULL},
                                          {"|a,b", NULL},
                                          {"a|a,", NULL},
                                          {"a,b|", NULL},
                                          {"|a,[b]", NO_END("3")},
                                          {"[a]|a,", NO_END("0")},
                                          {"a,|b,|c,", "a second bar at byte 5"},
                                          {"a|b|c", "a second bar at byte 3"},
                                          {NULL, NULL}};
    (void)state;
    check(DIALECT_TOMBSTONE, CELL_KEY, values);
}

/* Of signed text. */
static const struct value signed_text[] = {
    {"", NULL},
    {"+1", NULL},
    {"-1", NULL},
    {"+1234+222-222+a,b", NULL},
    {"-@0:5d0c81f2a4b69e37+0", NULL},
    {"12345", NO_SIGN},
    {"[5,1,1,3]", NO_SIGN},
    {"1+2", NO_SIGN},
    {" +1", NO_SIGN},
    {"+", "a sign without an item at byte 0"},
    {"+1+", "a sign without an item at byte 2"},
    {"--- a", "a sign without an item at byte 0"},
    {"+1--2", "a sign without an item at byte 2"},
    {"+1+01234567890", "an item longer than max_item_bytes at byte 3"},
    {"+\x01", "a control byte at byte 1"},
    {NULL, NULL}};

static void test_signed_text(void **state)
{
    static const struct value closed[] = {
        {"^", NULL}, {"^^+1", NULL}, {"^1", NO_SIGN}, {"+1^", NULL}, {NULL, NULL}};
    (void)state;
    check(DIALECT_SIGNED, CELL_KEY, signed_text);
    check(DIALECT_SUBLISTS, CELL_SUBLIST, signed_text);
    check(DIALECT_FLIP, CELL_A, signed_text);
    check(DIALECT_FLIP, CELL_B, signed_text);
    check(DIALECT_MARKER, CELL_A, signed_text);
    check(DIALECT_MARKER, CELL_B, closed);
    assert_non_null(reason_of(DIALECT_FLIP, CELL_A, 0, SLICE_LIT("^+1")));
}

static void test_an_index_of_sublists(void **state)
{
    static const struct value values[] = {{"", NULL},
                                          {"+0+1-0", NULL},
                                          {"+1700000000+4294967295", NULL},
                                          {"0", NO_SIGN},
                                          {"+4294967296", "no number of a sublist at byte 1"},
                                          {"+0+1700000000123", "no number of a sublist at byte 3"},
                                          {"+007", "no number of a sublist at byte 1"},
                                          {"+0-x", "no number of a sublist at byte 3"},
                                          {"+0+", "a sign without an item at byte 2"},
                                          {NULL, NULL}};
    (void)state;
    check(DIALECT_SUBLISTS, CELL_KEY, values);
}

static void test_which_log_is_active(void **state)
{
    static const char wrong[] = "not the name of one of the two logs";
    static const struct value values[] = {
        {"X.a", NULL}, {"X.b", NULL}, {"a", NULL},  {"b", NULL},     {"", wrong},
        {".a", wrong}, {"X", wrong},  {"c", wrong}, {"X.a ", wrong}, {NULL, NULL}};
    (void)state;
    check(DIALECT_FLIP, CELL_ACTIVE, values);
}

static void test_a_ring(void **state)
{
    static const char wrong[] = "no entry as slot = %n %v says";
    static const struct value counters[] = {
        {"0", NULL},         {"17", NULL},       {"9  ", NULL}, {"", "no number"},
        {"-5", "no number"}, {"x", "no number"}, {NULL, NULL}};
    static const struct value slots[] = {{"7 a", NULL},
                                         {"17 user-4 17", NULL},
                                         {"", wrong},
                                         {"x", wrong},
                                         {"7", wrong},
                                         {"7 ", wrong},
                                         {" x", wrong},
                                         {"[5,1] x", wrong},
                                         {"8 a", "its number 8 is of another slot"},
                                         {"7 \x02", "a control byte at byte 2"},
                                         {"7 0123456789012345678901234567890123456789",
                                          "an item longer than max_item_bytes at byte 2"},
                                         {NULL, NULL}};
    (void)state;
    check(DIALECT_RING, CELL_SEQ, counters);
    check(DIALECT_RING, CELL_SLOT, slots);
}

/* Who and when, as applications keep it by hand. */
static void test_a_ring_of_times(void **state)
{
    static const char wrong[] = "no entry as slot = %v %t says";
    static const struct value slots[] = {
        {"1299 1700000299", NULL},
        {"mr x 1000 1700000299", NULL},
        {"7 1700000299", NULL},
        {"ann", wrong},
        {"7 ann", wrong},
        {"ann 170000029", wrong},
        {"ann 1700000299123", wrong},
        {"1700000299", wrong},
        {" 1700000299", wrong},
        {"1700000299 ann", wrong},
        {"ann\x02 1700000299", "a control byte at byte 3"},
        {"01234567890 1700000299", "an item longer than max_item_bytes at byte 0"},
        {NULL, NULL}};
    (void)state;
    (void)snprintf(policy.slot, sizeof policy.slot, "%%v %%t");
    check(DIALECT_RING, CELL_SLOT, slots);
}

static void test_flags(void **state)
{
    static const uint32_t others[] = {1, 2, 4, 8, 15, 17, 32, 48, UINT32_MAX};
    (void)state;
    assert_null(reason_of(DIALECT_SIGNED, CELL_KEY, 0, SLICE_LIT("+1")));
    assert_null(reason_of(DIALECT_SIGNED, CELL_KEY, 16, SLICE_LIT("+1")));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_non_null(reason_of(DIALECT_SIGNED, CELL_KEY, others[i], SLICE_LIT("+1")));
        bool integer = others[i] == 2;
        const char *counter = reason_of(DIALECT_RING, CELL_SEQ, others[i], SLICE_LIT("1"));
        assert_int_equal(integer, counter == NULL);
        assert_non_null(reason_of(DIALECT_RING, CELL_SEQ, others[i], SLICE_LIT("x")));
        assert_non_null(reason_of(DIALECT_RING, CELL_SLOT, others[i], SLICE_LIT("1 a")));
        assert_non_null(reason_of(DIALECT_SIMPLE, CELL_KEY, others[i], SLICE_NONE));
    }
    assert_string_equal(reason_of(DIALECT_SIGNED, CELL_KEY, 4, SLICE_LIT("+1")),
                        "flags 4, which are not those of text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_delimited_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_which_values_are_mostly_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deletions_before_a_bar, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signed_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_index_of_sublists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_which_log_is_active, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_ring_of_times, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
