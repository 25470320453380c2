/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the type of a pool means for its settings. For the other files of this folder.
 */
#ifndef CONFIG_POOL_TYPE_H
#define CONFIG_POOL_TYPE_H

#include "config/config.h"
#include "config/place.h"
#include "config/table.h"

/* Has the key a meaning for a pool of that type? */
bool pool_type_uses(const struct pool_config *pool, const struct config_key *key);

/* Refuses keys without a meaning, asks for those that must be given, and completes the ports of
 * servers and what has another default with the type. Returns 0, or -1 with the reason in the
 * place's error. */
MUST_CHECK int pool_type_check(struct pool_config *pool, const struct place *place);
/* Sets what [proxy] leaves to the types of the pools. */
void pool_type_finish_proxy(struct config *config);
/* The same of a policy for lists, whose pool_index is set. Sets its pool_type, and what follows
 * from that where the file says nothing else. */
MUST_CHECK int pool_type_finish_lists(const struct config *config, struct list_policy *policy,
                                      const struct place *place);

#endif
