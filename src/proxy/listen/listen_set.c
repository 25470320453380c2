/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/listen/listen_set.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "config/text.h"
#include "os/inherited.h"

/* How long another process may hold the lock on the folder of a unix socket. A daemon that starts
 * holds it for less than a millisecond; any process that may read the folder can hold it longer. */
#define LOCK_TRIES 100
#define LOCK_PAUSE_MS 10

/* How often, and after which pauses, a socket that another starting daemon is in the way of is
 * tried again: a second in all. */
#define JOIN_TRIES 100
#define JOIN_PAUSE_MS 10

struct listen_address {
    char name[CONFIG_NAME_MAX + 16];
    struct listen_part part;
    bool is_tcp;
    bool is_lent;    /* the service manager's: it removes the file */
    size_t fd_count; /* one per worker, or a single one */
    int *fds;
    _Atomic size_t users; /* workers that have not left yet */
    /* Unix sockets: what is to be removed, if it still is the file we made. */
    char path[CONFIG_NAME_MAX + 1];
    dev_t device;
    ino_t inode;
};

struct listen_set {
    struct listen_address *addresses;
    size_t count;
    size_t workers;
    struct inherited *inherited; /* while the set is opened; or NULL */
    atomic_bool shared;          /* with another process */
    pthread_mutex_t lock; /* of the descriptors: workers close theirs while all are handed over */
};

/* --- binding --- */

