/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/prefix.h"

#include <stdlib.h>

#include "config/text.h"
#include "proto/key.h"

#define STAR_AT_THE_END "has a * that is not its end; expected PREFIX or PREFIX*, or"
#define STAR_AT_AN_END \
    "has a * within; expected PREFIX, or *PART for keys that hold PART anywhere, or"

int prefix_read(struct slice written, const char *kind, bool *anywhere,
                char bytes[CONFIG_PREFIX_MAX + 1], char error[CONFIG_ERROR_MAX])
{
    char shown[80];
    /* As other programs write it: PREFIX* takes the same keys as PREFIX. */
    if (written.len > 1 && written.p[written.len - 1] == '*') {
        written.len--;
    }
    if (anywhere != NULL) {
        *anywhere = written.len > 1 && written.p[0] == '*';
        (void)slice_take(&written, *anywhere);
    }
    if (memchr(written.p, '*', written.len) != NULL) {
        return config_fail(error, "'%s' %s [%s] for all others (\\x2a is the byte *)",
                           text_show(written, shown, sizeof shown),
                           anywhere == NULL ? STAR_AT_THE_END : STAR_AT_AN_END, kind);
    }
    int len = text_unescape(written, bytes, CONFIG_PREFIX_MAX + 1);
    /* As other programs write it; a key that has quotes is rather unlikely, and \x22 is left. */
    if (written.len > 1 && written.p[0] == '"' && written.p[written.len - 1] == '"') {
        return config_fail(error, "the prefix is in quotes; expected it without (or \\x22)");
    }
    if (len < 0 || !key_is_word(slice_make(bytes, (size_t)len))) {
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

/* The prefixes of one sort, behind the empty one, which is the first of names. */
static void fill(struct prefix_map *map, const struct prefix_name *names, size_t count,
                 bool anywhere)
{
    map->at = calloc(count, sizeof *map->at);
    CHECK(map->at != NULL);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || names[i].anywhere == anywhere) {
            map->at[map->count++] =
                (struct prefix_entry){.prefix = names[i].bytes, .place = (uint32_t)i};
        }
    }
    qsort(map->at, map->count, sizeof *map->at, compare_entries);
    CHECK(map->at[0].prefix.len == 0);
    for (size_t i = 1; i < map->count; i++) {
        uint32_t outer = (uint32_t)i - 1;
        while (!slice_starts_with(map->at[i].prefix, map->at[outer].prefix)) {
            outer = map->at[outer].outer;
        }
        map->at[i].outer = outer;
    }
}

struct prefix_inside {
    struct prefix_map map;
    bool begins[256]; /* whether one of them begins with that byte */
};

/* The place of the empty prefix, where there are some that may stand anywhere: the look goes on. */
#define PLACE_GO_ON UINT32_MAX

void prefix_map_make(struct prefix_map *map, const struct prefix_name *names, size_t count)
{
    prefix_map_fini(map);
    fill(map, names, count, false);
    if (map->count == count) {
        return;
    }
    map->inside = calloc(1, sizeof *map->inside);
    CHECK(map->inside != NULL);
    fill(&map->inside->map, names, count, true);
    map->at[0].place = PLACE_GO_ON;
    for (size_t i = 1; i < map->inside->map.count; i++) {
        map->inside->begins[(unsigned char)map->inside->map.at[i].prefix.p[0]] = true;
    }
}

void prefix_map_fini(struct prefix_map *map)
{
    if (map->inside != NULL) {
        free(map->inside->map.at);
        free(map->inside);
    }
    free(map->at);
    *map = (struct prefix_map){.count = 0};
}

static NOINLINE size_t find_inside(const struct prefix_inside *inside, struct slice key)
{
    size_t place = 0;
    for (; key.len > 0 && place == 0; (void)slice_take(&key, 1)) {
        if (inside->begins[(unsigned char)key.p[0]]) {
            place = config_prefix_find(&inside->map, key);
        }
    }
    return place;
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
    return UNLIKELY(entry->place == PLACE_GO_ON) ? find_inside(map->inside, key) : entry->place;
}

/* Can `with` stand at that place of `what`, or behind it, and share bytes with it? */
static bool shares(struct slice what, size_t at, struct slice with)
{
    bool found = false;
    for (; at < what.len && !found; at++) {
        size_t len = what.len - at < with.len ? what.len - at : with.len;
        found = memcmp(what.p + at, with.p, len) == 0;
    }
    return found;
}

bool prefix_crosses(const struct prefix_name *a, const struct prefix_name *b)
{
    if (!a->anywhere) {
        return prefix_crosses(b, a);
    }
    if (b->anywhere) {
        return shares(a->bytes, 1, b->bytes) || shares(b->bytes, 1, a->bytes);
    }
    /* From there on, b does not have all of a. */
    size_t from = b->bytes.len < a->bytes.len ? 0 : b->bytes.len - a->bytes.len + 1;
    return shares(b->bytes, from, a->bytes);
}
