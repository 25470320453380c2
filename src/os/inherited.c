/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "config/text.h"

/* The first one of the service manager (SD_LISTEN_FDS_START). */
#define MANAGER_FIRST 3
/* More sockets than any configuration has: of 64 workers on 32 addresses. */
#define SOCKETS_MAX 4096
/* How long the other daemon may take for an answer. */
#define ANSWER_S 10
#define LINE_MAX_BYTES 512
/* Room for one client: the line, and what it has sent. */
#define CLIENT_BYTES (LINE_MAX_BYTES + INHERITED_INPUT_MAX)

struct socket {
    int fd; /* -1: found */
    bool lent;
};

struct inherited {
    struct socket *sockets;
    size_t count;
    int peer;                /* the connection to the other daemon; -1 */
    char text[CLIENT_BYTES]; /* of the client that is to be taken next */
    size_t used;
    int client; /* its socket; -1 */
    char manager[LINE_MAX_BYTES];
    char left[NI_MAXHOST + NI_MAXSERV + 8];
};

struct inherited *inherited_create(void)
{
    struct inherited *h = calloc(1, sizeof *h);
    CHECK(h != NULL);
    h->peer = h->client = -1;
    return h;
}

void inherited_destroy(struct inherited **slot)
{
    struct inherited *h = *slot;
    *slot = NULL;
    if (h == NULL) {
        return;
    }
    for (size_t i = 0; i < h->count; i++) {
        if (h->sockets[i].fd >= 0) {
            close(h->sockets[i].fd);
        }
    }
    if (h->peer >= 0) {
        close(h->peer);
    }
    if (h->client >= 0) {
        close(h->client);
    }
    free(h->sockets);
    free(h);
}

/* Takes fd over. Returns 0, or -1: it is no socket that listens. */
static int add(struct inherited *h, int fd, bool lent)
{
    int listens = 0;
    socklen_t len = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || listens == 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 || h->count == SOCKETS_MAX) {
        close(fd);
        return -1;
    }
    h->sockets = realloc(h->sockets, (h->count + 1) * sizeof *h->sockets);
    CHECK(h->sockets != NULL);
    h->sockets[h->count++] = (struct socket){fd, lent};
    return 0;
}

/* --- the service manager --- */

int inherited_from_manager(struct inherited *h, char error[CONFIG_ERROR_MAX])
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t number = 0, sockets = 0;
    int rc = 0;
    if (pid != NULL && count != NULL && slice_to_u64(slice_of(pid), &number) &&
        number == (uint64_t)getpid() && slice_to_u64(slice_of(count), &sockets)) {
        for (uint64_t i = 0; i < sockets && rc == 0; i++) {
            if (add(h, MANAGER_FIRST + (int)i, true) != 0) {
                rc = config_fail(error,
                                 "descriptor %d of the service manager is no stream socket that "
                                 "listens",
                                 MANAGER_FIRST + (int)i);
            }
        }
    }
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return rc;
}

/* --- another daemon --- */

static int fail_peer(const char *path, const char *what, char *error)
{
    return config_fail(error, "--takeover %s: %s: %s", path, what,
                       errno == EAGAIN ? "no answer" : strerror(errno));
}

static int connect_to(struct inherited *h, const char *path, char *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {ANSWER_S, 0};
    if (strlen(path) >= sizeof address.sun_path) {
        return config_fail(error, "--takeover %s: the path is longer than %zu bytes", path,
                           sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, strlen(path));
    h->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->peer < 0 ||
        setsockopt(h->peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(h->peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        connect(h->peer, (const struct sockaddr *)&address, sizeof address) != 0) {
        return fail_peer(path, "no connection", error);
    }
    return 0;
}

static int say(struct inherited *h, const char *line)
{
    size_t len = strlen(line);
    return send(h->peer, line, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

/* Sends the bytes with that many descriptors, SOCKETS_PER_MESSAGE at most. Returns as sendmsg. */
static ssize_t send_with(int peer, struct iovec *io, size_t io_count, const int *fds, size_t count,
                         int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SOCKETS_PER_MESSAGE * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = io,
                             .msg_iovlen = io_count,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    return sendmsg(peer, &message, MSG_NOSIGNAL | flags);
}

/* Receives up to cap bytes with up to SOCKETS_PER_MESSAGE descriptors, *count of them. Returns as
 * recvmsg. */
static ssize_t receive(int peer, char *text, size_t cap, int fds[SOCKETS_PER_MESSAGE],
                       size_t *count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SOCKETS_PER_MESSAGE * sizeof(int))];
    } control;
    struct iovec io = {text, cap};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    *count = 0;
    ssize_t n = recvmsg(peer, &message, MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&message); c != NULL;
         c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_type == SCM_RIGHTS) {
            *count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fds, CMSG_DATA(c), *count * sizeof(int));
        }
    }
    return n;
}

