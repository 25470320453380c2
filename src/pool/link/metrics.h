/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connections to servers count. */
#ifndef POOL_LINK_METRICS_H
#define POOL_LINK_METRICS_H

#include "proto/server/metrics.h"

#define POOL_METRIC_TABLE(METRIC) \
    METRIC(backend_requests, "requests sent to backends") \
    METRIC(backend_errors, "backend requests that ended without an answer") \
    METRIC(backend_timeouts, "backend requests that timed out") \
    METRIC(backend_ejections, \
           "backend connections given up after eject_failures timeouts in a row") \
    METRIC(backend_connects, "backend connections established") \
    METRIC(backend_connect_failures, "failed attempts to connect to a backend") \
    METRIC(backend_bytes_read, "bytes read from backends") \
    METRIC(backend_bytes_written, "bytes written to backends") \
    METRIC(cluster_maps, "maps of Couchbase clusters taken, each newer than the one before") \
    METRIC(cluster_collections, "ids of a pool's collection taken, or that it was found missing") \
    METRIC(cluster_news, "words of nodes, unasked, of a map") \
    METRIC(cluster_retries, "requests that a node refused for now, or for another node") \
    METRIC(cluster_vbuckets, "vBuckets of the Couchbase clusters") \
    METRIC(cluster_vbuckets_without_node, \
           "of these, those that no node has, or none that can be reached") \
    METRIC(ended_down, "backend requests not sent, since the server is down or has no node") \
    METRIC(ended_name, "backend requests not sent, since the server's name has no address") \
    METRIC(ended_unfit, "backend requests not sent, since what answers there is no use") \
    METRIC(ended_ejected, "backend requests not sent, since the server is ejected") \
    METRIC(ended_drained, "backend requests not sent, since an operator has drained the server") \
    METRIC(ended_descriptors, "backend requests not sent for want of a file descriptor") \
    METRIC(ended_queue_full, "backend requests not sent: max_pending or max_pending_bytes") \
    METRIC(ended_unknown_there, "backend requests not sent, since the server cannot do them") \
    METRIC(ended_lost, "backend requests whose connection was lost") \
    METRIC(ended_shutdown, "backend requests not sent, since the proxy ends") \
    METRIC(ended_stale, "CAS not sent, since the proxy has connected anew")

enum pool_metric {
    POOL_METRIC_BEFORE = 71, /* the number before the first */
#define METRIC_ENUM(name, help) METRIC_##name,
    POOL_METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        POOL_METRIC_END
};

/* The same for `stats`. */
extern const struct metric_table pool_metrics;

#endif
