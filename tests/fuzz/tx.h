/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call of kind TX has besides: of an LIST_TX a line about each list. */
#ifndef FUZZ_TX_H
#define FUZZ_TX_H

#include "audit.h"
#include "input.h"
#include "list/engine.h"

struct tx_lists {
    struct call_list lists[AUDIT_LISTS];
    struct tx_change changes[AUDIT_LISTS];
};

/* Makes the call, whose key and items are filled, one about all of the lists. */
void tx_lists_fill(struct tx_lists *s, struct list_call *call, const struct slice keys[AUDIT_LISTS],
                   struct input *in);

#endif
