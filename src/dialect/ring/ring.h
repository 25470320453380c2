/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIALECT_RING_RING_H
#define DIALECT_RING_RING_H

#include "dialect/shared/dialect.h"

/* Of an entry, what was added: without the time behind it. */
struct slice ring_item(const struct list_policy *policy, struct slice entry);

/* Reads "17 user-4". False: it is no entry. */
bool ring_slot_parse(struct slice value, uint64_t *number, struct slice *entry);

/* Is something there that memcached cannot count on? */
bool ring_counter_broken(const struct part *part);

#endif
