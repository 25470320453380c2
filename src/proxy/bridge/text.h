/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that a bridge takes for a list, as pure functions:
 *
 *     user-1234,user-222       items, a delimiter between them; one at either end is tolerated:
 *                              item_block_next (proto/client/list_format.h) takes them
 *     +user-1234-user-222      bridge = signed, append: a sign in front of each item: signed_next
 *                              (dialect/shared/text.h) takes them
 */
#ifndef PROXY_BRIDGE_TEXT_H
#define PROXY_BRIDGE_TEXT_H

#include <stdbool.h>

#include "dialect/shared/text.h"
#include "proto/client/list_format.h"

/* How many items has a value? *whole: none of them is empty. */
size_t bridge_joined_count(struct slice value, char delimiter, bool *whole);
/* The same of a signed one. *whole: it begins with a sign, and behind each sign stands an item. */
size_t bridge_signed_count(struct slice value, struct signs signs, bool *whole);

#endif
