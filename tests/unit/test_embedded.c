/* SPDX-License-Identifier: BSD-3-Clause */
/* The private directory, the child process, and both with a program that plays memcached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embedded/directory.h"
#include "embedded/embedded.h"
#include "embedded/process.h"

static char error[CONFIG_ERROR_MAX];
static char base[64];

/* Directories are made where $RUNTIME_DIRECTORY says. */
static int setup(void **state)
{
    (void)state;
    assert_int_equal(log_open(NULL, LOG_ERROR_LEVEL), 0);
    (void)snprintf(base, sizeof base, "/tmp/test_embedded.XXXXXX");
    return mkdtemp(base) == NULL || chmod(base, 0755) != 0 ||
           setenv("RUNTIME_DIRECTORY", base, 1) != 0;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(base); /* fails when a test has left something */
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void make_file(const char *dir, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void remove_file(const char *dir, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
}

static void test_directory(void **state)
{
    (void)state;
    struct directory directory;
    struct stat st;
    bool given = false;
    assert_int_equal(directory_create(&directory, geteuid(), false, &given, error), 0);
    assert_true(given);
    assert_memory_equal(directory.path, base, strlen(base));
    assert_int_equal(stat(directory.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_memory_equal(directory.socket_path, directory.path, strlen(directory.path));
    make_file(directory.path, "memcached.sock");
    directory_remove(&directory);
    assert_false(exists(directory.path));
}

static void test_leftovers(void **state)
{
    (void)state;
    struct directory held;
    struct directory next;
    char killed[128];
    char strange[128];
    char open_to_all[128];
    bool given;
    assert_int_equal(directory_create(&held, geteuid(), false, &given, error), 0);
    (void)snprintf(killed, sizeof killed, "%s/mclistd-killed", base);
    (void)snprintf(strange, sizeof strange, "%s/mclistd-strange", base);
    (void)snprintf(open_to_all, sizeof open_to_all, "%s/mclistd-open", base);
    assert_int_equal(mkdir(killed, 0700), 0);
    make_file(killed, "lock");
    make_file(killed, "memcached.sock");
    assert_int_equal(mkdir(strange, 0700), 0); /* without a lock: any user's */
    assert_int_equal(mkdir(open_to_all, 0755), 0);
    make_file(open_to_all, "lock");

    assert_int_equal(directory_create(&next, geteuid(), false, &given, error), 0);
    assert_false(exists(killed));
    assert_true(exists(held.path));
    assert_true(exists(strange));
    assert_true(exists(open_to_all));

    directory_remove(&next);
    directory_remove(&held);
    assert_int_equal(rmdir(strange), 0);
    remove_file(open_to_all, "lock");
    assert_int_equal(rmdir(open_to_all), 0);
}

static void test_a_strange_file_stays(void **state)
{
    (void)state;
    struct directory directory;
    bool given;
    assert_int_equal(directory_create(&directory, geteuid(), false, &given, error), 0);
    make_file(directory.path, "mine");
    directory_remove(&directory);
    assert_true(exists(directory.path));
    remove_file(directory.path, "mine");
    assert_int_equal(rmdir(directory.path), 0);
}

static void test_find(void **state)
{
    (void)state;
    char path[256];
    assert_int_equal(process_find("sh", path, sizeof path), 0);
    assert_non_null(strstr(path, "/sh"));
    assert_int_equal(process_find("/bin/sh", path, sizeof path), 0);
    assert_string_equal(path, "/bin/sh");
    assert_int_equal(process_find("/bin", path, sizeof path), -1);
    assert_int_equal(process_find("/etc/passwd", path, sizeof path), -1);
    assert_int_equal(process_find("no-such-program", path, sizeof path), -1);
}

static void test_process(void **state)
{
    (void)state;
    char *argv[] = {"sh", "-c", "exit 7", NULL};
    struct process process = {.path = "/bin/sh", .argv = argv};
    int status;
    pid_t pid = process_start(&process, error);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);

    process.path = "/etc/passwd";
    assert_int_equal(process_start(&process, error), -1);
    assert_string_equal(error, "/etc/passwd: cannot be executed: Permission denied");
}

/* A process in the middle starts one that sleeps, tells its number and is killed. */
static void test_child_ends_with_its_parent(void **state)
{
    (void)state;
    int pipe_fds[2];
    pid_t grandchild;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t middle = fork();
    if (middle == 0) {
        char *argv[] = {"sleep", "60", NULL};
        struct process process = {.path = "/bin/sleep", .argv = argv};
        pid_t pid = process_start(&process, error);
        _exit(write(pipe_fds[1], &pid, sizeof pid) != sizeof pid || pause());
    }
    assert_int_equal(read(pipe_fds[0], &grandchild, sizeof grandchild), sizeof grandchild);
    assert_true(grandchild > 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    assert_int_equal(kill(middle, SIGKILL), 0);
    assert_int_equal(waitpid(middle, NULL, 0), middle);
    char path[64];
    char line[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
    for (int i = 0; i < 500; i++) {
        FILE *file = fopen(path, "re");
        if (file == NULL) {
            return;
        }
        /* Gone, or a zombie where no init reaps orphans. */
        bool zombie = fgets(line, sizeof line, file) != NULL && strstr(line, ") Z") != NULL;
        fclose(file);
        if (zombie) {
            return;
        }
        struct timespec pause_time = {0, 10000000};
        nanosleep(&pause_time, NULL);
    }
    fail_msg("the child lives on: %s", line);
}

static void refuses_to_start(const char *program, const char *expected)
{
    struct config *config = config_create();
    struct event_base *loop = event_base_new();
    (void)snprintf(config->embedded_memcached, sizeof config->embedded_memcached, "%s", program);
    assert_null(embedded_start(config, loop, NULL, error));
    assert_string_equal(error, expected);
    event_base_free(loop);
    config_destroy(&config);
}

static void test_memcached_missing(void **state)
{
    (void)state;
    refuses_to_start("no-such-memcached", "no-such-memcached not found: install the Debian package "
                                          "memcached or configure a pool");
}

static void test_memcached_that_ends(void **state)
{
    (void)state;
    refuses_to_start("/bin/false", "/bin/false ended as soon as it was started (exit code 1)");
}

static void test_memcached(void **state)
{
    (void)state;
    char found[256];
    if (process_find("memcached", found, sizeof found) != 0) {
        skip();
    }
    struct config *config = config_create();
    struct event_base *loop = event_base_new();
    struct stat st;
    struct embedded *embedded = embedded_start(config, loop, NULL, error);
    if (embedded == NULL) {
        fail_msg("%s", error);
    }
    const char *server = embedded_server(embedded);
    assert_memory_equal(server, "unix:/tmp/test_embedded.", 24);
    assert_int_equal(stat(server + 5, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(config_add_pool(config, "embedded", server, error), 0);
    assert_int_equal(config_finish(config, error), 0);
    embedded_stop(&embedded);
    assert_null(embedded);
    event_base_free(loop);
    config_destroy(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_a_strange_file_stays),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_child_ends_with_its_parent),
        cmocka_unit_test(test_memcached_missing),
        cmocka_unit_test(test_memcached_that_ends),
        cmocka_unit_test(test_memcached),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
