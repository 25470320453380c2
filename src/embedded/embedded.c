/* SPDX-License-Identifier: BSD-3-Clause */
#include "embedded/embedded.h"

#include <event2/event.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "embedded/directory.h"
#include "embedded/process.h"

/* How long memcached may take until it accepts connections. */
#define START_TIMEOUT_MS 10000
#define START_POLL_MS 5
/* Pause before it is started again: doubles from the first to the last while it does not live
 * LONG_LIFE_S. */
#define RESTART_MIN_MS 100
#define RESTART_MAX_MS 5000
#define LONG_LIFE_S 60
#define ARGS_MAX 20
#define NUMBER_MAX 24

struct embedded {
    struct directory directory;
    struct process process;
    char path[CONFIG_NAME_MAX + 1];
    char *argv[ARGS_MAX];
    char memory_mb[NUMBER_MAX];
    char connections[NUMBER_MAX];
    char item_bytes[NUMBER_MAX];
    char server[ENDPOINT_TEXT_MAX];
    pid_t pid; /* 0 = does not run */
    uint64_t started_us;
    uint32_t pause_ms;
    struct event *child_ended;
    struct event *restart;
};

/* The user that memcached runs as when the daemon is root: the user that the daemon itself is to
 * become, or else Debian's user for it, or one without rights. */
static void choose_user(struct process *process, const char *wanted)
{
    const char *const names[] = {wanted, "memcache", "memcached", "nobody"};
    process->uid = geteuid();
    process->gid = getegid();
    for (size_t i = 0; geteuid() == 0 && i < sizeof names / sizeof names[0]; i++) {
        const struct passwd *user = names[i] == NULL ? NULL : getpwnam(names[i]);
        if (user != NULL) {
            process->change_user = true;
            process->uid = user->pw_uid;
            process->gid = user->pw_gid;
            return;
        }
    }
}

/*
 * Why these arguments:
 *     -R 1000  pipelines are deep; by default memcached writes its answers out every 20 requests.
 *     -t 2     enough for one machine that also runs the proxy.
 *     -c       one connection per worker, as many again while they are renewed, and some for
 *              looking in by hand.
 *     -I       only where values above memcached's usual 1 MB are wanted.
 *     no -M    a full memcached throws out old items. With -M it would refuse new ones instead, and
 *              does so far too early: Debian 12's began at 11 of 64 MB, since growing heads leave
 *              pages behind in each slab class, and never recovered. A child that forgets
 *              everything at its end is a cache anyway; who must not lose lists configures servers
 *              of their own.
 *     -u       only where memcached has to stay root: changing the user itself would clear the
 *              parent-death signal.
 */
static void build_arguments(struct embedded *e, const struct config *config)
{
    size_t n = 0;
    (void)snprintf(e->memory_mb, sizeof e->memory_mb, "%u", config->embedded_memory_mb);
    (void)snprintf(e->connections, sizeof e->connections, "%u", 2 * config->threads + 64);
    (void)snprintf(e->item_bytes, sizeof e->item_bytes, "%u", config->max_value_bytes);
    e->argv[n++] = e->path;
    e->argv[n++] = "-s";
    e->argv[n++] = e->directory.socket_path;
    e->argv[n++] = "-a";
    e->argv[n++] = "0700";
    e->argv[n++] = "-m";
    e->argv[n++] = e->memory_mb;
    e->argv[n++] = "-c";
    e->argv[n++] = e->connections;
    e->argv[n++] = "-t";
    e->argv[n++] = "2";
    e->argv[n++] = "-R";
    e->argv[n++] = "1000";
    if (config->max_value_bytes > 1U << 20) {
        e->argv[n++] = "-I";
        e->argv[n++] = e->item_bytes;
    }
    if (geteuid() == 0 && !e->process.change_user) {
        e->argv[n++] = "-u";
        e->argv[n++] = "root";
    }
    e->argv[n] = NULL;
    e->process.path = e->path;
    e->process.argv = e->argv;
}

static int start_child(struct embedded *e, char error[CONFIG_ERROR_MAX])
{
    pid_t pid = process_start(&e->process, error);
    if (pid < 0) {
        return -1;
    }
    e->pid = pid;
    e->started_us = clock_now().mono_us;
    return 0;
}

/* "exit code 71" or "signal 9". */
static const char *describe_end(int status, char out[32])
{
    if (WIFSIGNALED(status)) {
        (void)snprintf(out, 32, "signal %d", WTERMSIG(status));
    } else {
        (void)snprintf(out, 32, "exit code %d", WEXITSTATUS(status));
    }
    return out;
}

static bool accepts(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    bool connected = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return connected;
}

