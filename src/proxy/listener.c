/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "proxy/worker.h"

#define BACKLOG 1024
/* Connections accepted per event, so that a flood of them leaves time for those that are there. */
#define ACCEPT_BURST 64
/* How long accepting pauses while there are no descriptors. */
#define ACCEPT_PAUSE_US 100000

struct listen_address {
    char name[CONFIG_NAME_MAX + 16];
    bool is_tcp;
    size_t fd_count; /* one per worker, or a single one */
    int *fds;
    /* Unix sockets: what is to be removed, if it still is the file we made. */
    char path[CONFIG_NAME_MAX + 1];
    dev_t device;
    ino_t inode;
};

struct listen_set {
    struct listen_address *addresses;
    size_t count;
};

/* --- binding --- */

static struct listen_address *add_address(struct listen_set *set, size_t fd_count)
{
    set->addresses = realloc(set->addresses, (set->count + 1) * sizeof *set->addresses);
    CHECK(set->addresses != NULL);
    struct listen_address *a = &set->addresses[set->count++];
    *a = (struct listen_address){.fd_count = fd_count, .fds = malloc(fd_count * sizeof *a->fds)};
    CHECK(a->fds != NULL);
    for (size_t i = 0; i < fd_count; i++) {
        a->fds[i] = -1;
    }
    return a;
}

/* Returns a bound socket, or -1 with errno. */
static int bind_tcp(const struct addrinfo *where, bool reuse_port)
{
    int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = socket(where->ai_family, type, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (where->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    bool failed = reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0;
    if (failed || bind(fd, where->ai_addr, where->ai_addrlen) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Takes over fd, or -1 with errno. Returns it listening, or -1 with errno. */
static int start_listening(int fd)
{
    if (fd >= 0 && listen(fd, BACKLOG) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static void name_tcp(struct listen_address *a, const struct addrinfo *where)
{
    char host[NI_MAXHOST] = "?";
    char port[NI_MAXSERV] = "?";
    (void)getnameinfo(where->ai_addr, where->ai_addrlen, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV);
    bool v6 = where->ai_family == AF_INET6;
    snprintf(a->name, sizeof a->name, "%s%.200s%s:%.16s", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

/* Returns 0, or -1 with errno. */
static int open_tcp(struct listen_set *set, const struct addrinfo *where, size_t workers)
{
    /* SO_REUSEPORT would let a second daemon of the same user in silently; a first bind without it
     * does not. It does not listen: clients that came in the meantime would be cut off with it. */
    int fd = bind_tcp(where, false);
    if (fd < 0) {
        return -1;
    }
    struct listen_address *a = add_address(set, workers);
    a->is_tcp = true;
    name_tcp(a, where);
    if (workers == 1) {
        a->fds[0] = start_listening(fd);
        return a->fds[0] < 0 ? -1 : 0;
    }
    close(fd);
    for (size_t i = 0; i < workers; i++) {
        a->fds[i] = start_listening(bind_tcp(where, true));
        if (a->fds[i] < 0) {
            return -1;
        }
    }
    return 0;
}

static int open_tcp_endpoint(struct listen_set *set, const struct endpoint *e, size_t workers,
                             char error[CONFIG_ERROR_MAX])
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", e->port);
    bool any = e->host[0] == '\0' || strcmp(e->host, "*") == 0;
    int rc = getaddrinfo(any ? NULL : e->host, port, &hints, &found);
    if (rc != 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot listen on %s:%s: %s", e->host, port,
                 gai_strerror(rc));
        return -1;
    }
    int bound = 0;
    int reason = 0;
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        if (open_tcp(set, a, workers) == 0) {
            bound++;
        } else if (reason == 0 || errno == EADDRINUSE) {
            reason = errno;
        }
    }
    freeaddrinfo(found);
    /* A name may also stand for a family that this machine does not have; an address in use is an
     * error always. */
    if (bound == 0 || reason == EADDRINUSE) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot listen on %s:%s: %s", e->host, port,
                 strerror(reason));
        return -1;
    }
    return 0;
}

/* Does somebody accept connections on this path? */
static bool is_answered(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return true;
    }
    int rc = connect(fd, (const struct sockaddr *)address, sizeof *address);
    int saved = errno;
    close(fd);
    return rc == 0 || (saved != ECONNREFUSED && saved != ENOENT);
}

static int open_unix(struct listen_set *set, const struct endpoint *e, char error[CONFIG_ERROR_MAX])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(e->host) >= sizeof address.sun_path) {
        snprintf(error, CONFIG_ERROR_MAX,
                 "cannot listen on unix:%s: the path is longer than %zu bytes", e->host,
                 sizeof address.sun_path - 1);
        return -1;
    }
    memcpy(address.sun_path, e->host, strlen(e->host));
    struct stat st;
    /* What a daemon left that was killed is in the way of the next one; a file of another kind is
     * not ours. */
    if (lstat(e->host, &st) == 0 && S_ISSOCK(st.st_mode) && !is_answered(&address)) {
        (void)unlink(e->host);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot listen on unix:%s: %s", e->host, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    struct listen_address *a = add_address(set, 1);
    a->fds[0] = fd;
    snprintf(a->name, sizeof a->name, "unix:%s", e->host);
    if (lstat(e->host, &st) == 0) {
        memcpy(a->path, e->host, sizeof a->path);
        a->device = st.st_dev;
        a->inode = st.st_ino;
    }
    return 0;
}

struct listen_set *listen_set_open(const struct config *config, size_t workers,
                                   char error[CONFIG_ERROR_MAX])
{
    struct listen_set *set = calloc(1, sizeof *set);
    CHECK(set != NULL);
    for (size_t i = 0; i < config->listen_count; i++) {
        const struct endpoint *e = &config->listen[i];
        int rc =
            e->port == 0 ? open_unix(set, e, error) : open_tcp_endpoint(set, e, workers, error);
        if (rc != 0) {
            listen_set_close(&set);
            return NULL;
        }
    }
    return set;
}

static void close_address(struct listen_address *a)
{
    struct stat st;
    for (size_t i = 0; i < a->fd_count; i++) {
        if (a->fds[i] >= 0) {
            close(a->fds[i]);
        }
    }
    if (a->path[0] != '\0' && lstat(a->path, &st) == 0 && st.st_dev == a->device &&
        st.st_ino == a->inode) {
        (void)unlink(a->path);
    }
    free(a->fds);
}

void listen_set_close(struct listen_set **slot)
{
    struct listen_set *set = *slot;
    *slot = NULL;
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        close_address(&set->addresses[i]);
    }
    free(set->addresses);
    free(set);
}

