/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/prefix.h"

#include <stdlib.h>

#include "config/text.h"

int prefix_read(struct slice written, const char *kind, char bytes[CONFIG_PREFIX_MAX + 1],
                char error[CONFIG_ERROR_MAX])
{
    char shown[80];
    /* As other programs write it: PREFIX* takes the same keys as PREFIX. */
    if (written.len > 1 && written.p[written.len - 1] == '*') {
        written.len--;
    }
    if (memchr(written.p, '*', written.len) != NULL) {
        return config_fail(error,
                           "'%s' has a * that is not its end; expected PREFIX or PREFIX*, or [%s] "
                           "for all others (\\x2a is the byte *)",
                           text_show(written, shown, sizeof shown), kind);
    }
    int len = text_unescape(written, bytes, CONFIG_PREFIX_MAX + 1);
    bool good = len > 0;
    for (int i = 0; i < len; i++) {
        good = good && (unsigned char)bytes[i] > ' ' && bytes[i] != 0x7f;
    }
    /* As other programs write it; a key that has quotes is rather unlikely, and \x22 is left. */
    if (written.len > 1 && written.p[0] == '"' && written.p[written.len - 1] == '"') {
        return config_fail(error, "the prefix is in quotes; expected it without (or \\x22)");
    }
    if (!good) {
        return config_fail(error,
                           "'%s' is no prefix of a %s; expected 1 to %d bytes without blanks and "
                           "control characters (\\xNN is allowed)",
                           text_show(written, shown, sizeof shown),
                           strcmp(kind, "lists") == 0 ? "list's key" : "key", CONFIG_PREFIX_MAX);
    }
    return len;
}

/* As bytes, a prefix before what it is a prefix of. */
static int compare(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.p, b.p, len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_entries(const void *a, const void *b)
{
    const struct prefix_entry *left = a, *right = b;
    return compare(left->prefix, right->prefix);
}

void prefix_map_make(struct prefix_map *map, const struct slice *prefixes, size_t count)
{
    prefix_map_fini(map);
    map->at = calloc(count, sizeof *map->at);
    CHECK(map->at != NULL);
    map->count = count;
    for (size_t i = 0; i < count; i++) {
        map->at[i] = (struct prefix_entry){.prefix = prefixes[i], .place = (uint32_t)i};
    }
    qsort(map->at, count, sizeof *map->at, compare_entries);
    CHECK(map->at[0].prefix.len == 0);
    for (size_t i = 1; i < count; i++) {
        uint32_t outer = (uint32_t)i - 1;
        while (!slice_starts_with(map->at[i].prefix, map->at[outer].prefix)) {
            outer = map->at[outer].outer;
        }
        map->at[i].outer = outer;
    }
}

void prefix_map_fini(struct prefix_map *map)
{
    free(map->at);
    *map = (struct prefix_map){.count = 0};
}

/* All entries between the longest prefix of the key and the key begin with that prefix: it is the
 * last entry that is not behind the key, or what that one lies within. */
size_t config_prefix_find(const struct prefix_map *map, struct slice key)
{
    size_t low = 0, high = map->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (compare(map->at[middle].prefix, key) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct prefix_entry *entry = &map->at[low];
    while (!slice_starts_with(key, entry->prefix)) {
        entry = &map->at[entry->outer];
    }
    return entry->place;
}
