/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An arena: memory that is given back all at once. For what one operation collects: folded items,
 * parsed headers.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/slice.h"

struct arena_page;

struct arena {
    struct arena_page *pages;
    size_t bytes; /* held by all pages */
};

void arena_init(struct arena *a);
/* Gives everything back; the arena may be used again. */
void arena_fini(struct arena *a);
/* len bytes aligned for any type, valid until arena_fini. Never NULL. */
void *arena_alloc(struct arena *a, size_t len);
/* A copy of the bytes, valid until arena_fini. */
struct slice arena_copy(struct arena *a, struct slice s);

#endif
