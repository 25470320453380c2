/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>

static void check(int result, const char *error)
{
    if (result != 0) {
        fprintf(stderr, "config: %s\n", error);
        exit(2);
    }
}

struct config *settings_create(uint32_t log_limit_bytes, uint32_t log_hard_limit_bytes,
                               uint32_t sublist_limit_bytes)
{
    char error[CONFIG_ERROR_MAX];
    struct config *config = config_create();
    check(config_add_pool(config, "world", "s0:11211", error), error);
    struct list_policy *policy = &config->lists[0];
    policy->delimiter = ',';
    policy->max_item_bytes = 32;
    policy->log_limit_bytes = log_limit_bytes;
    policy->log_hard_limit_bytes = log_hard_limit_bytes;
    policy->sublist_limit_bytes = sublist_limit_bytes;
    return config;
}

void settings_finish(struct config *config)
{
    char error[CONFIG_ERROR_MAX];
    check(config_finish(config, error), error);
}
