/* SPDX-License-Identifier: BSD-3-Clause */
/* ltx: the lines of its data block become what its call asks of each list. */
#ifndef PROXY_LISTS_TRANSACTION_H
#define PROXY_LISTS_TRANSACTION_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"
#include "proxy/lists/call_part.h"

/* Looks through the block. False: the request was answered; the answer names the line that is
 * refused, and why. */
bool transaction_is_good(struct client *client, const struct request *request);
/* Of a block that is good: the first list's key. */
struct slice transaction_key(const struct request *request);
/* Gives the part's call the lists and changes of a block that is good. */
void transaction_fill(struct call_part *part, const struct request *request);

#endif
