/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/map_stream.h"

#include <stdlib.h>

#include "proto/server/cluster_map.h"

#define MARK "\n\n\n\n"
#define MARK_BYTES (sizeof MARK - 1)

static void drop_taken(struct map_stream *s)
{
    if (s->taken > 0) {
        memmove(s->bytes, s->bytes + s->taken, s->len - s->taken);
        s->len -= s->taken;
        s->taken = 0;
    }
}

static struct slice trim(struct slice text)
{
    while (text.len > 0 && text.p[0] == '\n') {
        (void)slice_take(&text, 1);
    }
    while (text.len > 0 && text.p[text.len - 1] == '\n') {
        text.len--;
    }
    return text;
}

bool map_stream_add(struct map_stream *s, struct slice bytes)
{
    drop_taken(s);
    if (bytes.len > CLUSTER_MAP_BYTES_MAX + MARK_BYTES - s->len) {
        return false;
    }
    if (s->len + bytes.len > s->cap) {
        s->cap = s->len + bytes.len;
        s->bytes = realloc(s->bytes, s->cap);
        CHECK(s->bytes != NULL);
    }
    if (bytes.len > 0) {
        memcpy(s->bytes + s->len, bytes.p, bytes.len);
    }
    s->len += bytes.len;
    return true;
}

bool map_stream_next(struct map_stream *s, struct slice *map)
{
    while (s->len - s->taken >= MARK_BYTES) {
        const char *from = s->bytes + s->taken;
        const char *mark = memmem(from, s->len - s->taken, MARK, MARK_BYTES);
        if (mark == NULL) {
            return false;
        }
        s->taken += (size_t)(mark - from) + MARK_BYTES;
        *map = trim(slice_make(from, (size_t)(mark - from)));
        if (map->len > 0) {
            return true;
        }
    }
    return false;
}

struct slice map_stream_rest(const struct map_stream *s)
{
    return s->bytes == NULL ? SLICE_NONE : trim(slice_make(s->bytes + s->taken, s->len - s->taken));
}

void map_stream_clear(struct map_stream *s)
{
    free(s->bytes);
    *s = (struct map_stream){0};
}
