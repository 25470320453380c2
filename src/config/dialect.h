/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the format of the lists under a prefix makes of its settings. For the other files of this
 * folder.
 */
#ifndef CONFIG_DIALECT_H
#define CONFIG_DIALECT_H

#include "config/config.h"
#include "config/place.h"
#include "config/table.h"

/* Does the key of [lists] mean anything there? With migrate = native the keys of native do. */
bool dialect_uses(const struct list_policy *policy, const struct config_key *key);
/* The same by the name of a key that is in the table. */
bool dialect_uses_named(const struct list_policy *policy, const char *name);

/* Checks what the dialect is about and fills key_bytes_max. Returns 0, or -1 with the reason in the
 * place's error: at the line of the key that it is about, if it is given there, else at the
 * section's. */
MUST_CHECK int dialect_check(struct list_policy *policy, const struct place *place);

#endif
