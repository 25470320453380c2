/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the map of a cluster: it is refused with a reason, or each vBucket has a node of the
 * map.
 *
 *     byte 0    bit 0: with the addresses of the network "external"
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
    for (size_t i = 0; i < map->node_count; i++) {
        size_t len = strlen(map->nodes[i].host);
        CHECK(len > 0 && len <= CLUSTER_HOST_MAX && map->nodes[i].port != 0);
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
    bool external = (input_byte(&in) & 1) != 0;
    struct cluster_view view = {.host = SLICE_LIT("10.0.0.1"),
                                .tls = size % 4 == 3,
                                .network = external ? SLICE_LIT("external") : SLICE_NONE};
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
