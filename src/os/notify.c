/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

static struct {
    struct sockaddr_un address;
    socklen_t len; /* 0: it has named none */
} manager = {.address = {.sun_family = AF_UNIX}};

void notify_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path == NULL ? 0 : strlen(path);
    if (len > 1 && len < sizeof manager.address.sun_path && (path[0] == '/' || path[0] == '@')) {
        memcpy(manager.address.sun_path, path, len);
        /* A name that is in no file system begins with a NUL. */
        manager.address.sun_path[0] = path[0] == '@' ? '\0' : '/';
        manager.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    }
    (void)unsetenv("NOTIFY_SOCKET");
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
