/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the file of those who may log in. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/users.h"
#include "support_config.h"

#define POOL "[pool p]\nservers = s:1\n"

static void test_a_listener_takes_from_proxy_what_it_does_not_set(void **state)
{
    (void)state;
    struct config *c = good("[proxy]\nauth_file = /x\n[listener a]\nlisten = unix:/a, [::1]\n"
                            "[listener b.1]\nlisten = unix:/b\nauth_file =\n" POOL);
    assert_int_equal(c->listener_count, 3);
    assert_string_equal(c->listeners[0].name, "");
    assert_string_equal(c->listeners[1].name, "a");
    assert_string_equal(c->listeners[1].auth_file, "/x");
    assert_int_equal(c->listeners[1].listen.at[1].port, 11220);
    assert_string_equal(c->listeners[2].auth_file, "");
    config_destroy(&c);
}

static void test_verbs_are_known(void **state)
{
    (void)state;
    struct config *c = good("[proxy]\nallow_verbs = get, ladd ,get\ndeny_verbs = flush_all\n"
                            "[listener a]\nlisten = unix:/a\nallow_verbs =\n" POOL);
    assert_true(verb_set_has(&c->listeners[0].allow_verbs, VERB_GET));
    assert_true(verb_set_has(&c->listeners[0].allow_verbs, VERB_ladd));
    assert_false(verb_set_has(&c->listeners[0].allow_verbs, VERB_SET));
    assert_true(verb_set_is_empty(&c->listeners[1].allow_verbs));
    assert_true(verb_set_has(&c->listeners[1].deny_verbs, VERB_FLUSH_ALL));
    config_destroy(&c);
}

static const char *users_of(const char *text, size_t len, struct users **users)
{
    static char error[CONFIG_ERROR_MAX];
    char path[] = "/tmp/mclistd-users-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
    *users = users_read(path, 3, error);
    unlink(path);
    return *users == NULL ? error + strlen(path) : NULL;
}

static void assert_bad(struct slice text, const char *expected)
{
    struct users *users;
    const char *error = users_of(text.p, text.len, &users);
    assert_non_null(error);
    assert_string_equal(error, expected);
}

/* What may be waited for, or is not the same when it is read again. */
static void test_users_are_in_a_regular_file(void **state)
{
    (void)state;
    static const struct {
        const char *path, *expected;
    } all[] = {{"/dev/null", "/dev/null cannot be opened: it is no regular file"},
               {"/", "/ cannot be opened: Is a directory"},
               {"/none", "/none cannot be opened: No such file or directory"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char error[CONFIG_ERROR_MAX];
        assert_null(users_read(all[i].path, 3, error));
        assert_string_equal(error, all[i].expected);
    }
}

static void test_bad_users_are_named_by_their_line(void **state)
{
    (void)state;
    static char longest[300];
    assert_bad(SLICE_LIT(""), " names no user");
    assert_bad(SLICE_LIT("a:b\nann\n"), ": line 2 has no colon; expected user:password");
    assert_bad(SLICE_LIT("a:b\n\n"), ": line 2 has no colon; expected user:password");
    static const char *const lines[] = {":b", "a:", "a b:c", "a:b c"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_bad(slice_of(lines[i]),
                   ": line 1 is no user:password; expected 1 to 127 bytes each, without blanks");
    }
    assert_bad(SLICE_LIT("a:b\0\n"),
               ": line 1 is no user:password; expected 1 to 127 bytes each, without blanks");
    memset(longest, 'x', sizeof longest);
    longest[127] = ':';
    assert_bad(slice_make(longest, 128 + 128),
               ": line 1 is no user:password; expected 1 to 127 bytes each, without blanks");
    assert_bad(slice_make(longest, sizeof longest),
               ": line 1 is no user:password; expected 1 to 127 bytes each, without blanks");
    assert_bad(SLICE_LIT("a:b\nc:d\ne:f\ng:h\n"),
               ": line 4 is one too many; expected at most 3 (max_users)");
    struct users *users;
    assert_null(users_of(longest, 128 + 127, &users));
    assert_true(users_know(users, slice_make(longest, 127), slice_make(longest, 127)));
    users_destroy(&users);
}

static void test_a_user_is_known_with_its_password_only(void **state)
{
    (void)state;
    struct users *users;
    static const char text[] = "ann:secret\r\nbob:a:b\nann:other";
    assert_null(users_of(text, sizeof text - 1, &users));
    assert_true(users_know(users, SLICE_LIT("ann"), SLICE_LIT("secret")));
    assert_true(users_know(users, SLICE_LIT("ann"), SLICE_LIT("other")));
    assert_true(users_know(users, SLICE_LIT("bob"), SLICE_LIT("a:b")));
    assert_false(users_know(users, SLICE_LIT("bob"), SLICE_LIT("secret")));
    assert_false(users_know(users, SLICE_LIT("ann"), SLICE_LIT("secre")));
    assert_false(users_know(users, SLICE_LIT("ann"), SLICE_LIT("secret\0")));
    assert_false(users_know(users, SLICE_LIT("ann"), SLICE_LIT("")));
    assert_false(users_know(users, SLICE_LIT(""), SLICE_LIT("")));
    users_destroy(&users);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_listener_takes_from_proxy_what_it_does_not_set),
        cmocka_unit_test(test_verbs_are_known),
        cmocka_unit_test(test_users_are_in_a_regular_file),
        cmocka_unit_test(test_bad_users_are_named_by_their_line),
        cmocka_unit_test(test_a_user_is_known_with_its_password_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
