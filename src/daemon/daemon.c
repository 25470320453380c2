/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "config/text.h"
#include "daemon/check.h"
#include "embedded/embedded.h"
#include "os/descriptors.h"
#include "os/inherited.h"
#include "os/notify.h"
#include "proxy/core/shared.h"
#include "proxy/listen/listen_set.h"
#include "proxy/proxy.h"
#include "proxy/reload.h"

/* A step of the start has failed: says why, in the log and, where that is a file, on standard error
 * as well, for the operator who starts the daemon by hand. Returns code. */
static int fail_start(const struct daemon *d, int code, const char *text)
{
    log_error("%s", text);
    if (d->config->log_file[0] != '\0') {
        fprintf(stderr, "mclistd: %s\n", text);
    }
    return code;
}

/* ---- signals ----
 *
 *     SIGTERM        finish what clients asked for (drain_timeout_ms at most), then end
 *     SIGINT         end at once; so does any of the two while finishing
 *     SIGHUP         open the log file anew, and read the configuration anew
 *     SIGUSR1, 2     nothing, but a line in the log: others restart or end at these
 */

static const int signal_numbers[SIGNAL_COUNT] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

/* In the main thread. */
static void signals_block(bool block)
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
    struct daemon *d = arg;
    proxy_drain(d->proxy);
    close(d->drained_pipe[1]); /* wakes the main thread */
    return NULL;
}

static void on_drained(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *d = arg;
    (void)fd;
    (void)what;
    (void)pthread_join(d->drainer, NULL);
    d->draining = false;
    (void)event_base_loopbreak(d->base);
}

/* In a thread of its own, so that the main thread goes on hearing signals and watching the embedded
 * memcached. */
static void begin_drain(struct daemon *d)
{
    if (pipe2(d->drained_pipe, O_CLOEXEC) != 0) {
        log_error("pipe: %s; ending at once", strerror(errno));
        (void)event_base_loopbreak(d->base);
        return;
    }
    d->drained = event_new(d->base, d->drained_pipe[0], EV_READ, on_drained, d);
    CHECK(d->drained != NULL && event_add(d->drained, NULL) == 0);
    signals_block(true);
    pthread_mutex_lock(&d->changing);
    d->draining = pthread_create(&d->drainer, NULL, drain_thread, d) == 0;
    pthread_mutex_unlock(&d->changing);
    signals_block(false);
    if (!d->draining) {
        log_error("no thread to finish requests with; ending at once");
        (void)event_base_loopbreak(d->base);
    }
}

/* The proxy cannot be stopped in order while it drains in another thread; the kernel closes what it
 * holds, and the next start takes over a unix socket that no process answers. */
static void end_at_once(struct daemon *d)
{
    log_warn("ended while requests were being finished");
    embedded_stop(&d->embedded);
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

/* What SIGHUP does to the configuration. arg: the struct daemon. Returns 0, or -1 with the reason
 * in error. Any thread. */
static int signals_reload(void *arg, char error[CONFIG_ERROR_MAX])
{
    struct daemon *d = arg;
    struct reload_source source = {&d->options,
                                   d->embedded == NULL ? NULL : embedded_server(d->embedded)};
    int rc = -1;
    char state[64];
    pthread_mutex_lock(&d->changing);
    if (d->draining) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "the proxy ends");
    } else {
        (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
                       (unsigned long long)clock_now().mono_us);
        notify_send(state);
        rc = reload(d->proxy, d->config, &source, error);
        notify_send("READY=1");
    }
    pthread_mutex_unlock(&d->changing);
    return rc;
}

