/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a verb to the one who handles it: pass-through (forward), lists, or the proxy itself.
 */
#ifndef PROXY_DISPATCH_H
#define PROXY_DISPATCH_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

/* Answers the request at once or puts it in the client's queue. Its slices point into block. */
void dispatch(struct client *client, const struct request *request, struct block *block);

#endif
