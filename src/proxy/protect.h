/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protect_lists: plain verbs that write do not reach the items of lists.
 *
 *     KEY#          the head     may be touched: that is how a list expires
 *     KEY#NAME.N    a sublist    may not even be touched: it would be missing in its list
 *     mclistd#clock.N            may not be touched: it would not show the server's clock any more
 */
#ifndef PROXY_PROTECT_H
#define PROXY_PROTECT_H

#include "config/config.h"
#include "proto/client/request_parse.h"

/* Is the request to be refused? It is one of memcached's own verbs and well-formed. */
bool protect_refuses(const struct config *config, const struct request *request);

#define PROTECT_REPLY \
    SLICE_LIT("CLIENT_ERROR this key is of a list's item: use list verbs (protect_lists)\r\n")

#endif
