/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/slice.h"

static struct {
    struct sockaddr_un address;
    socklen_t len; /* 0: it has named none */
    uint64_t watchdog_us;
    char text[sizeof(struct sockaddr_un) + 24]; /* see notify_describe */
} manager = {.address = {.sun_family = AF_UNIX}};

/* WATCHDOG_PID may name another process than this one (sd_watchdog_enabled(3)). */
static void take_watchdog(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t number;
    bool is_ours =
        pid == NULL || (slice_to_u64(slice_of(pid), &number) && number == (uint64_t)getpid());
    if (us == NULL || !is_ours || !slice_to_u64(slice_of(us), &manager.watchdog_us)) {
        manager.watchdog_us = 0;
    }
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

uint64_t notify_watchdog_us(void)
{
    return manager.watchdog_us;
}

static void set_path(const char *path, size_t len)
{
    if (len > 1 && len < sizeof manager.address.sun_path && (path[0] == '/' || path[0] == '@')) {
        memcpy(manager.address.sun_path, path, len);
        /* A name that is in no file system begins with a NUL. */
        manager.address.sun_path[0] = path[0] == '@' ? '\0' : '/';
        manager.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        (void)snprintf(manager.text, sizeof manager.text, "%.*s %" PRIu64, (int)len, path,
                       manager.watchdog_us);
    }
}

void notify_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    take_watchdog();
    set_path(path, path == NULL ? 0 : strlen(path));
    (void)unsetenv("NOTIFY_SOCKET");
}

const char *notify_describe(void)
{
    return manager.text;
}

void notify_adopt(const char *text)
{
    const char *blank = strrchr(text, ' ');
    if (manager.len == 0 && blank != NULL &&
        slice_to_u64(slice_of(blank + 1), &manager.watchdog_us)) {
        set_path(text, (size_t)(blank - text));
    }
}

void notify_send(const char *lines)
{
    if (manager.len == 0) {
        return;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (const struct sockaddr *)&manager.address, manager.len) < 0) {
        log_warn("the service manager cannot be told: %s", strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}
