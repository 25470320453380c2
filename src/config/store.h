/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making the parts of a configuration. For the other files of this folder.
 */
#ifndef CONFIG_STORE_H
#define CONFIG_STORE_H

#include "config/config.h"
#include "config/table.h"

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

/* The same for plain keys. */
struct route_config *config_new_route(struct config *config, struct slice prefix,
                                      char error[CONFIG_ERROR_MAX]);

/* A section of a configuration: what its keys are stored in, and where they were set. */
struct config_part {
    enum config_section kind;
    void *values;
    uint32_t *given_line;
    /* As between its brackets. A prefix may hold bytes that take four characters. */
    char name[4 * CONFIG_NAME_MAX + 16];
};

/* The section at that place: [proxy], [admin], the pools, the routes, the lists. Returns false
 * behind the last one. */
bool config_part_at(struct config *config, size_t i, struct config_part *part);

#endif
