/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/need.h"

#include <stdlib.h>

#include "config/value.h"

/* Each key, and what it needs: another value there than the default. */
static const struct need {
    const char *name;
    const char *other;
    const char *expected;
} needs[] = {
    {"ttl_renew", "ttl_s", "ttl_s above 0"},
    {"cap", "max_items", "max_items above 0"},
    {"bridge_delete", "bridge", "bridge = yes"},
    {"bridge_flags_in", "bridge", "bridge = yes"},
    {"bridge_flags_out", "bridge", "bridge = yes"},
    {"bridge_last_delimiter", "bridge", "bridge = yes"},
};

static const struct config_key *key_of(const char *name)
{
    return config_key_known(SECTION_LISTS, name);
}

static bool is_default(const struct list_policy *policy, const struct config_key *key)
{
    char *value = value_format(key, policy);
    bool same = strcmp(value, key->standard) == 0;
    free(value);
    return same;
}

static const struct need *need_of(const struct config_key *key)
{
    size_t i = 0;
    while (i < sizeof needs / sizeof needs[0] &&
           (key->section != SECTION_LISTS || strcmp(needs[i].name, key->name) != 0)) {
        i++;
    }
    return i == sizeof needs / sizeof needs[0] ? NULL : &needs[i];
}

bool need_is_met(const struct list_policy *policy, const struct config_key *key)
{
    const struct need *need = need_of(key);
    return need == NULL || policy->prefix_len == 0 || !is_default(policy, key_of(need->other));
}

/* By a section that may have the key from [lists], or by [lists] itself. */
static bool is_met_anywhere(const struct config *config, const struct need *need)
{
    size_t i = 0;
    while (i < config->list_count && is_default(&config->lists[i], key_of(need->other))) {
        i++;
    }
    return i < config->list_count;
}

int need_check(const struct config *config, const struct list_policy *policy,
               const struct place *place)
{
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        const struct config_key *key = key_of(needs[i].name), *other = key_of(needs[i].other);
        struct place exact = *place;
        exact.line = policy->given_line[config_key_index(key)];
        bool met = policy->prefix_len > 0
                       ? need_is_met(policy, key)
                       : is_default(policy, key) || is_met_anywhere(config, &needs[i]);
        if (exact.line != CONFIG_GIVEN_NOT && !met) {
            return refuse(&exact, "%s: %s = %s does not use it; expected with %s", key->name,
                          other->name, other->standard, needs[i].expected);
        }
    }
    return 0;
}
