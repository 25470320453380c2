/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of [lists] that mean something only beside another one. For the other files of this folder.
 */
#ifndef CONFIG_NEED_H
#define CONFIG_NEED_H

#include "config/place.h"
#include "config/table.h"

/* False under a prefix that lacks what the key needs: a file may not hold it there. In [lists] it
 * is what prefixes inherit. */
bool need_is_met(const struct list_policy *policy, const struct config_key *key);
/* Refuses a key that is given in the policy's section and changes nothing; in [lists], one that
 * changes nothing under any prefix either. To be called when all sections have inherited. Returns
 * 0, or -1 with the reason in the place's error, at the line of the key. */
MUST_CHECK int need_check(const struct config *config, const struct list_policy *policy,
                          const struct place *place);

#endif
