/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of other protocols: told in their own words that this is the wrong port, and the operator
 * what to set in them. */
#ifndef PROXY_CLIENT_STRANGER_H
#define PROXY_CLIENT_STRANGER_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

/* The client speaks that protocol: logs and counts it. */
void stranger_met(struct client *client, enum stranger kind);

#endif
