/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call of kind TX has besides: of an LIST_TX a line about each list. */
#ifndef FUZZ_SEVERAL_H
#define FUZZ_SEVERAL_H

#include "audit.h"
#include "input.h"
#include "list/engine.h"

struct several {
    struct call_list lists[AUDIT_LISTS];
    struct tx_change changes[AUDIT_LISTS];
};

/* Makes the call, whose key and items are filled, one about all of the lists. */
void several_fill(struct several *s, struct list_call *call, const struct slice keys[AUDIT_LISTS],
                  struct input *in);

#endif
