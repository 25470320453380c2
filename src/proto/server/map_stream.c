/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/map_stream.h"

#include <stdlib.h>

#include "proto/server/cluster_map.h"

/* Line feeds behind a map. */
#define MARK_BYTES ((size_t)4)

static void drop_taken(struct map_stream *s)
{
    if (s->taken > 0) {
        memmove(s->bytes, s->bytes + s->taken, s->len - s->taken);
        s->len -= s->taken;
        s->seen -= s->taken;
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

/* Looks at one more character. True when a map ends with it: with the brace that closes the first
 * one, or, whatever it is that stands there, with the mark. */
static bool see(struct map_stream *s, char c)
{
    bool is_text = s->in_string;
    s->feeds = c == '\n' ? s->feeds + 1 : 0;
    if (s->feeds == MARK_BYTES) {
        return true;
    }
    if (is_text) {
        s->in_string = s->is_escaped || c != '"';
        s->is_escaped = !s->is_escaped && c == '\\';
        return false;
    }
    switch (c) {
    case '"':
        s->in_string = s->braces > 0;
        return false;
    case '{':
        s->braces++;
        return false;
    case '}':
        s->braces -= s->braces > 0;
        return s->braces == 0;
    default:
        return false;
    }
}

bool map_stream_next(struct map_stream *s, struct slice *map)
{
    while (s->seen < s->len) {
        if (!see(s, s->bytes[s->seen++])) {
            continue;
        }
        *map = trim(slice_make(s->bytes + s->taken, s->seen - s->taken));
        s->taken = s->seen;
        s->braces = s->feeds = 0;
        s->in_string = s->is_escaped = false;
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
