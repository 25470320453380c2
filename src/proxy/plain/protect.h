/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protect_lists: plain verbs that write do not reach the items of lists.
 *
 *     KEY#          the head     may be touched: that is how a list expires
 *     KEY#NAME.N    a sublist    may not even be touched: it would be missing in its list
 *     mclistd#clock.N            may not be touched: it would not show the server's clock any more
 */
#ifndef PROXY_PLAIN_PROTECT_H
#define PROXY_PLAIN_PROTECT_H

#include "config/config.h"
#include "list/core/plain.h"
#include "proto/client/request_parse.h"

/* May the key be that of a list's item, as far as its end tells? Nearly all keys are none. */
static inline bool protect_may_concern(struct slice key)
{
    size_t n = key.len;
    while (n > 0 && (unsigned char)(key.p[n - 1] - '0') <= 9) {
        n--;
    }
    return n > 0 && key.p[n - 1] == (n < key.len ? '.' : '#');
}

/* Is it the name of an item of a native list, which no list under that prefix is called by? */
static inline bool protect_is_item(const struct config *config, struct slice key)
{
    return protect_may_concern(key) && plain_is_list_item(config, key);
}

/* Are any of the keys that the request names protected from its verb? */
bool protect_forbids(const struct config *config, const struct request *request);

/* Is the request to be refused? It is one of memcached's own verbs and well-formed, no get. */
static inline bool protect_refuses(const struct config *config, const struct request *request)
{
    bool names_one = request->verb->shape != SHAPE_GAT && !request->base64;
    return (!names_one || protect_may_concern(request->key)) && protect_forbids(config, request);
}

#define PROTECT_REPLY \
    SLICE_LIT("CLIENT_ERROR this key belongs to a list: use list verbs (protect_lists)\r\n")

#endif
