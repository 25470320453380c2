/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encrypted connections to servers, over sockets that do not block. Besides proto/server/scram the
 * only user of OpenSSL. For this folder only.
 */
#ifndef POOL_LINK_TLS_H
#define POOL_LINK_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "config/config.h"

/* Whom the connections of a pool trust, and what they show of themselves. */
struct tls_trust;
/* By ca_file, tls_cert and tls_key of the pool. Returns NULL with the reason in error. */
struct tls_trust *tls_trust_create(const struct pool_config *config, char error[CONFIG_ERROR_MAX]);
void tls_trust_destroy(struct tls_trust **trust);

/* One connection. */
struct tls;
/* For a connected socket, which stays the caller's, to a server of that name or address, which its
 * certificate must be for. Owned by the caller until tls_close. Never NULL. */
struct tls *tls_open(const struct tls_trust *trust, int fd, const char *host);
void tls_close(struct tls **tls);

enum tls_step { TLS_UP, TLS_WANTS_INPUT, TLS_WANTS_ROOM, TLS_FAILED };
/* Goes on with the handshake of TLS itself. TLS_FAILED: *reason says why, during the call. */
enum tls_step tls_shake_hands(struct tls *tls, const char **reason);
bool tls_is_up(const struct tls *tls);

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

#endif
