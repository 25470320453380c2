/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a Couchbase cluster says of itself: its nodes, and which of them has which vBucket, the unit
 * that keys are spread by. A pure function of the bytes. The only user of json-c.
 *
 *     key --shard_vbucket()--> vBucket --cluster_map_owner()--> node --> host and port
 */
#ifndef PROTO_SERVER_CLUSTER_MAP_H
#define PROTO_SERVER_CLUSTER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* Longest map that is read. One of 1,024 vBuckets with three replicas, and as many forward, has 30
 * KB; 100 nodes have 50 KB more. In memory it takes some twenty times that while it is read. */
#define CLUSTER_MAP_BYTES_MAX ((size_t)1 << 20)
/* A map has five levels. */
#define CLUSTER_MAP_DEPTH_MAX 16
/* The hash of a key has 15 bits. */
#define CLUSTER_VBUCKETS_MAX 32768
#define CLUSTER_NODES_MAX 256
#define CLUSTER_HOST_MAX 255
#define CLUSTER_ERROR_MAX 160

#define CLUSTER_NETWORK_MAX 63

struct cluster_node {
    char host[CLUSTER_HOST_MAX + 1]; /* a name or an address, without brackets */
    uint16_t port; /* of the data service; 0: it cannot be reached, since the map */
    char problem[CLUSTER_ERROR_MAX]; /* ... "has no port for TLS of 10.0.0.1"; "": it can */
};

struct cluster_map {
    int64_t epoch, revision;               /* -1: not told; see cluster_map_is_newer */
    char network[CLUSTER_NETWORK_MAX + 1]; /* whose addresses of the nodes are used; "": their own
                                            */
    size_t node_count;                     /* at least one of them can be reached */
    struct cluster_node *nodes;
    size_t vbucket_count; /* a power of two */
    size_t short_count;   /* those that have a node, and less than a majority of their copies */
    int16_t *owners;      /* of each vBucket: an index of nodes, or -1: none at present */
    int16_t *forward;     /* where it is moving to, in a rebalance; or NULL */
};

/* How to read a map. */
struct cluster_view {
    struct slice host; /* what the proxy has connected to: the map may call it $HOST, or nothing */
    struct slice address; /* what that name means, or empty */
    uint16_t port;        /* the data port there; 0: another one was reached */
    bool tls;             /* the ports for encrypted connections are wanted */
    struct slice network; /* the name of the nodes' alternate addresses to use; empty: the plain
                             ones */
    bool guess_network;   /* the one that host, or address, belongs to, instead */
};

/* A node whose entry is of no use does not make the map useless. Returns the map, owned by the
 * caller until cluster_map_destroy; or NULL with a phrase that goes on after "its cluster map" in
 * error. */
struct cluster_map *cluster_map_parse(struct slice json, const struct cluster_view *view,
                                      char error[CLUSTER_ERROR_MAX]);
void cluster_map_destroy(struct cluster_map **map);

/* Is a newer than b? By epoch, then by revision; one without a revision is taken for newer than
 * another of its epoch that is no further. b may be NULL. */
bool cluster_map_is_newer(const struct cluster_map *a, const struct cluster_map *b);

/* The index of the node that has the vBucket, or -1. forward: the one that it moves to, where the
 * map tells that. */
int cluster_map_owner(const struct cluster_map *map, uint16_t vbucket, bool forward);

#endif
