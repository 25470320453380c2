/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What there is before a case begins: the settings of the list, and what is stored of it. Written
 * out by code of its own, not by the engine's.
 */
#ifndef SWEEP_NATIVE_SCENE_H
#define SWEEP_NATIVE_SCENE_H

#include "../world/world.h"
#include "config/config.h"
#include "native_history.h"

#define LIST_KEY "L"
#define GRACE_S 2
#define TOUCH_INTERVAL_S 1
/* When a case begins: by the virtual clock, and by wall clocks. */
#define START_US 1000000000ULL
#define BEGIN_WALL_S (START_WALL_S + (int64_t)(START_US / 1000000))

/* Of heads that expire: none does so while a case lasts. */
#define LIFE_S 1000000

struct policy_spec {
    const char *name;
    bool refuse, spread, miss_damaged;
    unsigned servers;
    bool expires; /* the head has a time to live */
};

extern const struct policy_spec policies[];
extern const unsigned policy_count;

struct scene_spec {
    const char *name;
    /* Parts, with a blank between them, from the oldest on:
     *   r:+0+1/+2   a run of two sublists
     *   g:3/2       garbage, three names, the last two of which are stored
     *   d:3/2       announced by a dead proxy: three names, the first two are stored
     *   y:3/2       the same, announced just now
     *   w:3         announced and withdrawn
     *   +0-1!+2     entries of the log
     * NULL: nothing is stored, not even a head. */
    const char *parts;
    const char *evicted; /* the sublist that the server has thrown out, as NAME.NUMBER, or NULL */
};

extern const struct scene_spec scenes[];
extern const unsigned scene_count;

struct stored_item {
    uint8_t key_len, placement_len;
    int32_t exptime;
    char key[KEY_BYTES_MAX];
    struct block *value;
};

#define SCENE_ITEMS_MAX 32

struct scene {
    const struct policy_spec *policy;
    const struct scene_spec *spec;
    struct config *config;
    struct stored_item items[SCENE_ITEMS_MAX];
    unsigned item_count;
    int evicted;          /* which of them, or -1 */
    struct listing first; /* what the list holds */
};

/* Makes the scene; owned by the caller until scene_fini. */
void scene_init(struct scene *scene, const struct policy_spec *policy,
                const struct scene_spec *spec);
void scene_fini(struct scene *scene);
/* Stores it in empty servers, but for the evicted one unless whole. */
void scene_load(const struct scene *scene, const struct cluster *cluster, bool whole);
/* Stores one of its items. */
void scene_put(const struct cluster *cluster, const struct stored_item *item);

#endif
