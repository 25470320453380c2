/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sections that hold for the keys under a prefix, [lists PREFIX] and [route PREFIX]: how a prefix
 * is written, and which one a key has. The longest prefix of a key wins.
 *
 * [lists *PART] holds for keys that have no such prefix and hold PART anywhere: clients may put
 * something before the names that an application gives. Two of these fit a key in one way only,
 * since none may share bytes of a key with another, but for what begins with it.
 */
#ifndef CONFIG_PREFIX_H
#define CONFIG_PREFIX_H

#include "base/check.h"
#include "config/config.h"

/* Reads the PREFIX of a section as written: \xNN is allowed, and a * at its end is left out. kind:
 * the section's first word. anywhere: set when a * stands in front; NULL: it may not. Returns its
 * length, and writes it to bytes, with a NUL; or -1 with the reason in error. */
MUST_CHECK int prefix_read(struct slice written, const char *kind, bool *anywhere,
                           char bytes[CONFIG_PREFIX_MAX + 1], char error[CONFIG_ERROR_MAX]);

struct prefix_name {
    struct slice bytes;
    bool anywhere;
};

/* Makes the map of so many prefixes in place of what it was, so that config_prefix_find finds their
 * places. names[0] is empty, all are different, and they live as long as the map. */
void prefix_map_make(struct prefix_map *map, const struct prefix_name *names, size_t count);
void prefix_map_fini(struct prefix_map *map);

/* May a key hold both so that they share bytes, and it is not plain which of the two holds for it?
 * It is plain where both stand in one place (the longer one holds), and where one that begins a key
 * has all of the other. At least one of them may stand anywhere. */
bool prefix_crosses(const struct prefix_name *a, const struct prefix_name *b);

#endif
