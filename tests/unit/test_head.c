/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support_list.h"

#define NAME_A "aaaaaaaaaaaaa"
#define NAME_B "bbbbbbbbbbbbb"
#define NAME_C "ccccccccccccc"

static bool foreign(struct slice value)
{
    struct head *head = head_of(value);
    bool is = head == NULL;
    head_unref(&head);
    return is;
}

static void test_a_list_without_runs_has_the_shortest_header(void **state)
{
    (void)state;
    struct head *head = head_of(SLICE_LIT("^1\n+1:a"));
    assert_non_null(head);
    assert_int_equal(head->run_count, 0);
    assert_int_equal(head->garbage_count, 0);
    assert_int_equal(head_header_bytes(head), 3);
    assert_int_equal(head_run_bytes(head), 0);
    assert_int_equal(head_sublists(head), 0);
    assert_true(slice_equal(head->log, SLICE_LIT("+1:a")));
    assert_int_equal(head->cas, 7);
    assert_int_equal(head->epoch, 3);
    assert_int_equal(head->flags, 5);
    assert_int_equal(head->ttl_s, -1);
    head_unref(&head);
    assert_null(head);
    head_unref(&head);
}

static void test_runs_and_garbage_are_read_in_their_order(void **state)
{
    (void)state;
    static const char text[] =
        "^1 " NAME_A ".3:700:40 -" NAME_B ".2 " NAME_C ".1:90:0 -" NAME_A ".9999999\n";
    struct head *head = head_of(slice_make(text, sizeof text - 1));
    assert_non_null(head);
    assert_int_equal(head->run_count, 2);
    assert_int_equal(head->garbage_count, 2);
    assert_int_equal(head->runs[0].range.name.text[0], 'a');
    assert_int_equal(head->runs[0].range.count, 3);
    assert_int_equal(head->runs[0].bytes, 700);
    assert_int_equal(head->runs[0].items, 40);
    assert_int_equal(head->runs[1].range.name.text[12], 'c');
    assert_int_equal(head->garbage[0].count, 2);
    assert_int_equal(head->garbage[1].count, SUBLISTS_MAX);
    assert_int_equal(head_run_bytes(head), 790);
    assert_int_equal(head_sublists(head), 4);
    assert_int_equal(head->log.len, 0);
    assert_int_equal(head_header_bytes(head), sizeof text - 1);
    head_unref(&head);
}

/* Counts that no run can have, so that nothing is computed from them, read or deleted. */
static void test_counts_that_cannot_be_are_no_list(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "^1 " NAME_A ".0:0:0\n",
        "^1 " NAME_A ".1:16:0\n",                       /* shorter than a header and an entry */
        "^1 " NAME_A ".2:33:1\n",                       /* so is one of the two */
        "^1 " NAME_A ".1:20:3\n",                       /* three items take nine bytes */
        "^1 " NAME_A ".1:20:18446744073709551615\n",    /* an llen once */
        "^1 " NAME_A ".1:18446744073709551615:1\n",     /* the sum of two flows over */
        "^1 " NAME_A ".1:1048577:1\n",                  /* longer than any sublist */
        "^1 " NAME_A ".9999999:20:1\n",                 /* more sublists than bytes */
        "^1 " NAME_B ".1:20:1 " NAME_A ".1:20:4\n+1:a", /* one of several */
        "^1 -" NAME_A ".10000000\n",
        "^1\n~29:" NAME_A ".10000000.1000\n",
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        if (!foreign(slice_of(headers[i]))) {
            print_error("taken for a list: %s\n", headers[i]);
        }
        assert_true(foreign(slice_of(headers[i])));
    }
    assert_false(foreign(SLICE_LIT("^1 " NAME_A ".1:17:1\n")));
    assert_false(foreign(SLICE_LIT("^1 " NAME_A ".1:20:2\n")));
    assert_false(foreign(SLICE_LIT("^1 " NAME_A ".9999999:10485758951424:9999999\n")));
}

