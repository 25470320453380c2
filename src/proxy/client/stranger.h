/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of other protocols: told in their own words that this is the wrong port, and the operator
 * what to set in them. */
#ifndef PROXY_CLIENT_STRANGER_H
#define PROXY_CLIENT_STRANGER_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

/* The client speaks that protocol; input: its request, as request_parse has it. Answers what the
 * parser has no answer for, logs and counts the client once. */
void stranger_met(struct client *client, enum stranger kind, struct slice input);

#endif
