/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mclistd: reads options and configuration, starts the parts in order, waits for signals, stops the
 * parts in reverse.
 *
 *     SIGTERM        finish what clients asked for (drain_timeout_ms at most), then end
 *     SIGINT         end at once; so does any of the two while finishing
 *     SIGHUP         open the log file anew, and read the configuration anew
 *     SIGUSR1, 2     nothing, but a line in the log: others restart or end at these
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "config/config.h"
#include "config/options.h"
#include "config/tls_files.h"
#include "embedded/embedded.h"
#include "os/descriptors.h"
#include "os/inherited.h"
#include "os/notify.h"
#include "os/prompt.h"
#include "os/user.h"
#include "proxy/listen/listen_set.h"
#include "proxy/preview.h"
#include "proxy/proxy.h"
#include "proxy/reload.h"

/* How long the end of the daemon waits for a log that is not read. */
#define LOG_FLUSH_MS 1000

#define SIGNAL_COUNT 5

struct mclistd {
    struct options options;
    struct config *config;
    struct event_base *base;
    struct inherited *inherited; /* sockets and clients of the daemon before, while they come */
    struct event *watchdog;      /* of the service manager; or NULL */
    struct event *moved;         /* clients that come */
    size_t moved_count;
    struct embedded *embedded;
    struct proxy *proxy;
    struct admin *admin;
    struct os_user user;
    struct event *signals[SIGNAL_COUNT];
    pthread_t drainer;
    struct event *drained; /* the drainer closes drained_pipe when it is done */
    int drained_pipe[2];
    bool draining;
    atomic_bool replaced; /* by another process, which has the sockets */
    struct admin_hooks hooks;
    pthread_mutex_t changing; /* one at a time reloads the configuration, or begins to drain */
};

static const int signal_numbers[SIGNAL_COUNT] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

static int read_config(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    m->config = config_create();
    int code = options_read_config(&m->options, m->config, error);
    if (code != EX_OK) {
        fprintf(stderr, "mclistd: %s\n", error);
    }
    return code;
}

/* Paths and names may have any bytes: what is shown of them does nothing to a terminal. */
static void show(FILE *out, const char *text, bool lines)
{
    for (; *text != '\0'; text++) {
        bool control = (unsigned char)*text < ' ' || *text == 0x7f;
        fputc(control && !(lines && *text == '\n') ? '?' : *text, out);
    }
}

/* Keys of one section come together; the heading is printed when the section changes. */
struct printer {
    char section[1200];
};

static void print_setting(void *arg, const char *section, const char *key, const char *value,
                          const char *origin)
{
    struct printer *printer = arg;
    if (strcmp(printer->section, section) != 0) {
        printf("%s[%s]\n", printer->section[0] == '\0' ? "" : "\n", section);
        (void)snprintf(printer->section, sizeof printer->section, "%s", section);
    }
    printf("%s = ", key);
    show(stdout, value, false);
    printf("%s", origin[0] == '\0' ? "" : " # ");
    show(stdout, origin, false);
    printf("\n");
}

static int refuse_log_file(const char *path)
{
    const char *reason = strerror(errno);
    fprintf(stderr, "mclistd: log_file ");
    show(stderr, path, false);
    fprintf(stderr, " cannot be opened: %s\n", reason);
    return EX_CANTCREAT;
}

/* What a start would refuse as well, though the file itself is in order. */
static int check_names(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    const char *log_file = m->config->log_file;
    int code = EX_OK;
    if (log_file[0] != '\0' && log_check(log_file) != 0) {
        return refuse_log_file(log_file);
    }
    if (tls_files_check(m->config, error) != 0) {
        code = EX_CONFIG;
    } else if (os_user_find(m->config, &m->user, error) != 0) {
        code = EX_NOUSER;
    } else if (listen_set_check_group(m->config->socket_group, error) != 0 ||
               listen_set_check_group(m->config->admin.socket_group, error) != 0) {
        code = EX_UNAVAILABLE;
    }
    if (code != EX_OK) {
        fprintf(stderr, "mclistd: %s\n", error);
    }
    return code;
}

