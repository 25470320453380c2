/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_log.XXXXXX";
static char path[64], moved[64];
static char text[1000000];

/* Reads the whole file into text and returns its length. */
static size_t slurp(const char *name)
{
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return n;
}

static void empty(void)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void test_a_line_has_time_level_and_text(void **state)
{
    (void)state;
    empty();
    log_warn("backend %s failed %d times", "a:1", 3);
    slurp(path);
    regex_t want;
    assert_int_equal(regcomp(&want,
                             "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"
                             " warn  backend a:1 failed 3 times\n$",
                             REG_EXTENDED | REG_NOSUB),
                     0);
    assert_int_equal(regexec(&want, text, 0, NULL, 0), 0);
    regfree(&want);
}

static void test_control_bytes_are_not_written(void **state)
{
    (void)state;
    empty();
    log_error("cannot listen on unix:%s", "/a\033[1m\nb\x7f\xc3\xa9");
    slurp(path);
    assert_non_null(strstr(text, " error cannot listen on unix:/a?[1m?b?\xc3\xa9\n"));
}

static void test_only_levels_asked_for_are_written(void **state)
{
    (void)state;
    assert_int_equal(log_open(NULL, LOG_WARN_LEVEL), 0);
    empty();
    assert_int_equal(log_get_level(), LOG_WARN_LEVEL);
    log_error("one");
    log_warn("two");
    log_info("three");
    log_debug("four");
    slurp(path);
    assert_non_null(strstr(text, "one"));
    assert_non_null(strstr(text, "two"));
    assert_null(strstr(text, "three"));
    assert_null(strstr(text, "four"));
    assert_int_equal(log_open(NULL, LOG_DEBUG_LEVEL), 0);
    log_debug("five");
    slurp(path);
    assert_non_null(strstr(text, " debug five\n"));
}

static void test_a_long_line_is_cut_and_still_ends(void **state)
{
    (void)state;
    for (int len = 900; len < 1100; len++) {
        empty();
        log_error("%0*d", len, 7);
        size_t n = slurp(path);
        assert_true(n <= 1024);
        assert_int_equal(text[n - 1], '\n');
        assert_ptr_equal(strchr(text, '\n'), text + n - 1);
        assert_int_equal(strlen(text), n);
        if (len == 900) {
            assert_non_null(strstr(text, "007\n"));
        }
    }
}

static void test_after_a_move_lines_go_to_the_new_file(void **state)
{
    (void)state;
    empty();
    log_error("before");
    assert_int_equal(rename(path, moved), 0);
    log_error("between");
    assert_int_equal(log_reopen(), 0);
    log_error("after");
    slurp(path);
    assert_null(strstr(text, "between"));
    assert_non_null(strstr(text, "after"));
    slurp(moved);
    assert_non_null(strstr(text, "before"));
    assert_non_null(strstr(text, "between"));
    assert_null(strstr(text, "after"));
}

static void test_what_cannot_be_opened_leaves_the_old_file_in_use(void **state)
{
    (void)state;
    assert_int_equal(log_open("/nonexistent/folder/log", LOG_DEBUG_LEVEL), -1);
    assert_int_equal(errno, ENOENT);
    empty();
    log_error("still here");
    slurp(path);
    assert_non_null(strstr(text, "still here"));
    assert_int_equal(log_reopen(), 0);
}

static void test_whether_a_file_could_be_opened_is_known_before(void **state)
{
    (void)state;
    assert_int_equal(log_check(path), 0);
    char other[sizeof path + 8];
    snprintf(other, sizeof other, "%s.2", path);
    assert_int_equal(log_check(other), 0);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(log_check("/nonexistent/folder/log"), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(log_check("/dev/null/log"), -1);
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(log_check(folder), -1);
    assert_int_equal(errno, EISDIR);
}

static void *write_lines(void *arg)
{
    for (int i = 0; i < 500; i++) {
        log_error("thread %s line %d of many", (const char *)arg, i);
    }
    return NULL;
}

static void test_lines_of_two_threads_never_mix(void **state)
{
    (void)state;
    empty();
    pthread_t threads[2];
    static char names[2][2] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    slurp(path);
    int next[2] = {0, 0}, lines = 0;
    for (char *line = strtok_r(text, "\n", &(char *){NULL}); line != NULL;) {
        char who;
        int number, end = 0;
        int got = sscanf(line, "%*s error thread %c line %d of many%n", &who, &number, &end);
        assert_int_equal(got, 2);
        assert_int_equal(line[end], '\0');
        assert_int_equal(number, next[who - 'a']++);
        lines++;
        char *after = line + strlen(line) + 1;
        line = *after == '\0' ? NULL : strtok_r(after, "\n", &(char *){NULL});
    }
    assert_int_equal(lines, 1000);
}

static void test_one_event_per_second_passes_the_limit(void **state)
{
    (void)state;
    struct log_limit limit = {0};
    char more[LOG_MORE_MAX] = "?";
    assert_true(log_limit_pass(&limit, 1000, "clients", more));
    assert_string_equal(more, "");
    for (int i = 0; i < 5; i++) {
        assert_false(log_limit_pass(&limit, 1000, "clients", more));
    }
    assert_true(log_limit_pass(&limit, 1001, "clients", more));
    assert_string_equal(more, " (5 more such clients since the last message)");
    assert_true(log_limit_pass(&limit, 1002, "clients", more));
    assert_string_equal(more, "");
    /* A clock that is set back must not silence the log. */
    assert_true(log_limit_pass(&limit, 10, "clients", more));
}

static void test_a_line_of_json_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } lines[] = {
        {"backend a:1 failed", "backend a:1 failed"},
        {"a \"b\" \\ c", "a \\\"b\\\" \\\\ c"},
        {"tab\tline\nbell\a\x7f", "tab\\u0009line\\u000abell\\u0007\\u007f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        /* Cut short, too long, a surrogate, beyond the last character, no first byte. */
        {"\xc3", "\\u00c3"},
        {"\xc0\xaf", "\\u00c0\\u00af"},
        {"\xed\xa0\x80", "\\u00ed\\u00a0\\u0080"},
        {"\xf4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080"},
        {"\x80x", "\\u0080x"},
    };
    log_set_format(LOG_JSON);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char end[128];
        empty();
        log_warn("%s", lines[i].text);
        slurp(path);
        snprintf(end, sizeof end, "Z\",\"level\":\"warn\",\"pid\":%d,\"text\":\"%s\"}\n",
                 (int)getpid(), lines[i].shown);
        assert_memory_equal(text, "{\"time\":\"20", 11);
        assert_string_equal(text + 11 + 21, end);
    }
    empty();
    log_error("%01000000d", 7);
    assert_true(slurp(path) < 1200);
    log_set_format(LOG_TEXT);
}

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(moved, sizeof moved, "%s/log.1", folder);
    return log_open(path, LOG_INFO_LEVEL);
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    unlink(moved);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_has_time_level_and_text),
        cmocka_unit_test(test_a_line_of_json_is_escaped),
        cmocka_unit_test(test_control_bytes_are_not_written),
        cmocka_unit_test(test_only_levels_asked_for_are_written),
        cmocka_unit_test(test_a_long_line_is_cut_and_still_ends),
        cmocka_unit_test(test_after_a_move_lines_go_to_the_new_file),
        cmocka_unit_test(test_what_cannot_be_opened_leaves_the_old_file_in_use),
        cmocka_unit_test(test_whether_a_file_could_be_opened_is_known_before),
        cmocka_unit_test(test_lines_of_two_threads_never_mix),
        cmocka_unit_test(test_one_event_per_second_passes_the_limit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
