/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files that a test writes out as text. */
#ifndef SUPPORT_CONFIG_H
#define SUPPORT_CONFIG_H

#include "config/config.h"

/* What config_load or config_finish said last. */
extern char config_error[CONFIG_ERROR_MAX];
/* The file of config_load_bytes, which is gone again: errors begin with its name. */
extern char config_path[64];

/* Loads a file with these bytes. Returns what config_load does. */
int config_load_bytes(struct config *config, const void *text, size_t len);

/* Loads and finishes a file of that text, which must be fine. The caller destroys the result. */
struct config *good(const char *text);
/*
 * Loads and finishes a file of that text. Returns the error behind the file's name, until the next
 * file is loaded; "ok" without one.
 */
const char *said_of(const char *text);
/* That must be the error. For texts that tests/unit/config_errors.txt cannot hold. */
void refused(const char *text, const char *expected);

#endif
