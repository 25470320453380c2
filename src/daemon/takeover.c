/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/takeover.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "os/inherited.h"
#include "os/notify.h"
#include "proxy/proxy.h"

/* --- this daemon is the newer one --- */

int takeover_inherit(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    const char *path = d->options.takeover_path;
    d->inherited = inherited_create();
    if (inherited_from_manager(d->inherited, error) != 0 ||
        (path != NULL && inherited_take_over(d->inherited, path, error) != 0)) {
        return daemon_fail_start(d, EX_UNAVAILABLE, error);
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

int takeover_finish(struct daemon *d)
{
    char error[CONFIG_ERROR_MAX];
    const char *left = inherited_left(d->inherited);
    if (left != NULL) {
        (void)snprintf(error, sizeof error, "socket %s is inherited, but no listen names it", left);
        return daemon_fail_start(d, EX_CONFIG, error);
    }
    if (inherited_taken(d->inherited, error) != 0) {
        return daemon_fail_start(d, EX_UNAVAILABLE, error);
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

/* --- this daemon is the older one --- */

void takeover_leave(void *arg, int pid)
{
    struct daemon *d = arg;
    char state[64];
    log_info("process %d takes this one's place", pid);
    atomic_store(&d->replaced, true);
    (void)snprintf(state, sizeof state, "MAINPID=%d", pid);
    notify_send(state);
    (void)kill(getpid(), SIGTERM);
}
