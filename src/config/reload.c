/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/reload.h"

#include <stdlib.h>
#include <string.h>

#include "config/flush.h"
#include "config/route.h"
#include "config/store.h"
#include "config/table.h"
#include "config/value.h"

/* The section of that name in another configuration, most likely at the same place. */
static bool find_part(struct config *config, size_t place, const char *name,
                      struct config_part *part)
{
    if (config_part_at(config, place, part) && strcmp(part->name, name) == 0) {
        return true;
    }
    for (size_t i = 0; config_part_at(config, i, part); i++) {
        if (strcmp(part->name, name) == 0) {
            return true;
        }
    }
    return false;
}

typedef void change_taker(void *arg, const struct config_change *change);

static void compare_part(const struct config_part *now, const struct config_part *next,
                         change_taker *take, void *arg)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].section != now->kind) {
            continue;
        }
        char *before = value_format(&keys[i], now->values);
        char *after = value_format(&keys[i], next->values);
        if (strcmp(before, after) != 0) {
            struct config_change change = {now->name, keys[i].name, before, after, keys[i].live};
            take(arg, &change);
        }
        free(before);
        free(after);
    }
}

void config_compare(struct config *now, struct config *next, change_taker *take, void *arg)
{
    struct config_part part, other;
    for (size_t i = 0; config_part_at(now, i, &part); i++) {
        if (find_part(next, i, part.name, &other)) {
            compare_part(&part, &other, take, arg);
        } else {
            struct config_change change = {part.name, NULL, "there", "missing", false};
            take(arg, &change);
        }
    }
    for (size_t i = 0; config_part_at(next, i, &part); i++) {
        if (!find_part(now, i, part.name, &other)) {
            struct config_change change = {part.name, NULL, "missing", "there", false};
            take(arg, &change);
        }
    }
}

static void adopt_part(const struct config_part *now, const struct config_part *next)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].section == now->kind && keys[i].live) {
            value_copy(&keys[i], now->values, next->values);
        }
    }
    memcpy(now->given_line, next->given_line, CONFIG_KEYS_MAX * sizeof *now->given_line);
}

/* next ends with those of before. */
static void swap_users(struct listener_config *now, struct listener_config *next)
{
    struct users *users = now->users;
    now->users = next->users;
    next->users = users;
}

void config_adopt(struct config *now, struct config *next)
{
    struct config_part part, other;
    for (size_t i = 0; config_part_at(now, i, &part); i++) {
        CHECK(find_part(next, i, part.name, &other));
        adopt_part(&part, &other);
        if (part.kind == SECTION_LISTENER || part.kind == SECTION_PROXY) {
            swap_users(part.kind == SECTION_PROXY ? &now->listeners[0] : part.values,
                       part.kind == SECTION_PROXY ? &next->listeners[0] : other.values);
        }
        if (part.kind == SECTION_POOL) {
            struct pool_config *pool = part.values;
            const struct pool_config *source = other.values;
            memcpy(pool->password, source->password, sizeof pool->password);
            pool->item_bytes_wanted = source->item_bytes_wanted;
        }
    }
    route_find_pools(now);
    flush_find_pools(now);
}