size_t listen_set_count(const struct listen_set *set)
{
    return set->count;
}

const char *listen_set_name(const struct listen_set *set, size_t i)
{
    CHECK(i < set->count);
    return set->addresses[i].name;
}

/* --- accepting --- */

static void refuse_client(struct worker *w, int fd)
{
    static const char text[] = "ERROR Too many open connections\r\n";
    metric_inc(&w->metrics, METRIC_rejected_connections);
    char sink[256];
    (void)send(fd, text, sizeof text - 1, MSG_NOSIGNAL);
    /* A close with unread input would take the text back. */
    (void)recv(fd, sink, sizeof sink, MSG_DONTWAIT);
    close(fd);
}

static void add_client(struct acceptor *a, int fd)
{
    struct worker *w = a->worker;
    uint32_t open = atomic_fetch_add(&w->shared->connections, 1);
    if (open >= w->config->max_connections) {
        atomic_fetch_sub(&w->shared->connections, 1);
        refuse_client(w, fd);
        return;
    }
    if (a->is_tcp) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    client_create(w, fd);
}

static void pause_accepting(struct worker *w, int reason)
{
    uint64_t suppressed;
    if (log_limit_pass(&w->accept_limit, w->now.wall_s, &suppressed)) {
        log_error("cannot accept clients: %s; trying again", strerror(reason));
    }
    for (size_t i = 0; i < w->acceptor_count; i++) {
        event_del(&w->acceptors[i].event);
    }
    struct timeval pause = {0, ACCEPT_PAUSE_US};
    event_add(&w->accept_timer, &pause);
}

static void on_acceptable(evutil_socket_t listen_fd, short what, void *arg)
{
    struct acceptor *a = arg;
    (void)what;
    worker_woke(a->worker);
    for (int i = 0; i < ACCEPT_BURST; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            add_client(a, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(a->worker, errno);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
        /* Anything else concerns the one connection only. */
    }
}

static void on_accept_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    (void)fd;
    (void)what;
    for (size_t i = 0; i < w->acceptor_count; i++) {
        event_add(&w->acceptors[i].event, NULL);
    }
}

void listener_start(struct worker *w, struct listen_set *set)
{
    w->acceptors = calloc(set->count > 0 ? set->count : 1, sizeof *w->acceptors);
    CHECK(w->acceptors != NULL);
    w->acceptor_count = set->count;
    evtimer_assign(&w->accept_timer, w->base, on_accept_timer, w);
    for (size_t i = 0; i < set->count; i++) {
        const struct listen_address *address = &set->addresses[i];
        struct acceptor *a = &w->acceptors[i];
        a->worker = w;
        a->is_tcp = address->is_tcp;
        a->fd = address->fds[address->fd_count == 1 ? 0 : w->index];
        event_assign(&a->event, w->base, a->fd, EV_READ | EV_PERSIST, on_acceptable, a);
        event_add(&a->event, NULL);
    }
}

void listener_stop(struct worker *w)
{
    if (w->acceptors == NULL) {
        return;
    }
    event_del(&w->accept_timer);
    for (size_t i = 0; i < w->acceptor_count; i++) {
        event_del(&w->acceptors[i].event);
    }
    free(w->acceptors);
    w->acceptors = NULL;
    w->acceptor_count = 0;
}
