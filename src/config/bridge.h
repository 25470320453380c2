/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a bridge fits the other settings of its prefix. For the other files of this folder.
 */
#ifndef CONFIG_BRIDGE_H
#define CONFIG_BRIDGE_H

#include "config/config.h"
#include "config/place.h"
#include "config/table.h"

/* False for the settings of bridges under a prefix that has none: a file may not hold them there.
 * In [lists] they are what prefixes inherit. */
bool bridge_uses(const struct list_policy *policy, const struct config_key *key);
/* Returns 0, or -1 with the reason in the place's error: at the line of the key that it is about,
 * if that is given there, else at the section's. */
MUST_CHECK int bridge_check(const struct list_policy *policy, const struct place *place);

#endif
