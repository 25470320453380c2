/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the map of a cluster: it is refused with a reason, or each vBucket has a node of the
 * map.
 *
 *     byte 0    bit 0: with the addresses of the network "external"; bit 1: of a guessed one
 *     the rest  the map
 */
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "proto/server/cluster_map.h"

static void check_map(const struct cluster_map *map)
{
    CHECK(map->node_count >= 1 && map->node_count <= CLUSTER_NODES_MAX);
    CHECK(map->vbucket_count >= 1 && map->vbucket_count <= CLUSTER_VBUCKETS_MAX);
    size_t usable = 0;
    for (size_t i = 0; i < map->node_count; i++) {
        const struct cluster_node *node = &map->nodes[i];
        CHECK((node->port != 0) == (node->problem[0] == '\0'));
        CHECK(node->port == 0 || strlen(node->host) > 0);
        usable += node->port != 0;
    }
    CHECK(usable > 0);
    for (const char *p = map->network; *p != '\0'; p++) {
        CHECK(*p > ' ' && *p <= '~');
    }
    for (size_t i = 0; i < map->vbucket_count; i++) {
        for (int forward = 0; forward < 2; forward++) {
            int owner = cluster_map_owner(map, (uint16_t)i, forward != 0);
            CHECK(owner >= -1 && owner < (int)map->node_count);
        }
    }
    CHECK(cluster_map_is_newer(map, NULL));
    CHECK(!cluster_map_is_newer(map, map) || map->revision < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    char error[CLUSTER_ERROR_MAX];
    unsigned how = input_byte(&in);
    struct cluster_view view = {.host = SLICE_LIT("10.0.0.1"),
                                .tls = size % 4 == 3,
                                .port = size % 8 < 4 ? 0 : 11210,
                                .guess_network = (how & 2) != 0,
                                .network = (how & 1) != 0 ? SLICE_LIT("external") : SLICE_NONE};
    memset(error, 'x', sizeof error);
    struct cluster_map *map = cluster_map_parse(in.rest, &view, error);
    if (map == NULL) {
        CHECK(memchr(error, '\0', sizeof error) != NULL && error[0] != '\0');
        return 0;
    }
    check_map(map);
    cluster_map_destroy(&map);
    return 0;
}
