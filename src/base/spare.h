/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Free lists of equal objects: freed ones are kept for reuse as long as there are no more than max
 * of them in all, in use or not. What they hold counts in base/memory.h, spare ones too.
 */
#ifndef BASE_SPARE_H
#define BASE_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

struct spare {
    struct spare *next;
};
struct spare_list {
    struct spare *first;
    uint32_t made, max;
    size_t size;
};

/* Objects of size bytes; bytes_max for all of them. */
void spare_init(struct spare_list *list, size_t size, size_t bytes_max);
void spare_fini(struct spare_list *list);

/* A new object, all zeros. Never NULL. */
void *spare_new(struct spare_list *list);
/* Gives back an object's memory at once. */
void spare_free(struct spare_list *list, void *object);

/* A new object, all zeros, or one as it was given, but for its first bytes. Never NULL. */
static inline void *spare_take(struct spare_list *list)
{
    struct spare *object = list->first;
    if (object == NULL) {
        return spare_new(list);
    }
    list->first = object->next;
    return object;
}

/* Will an object that is given now be kept? If not, what it holds itself must be freed before. */
static inline bool spare_has_room(const struct spare_list *list)
{
    return LIKELY(list->made <= list->max);
}

static inline void spare_give(struct spare_list *list, void *object)
{
    struct spare *s = object;
    if (!spare_has_room(list)) {
        spare_free(list, object);
        return;
    }
    s->next = list->first;
    list->first = s;
}

#endif
