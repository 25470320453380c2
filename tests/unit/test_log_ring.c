/* SPDX-License-Identifier: BSD-3-Clause */
/* The log as soon as its thread runs: once in a process, so in a program of its own. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define BUFFER_BYTES 65536
#define LINES 20000

static int own_stderr;
static int reader; /* of the pipe that is standard error here */
static char text[LINES * 100];

/* Reads until `end` stands in what came. Returns the text. */
static const char *read_until(const char *end)
{
    size_t n = 0;
    text[0] = '\0';
    while (strstr(text, end) == NULL) {
        ssize_t got = read(reader, text + n, sizeof text - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        text[n] = '\0';
    }
    return text;
}

static void test_lines_come_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        log_info("line %d", i);
    }
    log_info("the last");
    const char *at = read_until("the last");
    for (int i = 0; i < 100; i++) {
        char want[32];
        snprintf(want, sizeof want, "line %d\n", i);
        at = strstr(at, want);
        assert_non_null(at);
    }
    assert_int_equal(log_dropped(), 0);
}

/* What was written of the flood and what notices say was dropped, together. The lines that were
 * written must be in order. */
static int count_flood(void)
{
    int kept = 0, told = 0, last = -1;
    for (const char *at = text; (at = strstr(at, " number ")) != NULL; at++, kept++) {
        int number = (int)strtol(at + sizeof " number " - 1, NULL, 10);
        assert_true(number > last);
        last = number;
    }
    for (const char *at = text; (at = strstr(at, "warn  ")) != NULL; at++) {
        told += (int)strtol(at + sizeof "warn  " - 1, NULL, 10);
    }
    return kept + told;
}

static void test_a_pipe_that_is_not_read_stops_no_caller(void **state)
{
    (void)state;
    /* More than pipe and buffer hold: each of these returns all the same. */
    for (int i = 0; i < LINES; i++) {
        log_info("number %d of a flood of lines that is not read.", i);
    }
    assert_true(log_dropped() > 0);
    log_flush(10); /* comes back without a reader */
    size_t n = 0;
    do {
        ssize_t got = read(reader, text + n, sizeof text - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        text[n] = '\0';
        /* A line that is there in part is not counted yet. */
    } while (text[n - 1] != '\n' || count_flood() < LINES);
    assert_int_equal(count_flood(), LINES);
    log_info("afterwards");
    (void)read_until("afterwards\n");
}

static void test_flush_waits_until_all_is_written(void **state)
{
    (void)state;
    log_info("one more");
    log_flush(60000);
    assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
    ssize_t n = read(reader, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_non_null(strstr(text, "one more\n"));
    assert_int_equal(fcntl(reader, F_SETFL, 0), 0);
}

static void test_a_reader_that_has_gone_costs_only_lines(void **state)
{
    (void)state;
    uint64_t before = log_dropped();
    close(reader);
    log_info("into the void");
    log_flush(60000);
    assert_true(log_dropped() > before);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A file that may not grow is like a full disk: the last line that still fits is written in part.
 */
static void test_a_full_disk_leaves_a_notice_of_what_is_missing(void **state)
{
    (void)state;
    char path[] = "/tmp/test_log_ring.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    log_info("before"); /* and what the test before this one lost */
    log_flush(60000);
    uint64_t before = log_dropped();
    limit_files(1000);
    for (int i = 0; i < 50; i++) {
        log_info("a line for a full disk, number %d", i);
        log_flush(60000);
    }
    limit_files(RLIM_INFINITY);
    log_info("room again");
    log_flush(60000);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    assert_true(n > 1000);
    text[n] = '\0';
    char want[64];
    snprintf(want, sizeof want, " warn  %d lines of the log were dropped: File too large\n",
             (int)(log_dropped() - before));
    assert_true(log_dropped() > before);
    const char *notice = strstr(text, want);
    assert_non_null(notice);
    static const char time_text[] = "\n2000-01-01T00:00:00.000Z";
    assert_int_equal(notice[-(int)(sizeof time_text - 1)], '\n'); /* on a line of its own */
    assert_non_null(strstr(notice, "room again\n"));
    (void)unlink(path);
    close(fd);
}

static int setup(void **state)
{
    (void)state;
    int ends[2];
    (void)signal(SIGPIPE, SIG_IGN);
    own_stderr = dup(STDERR_FILENO);
    if (own_stderr < 0 || pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) {
        return -1;
    }
    close(ends[1]);
    reader = ends[0];
    return log_open(NULL, LOG_INFO_LEVEL) != 0 || log_start_thread(BUFFER_BYTES) != 0 ? -1 : 0;
}

/* cmocka says there how many tests have passed. */
static int teardown(void **state)
{
    (void)state;
    return dup2(own_stderr, STDERR_FILENO) < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_come_in_order),
        cmocka_unit_test(test_a_pipe_that_is_not_read_stops_no_caller),
        cmocka_unit_test(test_flush_waits_until_all_is_written),
        cmocka_unit_test(test_a_reader_that_has_gone_costs_only_lines),
        cmocka_unit_test(test_a_full_disk_leaves_a_notice_of_what_is_missing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
