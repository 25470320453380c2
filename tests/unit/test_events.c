/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's order of what happens. */
#include "../sim/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_what_is_planned_happens_in_order(void **state)
{
    (void)state;
    static const uint64_t at_us[] = {5, 3, 9, 3, 1};
    static const uint64_t order[] = {4, 1, 3, 0, 2};
    struct events events = {0};
    struct event event;
    for (uint64_t i = 0; i < 5; i++) {
        events_plan(&events, at_us[i], 0, NULL, i);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_true(events_take(&events, &event));
        assert_int_equal(event.number, order[i]);
    }
    assert_false(events_take(&events, &event));
    events_fini(&events);
}

/* An alarm that is set for a far moment, then for nearer ones, and after each of them for the far
 * one again: what it was set for before does not ring as well. */
static void test_an_alarm_rings_once(void **state)
{
    (void)state;
    enum { NEAR = 100, FAR_US = 1000 };
    struct events events = {0};
    struct alarm alarm = {ALARM_OFF};
    struct event event;
    unsigned rings = 0;
    for (uint64_t i = 1; i <= NEAR; i++) {
        alarm_set(&alarm, &events, FAR_US, 0, NULL, 0);
        alarm_set(&alarm, &events, i, 0, NULL, 0);
        alarm_set(&alarm, &events, FAR_US, 0, NULL, 0);
        assert_true(events_take(&events, &event));
        assert_int_equal(event.at_us, i);
        assert_true(alarm_rings(&alarm, &event));
    }
    alarm_set(&alarm, &events, FAR_US, 0, NULL, 0);
    while (events_take(&events, &event)) {
        assert_int_equal(event.at_us, FAR_US);
        rings += alarm_rings(&alarm, &event);
    }
    assert_int_equal(rings, 1);
    assert_true(alarm.at_us == ALARM_OFF);
    events_fini(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_planned_happens_in_order),
        cmocka_unit_test(test_an_alarm_rings_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
