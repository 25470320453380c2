/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that have to log in before anything else: those of a listener with auth_file. */
#ifndef PROXY_CLIENT_LOGIN_H
#define PROXY_CLIENT_LOGIN_H

#include "base/slice.h"
#include "proxy/client/client.h"

/* Takes what stands at the front of the input of a client that has RULE_LOGIN, and answers it; with
 * a user and the password, the client no longer has it. Returns false when it is not whole. */
bool login_take(struct client *client, struct slice input);
/* The same for a request of the binary protocol, if it is about SASL. False: it is any other one,
 * which the client may send: its parser refuses what comes before a login. */
bool login_take_binary(struct client *client, const struct request *request);

#endif
