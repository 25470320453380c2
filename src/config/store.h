/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making the parts of a configuration. For the other files of this folder.
 */
#ifndef CONFIG_STORE_H
#define CONFIG_STORE_H

#include "config/config.h"

/* A new pool with default settings and no servers, or NULL with the reason in error. Its address
 * stays valid. */
struct pool_config *config_new_pool(struct config *config, struct slice name,
                                    char error[CONFIG_ERROR_MAX]);

/* A new listener without addresses, or NULL with the reason in error. */
struct listener_config *config_new_listener(struct config *config, struct slice name,
                                            char error[CONFIG_ERROR_MAX]);

/* A new policy for the prefix as written (\xNN allowed) that inherits everything, or NULL with the
 * reason in error. Its address stays valid until config_finish. */
struct list_policy *config_new_lists(struct config *config, struct slice prefix,
                                     char error[CONFIG_ERROR_MAX]);

#endif
