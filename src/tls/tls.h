/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encrypted connections, to servers and from clients, over sockets that do not block. Besides
 * proto/server/scram, this folder is the only user of OpenSSL.
 */
#ifndef TLS_TLS_H
#define TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tls_trust;

/* One connection. What OpenSSL takes for it counts in base/memory.h, by the thread that uses it. */
struct tls;
/* For a connected socket, which stays the caller's, to a server of that name or address, which its
 * certificate must be for. Owned by the caller until tls_close. Never NULL. */
struct tls *tls_open(struct tls_trust *trust, int fd, const char *host);
/* The same for a socket that was accepted from a client. */
struct tls *tls_accept(struct tls_trust *trust, int fd);
/* Tells a client that this is the end, if there is room for that. Does not close the socket. */
void tls_close(struct tls **tls);

enum tls_step { TLS_UP, TLS_WANTS_INPUT, TLS_WANTS_ROOM, TLS_FAILED };
/* Goes on with the handshake of TLS itself. TLS_FAILED: *reason says why, during the call. */
enum tls_step tls_shake_hands(struct tls *tls, const char **reason);
bool tls_is_up(const struct tls *tls);
/* Has the other side sent anything, or this one? */
bool tls_has_begun(const struct tls *tls);
/* Does the kernel encrypt what is sent? */
bool tls_is_in_kernel(const struct tls *tls);

/* As read(2): -1 with EAGAIN when more input is needed. */
ssize_t tls_read(struct tls *tls, void *to, size_t cap);
/* As writev(2), and takes at least something as long as it has room: what it has taken is sent as
 * it is, by this call or a later one. -1 with EAGAIN while the socket is full. */
ssize_t tls_write(struct tls *tls, const struct iovec *iov, size_t count);
/* Why tls_read or tls_write has failed with EPROTO: an alert of the server, say. NULL: not known.
 */
const char *tls_problem(const struct tls *tls);
/* Is there input that was read from the socket, and not by tls_read? */
bool tls_has_input(const struct tls *tls);
/* Is there output that tls_write has taken, and the socket not? */
bool tls_has_output(const struct tls *tls);
/* What it takes. */
size_t tls_bytes(const struct tls *tls);

#endif