static void test_marks_are_read_wherever_they_stand(void **state)
{
    (void)state;
    struct head *head = head_of(SLICE_LIT("^1 " NAME_A ".1:17:1 @1795229328 -" NAME_B ".2\n+1:a"));
    assert_non_null(head);
    assert_int_equal(head->marks.sublists_until_s, 1795229328);
    assert_false(head->marks.absent);
    assert_int_equal(head->run_count, 1);
    assert_int_equal(head->garbage_count, 1);
    head_unref(&head);
    head = head_of(SLICE_LIT("^1 -" NAME_B ".2 ?18446744073709551615.9999999999 @2147483647\n"));
    assert_non_null(head);
    assert_int_equal(head->marks.sublists_until_s, 2147483647);
    assert_true(head->marks.absent);
    assert_true(head->marks.lease == UINT64_MAX);
    assert_int_equal(head->marks.lease_until_s, 9999999999);
    head_unref(&head);
    head = head_of(SLICE_LIT("^1 ?0.0 @2592001\n"));
    assert_non_null(head);
    assert_true(head->marks.absent);
    assert_true(head->marks.lease == 0);
    assert_int_equal(head->marks.lease_until_s, 0);
    head_unref(&head);
}

static void test_marks_that_cannot_be_are_no_list(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "^1 @\n",
        "^1 @0\n",
        "^1 @2592000\n", /* memcached would take it for seconds from now on */
        "^1 @2147483648\n",
        "^1 @18446744073709551617\n",
        "^1 @-5\n",
        "^1 @1795229328.\n",
        "^1 @1795229328x\n",
        "^1 @1795229328 @1795229328\n",
        "^1 @1795229328@1795229328\n",
        "^1 ?\n",
        "^1 ?1\n",
        "^1 ?1.\n",
        "^1 ?.1\n",
        "^1 ?0.1\n", /* until when, but which lease? */
        "^1 ?1.0\n",
        "^1 ?1.10000000000\n",
        "^1 ?18446744073709551616.1\n",
        "^1 ?1.1.\n",
        "^1 ?1:1\n",
        "^1 ?1.1 ?1.1\n",
        "^1 ?0.0 ?0.0\n",
        "^1 ?0.0 " NAME_A ".1:17:1\n", /* missing, with content */
        "^1 %\n",
        "^1 %1\n",
        "^1 %0.5\n",
        "^1 %1795229329.1795229328\n", /* the last before the first */
        "^1 %4294967296.0\n",
        "^1 %1.4294967296\n",
        "^1 %1.2 %1.2\n",
        "^1 %1.2x\n",
        "^1 " NAME_A ".1:17:1 ?5.1795229328\n",
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        if (!foreign(slice_of(headers[i]))) {
            print_error("taken for a list: %s\n", headers[i]);
        }
        assert_true(foreign(slice_of(headers[i])));
    }
}

static bool over(const char *text, int64_t now_s)
{
    struct head *head = head_of(slice_of(text));
    assert_non_null(head);
    bool is_over = head_is_over(head, now_s);
    head_unref(&head);
    return is_over;
}

/* The head alone tells that nothing is left: then it is removed without reading a sublist. */
static void test_a_head_tells_that_all_items_are_over(void **state)
{
    (void)state;
    assert_true(over("^1\n@3:8:a@3:9:b", 9));
    assert_false(over("^1\n@3:8:a@3:9:b", 8));
    assert_false(over("^1\n@3:8:a+1:b", 9));
    assert_false(over("^1\n@3:8:a+6:longer", 9));
    assert_true(over("^1\n@3:8:a-6:longer", 9));
    assert_true(over("^1\n+1:b!0:@3:8:a-1:b", 9));
    assert_false(over("^1\n-1:b", 9)); /* it never had a time */
    assert_true(over("^1 %5.9 " NAME_A ".1:17:1\n", 9));
    assert_false(over("^1 %5.9 " NAME_A ".1:17:1\n", 8));
    assert_false(over("^1 %5.0 " NAME_A ".1:17:1\n@3:8:a", 9));
    assert_true(over("^1 %5.0 " NAME_A ".1:17:1\n!0:@3:8:a", 9));
    assert_false(over("^1 %5.9 " NAME_A ".1:17:1\n+1:a", 9));
}

