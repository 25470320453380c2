/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an error of the last checks is about. For the other files of this folder.
 */
#ifndef CONFIG_PLACE_H
#define CONFIG_PLACE_H

#include "config/config.h"
#include "config/table.h"

/* The file, and the line when the section came from there. */
struct place {
    const struct config *config;
    uint32_t line;
    const char *section; /* as it stands in brackets */
    char *error;
};

/* The same section at the line that sets the key, by its given_line, 0 for an option; else at that
 * of the other key, which may be NULL; else as it is. */
struct place place_of_keys(const struct place *section, const uint32_t *given_line,
                           const struct config_key *key, const struct config_key *other);

/* The place of the pool of that name in config.pools; false: there is none. */
bool place_pool(const struct config *config, const char *name, uint32_t *index);
/* Refuses the key since name is no pool of the file, and says which one may be meant. Returns -1.
 */
int refuse_pool(const struct place *place, const char *key, const char *name);

/* Writes "FILE:LINE: [section]: why" to the place's error; always returns -1. */
int refuse(const struct place *place, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
