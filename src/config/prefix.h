/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sections that hold for the keys under a prefix, [lists PREFIX] and [route PREFIX]: how a prefix
 * is written, and which one a key has. The longest prefix of a key wins.
 */
#ifndef CONFIG_PREFIX_H
#define CONFIG_PREFIX_H

#include "base/check.h"
#include "config/config.h"

/* Reads the PREFIX of a section as written: \xNN is allowed, and a * at its end is left out. kind:
 * the section's first word. Returns its length, and writes it to bytes, with a NUL; or -1 with the
 * reason in error. */
MUST_CHECK int prefix_read(struct slice written, const char *kind,
                           char bytes[CONFIG_PREFIX_MAX + 1], char error[CONFIG_ERROR_MAX]);

/* Makes the map of so many prefixes in place of what it was, so that config_prefix_find finds their
 * places. prefixes[0] is empty, all are different, and they live as long as the map. */
void prefix_map_make(struct prefix_map *map, const struct slice *prefixes, size_t count);
void prefix_map_fini(struct prefix_map *map);

#endif
