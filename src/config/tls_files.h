/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files the settings name for TLS. */
#ifndef CONFIG_TLS_FILES_H
#define CONFIG_TLS_FILES_H

#include "config/config.h"
#include "tls/trust.h"

/* Texts of the result are valid as long as pool and owner. */
#define TLS_OWNER_MAX (CONFIG_NAME_MAX + 16)
struct tls_files tls_files_of_pool(const struct pool_config *pool, char owner[TLS_OWNER_MAX]);
struct tls_files tls_files_of_listener(const struct listener_config *listener,
                                       char owner[TLS_OWNER_MAX]);

/* Reads all that the configuration names, as a start does. Returns 0, or -1 with the reason in
 * error. */
MUST_CHECK int tls_files_check(const struct config *config, char error[CONFIG_ERROR_MAX]);

#endif
