/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a finished list call looks like to the client. docs/verbs.md has the table.
 */
#ifndef PROXY_LISTS_REPLY_H
#define PROXY_LISTS_REPLY_H

#include "base/chain.h"
#include "list/engine.h"
#include "proto/client/verb.h"

/* In which form the verb's items are answered. */
enum list_form list_reply_form(enum verb verb);
/* Does the verb's answer show the list's version? */
bool list_reply_has_version(enum verb verb);
/* The line behind the last call's part of an answer; empty when there is none. */
struct slice list_reply_trailer(enum verb verb);
/* Is the answer NOT_FOUND alone, in place of the trailer? */
bool list_reply_stands_alone(enum verb verb, const struct list_call *call);
/* Appends the call's part of the answer to out; moves the call's answer chain. The trailer is the
 * caller's. The call must not have failed. */
void list_reply(enum verb verb, struct list_call *call, struct chain *out);

/* Appends VALUE KEY FLAGS BYTES[ VERSION], the items, which are moved, and the line end behind
 * them.
 */
void list_reply_value(struct list_call *call, uint32_t flags, bool with_version, struct chain *out);

static inline bool list_reply_failed(const struct list_call *call)
{
    return call->status == LIST_CLIENT_ERROR || call->status == LIST_SERVER_ERROR;
}
/* "CLIENT_ERROR why" or "SERVER_ERROR why" of a call that has failed, in line (cap bytes). */
void list_reply_failure(const struct list_call *call, char *line, size_t cap);

#endif
