/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

#define PAGE_MIN_BYTES ((size_t)4096)
#define PAGE_MAX_BYTES ((size_t)262144)

struct arena_page {
    struct arena_page *next;
    size_t cap;
    size_t used;
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_fini(struct arena *a)
{
    while (a->pages != NULL) {
        struct arena_page *page = a->pages;
        a->pages = page->next;
        free(page);
    }
    if (a->bytes > 0) {
        memory_count_scratch(-(int64_t)a->bytes);
    }
    a->bytes = 0;
}

static void *alloc_aligned(struct arena *a, size_t len, size_t alignment)
{
    struct arena_page *page = a->pages;
    size_t start = page == NULL ? 0 : (page->used + alignment - 1) & ~(alignment - 1);
    if (page == NULL || start + len > page->cap) {
        /* Pages double, so that a small operation costs little and a large one few calls. */
        size_t cap = page == NULL ? PAGE_MIN_BYTES : page->cap * 2;
        cap = cap > PAGE_MAX_BYTES ? PAGE_MAX_BYTES : cap;
        cap = cap < len ? len : cap;
        page = malloc(sizeof *page + cap);
        CHECK(page != NULL);
        page->next = a->pages;
        page->cap = cap;
        a->pages = page;
        a->bytes += cap;
        memory_count_scratch((int64_t)cap);
        start = 0;
    }
    page->used = start + len;
    return page->data + start;
}

void *arena_alloc(struct arena *a, size_t len)
{
    return alloc_aligned(a, len, alignof(max_align_t));
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    char *p = alloc_aligned(a, s.len, 1);
    if (s.len > 0) {
        memcpy(p, s.p, s.len);
    }
    return slice_make(p, s.len);
}