static void take_hangup(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    if (log_reopen() != 0) {
        tell_no_log(d->config->log_file, strerror(errno));
    } else {
        log_info("log opened anew");
    }
    if (d->options.config_path != NULL) {
        (void)signals_reload(d, error); /* which has logged it */
    }
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    struct daemon *d = arg;
    (void)what;
    if (number == SIGHUP) {
        take_hangup(d);
        return;
    }
    if (number == SIGUSR1 || number == SIGUSR2) {
        log_info("%s means nothing here: HUP reads the configuration anew, TERM ends the daemon",
                 number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
        return;
    }
    if (d->draining) {
        end_at_once(d);
    }
    if (!atomic_load(&d->replaced)) {
        notify_send("STOPPING=1"); /* else the service goes on */
    }
    if (number == SIGTERM) {
        log_info("SIGTERM: finishing requests, for %u ms at most", d->config->drain_timeout_ms);
        admin_drain(d->admin);
        begin_drain(d);
        return;
    }
    log_info("SIGINT: ending");
    (void)event_base_loopbreak(d->base);
}

/* Makes the main loop, in which signals are handled; they are blocked until signals_block(false):
 * threads that are started meanwhile leave them to the main thread. */
static int signals_start(struct daemon *d)
{
    signals_block(true);
    (void)signal(SIGPIPE, SIG_IGN);
    d->base = event_base_new();
    if (d->base == NULL) {
        return fail_start(d, EX_OSERR, "no event loop can be made");
    }
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        d->signals[i] = evsignal_new(d->base, signal_numbers[i], on_signal, d);
        if (d->signals[i] == NULL || event_add(d->signals[i], NULL) != 0) {
            return fail_start(d, EX_OSERR, "signals cannot be handled");
        }
    }
    return EX_OK;
}

/* Signals stay blocked: the next one would have its old effect, and kill. */
static void signals_stop(struct daemon *d)
{
    if (d->drained != NULL) {
        event_free(d->drained);
        close(d->drained_pipe[0]);
    }
    /* Freed events leave signals their old effect: the next one would kill. */
    signals_block(true);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (d->signals[i] != NULL) {
            event_free(d->signals[i]);
        }
    }
}

/* ---- this daemon takes the place of another one, or of the service manager ----
 *
 * That one has opened its sockets. What goes over the wire: os/inherited.h.
 */

/* Gets what the service manager, or the daemon of --takeover, has opened. */
static int takeover_inherit(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    const char *path = d->options.takeover_path;
    d->inherited = inherited_create();
    if (inherited_from_manager(d->inherited, error) != 0 ||
        (path != NULL && inherited_take_over(d->inherited, path, error) != 0)) {
        return fail_start(d, EX_UNAVAILABLE, error);
    }
    notify_adopt(inherited_manager(d->inherited));
    return EX_OK;
}

/* The clients of the daemon before come one by one. */
static void on_moved(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *d = arg;
    struct moved moved;
    int rc;
    (void)fd;
    (void)what;
    while ((rc = inherited_next_client(d->inherited, &moved)) > 0) {
        if (proxy_adopt(d->proxy, &moved) != 0) {
            log_error(
                "a client of the daemon before is closed: a worker has been busy for too long");
            close(moved.fd);
        }
        d->moved_count++;
    }
    if (rc < 0) {
        log_info("the daemon before has ended; it has handed over %zu clients", d->moved_count);
        event_free(d->moved);
        d->moved = NULL;
        proxy_set_receives(d->proxy, false);
        inherited_destroy(&d->inherited);
    }
}

/* Everything has started: the daemon before may go, and clients are served here. Those of the
 * daemon before come one by one, in the main loop. */
static int takeover_finish(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    const char *left = inherited_left(d->inherited);
    if (left != NULL) {
        (void)snprintf(error, sizeof error, "socket %s is inherited, but no listen names it", left);
        return fail_start(d, EX_CONFIG, error);
    }
    if (inherited_taken(d->inherited, error) != 0) {
        return fail_start(d, EX_UNAVAILABLE, error);
    }
    proxy_set_receives(d->proxy, inherited_peer(d->inherited) >= 0);
    proxy_serve(d->proxy);
    admin_serve(d->admin);
    if (inherited_peer(d->inherited) < 0) {
        inherited_destroy(&d->inherited);
        return EX_OK;
    }
    d->moved = event_new(d->base, inherited_peer(d->inherited), EV_READ | EV_PERSIST, on_moved, d);
    CHECK(d->moved != NULL && event_add(d->moved, NULL) == 0);
    return EX_OK;
}

