/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is to log in at a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "pool/link/login_turn.h"

static void one_connection_at_a_time(void **state)
{
    (void)state;
    int a = 0, b = 0;
    assert_true(login_turn_take("n:1", &a, 1));
    assert_false(login_turn_take("n:1", &b, 1));
    assert_false(login_turn_take("n:1", &a, 1));
    login_turn_end("n:1", &a);
    assert_true(login_turn_take("n:1", &b, 1));
    login_turn_end("n:1", &b);
}

/* Counted from a time when the node rests, until there is a turn again. */
static uint64_t fail_once(const void *connection, uint64_t now_us, struct rng *rng)
{
    uint64_t us = 0;
    assert_true(login_turn_take("n:2", connection, now_us));
    login_turn_fail("n:2", connection, now_us, rng);
    while (!login_turn_take("n:2", connection, now_us + us)) {
        us += 100;
    }
    login_turn_end("n:2", connection);
    return us;
}

static void after_a_failure_the_node_rests(void **state)
{
    (void)state;
    struct rng rng;
    uint64_t now_us = 1, longest_us = 0;
    int a = 0;
    rng_init_seed(&rng, 1);
    for (int i = 0; i < 50; i++) {
        assert_true(fail_once(&a, now_us, &rng) <= 20000); /* it has ended well in between */
        now_us += 1000000;
    }
    for (int i = 0; i < 50; i++) {
        assert_true(login_turn_take("n:2", &a, now_us));
        login_turn_fail("n:2", &a, now_us, &rng);
        uint64_t us = 0;
        while (us < (uint64_t)LOGIN_REST_MS_MAX * 1000 &&
               !login_turn_take("n:2", &a, now_us + us)) {
            us += 100;
        }
        assert_true(us < (uint64_t)LOGIN_REST_MS_MAX * 1000);
        longest_us = us > longest_us ? us : longest_us;
        login_turn_fail("n:2", &a, now_us + us, &rng);
        now_us += 10000000;
    }
    assert_true(longest_us > 300000);
}

static void nodes_have_turns_of_their_own(void **state)
{
    (void)state;
    char name[32];
    int connections[20] = {0}, taken = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "node%d:11210", i);
        connections[i] = login_turn_take(name, &connections[i], 1);
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
        cmocka_unit_test(after_a_failure_the_node_rests),
        cmocka_unit_test(nodes_have_turns_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