/* One message: its bytes, behind which there is room for a NUL, and its sockets, which are added.
 * Returns the number of bytes, 0 at the end, or -1 with errno. */
static ssize_t take_message(struct inherited *h, char *text, size_t bytes_max)
{
    int fds[SOCKETS_PER_MESSAGE];
    size_t count;
    ssize_t n = receive(h->peer, text, bytes_max, fds, &count);
    for (size_t i = 0; i < count; i++) {
        (void)add(h, fds[i], (ssize_t)i < n && text[i] == SOCKET_LENT);
    }
    text[n < 0 ? 0 : n] = '\0';
    return n;
}

int inherited_take_over(struct inherited *h, const char *path, char error[CONFIG_ERROR_MAX])
{
    char text[LINE_MAX_BYTES];
    ssize_t n;
    if (connect_to(h, path, error) != 0) {
        return -1;
    }
    if (say(h, "takeover\n") != 0) {
        return fail_peer(path, "nothing can be asked", error);
    }
    do {
        n = take_message(h, text, sizeof text - 1);
        if (n < 0) {
            return fail_peer(path, "no sockets", error);
        }
    } while (n > 0 && (text[0] == SOCKET_OWN || text[0] == SOCKET_LENT) && text[n - 1] != '\n');
    if (n > 0 && strncmp(text, "ERROR ", 6) == 0 && text[n - 1] == '\n') {
        return config_fail(error, "--takeover %s: %.*s", path, (int)n - 1, text);
    }
    if (n == 0 || text[n - 1] != '\n' || h->count == 0) {
        return config_fail(
            error, "--takeover %s: no sockets: is that an admin listener of mclistd?", path);
    }
    (void)snprintf(h->manager, sizeof h->manager, "%.*s", (int)n - 1, text);
    return 0;
}

const char *inherited_manager(const struct inherited *h)
{
    return h->manager;
}

int inherited_taken(struct inherited *h, char error[CONFIG_ERROR_MAX])
{
    static const char good[] = "OK\n";
    char text[LINE_MAX_BYTES] = "";
    size_t n = sizeof good - 1;
    if (h->peer < 0) {
        return 0;
    }
    /* No more bytes than these: what follows brings the first client. */
    if (say(h, "taken\n") != 0 || take_message(h, text, n) < 0) {
        return config_fail(error, "the daemon before cannot be told: %s", strerror(errno));
    }
    if (strcmp(text, good) != 0) {
        bool silent = text[0] == '\0' || take_message(h, text + n, sizeof text - n - 1) < 0;
        return config_fail(error, "the daemon before does not leave: %.200s",
                           silent ? "it has waited for too long" : text);
    }
    (void)fcntl(h->peer, F_SETFL, fcntl(h->peer, F_GETFL) | O_NONBLOCK);
    return 0;
}

/* --- its sockets, by the older one --- */

int inherited_send_parcel(struct parcel *p)
{
    struct iovec io = {p->kinds, p->count};
    ssize_t n = p->count == 0 ? 0 : send_with(p->peer, &io, 1, p->sockets, p->count, 0);
    int rc = n == (ssize_t)p->count ? 0 : -1;
    p->count = 0;
    return rc;
}

int inherited_pack(struct parcel *p, int fd, char kind)
{
    p->sockets[p->count] = fd;
    p->kinds[p->count++] = kind;
    return p->count == SOCKETS_PER_MESSAGE ? inherited_send_parcel(p) : 0;
}

/* --- its clients --- */

static const char *const protocol_words[] = {
    [MOVED_TEXT] = "", [MOVED_BINARY] = "-binary", [MOVED_NEW] = "-new"};

/* What stands behind the first word; what is not known is text. */
static enum moved_protocol protocol_of(struct slice word)
{
    for (int p = MOVED_NEW; p > MOVED_TEXT; p--) {
        struct slice end = slice_of(protocol_words[p]);
        if (word.len >= end.len &&
            slice_equal(slice_make(word.p + word.len - end.len, end.len), end)) {
            return (enum moved_protocol)p;
        }
    }
    return MOVED_TEXT;
}