static int report_config(const struct mclistd *m)
{
    const char *path = m->options.config_path;
    if (m->options.more_log > 0) {
        struct printer printer = {""};
        printf("# What the configuration or an option says has a mark behind it; all else is a "
               "default.\n");
        config_print(m->config, print_setting, &printer);
    }
    char *text = NULL;
    size_t len;
    FILE *memory = open_memstream(&text, &len);
    CHECK(memory != NULL);
    size_t unknown = preview_print(m->config, memory);
    CHECK(fclose(memory) == 0);
    show(stderr, text, true);
    free(text);
    fprintf(stderr, "mclistd: the configuration%s", path == NULL ? "" : " ");
    show(stderr, path == NULL ? "" : path, false);
    fprintf(stderr, " is good");
    if (unknown > 0) {
        fprintf(stderr, ", but %zu name%s no address now", unknown,
                unknown == 1 ? " has" : "s have");
    }
    fprintf(stderr, "\n");
    return m->options.probe ? preview_probe(m->config, stderr) : EX_OK;
}

/* --- signals ------------------------------------------------------------------------------ */

/* Threads must leave signals to the main thread. */
static void block_signals(bool block)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaddset(&set, signal_numbers[i]);
    }
    sigaddset(&set, SIGCHLD);
    (void)pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void *drain_thread(void *arg)
{
    struct mclistd *m = arg;
    proxy_drain(m->proxy);
    close(m->drained_pipe[1]); /* wakes the main thread */
    return NULL;
}

static void on_drained(evutil_socket_t fd, short what, void *arg)
{
    struct mclistd *m = arg;
    (void)fd;
    (void)what;
    (void)pthread_join(m->drainer, NULL);
    m->draining = false;
    (void)event_base_loopbreak(m->base);
}

/* In a thread of its own, so that the main thread goes on hearing signals and watching the embedded
 * memcached. */
static void begin_drain(struct mclistd *m)
{
    if (pipe2(m->drained_pipe, O_CLOEXEC) != 0) {
        log_error("pipe: %s; ending at once", strerror(errno));
        (void)event_base_loopbreak(m->base);
        return;
    }
    m->drained = event_new(m->base, m->drained_pipe[0], EV_READ, on_drained, m);
    CHECK(m->drained != NULL && event_add(m->drained, NULL) == 0);
    block_signals(true);
    pthread_mutex_lock(&m->changing);
    m->draining = pthread_create(&m->drainer, NULL, drain_thread, m) == 0;
    pthread_mutex_unlock(&m->changing);
    block_signals(false);
    if (!m->draining) {
        log_error("no thread to finish requests with; ending at once");
        (void)event_base_loopbreak(m->base);
    }
}

/* The proxy cannot be stopped in order while it drains in another thread; the kernel closes what it
 * holds, and the next start takes over a unix socket that no process answers. */
static void end_at_once(struct mclistd *m)
{
    log_warn("ended while requests were being finished");
    embedded_stop(&m->embedded);
    log_flush(LOG_FLUSH_MS);
    _exit(EX_OK);
}

/* The operator may have removed the old file, so standard error gets it too, if that takes it
 * without a wait. */
static void tell_no_log(const char *path, const char *reason)
{
    struct pollfd standard = {.fd = STDERR_FILENO, .events = POLLOUT};
    log_error("log file %s cannot be opened anew: %s; the old one stays in use", path, reason);
    if (poll(&standard, 1, 0) == 1 && (standard.revents & POLLOUT) != 0) {
        fprintf(stderr,
                "mclistd: log file %s cannot be opened anew: %s; the old one stays in use\n", path,
                reason);
    }
}

/* Returns 0, or -1 with the reason in error. In the main thread, and in the admin listener's. */
static int reload_config(void *arg, char error[CONFIG_ERROR_MAX])
{
    struct mclistd *m = arg;
    struct reload_source source = {&m->options,
                                   m->embedded == NULL ? NULL : embedded_server(m->embedded)};
    int rc = -1;
    char state[64];
    pthread_mutex_lock(&m->changing);
    if (m->draining) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "the proxy ends");
    } else {
        (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
                       (unsigned long long)clock_now().mono_us);
        notify_send(state);
        rc = reload(m->proxy, m->config, &source, error);
        notify_send("READY=1");
    }
    pthread_mutex_unlock(&m->changing);
    return rc;
}

