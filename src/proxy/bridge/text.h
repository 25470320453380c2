/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that a bridge takes for a list, as pure functions:
 *
 *     user-1234,user-222       items, a delimiter between them; one at either end is tolerated
 *     +user-1234-user-222      bridge = signed, append: a sign in front of each item
 */
#ifndef PROXY_BRIDGE_TEXT_H
#define PROXY_BRIDGE_TEXT_H

#include <stdbool.h>

#include "dialect/shared/text.h"

/* Takes one delimiter off each end. */
struct slice bridge_text(struct slice value, char delimiter);
/* How many items has what bridge_text has left? *whole: none of them is empty. */
size_t bridge_count(struct slice text, char delimiter, bool *whole);
/* Takes the next item off the text, and the delimiter behind it. There must be one. */
struct slice bridge_next(struct slice *text, char delimiter);

/* How many items has a signed text, as it came? *whole: it begins with a sign, and behind each sign
 * stands an item. signed_next takes them. */
size_t bridge_signed_count(struct slice text, struct signs signs, bool *whole);

#endif
