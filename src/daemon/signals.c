/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/signals.h"

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
#include "daemon/daemon.h"
#include "embedded/embedded.h"
#include "os/notify.h"
#include "proxy/proxy.h"
#include "proxy/reload.h"

static const int signal_numbers[SIGNAL_COUNT] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

void signals_block(bool block)
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

int signals_reload(void *arg, char error[CONFIG_ERROR_MAX])
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

int signals_start(struct daemon *d)
{
    signals_block(true);
    (void)signal(SIGPIPE, SIG_IGN);
    d->base = event_base_new();
    if (d->base == NULL) {
        return daemon_fail_start(d, EX_OSERR, "no event loop can be made");
    }
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        d->signals[i] = evsignal_new(d->base, signal_numbers[i], on_signal, d);
        if (d->signals[i] == NULL || event_add(d->signals[i], NULL) != 0) {
            return daemon_fail_start(d, EX_OSERR, "signals cannot be handled");
        }
    }
    return EX_OK;
}

void signals_stop(struct daemon *d)
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