/* ---- another one takes its place ---- */

/* Process pid serves from now on: this one finishes what clients asked for, and ends. arg: the
 * struct daemon. Any thread. */
static void takeover_leave(void *arg, int pid)
{
    struct daemon *d = arg;
    char state[64];
    log_info("process %d takes this one's place", pid);
    atomic_store(&d->replaced, true);
    (void)snprintf(state, sizeof state, "MAINPID=%d", pid);
    notify_send(state);
    (void)kill(getpid(), SIGTERM);
}

/* ---- starting and ending ---- */

static int start_log(struct daemon *d)
{
    const char *path = d->config->log_file[0] == '\0' ? NULL : d->config->log_file;
    log_set_format(d->config->log_format);
    if (log_open(path, d->config->log_level) != 0) {
        return check_refuse_log(path);
    }
    int rc = log_start_thread(d->config->log_buffer_bytes);
    if (rc != 0) {
        fprintf(stderr, "mclistd: no thread for the log: %s\n", strerror(rc));
        return EX_OSERR;
    }
    return EX_OK;
}

static int prepare_descriptors(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    return descriptors_prepare(d->config, error) == 0 ? EX_OK : fail_start(d, EX_OSERR, error);
}

static int find_user(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    if (os_user_find(d->config, &d->user, error) != 0) {
        return fail_start(d, EX_NOUSER, error);
    }
    return EX_OK;
}

/* Once ports below 1024, sockets and the embedded memcached's directory are there. */
static int become_user(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    if (d->user.wanted) {
        log_give(d->user.uid, d->user.gid);
    }
    return os_user_become(&d->user, error) == 0 ? EX_OK : fail_start(d, EX_NOPERM, error);
}

static int start_embedded(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    if (d->config->pool_count > 0) {
        return EX_OK;
    }
    d->embedded = embedded_start(d->config, d->base, d->user.wanted ? d->user.name : NULL, error);
    if (d->embedded == NULL) {
        return fail_start(d, EX_UNAVAILABLE, error);
    }
    return config_add_embedded(d->config, embedded_server(d->embedded), error) == 0
               ? EX_OK
               : fail_start(d, EX_SOFTWARE, error);
}

static int start_proxy(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    d->proxy = proxy_start(d->config, d->inherited, error);
    if (d->proxy == NULL) {
        return fail_start(d, EX_UNAVAILABLE, error);
    }
    return EX_OK;
}

static int start_admin(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    d->hooks = (struct admin_hooks){.reload = signals_reload,
                                    .leave = takeover_leave,
                                    .arg = d,
                                    .has_embedded = d->embedded != NULL};
    if (admin_start(d->config, d->proxy, d->inherited, &d->hooks, &d->admin, error) != 0) {
        return fail_start(d, EX_UNAVAILABLE, error);
    }
    return EX_OK;
}

/* Adds to a text of cap bytes of which n are used; what does not fit is cut. Returns the new n. */
static size_t add_text(char *out, size_t cap, size_t n, const char *before, const char *text)
{
    int added = n < cap ? snprintf(out + n, cap - n, "%s%s", before, text) : 0;
    return added < 0 ? n : n + (size_t)added;
}

/* A client that knows no list verbs finds nothing there, and no answer tells it why. */
static void say_where_no_bridge_is(const struct config *config)
{
    char names[512] = "", prefix[CONFIG_PREFIX_TEXT_MAX];
    size_t n = 0;
    for (size_t i = 0; i < config->list_count; i++) {
        const struct list_policy *policy = &config->lists[i];
        if (policy->prefix_len > 0 && policy->bridge == BRIDGE_NO) {
            n = add_text(names, sizeof names, n, n == 0 ? "" : ", ",
                         config_prefix_text(policy, prefix));
        }
    }
    if (n > 0) {
        log_info("lists under %s have no bridge: memcached's own verbs see plain items there",
                 names);
    }
}

