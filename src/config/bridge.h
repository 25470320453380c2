/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a bridge fits the other settings of its prefix. For the other files of this folder.
 */
#ifndef CONFIG_BRIDGE_H
#define CONFIG_BRIDGE_H

#include "config/config.h"
#include "config/place.h"

/* Returns 0, or -1 with the reason in the place's error: at the line of the key that it is about,
 * if that is given there, else at the section's. */
MUST_CHECK int bridge_check(const struct list_policy *policy, const struct place *place);

#endif
