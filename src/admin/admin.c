/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/admin.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admin/command.h"
#include "admin/exposition.h"
#include "admin/history.h"
#include "admin/http.h"
#include "admin/page.h"
#include "admin/tracer.h"
#include "base/log.h"
#include "proxy/figures.h"
#include "proxy/proxy.h"
#include "proxy/core/shared.h"

struct admin {
    const struct config *config;
    const struct admin_hooks *hooks;
    struct proxy *proxy;
    struct shared *shared; /* the proxy's */
    struct listen_set *listen;
    struct event_base *base;
    struct http *http;
    struct tracer *tracer;
    struct history history;
    struct event second;
    int wake_fd; /* eventfd; -1 */
    struct event wake;
    pthread_t thread;
    bool started;
    atomic_bool draining, stops;
};

/* --- answers --- */

/* Is there a server that works in each pool? Says of which there is none. */
static bool check_pools(const struct shared *shared, struct evbuffer *out)
{
    const struct config *config = shared->config;
    size_t count, at = 0;
    struct server_figures *rows = figures_of_servers(shared, &count);
    bool ready = true;
    for (size_t p = 0; p < config->pool_count; p++) {
        size_t up = 0, first = at;
        for (; at < count && rows[at].pool_index == p; at++) {
            up += server_is_up(&rows[at].stats);
        }
        if (up == 0) {
            evbuffer_add_printf(out, "not ready: pool %s: none of %zu servers is up\n",
                                config->pools[p].name, at - first);
            ready = false;
        }
    }
    free(rows);
    return ready;
}

static void answer_ready(struct admin *a, struct http_answer *answer)
{
    if (atomic_load(&a->draining)) {
        evbuffer_add_printf(answer->body, "not ready: it ends\n");
        answer->status = 503;
    } else if (!check_pools(a->shared, answer->body)) {
        answer->status = 503;
    } else {
        evbuffer_add_printf(answer->body, "ready\n");
    }
}

struct printed_config {
    struct evbuffer *out;
    char section[5 * CONFIG_NAME_MAX]; /* of the line before */
};

/* As a file has it, so that it can be read again. */
static void print_setting(void *arg, const char *section, const char *key, const char *value,
                          const char *origin)
{
    struct printed_config *p = arg;
    if (strcmp(section, p->section) != 0) {
        evbuffer_add_printf(p->out, "%s[%s]\n", p->section[0] == '\0' ? "" : "\n", section);
        (void)snprintf(p->section, sizeof p->section, "%s", section);
    }
    evbuffer_add_printf(p->out, "%s = %s", key, value);
    evbuffer_add_printf(p->out, "%s%s\n", origin[0] == '\0' ? "" : "  # ", origin);
}

static void answer_config(struct admin *a, struct http_answer *answer)
{
    struct printed_config printed = {.out = answer->body};
    if (a->config->path[0] != '\0') {
        evbuffer_add_printf(answer->body, "# %s\n", a->config->path);
    }
    config_print(a->config, print_setting, &printed);
}

static void answer_metrics(struct admin *a, const struct http_request *request,
                           struct http_answer *answer)
{
    static const char open[] = "application/openmetrics-text";
    struct slice accept = request->accept;
    bool is_open = accept.len > 0 && memmem(accept.p, accept.len, open, sizeof open - 1) != NULL;
    answer->type = is_open ? EXPOSITION_TYPE_OPEN : EXPOSITION_TYPE;
    exposition_print(a->shared, is_open, answer->body);
}

static void answer_path(struct admin *a, const struct http_request *request,
                        struct http_answer *answer)
{
    struct slice path = request->path;
    if (slice_equal(path, SLICE_LIT("/")) || slice_equal(path, SLICE_LIT("/status"))) {
        answer->type = PAGE_TYPE;
        page_print(a->shared, &a->history, answer->body);
    } else if (slice_equal(path, SLICE_LIT("/metrics"))) {
        answer_metrics(a, request, answer);
    } else if (slice_equal(path, SLICE_LIT("/live"))) {
        evbuffer_add_printf(answer->body, "live\n");
    } else if (slice_equal(path, SLICE_LIT("/ready"))) {
        answer_ready(a, answer);
    } else if (slice_equal(path, SLICE_LIT("/config"))) {
        answer_config(a, answer);
    } else {
        answer->status = 404;
        evbuffer_add_printf(answer->body,
                            "there are /, /status, /metrics, /live, /ready and /config\n");
    }
}