static void test_a_version_is_that_of_one_number_and_one_content(void **state)
{
    (void)state;
    uint64_t version = head_version(12, SLICE_LIT("^1\n+1:a"));
    assert_true(version == head_version(12, SLICE_LIT("^1\n+1:a")));
    assert_true(version != head_version(13, SLICE_LIT("^1\n+1:a")));
    assert_true(version != head_version(12, SLICE_LIT("^1\n+1:b")));
    /* One that other programs compute as well: FNV-1a of the number, a dot and the bytes. */
    assert_true(version == version_of_hash(hash_stable(SLICE_LIT("12.^1\n+1:a"), 0)));
    assert_true(head_version(1, SLICE_LIT("2,")) != head_version(12, SLICE_LIT(",")));
}

static void test_a_version_is_a_number_that_a_double_holds(void **state)
{
    (void)state;
    for (uint64_t cas = 1; cas <= 1000; cas++) {
        uint64_t version = head_version(cas, SLICE_LIT("^1\n+1:a"));
        assert_true(version != 0 && version == (uint64_t)(double)version);
    }
    assert_int_equal(version_of_hash(0), 1);
    assert_int_equal(version_of_hash(UINT64_C(1) << 53 | 1), 1);
}

static void test_random_headers_survive_the_round_trip(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 3);
    for (int round = 0; round < 300; round++) {
        struct run runs[40] = {0};
        struct name_range garbage[40] = {0};
        size_t run_count = (size_t)rng_below(&rng, 40), garbage_count = (size_t)rng_below(&rng, 40);
        for (size_t i = 0; i < 40; i++) {
            name_fresh(&runs[i].range.name, &rng);
            runs[i].range.count = 1 + (uint32_t)rng_below(&rng, SUBLISTS_MAX);
            runs[i].bytes = runs[i].range.count * (17 + rng_below(&rng, (1 << 20) - 16));
            runs[i].items = rng_below(&rng, (runs[i].bytes - 14 * runs[i].range.count) / 3 + 1);
            name_fresh(&garbage[i].name, &rng);
            garbage[i].count = (uint32_t)rng_below(&rng, SUBLISTS_MAX + 1);
        }
        struct head_marks marks = {0};
        marks.sublists_until_s =
            rng_below(&rng, 2) == 0 ? 0 : 2592001 + (int64_t)rng_below(&rng, 1 << 30);
        marks.absent = run_count == 0;
        marks.lease = marks.absent ? rng_next(&rng) >> rng_below(&rng, 64) : 0;
        marks.lease_until_s = marks.lease != 0 ? 1 + (int64_t)rng_below(&rng, 9999999999) : 0;
        struct block *b = block_new(1);
        head_append_header(&b, &marks, runs, run_count, garbage, garbage_count);
        struct head *head = head_of(block_slice(b));
        block_unref(&b);
        assert_non_null(head);
        assert_int_equal(head->run_count, run_count);
        assert_int_equal(head->garbage_count, garbage_count);
        assert_int_equal(head->marks.sublists_until_s, marks.sublists_until_s);
        assert_int_equal(head->marks.absent, marks.absent);
        assert_true(head->marks.lease == marks.lease);
        assert_int_equal(head->marks.lease_until_s, marks.lease_until_s);
        for (size_t i = 0; i < run_count; i++) {
            assert_memory_equal(&head->runs[i], &runs[i], sizeof runs[i]);
        }
        for (size_t i = 0; i < garbage_count; i++) {
            assert_true(name_equal(&head->garbage[i].name, &garbage[i].name));
            assert_int_equal(head->garbage[i].count, garbage[i].count);
        }
        head_unref(&head);
    }
}

