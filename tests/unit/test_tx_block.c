/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/tx_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/client/request_parse.h"
#include "support_request.h"

static void assert_line(struct tx_block *b, enum tx_op op, const char *key, const char *items)
{
    struct tx_line line;
    assert_true(tx_block_next(b, &line));
    assert_int_equal(line.op, op);
    assert_slice(line.key, key);
    struct slice left = slice_of(items), want, item;
    while (item_next(&left, &want)) {
        assert_true(tx_line_next(&line, &item));
        assert_true(slice_equal(item, want));
    }
    assert_false(tx_line_next(&line, &item));
}

static void test_lines_are_taken_one_by_one(void **state)
{
    (void)state;
    struct tx_block b;
    struct tx_line line;
    tx_block_begin(&b, SLICE_LIT("ladd bob alice\r\nldel  k   a b \n lset k\r\n"
                                 "lset k x\nlrequire k a\r\nlrefuse k noreply b\r\n"));
    assert_line(&b, TX_OP_ADD, "bob", "alice");
    assert_line(&b, TX_OP_DEL, "k", "a b");
    assert_line(&b, TX_OP_SET, "k", "");
    assert_line(&b, TX_OP_SET, "k", "x");
    assert_line(&b, TX_OP_REQUIRE, "k", "a");
    assert_line(&b, TX_OP_REFUSE, "k", "noreply b");
    assert_false(tx_block_next(&b, &line));
    assert_null(b.fault);
    assert_int_equal(b.line, 6);
}

/* Items may hold all bytes but blanks and line feeds, as in ladd. */
static void test_items_keep_their_bytes(void **state)
{
    (void)state;
    struct tx_block b;
    struct tx_line line;
    struct slice item;
    tx_block_begin(&b, SLICE_LIT("ladd k a\rb\0\tc \r\n"));
    assert_true(tx_block_next(&b, &line));
    assert_true(tx_line_next(&line, &item));
    assert_true(slice_equal(item, SLICE_LIT("a\rb\0\tc")));
    assert_false(tx_line_next(&line, &item));
}

/* Those that say their length may hold all bytes, and are not looked into for lines. */
static void test_items_of_any_bytes(void **state)
{
    (void)state;
    struct tx_block b;
    struct tx_line line;
    struct slice item;
    tx_block_begin(&b, SLICE_LIT("laddb k 9\r\nldel k\r\nx\r\n"
                                 "lrefuseb  k 1\n\n\nldelb k 0\r\n\r\nlset k b\r\n"));
    assert_true(tx_block_next(&b, &line));
    assert_int_equal(line.op, TX_OP_ADD);
    assert_slice(line.key, "k");
    assert_true(tx_line_next(&line, &item));
    assert_slice(item, "ldel k\r\nx");
    assert_false(tx_line_next(&line, &item));
    assert_true(tx_block_next(&b, &line));
    assert_int_equal(b.line, 4);
    assert_int_equal(line.op, TX_OP_REFUSE);
    assert_true(tx_line_next(&line, &item));
    assert_slice(item, "\n");
    assert_true(tx_block_next(&b, &line)); /* no item has no bytes, but that is found elsewhere */
    assert_int_equal(b.line, 7);
    assert_int_equal(line.op, TX_OP_DEL);
    assert_true(tx_line_next(&line, &item));
    assert_int_equal(item.len, 0);
    assert_false(tx_line_next(&line, &item));
    assert_line(&b, TX_OP_SET, "k", "b");
    assert_int_equal(b.line, 9);
    assert_false(tx_block_next(&b, &line));
    assert_null(b.fault);
}

static void test_an_empty_block_has_no_lines(void **state)
{
    (void)state;
    struct tx_block b;
    struct tx_line line;
    tx_block_begin(&b, SLICE_LIT(""));
    assert_false(tx_block_next(&b, &line));
    assert_null(b.fault);
    assert_int_equal(b.line, 0);
}

static void assert_fault(struct slice data, size_t number, const char *fault)
{
    struct tx_block b;
    struct tx_line line;
    for (tx_block_begin(&b, data); tx_block_next(&b, &line);) {
    }
    assert_non_null(b.fault);
    assert_string_equal(b.fault, fault);
    assert_int_equal(b.line, number);
    assert_false(tx_block_next(&b, &line)); /* nothing behind it is read */
    assert_int_equal(b.line, number);
}

static void test_each_fault_names_its_line(void **state)
{
    (void)state;
    static const char no_word[] =
        "it begins with none of ladd, laddb, ldel, ldelb, lset, lrequire, "
        "lrequireb, lrefuse, lrefuseb",
                      no_item[] = "no item: only lset goes without",
                      no_end[] = "no line end behind it: each line of the block has one, and BYTES "
                                 "counts them";
    assert_fault(SLICE_LIT("ladd k a\r\nlget k\r\nladd k b\r\n"), 2, no_word);
    assert_fault(SLICE_LIT("LADD k a\n"), 1, no_word);
    assert_fault(SLICE_LIT("laddx k a\n"), 1, no_word);
    assert_fault(SLICE_LIT("lad k a\n"), 1, no_word);
    assert_fault(SLICE_LIT("ladd k a\n\nladd k b\n"), 2, "the line is empty");
    assert_fault(SLICE_LIT("  \r\n"), 1, "the line is empty");
    assert_fault(SLICE_LIT("lset\r\n"), 1, "no key");
    assert_fault(SLICE_LIT("lset k\nladd\n"), 2, "no key");
    assert_fault(SLICE_LIT("ladd k\r\n"), 1, no_item);
    assert_fault(SLICE_LIT("lrequire k  \r\n"), 1, no_item);
    assert_fault(SLICE_LIT("ladd k a\nldel k b"), 2, no_end);
    assert_fault(SLICE_LIT("ladd k a\nldel k b\r"), 2, no_end);
    static const char no_bytes[] =
        "KEY and BYTES go here, and the item stands in a line of its own",
                      short_block[] = "the item is longer than the rest of the block",
                      no_item_end[] = "no line end behind BYTES bytes";
    assert_fault(SLICE_LIT("lsetb k 1\na\n"), 1, no_word);
    assert_fault(SLICE_LIT("lset k\nladdb k\na\n"), 2, no_bytes);
    assert_fault(SLICE_LIT("laddb k 1 noreply\na\n"), 1, no_bytes);
    assert_fault(SLICE_LIT("laddb k a\na\n"), 1, no_bytes);
    assert_fault(SLICE_LIT("laddb k -1\na\n"), 1, no_bytes);
    assert_fault(SLICE_LIT("laddb k 3\na\n"), 1, short_block);
    assert_fault(SLICE_LIT("laddb k 18446744073709551615\na\n"), 1, short_block);
    assert_fault(SLICE_LIT("laddb k 2\na\n"), 1, no_item_end);
    assert_fault(SLICE_LIT("laddb k 1\na"), 1, no_item_end);
    assert_fault(SLICE_LIT("laddb k 1\na\nldelb k 1\nab\n"), 3, no_item_end);
    assert_fault(SLICE_LIT("ladd a\tb c\n"), 1, "bad key: it holds a blank or control bytes");
    assert_fault(SLICE_LIT("ladd " KEY_220 "k a\n"), 1, "key too long, 220 bytes at most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_taken_one_by_one),
        cmocka_unit_test(test_items_keep_their_bytes),
        cmocka_unit_test(test_items_of_any_bytes),
        cmocka_unit_test(test_an_empty_block_has_no_lines),
        cmocka_unit_test(test_each_fault_names_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
