/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What may be appended to the head of a list that moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/block.h"
#include "list/moving/append.h"

/* Others may have filled the item since it was sent; what decides needs the rest of it. */
static void test_an_append_leaves_room_for_decisions(void **state)
{
    (void)state;
    static const struct be_caps server = {.item_size_max = 4096}, unknown;
    static const struct {
        const struct be_caps *caps;
        size_t head_bytes;
        const char *appended;
        bool goes;
    } rows[] = {{&server, 3068, "+1:x", true},
                {&server, 3069, "+1:x", false},
                {&server, 3069, "&3:abc", true},
                {&unknown, 3069, "+1:x", true},
                {NULL, 3069, "+1:x", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rest = (int)rows[i].head_bytes - 9;
        struct block *head = block_new(rows[i].head_bytes + 1);
        head->used =
            (size_t)snprintf(head->data, rows[i].head_bytes + 1, "^1\n+%d:%0*d", rest, rest, 0);
        assert_int_equal(head->used, rows[i].head_bytes);
        struct be_reply reply = {
            .status = BE_HIT, .block = head, .ttl_s = -1, .cas = 1, .epoch = 1};
        reply.value = slice_make(head->data, head->used);
        reply.caps = rows[i].caps;
        struct place place = {0};
        place_read(&place, &reply);
        struct list_request request = {.be.value = slice_of(rows[i].appended)};
        assert_int_equal(append_has_place(&request, &place, SLICE_LIT("k")), rows[i].goes);
        place_forget(&place);
        block_unref(&head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_append_leaves_room_for_decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