static void test_what_is_no_head_is_foreign(void **state)
{
    (void)state;
    static const struct slice bad[] = {
        SLICE_LIT(""),
        SLICE_LIT("\n"),
        SLICE_LIT("^"),
        SLICE_LIT("^1"),
        SLICE_LIT("^\n"),
        SLICE_LIT("^2\n"),
        SLICE_LIT("^10\n"),
        SLICE_LIT("^1\r\n"),
        SLICE_LIT(" ^1\n"),
        SLICE_LIT("^1 \n"),
        SLICE_LIT("^1  \n"),
        SLICE_LIT("^0\n"),
        SLICE_LIT("^1\0\n"),
        SLICE_LIT("1\n"),
        SLICE_LIT("+1:a"),
        SLICE_LIT("+1:a\n"),
        SLICE_LIT("^1 -\n"),
        SLICE_LIT("^1 *\n"),
        SLICE_LIT("^1 *" NAME_A ".1\n"),
        SLICE_LIT("^1 a\n"),
        SLICE_LIT("^1 " NAME_A ".1:2:3 \n"),
        SLICE_LIT("^1  " NAME_A ".1:2:3\n"),
        SLICE_LIT("^1\t" NAME_A ".1:2:3\n"),
        SLICE_LIT("^1 " NAME_A ".1:2\n"),
        SLICE_LIT("^1 " NAME_A ".1:2:\n"),
        SLICE_LIT("^1 " NAME_A ".1:2:3:4\n"),
        SLICE_LIT("^1 " NAME_A ".1::3\n"),
        SLICE_LIT("^1 " NAME_A ".1.2.3\n"),
        SLICE_LIT("^1 " NAME_A ":1:2:3\n"),
        SLICE_LIT("^1 -" NAME_A ".1:2:3\n"),
        SLICE_LIT("^1 -" NAME_A "\n"),
        SLICE_LIT("^1 +" NAME_A ".1\n"),
        SLICE_LIT("^1 " NAME_A ".1:2:18446744073709551616\n"),
        SLICE_LIT("^1 " NAME_A ".10000000:2:3\n"),
        SLICE_LIT("^1 --" NAME_A ".1\n"),
        SLICE_LIT("^1 " NAME_A ".1:2:3" NAME_B ".1:2:3\n"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_true(foreign(bad[i]));
    }
    assert_false(foreign(SLICE_LIT("^1\n")));
}

static void test_unknown_ops_and_malformed_logs_are_foreign(void **state)
{
    (void)state;
    for (unsigned op = 0; op < 256; op++) {
        char text[] = "^1\n+1:a?1:b";
        text[7] = (char)op;
        bool known = op != 0 && strchr("+-=!", (int)op) != NULL;
        assert_int_equal(foreign(slice_make(text, sizeof text - 1)), !known);
    }
    assert_true(foreign(SLICE_LIT("^1\n+1:a\n")));
    assert_true(foreign(SLICE_LIT("^1\n~1:a")));
    assert_true(foreign(SLICE_LIT("^1\n~15:" NAME_A ".1")));
    assert_true(foreign(SLICE_LIT("^1\n~16:" NAME_A ".1.")));
    assert_true(foreign(SLICE_LIT("^1\n~18:" NAME_A ".1.1.")));
    assert_false(foreign(SLICE_LIT("^1\n~17:" NAME_A ".1.1")));
}

/* Cut anywhere, a head is refused, unless it was cut between two entries of its log. */
static void test_a_head_cut_short_is_foreign_but_between_entries(void **state)
{
    (void)state;
    struct run runs[2] = {{{test_name('a'), 12}, 3456, 78}, {{test_name('b'), 1}, 26, 4}};
    struct name_range garbage[2] = {{test_name('c'), 1}, {test_name('d'), 99}};
    struct rng rng;
    rng_init_seed(&rng, 17);
    for (int round = 0; round < 20; round++) {
        struct log_shape shape = {
            .items = ITEMS_MAX, .entries = 40, .clear_in = 9, .readd = true, .announcements = true};
        struct block *log = random_log(&rng, &shape);
        struct block *b = block_new(1);
        head_append_header(&b, NULL, runs, (size_t)round % 3, garbage, (size_t)round % 2 * 2);
        size_t header = b->used;
        block_append(&b, log->data, log->used);
        size_t boundary = header;
        struct slice rest = block_slice(log);
        for (size_t len = 0; len <= b->used; len++) {
            struct head *head = head_of(slice_make(b->data, len));
            if (len == boundary) {
                assert_non_null(head);
                assert_int_equal(head_header_bytes(head), header);
                assert_true(slice_equal(head->log, slice_make(log->data, len - header)));
                struct entry entry;
                (void)entry_next(&rest, &entry);
                boundary = header + log->used - rest.len;
            } else {
                assert_null(head);
            }
            head_unref(&head);
        }
        block_unref(&log);
        block_unref(&b);
    }
}

/* For the sanitizers: whatever the bytes, reading stays inside them and what is accepted can be
 * used. */
static void test_damaged_bytes_are_survived(void **state)
{
    (void)state;
    static const char text[] = "^1 @1795229328 " NAME_A ".3:700:40 -" NAME_B ".2 -" NAME_C ".9\n"
                               "+9:user-1234~17:" NAME_B ".1.5-8:user-222!0:=1:x~17:" NAME_C ".0.7";
    struct rng rng;
    rng_init_seed(&rng, 19);
    unsigned accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char bytes[sizeof text];
        memcpy(bytes, text, sizeof text);
        for (uint64_t n = 1 + rng_below(&rng, 3); n > 0; n--) {
            static const char likely[] = "^1 .:\n+-=!~0123456789*a\xff";
            uint64_t at = rng_below(&rng, sizeof text - 1);
            bytes[at] = rng_below(&rng, 2) == 0 ? (char)rng_next(&rng)
                                                : likely[rng_below(&rng, sizeof likely - 1)];
        }
        struct head *head = head_of(slice_make(bytes, sizeof text - 1));
        if (head != NULL) {
            accepted++;
            assert_int_equal(head_header_bytes(head) + head->log.len, sizeof text - 1);
            struct name name = test_name('b');
            (void)log_has_announcement(head->announcements, &name);
            (void)head_sublists(head);
            head_unref(&head);
        }
    }
    assert_in_range(accepted, 100, 15000);
}

