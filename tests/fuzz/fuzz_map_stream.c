/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as maps that come over HTTP: the same maps in whatever pieces they arrive.
 *
 *     byte 0    the length of the pieces, less one
 *     the rest  what arrives
 */
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "proto/server/map_stream.h"

/* The maps, each with a NUL behind it, and then the rest. */
struct found {
    char *bytes;
    size_t len;
};

static void note(struct found *found, struct slice text)
{
    CHECK(text.len == 0 || (text.p[0] != '\n' && text.p[text.len - 1] != '\n'));
    memcpy(found->bytes + found->len, text.p == NULL ? "" : text.p, text.len);
    found->len += text.len;
    found->bytes[found->len++] = '\0';
}

static struct found split(struct slice bytes, size_t piece)
{
    struct found found = {.bytes = malloc(2 * bytes.len + 2)};
    struct map_stream stream = {0};
    struct slice map;
    CHECK(found.bytes != NULL);
    while (bytes.len > 0) {
        CHECK(map_stream_add(&stream, slice_take(&bytes, piece < bytes.len ? piece : bytes.len)));
        while (map_stream_next(&stream, &map)) {
            CHECK(map.len > 0 && memmem(map.p, map.len, "\n\n\n\n", 4) == NULL);
            note(&found, map);
        }
    }
    note(&found, map_stream_rest(&stream));
    map_stream_clear(&stream);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    size_t piece = (size_t)input_byte(&in) + 1;
    struct found some = split(in.rest, piece), one = split(in.rest, 1);
    CHECK(some.len == one.len && memcmp(some.bytes, one.bytes, one.len) == 0);
    free(some.bytes);
    free(one.bytes);
    return 0;
}