int inherited_send_client(int peer, const struct moved *moved)
{
    char line[LINE_MAX_BYTES];
    int len = snprintf(line, sizeof line, "%s%s %s %zu\n", moved->needs_login ? "login" : "open",
                       protocol_words[moved->protocol], moved->listener, moved->input.len);
    CHECK(len > 0 && (size_t)len < sizeof line && moved->input.len <= INHERITED_INPUT_MAX);
    struct iovec io[] = {{line, (size_t)len}, {(char *)moved->input.p, moved->input.len}};
    ssize_t n = send_with(peer, io, moved->input.len > 0 ? 2 : 1, &moved->fd, 1, MSG_DONTWAIT);
    if (n >= 0 && n != (ssize_t)((size_t)len + moved->input.len)) {
        errno = EPROTO; /* a part of it is of no use; the kernel takes so little whole or not */
        return -1;
    }
    return n < 0 ? -1 : 0;
}

int inherited_peer(const struct inherited *h)
{
    return h->peer;
}

/* Is a whole client there? Cuts its line into words. *len: of line and input. */
static bool read_client(struct inherited *h, struct moved *moved, size_t *len)
{
    char *end = memchr(h->text, '\n', h->used);
    uint64_t bytes;
    if (end == NULL) {
        return false;
    }
    char *name = memchr(h->text, ' ', (size_t)(end - h->text));
    char *number = name == NULL ? NULL : memrchr(name + 1, ' ', (size_t)(end - name) - 1);
    if (number == NULL ||
        !slice_to_u64(slice_make(number + 1, (size_t)(end - number) - 1), &bytes) ||
        bytes > INHERITED_INPUT_MAX || (size_t)(h->text + h->used - end - 1) < bytes) {
        return false;
    }
    *number = '\0';
    *moved = (struct moved){.fd = h->client,
                            .needs_login = h->text[0] == 'l',
                            .protocol = protocol_of(slice_make(h->text, (size_t)(name - h->text))),
                            .listener = name + 1,
                            .input = slice_make(end + 1, (size_t)bytes)};
    *len = (size_t)(end + 1 - h->text) + (size_t)bytes;
    return true;
}

int inherited_next_client(struct inherited *h, struct moved *moved)
{
    int fds[SOCKETS_PER_MESSAGE];
    size_t count, len;
    if (h->client < 0) {
        h->used = 0; /* the one before has been taken */
    }
    while (h->used < sizeof h->text) {
        ssize_t n = receive(h->peer, h->text + h->used, sizeof h->text - h->used, fds, &count);
        if (n <= 0) {
            return n < 0 && errno == EAGAIN ? 0 : -1;
        }
        for (size_t i = 0; i < count; i++) {
            if (h->client >= 0) {
                close(h->client); /* what came before is no client */
            }
            h->client = fds[i];
        }
        if (h->used == 0 && count == 0) {
            log_error("a client of the daemon before is lost: there is no descriptor for it");
            continue;
        }
        h->used += (size_t)n;
        if (h->client >= 0 && read_client(h, moved, &len) && len == h->used) {
            h->client = -1;
            return 1;
        }
    }
    return -1;
}

/* --- which there are --- */

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family) {
        return false;
    }
    if (a->sa_family == AF_UNIX) {
        return strncmp(((const struct sockaddr_un *)a)->sun_path,
                       ((const struct sockaddr_un *)b)->sun_path,
                       sizeof((const struct sockaddr_un *)a)->sun_path) == 0;
    }
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *x = (const struct sockaddr_in *)a,
                                 *y = (const struct sockaddr_in *)b;
        return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)a,
                              *y = (const struct sockaddr_in6 *)b;
    return a->sa_family == AF_INET6 && x->sin6_port == y->sin6_port &&
           memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
}

static bool address_of(const struct socket *s, struct sockaddr_storage *address, socklen_t *len)
{
    *len = sizeof *address;
    memset(address, 0, sizeof *address);
    return s->fd >= 0 && getsockname(s->fd, (struct sockaddr *)address, len) == 0;
}

int inherited_find(struct inherited *h, const struct sockaddr *wanted, bool *lent)
{
    struct sockaddr_storage address;
    socklen_t len;
    for (size_t i = 0; h != NULL && i < h->count; i++) {
        struct socket *s = &h->sockets[i];
        if (address_of(s, &address, &len) && is_same((struct sockaddr *)&address, wanted)) {
            int fd = s->fd;
            s->fd = -1;
            *lent = s->lent;
            return fd;
        }
    }
    return -1;
}

const char *inherited_left(struct inherited *h)
{
    struct sockaddr_storage address;
    socklen_t len;
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    for (size_t i = 0; i < h->count; i++) {
        if (!address_of(&h->sockets[i], &address, &len)) {
            continue;
        }
        if (address.ss_family == AF_UNIX) {
            (void)snprintf(h->left, sizeof h->left, "unix:%s",
                           ((struct sockaddr_un *)&address)->sun_path);
        } else {
            (void)getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port,
                              sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
            (void)snprintf(h->left, sizeof h->left, "%s port %s", host, port);
        }
        return h->left;
    }
    return NULL;
}