static void test_references_keep_the_value_alive(void **state)
{
    (void)state;
    struct head *head = head_of(SLICE_LIT("^1\n+1:a"));
    struct head *other = head_ref(head);
    head_unref(&head);
    assert_true(slice_equal(other->value, SLICE_LIT("^1\n+1:a")));
    head_unref(&other);
}

static void test_announcements_survive_the_round_trip(void **state)
{
    (void)state;
    static const int64_t times[] = {0, 1, 1753000000, INT64_MAX};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct announcement a = {{test_name('k'), (uint32_t)i * 100}, times[i]}, back;
        struct block *b = block_new(1);
        announcement_append(&b, &a);
        struct slice rest = block_slice(b);
        struct entry entry;
        assert_int_equal(entry_next(&rest, &entry), ENTRY_OK);
        assert_int_equal(entry.op, ENTRY_ANNOUNCE);
        assert_int_equal(rest.len, 0);
        assert_true(announcement_parse(entry.bytes, &back));
        assert_true(name_equal(&back.range.name, &a.range.name));
        assert_int_equal(back.range.count, a.range.count);
        assert_true(back.created_s == a.created_s);
        block_unref(&b);
    }
}

/* A moment that does not fit would overflow when its age is computed. */
/* Numbers have no sign: one that was below 0 would make the list unreadable. */
static void test_what_is_announced_before_1970_can_be_read(void **state)
{
    (void)state;
    struct announcement a = {{test_name('k'), 1}, clock_wall_s(-1)}, back;
    struct block *b = block_new(64);
    announcement_append(&b, &a);
    struct slice log = slice_make(b->data, b->used);
    struct entry entry;
    assert_int_equal(entry_next(&log, &entry), ENTRY_OK);
    assert_true(announcement_parse(entry.bytes, &back));
    assert_int_equal(back.created_s, 0);
    assert_int_equal(clock_wall_s(1795229329), 1795229329);
    block_unref(&b);
}

