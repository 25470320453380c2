/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/list_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_memory.h"

static void test_an_item_line_has_key_length_and_bytes(void **state)
{
    (void)state;
    struct chain out;
    chain_init(&out);
    list_format_item(&out, SLICE_LIT("topic"), SLICE_LIT("a\r\nb"));
    list_format_item(&out, SLICE_LIT("topic"), SLICE_NONE);
    static const char want[] = "ITEM topic 4\r\na\r\nb\r\nITEM topic 0\r\n\r\n";
    struct iovec iov[2];
    assert_int_equal(chain_iov(&out, iov, 2), 1);
    assert_int_equal(iov[0].iov_len, sizeof want - 1);
    assert_memory_equal(iov[0].iov_base, want, sizeof want - 1);
    chain_fini(&out);
}

static void test_large_items_are_whole(void **state)
{
    (void)state;
    static char bytes[100000];
    memset(bytes, 'x', sizeof bytes);
    struct chain out;
    chain_init(&out);
    list_format_item(&out, SLICE_LIT("k"), slice_make(bytes, sizeof bytes));
    assert_int_equal(out.bytes, sizeof "ITEM k 100000\r\n\r\n" - 1 + sizeof bytes);
    chain_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_item_line_has_key_length_and_bytes),
        cmocka_unit_test(test_large_items_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
