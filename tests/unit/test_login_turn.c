/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is to log in at a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "pool/login_turn.h"

static void one_connection_at_a_time(void **state)
{
    (void)state;
    int a = 0, b = 0;
    assert_true(login_turn_take("n:1", &a));
    assert_false(login_turn_take("n:1", &b));
    assert_false(login_turn_take("n:1", &a));
    login_turn_end("n:1", &a);
    assert_true(login_turn_take("n:1", &b));
    login_turn_end("n:1", &b);
}

static void nodes_have_turns_of_their_own(void **state)
{
    (void)state;
    char name[32];
    int connections[20] = {0}, taken = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "node%d:11210", i);
        connections[i] = login_turn_take(name, &connections[i]);
        taken += connections[i];
    }
    /* Some may share a place. */
    assert_true(taken > 10);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "node%d:11210", i);
        if (connections[i]) {
            login_turn_end(name, &connections[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_connection_at_a_time),
        cmocka_unit_test(nodes_have_turns_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