static int wait_until_accepting(struct embedded *e, char error[CONFIG_ERROR_MAX])
{
    for (int waited_ms = 0; waited_ms < START_TIMEOUT_MS; waited_ms += START_POLL_MS) {
        int status;
        char how[32];
        if (accepts(e->directory.socket_path)) {
            return 0;
        }
        if (waitpid(e->pid, &status, WNOHANG) == e->pid) {
            e->pid = 0;
            (void)snprintf(error, CONFIG_ERROR_MAX, "%s ended as soon as it was started (%s)",
                           e->path, describe_end(status, how));
            return -1;
        }
        (void)poll(NULL, 0, START_POLL_MS);
    }
    (void)snprintf(error, CONFIG_ERROR_MAX, "%s accepts no connections after %d s", e->path,
                   START_TIMEOUT_MS / 1000);
    return -1;
}

static void schedule_restart(struct embedded *e)
{
    struct timeval pause = timeval_of_ms(e->pause_ms);
    (void)event_add(e->restart, &pause);
    e->pause_ms = e->pause_ms * 2 > RESTART_MAX_MS ? RESTART_MAX_MS : e->pause_ms * 2;
}

static void on_restart(evutil_socket_t fd, short what, void *arg)
{
    struct embedded *e = arg;
    char error[CONFIG_ERROR_MAX];
    (void)fd;
    (void)what;
    uid_t owner = e->process.change_user ? e->process.uid : geteuid();
    if (directory_restore(&e->directory, owner, error) != 0 || start_child(e, error) != 0) {
        log_error("embedded memcached cannot be started again: %s; next attempt in %u ms", error,
                  e->pause_ms);
        schedule_restart(e);
        return;
    }
    log_info("embedded memcached runs again, empty (process %d)", (int)e->pid);
}

static void on_child_ended(evutil_socket_t fd, short what, void *arg)
{
    struct embedded *e = arg;
    int status;
    char how[32];
    (void)fd;
    (void)what;
    if (e->pid == 0 || waitpid(e->pid, &status, WNOHANG) != e->pid) {
        return;
    }
    e->pid = 0;
    if (clock_now().mono_us - e->started_us >= LONG_LIFE_S * UINT64_C(1000000)) {
        e->pause_ms = RESTART_MIN_MS;
    }
    log_warn("embedded memcached ended (%s): all lists and values in it are gone; it is started "
             "again in %u ms",
             describe_end(status, how), e->pause_ms);
    schedule_restart(e);
}

/* Watching begins before the wait: a child that ends in between is noticed either way. */
static int watch(struct embedded *e, struct event_base *base, char error[CONFIG_ERROR_MAX])
{
    e->pause_ms = RESTART_MIN_MS;
    e->restart = evtimer_new(base, on_restart, e);
    e->child_ended = evsignal_new(base, SIGCHLD, on_child_ended, e);
    if (e->restart == NULL || e->child_ended == NULL || event_add(e->child_ended, NULL) != 0) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "embedded memcached cannot be watched");
        return -1;
    }
    return 0;
}

static int prepare(struct embedded *e, const struct config *config, const char *user,
                   char error[CONFIG_ERROR_MAX])
{
    bool given;
    if (process_find(config->embedded_memcached, e->path, sizeof e->path) != 0) {
        (void)snprintf(error, CONFIG_ERROR_MAX,
                       "%s not found: install the Debian package memcached or configure a pool",
                       config->embedded_memcached);
        return -1;
    }
    choose_user(&e->process, user);
    if (directory_create(&e->directory, e->process.uid, user != NULL, &given, error) != 0) {
        return -1;
    }
    if (!given) {
        /* A container whose root may not change users. */
        log_warn("%s cannot be given to another user: embedded memcached runs as root",
                 e->directory.path);
        e->process.change_user = false;
    }
    (void)snprintf(e->server, sizeof e->server, "unix:%s", e->directory.socket_path);
    build_arguments(e, config);
    return 0;
}

struct embedded *embedded_start(const struct config *config, struct event_base *base,
                                const char *user, char error[CONFIG_ERROR_MAX])
{
    struct embedded *e = calloc(1, sizeof *e);
    CHECK(e != NULL);
    e->directory.lock_fd = -1;
    if (prepare(e, config, user, error) != 0 || watch(e, base, error) != 0 ||
        start_child(e, error) != 0 || wait_until_accepting(e, error) != 0) {
        embedded_stop(&e);
        return NULL;
    }
    log_info("embedded memcached: %s, %s MB at %s (process %d)", e->path, e->memory_mb, e->server,
             (int)e->pid);
    return e;
}

const char *embedded_server(const struct embedded *embedded)
{
    return embedded->server;
}

void embedded_stop(struct embedded **embedded)
{
    struct embedded *e = *embedded;
    if (e == NULL) {
        return;
    }
    if (e->child_ended != NULL) {
        event_free(e->child_ended);
    }
    if (e->restart != NULL) {
        event_free(e->restart);
    }
    if (e->pid != 0) {
        (void)kill(e->pid, SIGKILL);
        (void)waitpid(e->pid, NULL, 0);
    }
    if (e->directory.socket_path[0] != '\0') {
        directory_remove(&e->directory);
    }
    free(e);
    *embedded = NULL;
}
