/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a failover may take a plain entry back, it decides an intent only with a decision behind
 * both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "list/format/intent.h"
#include "support_list.h"

/* A head whose log holds an intent about item b, and then those entries and decisions: "c" or "a"
 * stands for one. */
static struct block *head_behind(bool is_primary, const char *rest)
{
    struct block *b = block_new(64);
    struct intent intent = {
        .name = test_name('t'),
        .created_s = 1795229331,
        .keys = {is_primary ? SLICE_LIT("list") : SLICE_LIT("first"),
                 is_primary ? SLICE_LIT("other") : SLICE_LIT("list")},
        .key_count = 2,
        .entries = SLICE_LIT("+1:b"),
    };
    block_append(&b, "^1\n", 3);
    intent_append(&b, &intent);
    for (; *rest != '\0'; rest++) {
        if (*rest == '&') {
            decision_append(&b, &intent.name, (enum decision) * ++rest);
        } else {
            block_append(&b, rest, 1);
        }
    }
    return b;
}

static void expect(bool is_primary, const char *rest, bool rolls_back, enum intent_state expected)
{
    struct be_caps caps = {.cas_enabled = true, .rolls_back = rolls_back, .server_name = "s"};
    struct name name = test_name('t');
    struct block *b = head_behind(is_primary, rest);
    struct be_reply reply = {.status = BE_HIT, .value = block_slice(b), .block = b, .caps = &caps};
    struct head *head;
    enum intent_state alone;
    assert_int_equal(head_read(&reply, SLICE_LIT("list"), &head), HEAD_OK);
    assert_int_equal(head_intent_state(head, &name), expected);
    assert_int_equal(head->open_count, expected == INTENT_OPEN);
    assert_int_equal(head_read_state(&reply, SLICE_LIT("list"), &name, &alone), HEAD_OK);
    assert_int_equal(alone, expected);
    head_unref(&head);
    block_unref(&b);
}

static void what_may_be_taken_back_decides_nothing_alone(void **state)
{
    (void)state;
    expect(true, "-1:b", false, INTENT_ABORTED);
    expect(true, "-1:b", true, INTENT_OPEN);
    expect(true, "!0:", true, INTENT_OPEN);
    expect(false, "-1:b", true, INTENT_OPEN);
}

static void a_decision_makes_it_count(void **state)
{
    (void)state;
    expect(true, "-1:b&c", true, INTENT_ABORTED);
    expect(true, "!0:&c", true, INTENT_ABORTED);
    expect(true, "-1:b&a", true, INTENT_ABORTED);
    expect(true, "&c-1:b", true, INTENT_COMMITTED);
    expect(true, "+1:c&c", true, INTENT_COMMITTED);
    expect(false, "-1:b&c", true, INTENT_COMMITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_taken_back_decides_nothing_alone),
        cmocka_unit_test(a_decision_makes_it_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
