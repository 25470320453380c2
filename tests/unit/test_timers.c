/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void test_nothing_is_due_when_nothing_is_set(void **state)
{
    (void)state;
    struct timers t = {0};
    assert_true(timers_next(&t) == UINT64_MAX);
    assert_null(timers_take_due(&t, UINT64_MAX));
    struct timer timer = {0};
    timer_stop(&t, &timer);
    assert_false(timer_is_set(&timer));
    timers_fini(&t);
}

static void test_a_timer_is_due_at_its_moment_and_then_no_more(void **state)
{
    (void)state;
    struct timers t = {0};
    struct timer timer = {.kind = 3};
    timer_set(&t, &timer, 100);
    assert_true(timer_is_set(&timer));
    assert_true(timers_next(&t) == 100);
    assert_null(timers_take_due(&t, 99));
    assert_ptr_equal(timers_take_due(&t, 100), &timer);
    assert_false(timer_is_set(&timer));
    assert_int_equal(timer.kind, 3);
    assert_null(timers_take_due(&t, UINT64_MAX));
    timers_fini(&t);
}

static void test_setting_again_moves_the_timer(void **state)
{
    (void)state;
    struct timers t = {0};
    struct timer a = {0}, b = {0};
    timer_set(&t, &a, 100);
    timer_set(&t, &b, 200);
    timer_set(&t, &a, 300);
    assert_int_equal(t.count, 2);
    assert_true(timers_next(&t) == 200);
    timer_set(&t, &a, 50);
    assert_ptr_equal(timers_take_due(&t, 1000), &a);
    assert_ptr_equal(timers_take_due(&t, 1000), &b);
    timers_fini(&t);
}

#define MANY 300

/* The plain model: all timers that are set, looked through each time. */
static const struct timer *earliest(const struct timer *timers)
{
    const struct timer *best = NULL;
    for (int i = 0; i < MANY; i++) {
        if (timers[i].place != 0 && (best == NULL || timers[i].at_us < best->at_us)) {
            best = &timers[i];
        }
    }
    return best;
}

static void check_heap(const struct timers *t, const struct timer *timers)
{
    size_t set = 0;
    for (int i = 0; i < MANY; i++) {
        if (timer_is_set(&timers[i])) {
            assert_ptr_equal(t->heap[timers[i].place - 1], &timers[i]);
            set++;
        }
    }
    assert_int_equal(set, t->count);
}

static void test_random_use_agrees_with_a_plain_model(void **state)
{
    (void)state;
    static struct timer timers[MANY];
    struct timers t = {0};
    struct rng rng;
    rng_init_seed(&rng, 21);
    uint64_t now = 0;
    for (int step = 0; step < 20000; step++) {
        struct timer *timer = &timers[rng_below(&rng, MANY)];
        uint64_t what = rng_below(&rng, 8);
        if (what < 4) {
            uint64_t at = now + rng_below(&rng, 500);
            timer_set(&t, timer, at);
            assert_true(timer->at_us == at && timer_is_set(timer));
        } else if (what == 4) {
            timer_stop(&t, timer);
            assert_false(timer_is_set(timer));
        } else {
            now += rng_below(&rng, 20);
            for (;;) {
                const struct timer *want = earliest(timers);
                uint64_t at = want == NULL ? UINT64_MAX : want->at_us;
                assert_true(timers_next(&t) == at);
                struct timer *got = timers_take_due(&t, now);
                assert_int_equal(got != NULL, at <= now);
                if (got == NULL) {
                    break;
                }
                assert_true(got->at_us == at);
            }
        }
        check_heap(&t, timers);
    }
    timers_fini(&t);
    assert_true(timers_next(&t) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_due_when_nothing_is_set),
        cmocka_unit_test(test_a_timer_is_due_at_its_moment_and_then_no_more),
        cmocka_unit_test(test_setting_again_moves_the_timer),
        cmocka_unit_test(test_random_use_agrees_with_a_plain_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
