/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/place.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "config/suggest.h"
#include "config/text.h"

struct place place_of_keys(const struct place *section, const uint32_t *given_line,
                           const struct config_key *key, const struct config_key *other)
{
    struct place exact = *section;
    uint32_t line = given_line[config_key_index(key)];
    if (line == CONFIG_GIVEN_NOT && other != NULL) {
        line = given_line[config_key_index(other)];
    }
    if (line != CONFIG_GIVEN_NOT) {
        exact.line = line == CONFIG_GIVEN_BY_OPTION ? 0 : line;
    }
    return exact;
}

int refuse(const struct place *place, const char *format, ...)
{
    char why[CONFIG_ERROR_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (place->line == 0) {
        return config_fail(place->error, "%s%s%s: %s", place->config->path,
                           place->config->path[0] == '\0' ? "" : ": ", place->section, why);
    }
    return config_fail(place->error, "%s:%" PRIu32 ": %s: %s", place->config->path, place->line,
                       place->section, why);
}

bool place_pool(const struct config *config, const char *name, uint32_t *index)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        if (strcmp(config->pools[i].name, name) == 0) {
            *index = (uint32_t)i;
            return true;
        }
    }
    return false;
}

int refuse_pool(const struct place *place, const char *key, const char *name)
{
    const char *names[CONFIG_POOLS_MAX + 1] = {NULL};
    for (size_t i = 0; i < place->config->pool_count; i++) {
        names[i] = place->config->pools[i].name;
    }
    const char *near = suggest(slice_of(name), names);
    if (near != NULL) {
        return refuse(place, "%s: there is no [pool %s]; did you mean %s?", key, name, near);
    }
    return refuse(place, "%s: there is no [pool %s]; expected the NAME of a [pool NAME]", key,
                  name);
}