static struct listen_address *add_address(struct listen_set *set, size_t fd_count)
{
    set->addresses = realloc(set->addresses, (set->count + 1) * sizeof *set->addresses);
    CHECK(set->addresses != NULL);
    struct listen_address *a = &set->addresses[set->count++];
    *a = (struct listen_address){.fd_count = fd_count, .fds = malloc(fd_count * sizeof *a->fds)};
    CHECK(a->fds != NULL);
    atomic_init(&a->users, set->workers);
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
    if (fd >= 0 && listen(fd, LISTEN_BACKLOG) != 0) {
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

/* Takes all sockets that are inherited for that address: workers get one each as long as there are
 * enough for all, and share what is left. Returns how many addresses of the set they became. */
static size_t adopt(struct listen_set *set, const struct sockaddr *address)
{
    size_t count = 0, cap = 0, before = set->count;
    struct {
        int fd;
        bool lent;
    } *found = NULL;
    bool lent = false;
    for (int fd; (fd = inherited_find(set->inherited, address, &lent)) >= 0;) {
        cap = count == cap ? 2 * cap + 8 : cap;
        found = realloc(found, cap * sizeof *found);
        CHECK(found != NULL);
        found[count].fd = fd;
        found[count++].lent = lent;
    }
    for (size_t at = 0; at < count;) {
        struct listen_address *a = add_address(set, count - at >= set->workers ? set->workers : 1);
        a->is_lent = found[at].lent;
        for (size_t i = 0; i < a->fd_count; i++) {
            a->fds[i] = found[at++].fd;
        }
    }
    free(found);
    atomic_store(&set->shared, atomic_load(&set->shared) || count > 0);
    return set->count - before;
}

/* A socket that joins one of ours. Another daemon that starts at this moment may have bound the
 * address without listening on it: it will be refused and give up, so that is waited for. */
static int join_tcp(const struct addrinfo *where)
{
    int fd = start_listening(bind_tcp(where, true));
    for (int i = 0; fd < 0 && errno == EADDRINUSE && i < JOIN_TRIES; i++) {
        (void)poll(NULL, 0, JOIN_PAUSE_MS);
        fd = start_listening(bind_tcp(where, true));
    }
    return fd;
}

/* Returns 0, or -1 with errno.
 *
 * SO_REUSEPORT alone would let a second daemon of the same user in without a word. So the first
 * socket listens without it: the kernel refuses that as soon as another process listens on the
 * address, whichever of the two comes first. Only then it gets SO_REUSEPORT, which lets the sockets
 * of the other workers join it. */
static int open_tcp(struct listen_set *set, const struct addrinfo *where)
{
    size_t adopted = adopt(set, where->ai_addr);
    for (size_t i = set->count - adopted; i < set->count; i++) {
        set->addresses[i].is_tcp = true;
        name_tcp(&set->addresses[i], where);
    }
    if (adopted > 0) {
        return 0;
    }
    int fd = start_listening(bind_tcp(where, false));
    if (fd < 0) {
        return -1;
    }
    struct listen_address *a = add_address(set, set->workers);
    a->is_tcp = true;
    a->fds[0] = fd;
    name_tcp(a, where);
    int on = 1;
    if (set->workers > 1 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
        return -1;
    }
    for (size_t i = 1; i < set->workers; i++) {
        a->fds[i] = join_tcp(where);
        if (a->fds[i] < 0) {
            return -1;
        }
    }
    return 0;
}

static int open_tcp_endpoint(struct listen_set *set, const struct endpoint *e,
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
        if (open_tcp(set, a) == 0) {
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

/* Does a process accept connections on this path? */
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

/* Locks the folder that path is in, so that of two daemons that start at the same time one takes
 * over what a killed one left, and the other then meets a socket that is answered. Returns a
 * descriptor, to be closed, or -1: then nothing is locked, which matters to such daemons only. */
static int lock_folder(const char *path)
{
    char folder[CONFIG_NAME_MAX + 2];
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        (void)snprintf(folder, sizeof folder, ".");
    } else {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct timespec pause = {0, LOCK_PAUSE_MS * 1000000L};
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return fd;
        }
        (void)nanosleep(&pause, NULL);
    }
    log_warn("another process keeps %s locked; unix:%s is listened on without that lock", folder,
             path);
    close(fd);
    return -1;
}

int listen_set_check_group(const char *group, char error[CONFIG_ERROR_MAX])
{
    if (group[0] == '\0' || getgrnam(group) != NULL) {
        return 0;
    }
    return config_fail(error, "socket_group: there is no group %s", group);
}

/* Who may connect: socket_group and socket_mode. Returns NULL, or what went wrong. */
static const char *give_file(const struct socket_rights *rights, const char *path)
{
    if (rights->group[0] != '\0') {
        const struct group *group = getgrnam(rights->group);
        if (group == NULL) {
            return "there is no such socket_group";
        }
        if (chown(path, (uid_t)-1, group->gr_gid) != 0) {
            return "socket_group: this user may not give a file to that group";
        }
    }
    if (rights->mode >= 0 && chmod(path, (mode_t)rights->mode) != 0) {
        return strerror(errno);
    }
    return NULL;
}

/* Returns a listening socket at address, or -1 with the reason in *reason. */
static int listen_unix(const struct socket_rights *rights, const struct sockaddr_un *address,
                       const char **reason)
{
    struct stat st;
    const char *path = address->sun_path;
    /* What a daemon left that was killed is in the way of the next one; a file of another kind is
     * not ours. */
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !is_answered(address)) {
        (void)unlink(path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        *reason = strerror(errno);
    } else {
        /* Before it listens: no client connects that the mode would keep out. */
        *reason = give_file(rights, path);
        if (*reason == NULL && listen(fd, LISTEN_BACKLOG) == 0) {
            return fd;
        }
        *reason = *reason == NULL ? strerror(errno) : *reason;
        (void)unlink(path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

/* The file that is to be removed at the end, if it still is that one. */
static void name_unix(struct listen_address *a, const char *path)
{
    struct stat st;
    snprintf(a->name, sizeof a->name, "unix:%s", path);
    if (!a->is_lent && lstat(path, &st) == 0) {
        snprintf(a->path, sizeof a->path, "%s", path);
        a->device = st.st_dev;
        a->inode = st.st_ino;
    }
}

static int open_unix(struct listen_set *set, const struct socket_rights *rights,
                     const struct endpoint *e, char error[CONFIG_ERROR_MAX])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(e->host) >= sizeof address.sun_path) {
        snprintf(error, CONFIG_ERROR_MAX,
                 "cannot listen on unix:%s: the path is longer than %zu bytes", e->host,
                 sizeof address.sun_path - 1);
        return -1;
    }
    memcpy(address.sun_path, e->host, strlen(e->host));
    size_t adopted = adopt(set, (const struct sockaddr *)&address);
    for (size_t i = set->count - adopted; i < set->count; i++) {
        name_unix(&set->addresses[i], e->host);
    }
    if (adopted > 0) {
        return 0;
    }
    const char *reason;
    int lock_fd = lock_folder(e->host);
    int fd = listen_unix(rights, &address, &reason);
    if (lock_fd >= 0) {
        close(lock_fd); /* and with it the lock */
    }
    if (fd < 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot listen on unix:%s: %s", e->host, reason);
        return -1;
    }
    struct listen_address *a = add_address(set, 1);
    a->fds[0] = fd;
    name_unix(a, e->host);
    return 0;
}

/* Returns 0, or -1 with a text in error. */
static int open_part(struct listen_set *set, const struct listen_part *part,
                     const struct socket_rights *rights, char error[CONFIG_ERROR_MAX])
{
    size_t first = set->count;
    for (size_t i = 0; i < part->list->count; i++) {
        const struct endpoint *e = &part->list->at[i];
        int rc = e->port == 0 ? open_unix(set, rights, e, error) : open_tcp_endpoint(set, e, error);
        if (rc != 0) {
            return -1;
        }
    }
    for (size_t i = first; i < set->count; i++) {
        set->addresses[i].part = *part;
    }
    return 0;
}

struct listen_set *listen_set_open(const struct listen_part *parts, size_t part_count,
                                   const struct socket_rights *rights, size_t workers,
                                   struct inherited *inherited, char error[CONFIG_ERROR_MAX])
{
    struct listen_set *set = calloc(1, sizeof *set);
    CHECK(set != NULL);
    CHECK(pthread_mutex_init(&set->lock, NULL) == 0);
    set->workers = workers;
    set->inherited = inherited;
    for (size_t i = 0; i < part_count; i++) {
        if (open_part(set, &parts[i], rights, error) != 0) {
            listen_set_close(&set);
            return NULL;
        }
    }
    set->inherited = NULL;
    return set;
}

static void close_socket(struct listen_set *set, struct listen_address *a, size_t i)
{
    struct stat st;
    pthread_mutex_lock(&set->lock);
    int fd = a->fds[i];
    a->fds[i] = -1;
    pthread_mutex_unlock(&set->lock);
    bool own = fd >= 0 && a->path[0] != '\0' && !listen_set_is_shared(set);
    if (own && lstat(a->path, &st) == 0 && st.st_dev == a->device && st.st_ino == a->inode) {
        (void)unlink(a->path);
    }
    if (fd >= 0) {
        close(fd);
    }
}

int listen_set_each(struct listen_set *set, int (*send)(void *arg, int socket, char kind),
                    void *arg)
{
    int rc = 0;
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->count; i++) {
        const struct listen_address *a = &set->addresses[i];
        for (size_t k = 0; k < a->fd_count && rc == 0; k++) {
            rc = a->fds[k] < 0 ? -1 : send(arg, a->fds[k], a->is_lent ? SOCKET_LENT : SOCKET_OWN);
        }
    }
    pthread_mutex_unlock(&set->lock);
    return rc;
}

void listen_set_share(struct listen_set *set, bool shared)
{
    atomic_store(&set->shared, shared);
}

bool listen_set_is_shared(const struct listen_set *set)
{
    return atomic_load(&set->shared);
}

void listen_set_leave(struct listen_set *set, size_t i, size_t worker)
{
    CHECK(i < set->count);
    struct listen_address *a = &set->addresses[i];
    bool last = atomic_fetch_sub(&a->users, 1) == 1;
    if (a->fd_count > 1) {
        close_socket(set, a, worker);
    } else if (last) {
        close_socket(set, a, 0);
    }
}

void listen_set_close(struct listen_set **slot)
{
    struct listen_set *set = *slot;
    *slot = NULL;
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        struct listen_address *a = &set->addresses[i];
        for (size_t k = 0; k < a->fd_count; k++) {
            close_socket(set, a, k);
        }
        free(a->fds);
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

const struct listen_part *listen_set_part(const struct listen_set *set, size_t i)
{
    CHECK(i < set->count);
    return &set->addresses[i].part;
}

bool listen_set_is_tcp(const struct listen_set *set, size_t i)
{
    CHECK(i < set->count);
    return set->addresses[i].is_tcp;
}

int listen_set_socket(const struct listen_set *set, size_t i, size_t worker)
{
    CHECK(i < set->count);
    const struct listen_address *a = &set->addresses[i];
    return a->fds[a->fd_count == 1 ? 0 : worker];
}