/* The configuration stays as it is while an answer is made of it. */
static void answer(void *arg, const struct http_request *request, struct http_answer *answer)
{
    struct admin *a = arg;
    pthread_mutex_lock(&a->shared->asking.turn);
    answer_path(a, request, answer);
    pthread_mutex_unlock(&a->shared->asking.turn);
}

static void obey(void *arg, struct slice line, struct http_peer *peer, struct evbuffer *out)
{
    struct admin *a = arg;
    struct command_context context = {
        a->proxy, a->hooks, a->listen, a->http, peer, a->tracer, atomic_load(&a->draining)};
    command_run(&context, line, out);
}

static const struct http_handlers handlers = {answer, obey};

/* --- the thread --- */

static void take_limits(struct admin *a)
{
    pthread_mutex_lock(&a->shared->asking.turn);
    http_set_limits(a->http, a->config->admin.max_connections, a->config->admin.timeout_ms);
    pthread_mutex_unlock(&a->shared->asking.turn);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
    struct admin *a = arg;
    (void)fd;
    (void)what;
    history_sample(&a->history, a->shared);
    take_limits(a); /* a reload may have changed them */
}

/* To serve, or to stop. */
static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct admin *a = arg;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) > 0 && !atomic_load(&a->stops)) {
        http_serve(a->http);
    } else {
        (void)event_base_loopbreak(a->base);
    }
}

static void wake(struct admin *a)
{
    uint64_t one = 1;
    CHECK(write(a->wake_fd, &one, sizeof one) == (ssize_t)sizeof one);
}

static void *work(void *arg)
{
    struct admin *a = arg;
    (void)event_base_dispatch(a->base);
    return NULL;
}

/* Returns 0 or an errno. */
static int start_thread(struct admin *a)
{
    struct timeval second = {1, 0};
    a->base = event_base_new();
    a->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (a->base == NULL || a->wake_fd < 0) {
        return errno;
    }
    event_assign(&a->second, a->base, -1, EV_PERSIST, on_second, a);
    event_add(&a->second, &second);
    event_assign(&a->wake, a->base, a->wake_fd, EV_READ | EV_PERSIST, on_wake, a);
    event_add(&a->wake, NULL);
    history_sample(&a->history, a->shared);
    a->tracer = tracer_create(a->base, a->proxy);
    a->http = http_start(a->base, a->listen, &handlers, a);
    take_limits(a);
    int rc = pthread_create(&a->thread, NULL, work, a);
    a->started = rc == 0;
    return rc;
}

int admin_start(const struct config *config, struct proxy *proxy, struct inherited *inherited,
                const struct admin_hooks *hooks, struct admin **out, char error[CONFIG_ERROR_MAX])
{
    const struct admin_config *own = &config->admin;
    struct socket_rights rights = {own->socket_mode, own->socket_group};
    *out = NULL;
    if (own->listen.count == 0) {
        return 0;
    }
    struct admin *a = calloc(1, sizeof *a);
    CHECK(a != NULL);
    a->config = config;
    a->hooks = hooks;
    a->proxy = proxy;
    a->shared = proxy_shared(proxy);
    a->wake_fd = -1;
    struct listen_part part = {&own->listen, NULL, NULL};
    a->listen = listen_set_open(&part, 1, &rights, 1, inherited, error);
    int rc = a->listen == NULL ? 0 : start_thread(a);
    if (rc != 0) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "cannot start the admin thread: %s", strerror(rc));
    }
    if (!a->started) {
        admin_stop(&a);
        return -1;
    }
    *out = a;
    return 0;
}

void admin_serve(struct admin *a)
{
    if (a != NULL) {
        listen_set_share(a->listen, false);
        wake(a);
    }
}

void admin_drain(struct admin *a)
{
    if (a != NULL) {
        atomic_store(&a->draining, true);
    }
}

void admin_stop(struct admin **slot)
{
    struct admin *a = *slot;
    *slot = NULL;
    if (a == NULL) {
        return;
    }
    if (a->started) {
        atomic_store(&a->stops, true);
        wake(a);
        pthread_join(a->thread, NULL);
    }
    if (a->http != NULL) {
        http_stop(&a->http);
        tracer_destroy(&a->tracer);
        event_del(&a->second);
        event_del(&a->wake);
    }
    if (a->base != NULL) {
        event_base_free(a->base);
    }
    if (a->wake_fd >= 0) {
        close(a->wake_fd);
    }
    listen_set_close(&a->listen);
    free(a);
}

const struct listen_set *admin_listens(const struct admin *a)
{
    return a == NULL ? NULL : a->listen;
}