/* In the admin listener's thread. */
static void leave(void *arg, int pid)
{
    struct mclistd *m = arg;
    char state[64];
    log_info("process %d takes this one's place", pid);
    atomic_store(&m->replaced, true);
    (void)snprintf(state, sizeof state, "MAINPID=%d", pid);
    notify_send(state);
    (void)kill(getpid(), SIGTERM);
}

static void take_hangup(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    if (log_reopen() != 0) {
        tell_no_log(m->config->log_file, strerror(errno));
    } else {
        log_info("log opened anew");
    }
    if (m->options.config_path != NULL) {
        (void)reload_config(m, error); /* which has logged it */
    }
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    struct mclistd *m = arg;
    (void)what;
    if (number == SIGHUP) {
        take_hangup(m);
        return;
    }
    if (number == SIGUSR1 || number == SIGUSR2) {
        log_info("%s means nothing here: HUP reads the configuration anew, TERM ends the daemon",
                 number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
        return;
    }
    if (m->draining) {
        end_at_once(m);
    }
    if (!atomic_load(&m->replaced)) {
        notify_send("STOPPING=1"); /* else the service goes on */
    }
    if (number == SIGTERM) {
        log_info("SIGTERM: finishing requests, for %u ms at most", m->config->drain_timeout_ms);
        admin_drain(m->admin);
        begin_drain(m);
        return;
    }
    log_info("SIGINT: ending");
    (void)event_base_loopbreak(m->base);
}

/* --- start and stop, in order --------------------------------------------------------------- */

/* An operator who starts the daemon by hand should see why it does not start, log file or not. */
static int fail_start(const struct mclistd *m, int code, const char *text)
{
    log_error("%s", text);
    if (m->config->log_file[0] != '\0') {
        fprintf(stderr, "mclistd: %s\n", text);
    }
    return code;
}

static int start_log(struct mclistd *m)
{
    const char *path = m->config->log_file[0] == '\0' ? NULL : m->config->log_file;
    log_set_format(m->config->log_format);
    if (log_open(path, m->config->log_level) != 0) {
        return refuse_log_file(path);
    }
    int rc = log_start_thread(m->config->log_buffer_bytes);
    if (rc != 0) {
        fprintf(stderr, "mclistd: no thread for the log: %s\n", strerror(rc));
        return EX_OSERR;
    }
    return EX_OK;
}

static int prepare_descriptors(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    return descriptors_prepare(m->config, error) == 0 ? EX_OK : fail_start(m, EX_OSERR, error);
}

static int find_user(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    if (os_user_find(m->config, &m->user, error) != 0) {
        return fail_start(m, EX_NOUSER, error);
    }
    return EX_OK;
}

/* Once ports below 1024, sockets and the embedded memcached's directory are there. */
static int become_user(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    if (m->user.wanted) {
        log_give(m->user.uid, m->user.gid);
    }
    return os_user_become(&m->user, error) == 0 ? EX_OK : fail_start(m, EX_NOPERM, error);
}

static int start_signals(struct mclistd *m)
{
    block_signals(true);
    (void)signal(SIGPIPE, SIG_IGN);
    m->base = event_base_new();
    if (m->base == NULL) {
        return fail_start(m, EX_OSERR, "no event loop can be made");
    }
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        m->signals[i] = evsignal_new(m->base, signal_numbers[i], on_signal, m);
        if (m->signals[i] == NULL || event_add(m->signals[i], NULL) != 0) {
            return fail_start(m, EX_OSERR, "signals cannot be handled");
        }
    }
    return EX_OK;
}

/* What the service manager, or the daemon before, has opened. */
static int inherit(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    const char *path = m->options.takeover_path;
    m->inherited = inherited_create();
    if (inherited_from_manager(m->inherited, error) != 0 ||
        (path != NULL && inherited_take_over(m->inherited, path, error) != 0)) {
        return fail_start(m, EX_UNAVAILABLE, error);
    }
    notify_adopt(inherited_manager(m->inherited));
    return EX_OK;
}

