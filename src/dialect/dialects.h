/* SPDX-License-Identifier: BSD-3-Clause */
/* All dialects, as the list engine is given them: see list/core/plugin.h. */
#ifndef DIALECT_DIALECTS_H
#define DIALECT_DIALECTS_H

#include "list/core/plugin.h"

/* engine_create's. */
extern const struct list_plugin dialects;

/* Are lists of that policy, native ones among them, changed in one item, where a condition can be
 * looked at in the step of the change? */
bool dialects_one_item(const struct list_policy *policy);

#endif
