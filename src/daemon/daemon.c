/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/daemon.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/log.h"
#include "base/version.h"
#include "config/text.h"
#include "daemon/check.h"
#include "daemon/signals.h"
#include "daemon/takeover.h"
#include "embedded/embedded.h"
#include "os/descriptors.h"
#include "os/inherited.h"
#include "os/notify.h"
#include "proxy/core/shared.h"
#include "proxy/listen/listen_set.h"
#include "proxy/proxy.h"

int daemon_fail_start(const struct daemon *d, int code, const char *text)
{
    log_error("%s", text);
    if (d->config->log_file[0] != '\0') {
        fprintf(stderr, "mclistd: %s\n", text);
    }
    return code;
}

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
    return descriptors_prepare(d->config, error) == 0 ? EX_OK
                                                      : daemon_fail_start(d, EX_OSERR, error);
}

static int find_user(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    if (os_user_find(d->config, &d->user, error) != 0) {
        return daemon_fail_start(d, EX_NOUSER, error);
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
    return os_user_become(&d->user, error) == 0 ? EX_OK : daemon_fail_start(d, EX_NOPERM, error);
}

static int start_embedded(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    if (d->config->pool_count > 0) {
        return EX_OK;
    }
    d->embedded = embedded_start(d->config, d->base, d->user.wanted ? d->user.name : NULL, error);
    if (d->embedded == NULL) {
        return daemon_fail_start(d, EX_UNAVAILABLE, error);
    }
    return config_add_embedded(d->config, embedded_server(d->embedded), error) == 0
               ? EX_OK
               : daemon_fail_start(d, EX_SOFTWARE, error);
}

static int start_proxy(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    d->proxy = proxy_start(d->config, d->inherited, error);
    if (d->proxy == NULL) {
        return daemon_fail_start(d, EX_UNAVAILABLE, error);
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
        return daemon_fail_start(d, EX_UNAVAILABLE, error);
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