/* The clients of the daemon before come one by one. */
static void on_moved(evutil_socket_t fd, short what, void *arg)
{
    struct mclistd *m = arg;
    struct moved moved;
    int rc;
    (void)fd;
    (void)what;
    while ((rc = inherited_next_client(m->inherited, &moved)) > 0) {
        if (proxy_adopt(m->proxy, &moved) != 0) {
            log_error(
                "a client of the daemon before is closed: a worker has been busy for too long");
            close(moved.fd);
        }
        m->moved_count++;
    }
    if (rc < 0) {
        log_info("the daemon before has ended; it has handed over %zu clients", m->moved_count);
        event_free(m->moved);
        m->moved = NULL;
        proxy_set_receives(m->proxy, false);
        inherited_destroy(&m->inherited);
    }
}

static void do_nothing(struct worker *w, void *arg)
{
    (void)w;
    (void)arg;
}

/* Tells the service manager that this thread and all workers go round their loops. Else it starts
 * the daemon again. */
static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    struct mclistd *m = arg;
    (void)fd;
    (void)what;
    if (m->draining || proxy_ask(m->proxy, do_nothing, NULL) == 0) {
        notify_send("WATCHDOG=1");
    }
}

/* Twice as often as the manager wants it, as sd_watchdog_enabled(3) advises. */
static void start_watchdog(struct mclistd *m)
{
    uint64_t us = notify_watchdog_us() / 2;
    struct timeval interval = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    if (us > 0) {
        m->watchdog = event_new(m->base, -1, EV_PERSIST, on_watchdog, m);
        CHECK(m->watchdog != NULL && event_add(m->watchdog, &interval) == 0);
    }
}

/* Everything has started: the daemon before may go, and clients are served here. */
static int take_place(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    const char *left = inherited_left(m->inherited);
    if (left != NULL) {
        (void)snprintf(error, sizeof error, "socket %s is inherited, but no listen names it", left);
        return fail_start(m, EX_CONFIG, error);
    }
    if (inherited_taken(m->inherited, error) != 0) {
        return fail_start(m, EX_UNAVAILABLE, error);
    }
    proxy_set_receives(m->proxy, inherited_peer(m->inherited) >= 0);
    proxy_serve(m->proxy);
    admin_serve(m->admin);
    if (inherited_peer(m->inherited) < 0) {
        inherited_destroy(&m->inherited);
        return EX_OK;
    }
    m->moved = event_new(m->base, inherited_peer(m->inherited), EV_READ | EV_PERSIST, on_moved, m);
    CHECK(m->moved != NULL && event_add(m->moved, NULL) == 0);
    return EX_OK;
}

static int start_embedded(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    if (m->config->pool_count > 0) {
        return EX_OK;
    }
    m->embedded = embedded_start(m->config, m->base, m->user.wanted ? m->user.name : NULL, error);
    if (m->embedded == NULL) {
        return fail_start(m, EX_UNAVAILABLE, error);
    }
    return config_add_embedded(m->config, embedded_server(m->embedded), error) == 0
               ? EX_OK
               : fail_start(m, EX_SOFTWARE, error);
}

static int start_proxy(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    m->proxy = proxy_start(m->config, m->inherited, error);
    if (m->proxy == NULL) {
        return fail_start(m, EX_UNAVAILABLE, error);
    }
    return EX_OK;
}

static int start_admin(struct mclistd *m)
{
    char error[CONFIG_ERROR_MAX];
    m->hooks = (struct admin_hooks){
        .reload = reload_config, .leave = leave, .arg = m, .has_embedded = m->embedded != NULL};
    if (admin_start(m->config, m->proxy, m->inherited, &m->hooks, &m->admin, error) != 0) {
        return fail_start(m, EX_UNAVAILABLE, error);
    }
    return EX_OK;
}

