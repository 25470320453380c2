/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/server/backend_format.h"

static void expect(struct be_request req, const char *wanted)
{
    char line[BACKEND_LINE_MAX + 1];
    memcpy(req.key, "fruit", 5);
    req.key_len = 5;
    line[backend_format(&req, line)] = '\0';
    assert_string_equal(line, wanted);
}

static void reads_ask_by_mg(void **state)
{
    (void)state;
    expect((struct be_request){.verb = BE_GET}, "mg fruit v f c t\r\n");
    expect((struct be_request){.verb = BE_SIZE}, "mg fruit s c\r\n");
    expect((struct be_request){.verb = BE_PROBE}, "mg fruit\r\n");
    expect((struct be_request){.verb = BE_TIME}, "mg fruit t c\r\n");
}

static void changes_are_classic(void **state)
{
    (void)state;
    const struct slice value = SLICE_LIT("0123456789");
    expect((struct be_request){.verb = BE_ADD, .flags = 7, .exptime = 60, .value = value},
           "add fruit 7 60 10\r\n");
    expect((struct be_request){.verb = BE_REPLACE, .exptime = 86400},
           "replace fruit 0 86400 0\r\n");
    expect((struct be_request){.verb = BE_SET, .flags = 4294967295u, .value = value},
           "set fruit 4294967295 0 10\r\n");
    expect((struct be_request){.verb = BE_SET, .exptime = -5, .value = value},
           "set fruit 0 -1 10\r\n");
    expect((struct be_request){.verb = BE_APPEND, .value = value}, "append fruit 0 0 10\r\n");
    expect((struct be_request){.verb = BE_APPEND}, "append fruit 0 0 0\r\n");
    expect((struct be_request){.verb = BE_PREPEND, .value = value}, "prepend fruit 0 0 10\r\n");
    expect(
        (struct be_request){
            .verb = BE_CAS, .flags = 1, .exptime = INT32_MAX, .cas = UINT64_MAX, .value = value},
        "cas fruit 1 2147483647 10 18446744073709551615\r\n");
    expect((struct be_request){.verb = BE_DELETE}, "delete fruit\r\n");
}

static void an_incr_carries_what_it_adds(void **state)
{
    (void)state;
    expect((struct be_request){.verb = BE_INCR, .delta = 3}, "incr fruit 3\r\n");
    expect((struct be_request){.verb = BE_INCR, .delta = UINT64_MAX, .flags = 1, .exptime = 2},
           "incr fruit 18446744073709551615\r\n");
}

static void a_conditional_delete_is_a_cas_that_is_over_at_once(void **state)
{
    (void)state;
    expect((struct be_request){.verb = BE_CAS_DELETE, .cas = 9, .flags = 3, .exptime = 100},
           "cas fruit 0 -1 0 9\r\n\r\n");
}

static void the_longest_line_has_room(void **state)
{
    (void)state;
    char line[BACKEND_LINE_MAX];
    struct be_request req = {.verb = BE_CAS,
                             .key_len = KEY_BYTES_MAX,
                             .flags = UINT32_MAX,
                             .exptime = INT32_MAX,
                             .cas = UINT64_MAX};
    memset(req.key, 'k', sizeof req.key);
    req.value.len = SIZE_MAX;
    assert_true(backend_format(&req, line) <= sizeof line);
}

static void a_value_follows_what_stores_one(void **state)
{
    (void)state;
    assert_true(backend_has_body(BE_ADD) && backend_has_body(BE_SET) &&
                backend_has_body(BE_REPLACE));
    assert_true(backend_has_body(BE_APPEND) && backend_has_body(BE_PREPEND) &&
                backend_has_body(BE_CAS));
    assert_false(backend_has_body(BE_GET) || backend_has_body(BE_SIZE));
    assert_false(backend_has_body(BE_TIME));
    assert_false(backend_has_body(BE_PROBE) || backend_has_body(BE_DELETE));
    assert_false(backend_has_body(BE_CAS_DELETE) || backend_has_body(BE_INCR));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ask_by_mg),
        cmocka_unit_test(changes_are_classic),
        cmocka_unit_test(an_incr_carries_what_it_adds),
        cmocka_unit_test(a_conditional_delete_is_a_cas_that_is_over_at_once),
        cmocka_unit_test(the_longest_line_has_room),
        cmocka_unit_test(a_value_follows_what_stores_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
