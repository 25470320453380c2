/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps that come over HTTP, in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/server/cluster_map.h"
#include "proto/server/map_stream.h"

/* Adds the text in pieces; the maps, with a bar behind each. */
static void take_all(struct map_stream *s, struct slice text, size_t piece, char all[128])
{
    struct slice map;
    all[0] = '\0';
    while (text.len > 0) {
        assert_true(map_stream_add(s, slice_take(&text, piece < text.len ? piece : text.len)));
        while (map_stream_next(s, &map)) {
            size_t len = strlen(all);
            snprintf(all + len, 128 - len, "%.*s|", SLICE_ARGS(map));
        }
    }
}

static void maps_end_at_their_last_brace(void **state)
{
    (void)state;
    static const char text[] =
        "\n\n\n\n{1}\n\n\n\n\n{\"}\\\"{\\\\\":{\"a\":{}}}\n{3}\n\n\n\n\n\n\n\n{4}{5";
    char all[128];
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        struct map_stream s = {0};
        take_all(&s, slice_make(text, sizeof text - 1), piece, all);
        assert_string_equal(all, "{1}|{\"}\\\"{\\\\\":{\"a\":{}}}|{3}|{4}|");
        assert_true(slice_equal(map_stream_rest(&s), SLICE_LIT("{5")));
        map_stream_clear(&s);
        assert_int_equal(map_stream_rest(&s).len, 0);
    }
}

/* What is no JSON, or is not complete. */
static void maps_end_at_four_line_feeds(void **state)
{
    (void)state;
    static const char text[] = "\nno map \"\n\n\n\n{\"a\n\n\n\n{{1}\n\n\n\n}\n\n\n\n{2}";
    char all[128];
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        struct map_stream s = {0};
        take_all(&s, slice_make(text, sizeof text - 1), piece, all);
        assert_string_equal(all, "no map \"|{\"a|{{1}|}|{2}|");
        assert_int_equal(map_stream_rest(&s).len, 0);
        map_stream_clear(&s);
    }
}

static void maps_have_a_greatest_length(void **state)
{
    (void)state;
    struct map_stream s = {0};
    struct slice map;
    char *large = calloc(1, CLUSTER_MAP_BYTES_MAX);
    assert_non_null(large);
    for (int i = 0; i < 3; i++) {
        assert_true(map_stream_add(&s, slice_make(large, CLUSTER_MAP_BYTES_MAX)));
        assert_false(map_stream_next(&s, &map));
        assert_true(map_stream_add(&s, SLICE_LIT("\n\n\n\n")));
        assert_true(map_stream_next(&s, &map));
        assert_int_equal(map.len, CLUSTER_MAP_BYTES_MAX);
    }
    assert_true(map_stream_add(&s, slice_make(large, CLUSTER_MAP_BYTES_MAX)));
    assert_false(map_stream_add(&s, SLICE_LIT("\n\n\nxx")));
    map_stream_clear(&s);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_end_at_their_last_brace),
        cmocka_unit_test(maps_end_at_four_line_feeds),
        cmocka_unit_test(maps_have_a_greatest_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
