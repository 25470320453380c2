/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that go on in the process that takes this one's place (os/inherited.h): each one's socket
 * is sent there between two of its requests, with what of the next one was read already. The client
 * notices nothing.
 */
#ifndef PROXY_CLIENT_MOVE_H
#define PROXY_CLIENT_MOVE_H

#include "proxy/client/client.h"

/* From now on the client is read from only as far as the request needs that it is in the middle of.
 */
void move_begin(struct client *client);
/* Sends the client there, if nothing of it is under way. Then it is closed here, and only here.
 * shared.heir must be set. Returns false when that process takes no more now: try again. */
bool move_try(struct client *client);

#endif
