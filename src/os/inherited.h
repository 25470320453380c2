/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listening sockets that another process has opened: the service manager (sd_listen_fds(3)), or a
 * daemon whose place this one takes. Clients that connect meanwhile wait in them, so that none is
 * refused.
 *
 * Between two daemons they go over a unix socket of the older one's admin listener:
 *
 *     newer  takeover\n
 *     older  messages of up to SOCKETS_PER_MESSAGE sockets each, with as many bytes: 'o' for one
 *            that is the daemons' own, 'l' for one that the service manager has lent; then the
 *            manager as notify_describe() has it, and \n; or, in place of all that, ERROR REASON\n
 *     newer  taken\n, when it serves
 *     older  OK\n, and accepts no more; then each client between two of its requests: a message
 *            with its socket, "login" or "open", behind that "-binary" or "-new" or nothing
 *            (moved_protocol), a blank, the name of its listener, a blank, the number of bytes
 *            that were read already, \n, and these
 */
#ifndef OS_INHERITED_H
#define OS_INHERITED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"

/* The kernel takes no more with one message (SCM_MAX_FD). */
#define SOCKETS_PER_MESSAGE 253
#define SOCKET_OWN 'o'
#define SOCKET_LENT 'l'

struct inherited;

/* None yet; the caller's until inherited_destroy, which closes what no one has found. */
struct inherited *inherited_create(void);
void inherited_destroy(struct inherited **inherited);

/* Takes those of the service manager, if there are any, and what names them out of the environment.
 * Returns 0, or -1 with the reason in error. To be called before there are threads. */
MUST_CHECK int inherited_from_manager(struct inherited *inherited, char error[CONFIG_ERROR_MAX]);
/* Asks the daemon whose admin listener has that unix socket for its own, and keeps the connection.
 * Returns 0, or -1 with the reason in error. Blocks, for some seconds at most. */
MUST_CHECK int inherited_take_over(struct inherited *inherited, const char *path,
                                   char error[CONFIG_ERROR_MAX]);
/* Its service manager, for notify_adopt. Valid as long as inherited. */
const char *inherited_manager(const struct inherited *inherited);
/* Tells that daemon, if there is one, that its sockets are served. Returns 0, or -1 with the reason
 * in error: it serves as well, then. */
MUST_CHECK int inherited_taken(struct inherited *inherited, char error[CONFIG_ERROR_MAX]);

/* Sockets that wait for one message to the newer daemon. */
struct parcel {
    int peer; /* the connection; the others begin as 0 */
    size_t count;
    int sockets[SOCKETS_PER_MESSAGE];
    char kinds[SOCKETS_PER_MESSAGE];
};
/* Adds a socket, SOCKET_OWN or SOCKET_LENT, and sends what is full. Returns 0, or -1 with errno. */
MUST_CHECK int inherited_pack(struct parcel *parcel, int fd, char kind);
/* Sends those that wait, if there are any. Returns 0, or -1 with errno. */
MUST_CHECK int inherited_send_parcel(struct parcel *parcel);

/* What a client speaks. */
enum moved_protocol {
    MOVED_TEXT,
    MOVED_BINARY,
    MOVED_NEW, /* its first request will tell */
};

/* A client between two requests. */
struct moved {
    int fd;
    bool needs_login;
    enum moved_protocol protocol;
    const char *listener; /* its section's name, "" for [proxy] */
    struct slice input;   /* read already, and not answered; INHERITED_INPUT_MAX at most */
};
#define INHERITED_INPUT_MAX ((size_t)16 << 10)

/* Sends it over that connection. Returns 0, or -1 with errno: EAGAIN when there is no room now. */
MUST_CHECK int inherited_send_client(int peer, const struct moved *moved);
/* The connection over which clients come behind inherited_taken, which does not block then; -1:
 * there is none. */
int inherited_peer(const struct inherited *inherited);
/* Takes the next client; its texts are valid until the next call, its socket is the caller's.
 * Returns 1, or 0 when there is none now, or -1 when no more come. */
MUST_CHECK int inherited_next_client(struct inherited *inherited, struct moved *moved);

/* Takes a socket that is bound to that address; -1: there is none. *lent: its file, if it has one,
 * is not to be removed. */
int inherited_find(struct inherited *inherited, const struct sockaddr *address, bool *lent);
/* The address of one that no one has found, as text; NULL: there is none. Valid until the next
 * call. */
const char *inherited_left(struct inherited *inherited);

#endif