static void log_start(const struct daemon *d)
{
    char names[800] = "";
    size_t n = 0;
    const struct listen_set *listen = proxy_shared(d->proxy)->listen;
    for (size_t i = 0; i < listen_set_count(listen); i++) {
        /* Inherited sockets of one address may stand more than once. */
        const char *before = i == 0 ? "" : listen_set_name(listen, i - 1);
        if (strcmp(before, listen_set_name(listen, i)) != 0) {
            n = add_text(names, sizeof names, n, i == 0 ? "" : ", ", listen_set_name(listen, i));
        }
    }
    log_info("mclistd " MCLISTD_VERSION " listens on %s, %u thread%s", names, d->config->threads,
             d->config->threads == 1 ? "" : "s");
    const struct listen_set *pages = admin_listens(d->admin);
    for (size_t i = 0; pages != NULL && i < listen_set_count(pages); i++) {
        log_info("metrics and status page: %s", listen_set_name(pages, i));
    }
    if (geteuid() == 0) {
        log_warn("runs as root, which it does not need: name a user with -u, or `user =` in "
                 "[proxy]");
    }
    if (d->embedded != NULL) {
        log_warn("no pool is configured: all lists and values are in the embedded memcached, and "
                 "are lost when this daemon ends");
    }
    for (size_t p = 0; p < d->config->pool_count; p++) {
        const struct pool_config *pool = &d->config->pools[p];
        n = 0;
        for (size_t i = 0; i < pool->server_count; i++) {
            n = add_text(names, sizeof names, n, i == 0 ? "" : ", ", pool->servers[i].name);
        }
        log_info("pool %s: %zu server%s: %s", pool->name, pool->server_count,
                 pool->server_count == 1 ? "" : "s", names);
    }
    if (d->config->allow_flush_all == FLUSH_ALL_EMBEDDED) {
        log_info("flush_all is refused: with allow_flush_all = yes clients may empty all servers, "
                 "lists included, with keep_lists those of plain keys");
    }
    say_where_no_bridge_is(d->config);
}

/* Each part after those it needs; daemon_stop undoes the same list from the bottom. */
int daemon_start(struct daemon *d)
{
    int (*const steps[])(struct daemon *) = {
        start_log,      prepare_descriptors, find_user,   takeover_inherit, signals_start,
        start_embedded, start_proxy,         start_admin, become_user,      takeover_finish};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int code = steps[i](d);
        if (code != EX_OK) {
            return code;
        }
    }
    log_start(d);
    return EX_OK;
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
    struct daemon *d = arg;
    (void)fd;
    (void)what;
    if (d->draining || proxy_ask(d->proxy, do_nothing, NULL) == 0) {
        notify_send("WATCHDOG=1");
    }
}

/* Twice as often as the manager wants it, as sd_watchdog_enabled(3) advises. */
static void start_watchdog(struct daemon *d)
{
    uint64_t us = notify_watchdog_us() / 2;
    struct timeval interval = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    if (us > 0) {
        d->watchdog = event_new(d->base, -1, EV_PERSIST, on_watchdog, d);
        CHECK(d->watchdog != NULL && event_add(d->watchdog, &interval) == 0);
    }
}

void daemon_run(struct daemon *d)
{
    notify_send("READY=1");
    start_watchdog(d);
    signals_block(false);
    (void)event_base_dispatch(d->base);
    log_info("ended");
}

void daemon_stop(struct daemon *d)
{
    admin_stop(&d->admin);
    if (d->proxy != NULL) {
        proxy_stop(&d->proxy);
    }
    if (d->moved != NULL) {
        event_free(d->moved);
    }
    if (d->watchdog != NULL) {
        event_free(d->watchdog);
    }
    inherited_destroy(&d->inherited);
    embedded_stop(&d->embedded);
    signals_stop(d);
    if (d->base != NULL) {
        event_base_free(d->base);
        libevent_global_shutdown();
    }
    config_destroy(&d->config);
}
