/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pieces of list answers that the engine writes itself while it streams a list.
 */
#ifndef PROTO_CLIENT_LIST_FORMAT_H
#define PROTO_CLIENT_LIST_FORMAT_H

#include "base/chain.h"
#include "base/slice.h"

/* Appends "ITEM KEY BYTES\r\n" item "\r\n". */
void list_format_item(struct chain *out, struct slice key, struct slice item);

#endif