static void test_announcements_from_beyond_time_are_malformed(void **state)
{
    (void)state;
    struct announcement a;
    assert_true(announcement_parse(SLICE_LIT(NAME_A ".1.9223372036854775807"), &a));
    assert_false(announcement_parse(SLICE_LIT(NAME_A ".1.9223372036854775808"), &a));
    assert_false(announcement_parse(SLICE_LIT(NAME_A ".1.18446744073709551615"), &a));
    assert_false(announcement_parse(SLICE_LIT(NAME_A ".1.-1"), &a));
    assert_false(announcement_parse(SLICE_LIT(NAME_A ".1"), &a));
    assert_false(announcement_parse(SLICE_NONE, &a));
}

static void test_announcements_and_withdrawals_are_found_by_name(void **state)
{
    (void)state;
    struct slice log = SLICE_LIT("+1:a~17:" NAME_A ".5.9-1:a~17:" NAME_B ".0.9~17:" NAME_C
                                 ".1.9~17:" NAME_C ".0.9");
    struct name a = test_name('a'), b = test_name('b'), c = test_name('c'), d = test_name('d');
    assert_true(log_has_announcement(log, &a));
    assert_false(log_has_withdrawal(log, &a));
    assert_false(log_has_announcement(log, &b));
    assert_true(log_has_withdrawal(log, &b));
    assert_true(log_has_announcement(log, &c));
    assert_true(log_has_withdrawal(log, &c));
    assert_false(log_has_announcement(log, &d));
    assert_false(log_has_withdrawal(log, &d));
    /* An item that looks like one is none. */
    assert_false(log_has_announcement(SLICE_LIT("+21:~17:" NAME_A ".5.9"), &a));
}

/* Any client of memcached may write a head. */
static void test_sizes_that_cannot_be_do_not_wrap(void **state)
{
    struct run runs[2] = {{.bytes = 1ULL << 63}, {.bytes = 1ULL << 63}};
    struct head head = {.runs = runs, .run_count = 2};
    (void)state;
    assert_true(head_run_bytes(&head) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_without_runs_has_the_shortest_header),
        cmocka_unit_test(test_runs_and_garbage_are_read_in_their_order),
        cmocka_unit_test(test_counts_that_cannot_be_are_no_list),
        cmocka_unit_test(test_marks_are_read_wherever_they_stand),
        cmocka_unit_test(test_marks_that_cannot_be_are_no_list),
        cmocka_unit_test(test_a_head_tells_that_all_items_are_over),
        cmocka_unit_test(test_a_version_is_that_of_one_number_and_one_content),
        cmocka_unit_test(test_a_version_is_a_number_that_a_double_holds),
        cmocka_unit_test(test_random_headers_survive_the_round_trip),
        cmocka_unit_test(test_what_is_no_head_is_foreign),
        cmocka_unit_test(test_unknown_ops_and_malformed_logs_are_foreign),
        cmocka_unit_test(test_a_head_cut_short_is_foreign_but_between_entries),
        cmocka_unit_test(test_damaged_bytes_are_survived),
        cmocka_unit_test(test_references_keep_the_value_alive),
        cmocka_unit_test(test_announcements_survive_the_round_trip),
        cmocka_unit_test(test_what_is_announced_before_1970_can_be_read),
        cmocka_unit_test(test_announcements_from_beyond_time_are_malformed),
        cmocka_unit_test(test_announcements_and_withdrawals_are_found_by_name),
        cmocka_unit_test(test_sizes_that_cannot_be_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