/* Adds to a text of cap bytes of which n are used; what does not fit is cut. Returns the new n. */
static size_t add_text(char *out, size_t cap, size_t n, const char *before, const char *text)
{
    int added = n < cap ? snprintf(out + n, cap - n, "%s%s", before, text) : 0;
    return added < 0 ? n : n + (size_t)added;
}

static void log_start(const struct mclistd *m)
{
    char names[800] = "";
    size_t n = 0;
    for (size_t i = 0; i < proxy_listen_count(m->proxy); i++) {
        /* Inherited sockets of one address may stand more than once. */
        const char *before = i == 0 ? "" : proxy_listen_name(m->proxy, i - 1);
        if (strcmp(before, proxy_listen_name(m->proxy, i)) == 0) {
            continue;
        }
        n = add_text(names, sizeof names, n, i == 0 ? "" : ", ", proxy_listen_name(m->proxy, i));
    }
    log_info("mclistd " MCLISTD_VERSION " listens on %s, %u thread%s", names, m->config->threads,
             m->config->threads == 1 ? "" : "s");
    for (size_t i = 0; i < admin_listen_count(m->admin); i++) {
        log_info("metrics and status page: %s", admin_listen_name(m->admin, i));
    }
    if (geteuid() == 0) {
        log_warn("runs as root, which it does not need: name a user with -u, or `user =` in "
                 "[proxy]");
    }
    if (m->embedded != NULL) {
        log_warn("no pool is configured: all lists and values are in the embedded memcached, and "
                 "are lost when this daemon ends");
    }
    for (size_t p = 0; p < m->config->pool_count; p++) {
        const struct pool_config *pool = &m->config->pools[p];
        n = 0;
        for (size_t i = 0; i < pool->server_count; i++) {
            n = add_text(names, sizeof names, n, i == 0 ? "" : ", ", pool->servers[i].name);
        }
        log_info("pool %s: %zu server%s: %s", pool->name, pool->server_count,
                 pool->server_count == 1 ? "" : "s", names);
    }
}

/* Each part after those it needs; stop() undoes the same list from the bottom. */
static int start(struct mclistd *m)
{
    int (*const steps[])(struct mclistd *) = {
        start_log,      prepare_descriptors, find_user,   inherit,     start_signals,
        start_embedded, start_proxy,         start_admin, become_user, take_place};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int code = steps[i](m);
        if (code != EX_OK) {
            return code;
        }
    }
    log_start(m);
    return EX_OK;
}

static void stop(struct mclistd *m)
{
    admin_stop(&m->admin);
    if (m->proxy != NULL) {
        proxy_stop(&m->proxy);
    }
    if (m->moved != NULL) {
        event_free(m->moved);
    }
    if (m->watchdog != NULL) {
        event_free(m->watchdog);
    }
    inherited_destroy(&m->inherited);
    embedded_stop(&m->embedded);
    if (m->drained != NULL) {
        event_free(m->drained);
        close(m->drained_pipe[0]);
    }
    /* Freed events leave signals their old effect: the next one would kill. */
    block_signals(true);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (m->signals[i] != NULL) {
            event_free(m->signals[i]);
        }
    }
    if (m->base != NULL) {
        event_base_free(m->base);
        libevent_global_shutdown();
    }
    config_destroy(&m->config);
}

int main(int argc, char **argv)
{
    struct mclistd m = {.changing = PTHREAD_MUTEX_INITIALIZER};
    descriptors_fill_standard();
    notify_init();
    int code = options_parse(argc, argv, &m.options);
    if (code != EX_OK) {
        return code < 0 ? EX_OK : code;
    }
    if (m.options.is_try) {
        return prompt_become(argc, argv);
    }
    code = read_config(&m);
    if (code == EX_OK && m.options.test_only) {
        code = check_names(&m);
        code = code == EX_OK ? report_config(&m) : code;
    } else if (code == EX_OK) {
        code = start(&m);
        if (code == EX_OK) {
            notify_send("READY=1");
            start_watchdog(&m);
            block_signals(false);
            (void)event_base_dispatch(m.base);
            log_info("ended");
        }
    }
    stop(&m);
    log_flush(LOG_FLUSH_MS);
    return code;
}
