/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One value of the configuration as text and in its struct, as the table says.
 */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include "config/config.h"
#include "config/table.h"

/* Drops the addresses of a TYPE_LISTEN. */
void value_clear_listen(const struct config_key *key, void *section);
/* Parses text into key's field of section (the struct of its kind). Addresses
 * are added to those already there. Returns 0, or -1 with "what is wrong; expected ..." in error;
 * then the field may have changed. */
MUST_CHECK int value_parse(const struct config_key *key, void *section, struct slice text,
                           char error[CONFIG_ERROR_MAX]);

/* Room for what value_expected writes. */
#define VALUE_EXPECTED_MAX 256
/* What key takes, as in "expected ...": "1 to 64", "yes or no". Returns out. */
const char *value_expected(const struct config_key *key, char out[VALUE_EXPECTED_MAX]);

/* Writes key's field as text, bytes as plain numbers, to out. Owned by the caller, who frees it. */
char *value_format(const struct config_key *key, const void *section);

/* Copies key's field; not for addresses. */
void value_copy(const struct config_key *key, void *to, const void *from);

#endif
