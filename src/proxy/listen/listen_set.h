/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets that the proxy listens on. A TCP address gets one socket per worker (SO_REUSEPORT:
 * the kernel spreads the connections), a unix socket is one that all workers accept from.
 */
#ifndef PROXY_LISTEN_LISTEN_SET_H
#define PROXY_LISTEN_LISTEN_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "config/config.h"

/* Connections that may wait for being accepted, per socket. */
#define LISTEN_BACKLOG 1024

struct inherited;
struct listen_set;
struct tls_trust;

/* Who may connect to unix sockets. */
struct socket_rights {
    int mode;          /* -1: as the umask says */
    const char *group; /* "": that of the process */
};

/* Addresses that have a listener in common, or, for operators, none. */
struct listen_part {
    const struct endpoint_list *list;
    const struct listener_config *listener; /* or NULL */
    struct tls_trust *tls;                  /* of the listener; or NULL */
};

/* Binds the addresses of all parts for that many workers and listens, or takes what is inherited
 * for them (NULL: nothing is). An address that another process listens on, also one that starts at
 * this moment, is an error. Returns the set, owned by the caller until listen_set_close, or NULL
 * with a text in error. */
MUST_CHECK struct listen_set *listen_set_open(const struct listen_part *parts, size_t part_count,
                                              const struct socket_rights *rights, size_t workers,
                                              struct inherited *inherited,
                                              char error[CONFIG_ERROR_MAX]);
/* Looks a socket_group up, which may be empty. Returns 0, or -1 with a text in error: there is
 * none. */
MUST_CHECK int listen_set_check_group(const char *group, char error[CONFIG_ERROR_MAX]);
/* Closes what is still open, removes unix sockets that are still ours and frees the set. The
 * workers' threads must be over. NULL is fine. */
void listen_set_close(struct listen_set **set);

size_t listen_set_count(const struct listen_set *set);
/* "127.0.0.1:11211", "[::1]:11211" or "unix:PATH"; valid as long as the set. */
const char *listen_set_name(const struct listen_set *set, size_t i);
/* The part that it is of; its list is not valid any more. */
const struct listen_part *listen_set_part(const struct listen_set *set, size_t i);
bool listen_set_is_tcp(const struct listen_set *set, size_t i);
/* The socket of address i for that worker; owned by the set. */
int listen_set_socket(const struct listen_set *set, size_t i, size_t worker);
/* Calls send(arg, socket, kind) for all sockets, up to one that is answered -1; kind: SOCKET_OWN or
 * SOCKET_LENT of os/inherited.h. Returns what send did, or -1 when a worker has left. */
MUST_CHECK int listen_set_each(struct listen_set *set,
                               int (*send)(void *arg, int socket, char kind), void *arg);
/* Does another process accept from the same sockets? Then nothing of them is removed. A set with
 * inherited ones begins so. Thread-safe. */
void listen_set_share(struct listen_set *set, bool shared);
bool listen_set_is_shared(const struct listen_set *set);
/* The worker accepts no more from address i: its own socket is closed now, one that is shared when
 * its last worker says so. To be called once by each worker, from any thread. */
void listen_set_leave(struct listen_set *set, size_t i, size_t worker);

#endif
