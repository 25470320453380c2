/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of a listener with tls_cert, until TLS is up, and what is not the same for them later. */
#ifndef PROXY_CLIENT_SECURE_H
#define PROXY_CLIENT_SECURE_H

#include "proxy/client/client.h"

/* For a new client: nothing is read from it or sent to it but by TLS from now on. */
void secure_begin(struct client *client, struct tls_trust *trust);
/* Is it a client whose handshake is not over? */
static inline bool secure_is_pending(const struct client *client)
{
    return client->tls != NULL && !client->is_secure;
}
/* Goes on with the handshake, when the socket may be read from or written to. May close the
 * client. */
void secure_go_on(struct client *client);
/* The handshake has failed; closes the client. */
void secure_fail(struct client *client, const char *why);
/* There may be more input than the socket tells of: call it when what was read is parsed. */
void secure_read_on(struct client *client);
/* Before the socket is closed. */
void secure_end(struct client *client);

#endif
