/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hot.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void hot_init(struct hot *hot)
{
    *hot = (struct hot){.count = 0};
    CHECK(pthread_mutex_init(&hot->lock, NULL) == 0);
}

void hot_fini(struct hot *hot)
{
    pthread_mutex_destroy(&hot->lock);
}

static void halve(struct hot *hot, int64_t now_s)
{
    if (now_s < hot->halved_s + HOT_HALF_S && now_s >= hot->halved_s) {
        return;
    }
    hot->halved_s = now_s;
    hot->total /= 2;
    for (size_t i = 0; i < hot->count; i++) {
        hot->names[i].count /= 2;
    }
}

/* The place of the name, or that of the rarest one. */
static struct hot_name *place_of(struct hot *hot, uint64_t hash)
{
    struct hot_name *rarest = &hot->names[0];
    for (size_t i = 0; i < hot->count; i++) {
        if (hot->names[i].hash == hash) {
            return &hot->names[i];
        }
        rarest = hot->names[i].count < rarest->count ? &hot->names[i] : rarest;
    }
    return hot->count < HOT_NAMES ? &hot->names[hot->count++] : rarest;
}

void hot_count(struct hot *hot, struct slice name, int64_t now_s)
{
    uint64_t hash = hash_bytes(name.p, name.len, 0);
    pthread_mutex_lock(&hot->lock);
    halve(hot, now_s);
    struct hot_name *place = place_of(hot, hash);
    if (place->hash != hash || place->count == 0) {
        place->hash = hash;
        place->len = (uint8_t)(name.len < HOT_NAME_BYTES ? name.len : HOT_NAME_BYTES);
        if (place->len > 0) {
            memcpy(place->bytes, name.p, place->len); /* nothing may be nowhere */
        }
    }
    place->count++;
    hot->total++;
    pthread_mutex_unlock(&hot->lock);
}

static void add_name(struct hot_sum *sum, const struct hot_name *name)
{
    for (size_t i = 0; i < sum->count; i++) {
        if (sum->names[i].hash == name->hash) {
            sum->names[i].count += name->count;
            return;
        }
    }
    sum->names = array_room(sum->names, sum->count, &sum->cap, sizeof *sum->names);
    sum->names[sum->count++] = *name;
}

void hot_sum_add(struct hot_sum *sum, struct hot *from)
{
    pthread_mutex_lock(&from->lock);
    sum->total += from->total;
    for (size_t i = 0; i < from->count; i++) {
        if (from->names[i].count > 0) {
            add_name(sum, &from->names[i]);
        }
    }
    pthread_mutex_unlock(&from->lock);
}

static int more_first(const void *a, const void *b)
{
    uint64_t left = ((const struct hot_name *)a)->count,
             right = ((const struct hot_name *)b)->count;
    return left > right ? -1 : left < right;
}

void hot_sum_sort(struct hot_sum *sum)
{
    if (sum->count > 0) {
        qsort(sum->names, sum->count, sizeof *sum->names, more_first);
    }
}

void hot_sum_fini(struct hot_sum *sum)
{
    free(sum->names);
}
