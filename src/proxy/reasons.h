/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why anything was refused, ended without an answer, closed, dropped or tried again: all reasons in
 * one table, over the counters of all folders. `stats reasons`, the metrics with the label
 * `reason`, and docs/statistics.md follow it. REASON(what happened, name, the counter)
 */
#ifndef PROXY_REASONS_H
#define PROXY_REASONS_H

#include <stddef.h>

#define REASON_TABLE(REASON) \
    REASON(refused, format, refused_format) \
    REASON(refused, too_large, refused_too_large) \
    REASON(refused, verb, refused_verb) \
    REASON(refused, bridge, refused_bridge) \
    REASON(refused, list_call, refused_list_call) \
    REASON(refused, protected, protected_writes) \
    REASON(refused, unequal, gate_refused) \
    REASON(refused, login, auth_errors) \
    REASON(refused, by_server, refused_by_server) \
    REASON(refused, deadline, deadlines_over) \
    REASON(refused, list_log_full, list_log_full) \
    REASON(refused, list_busy, list_busy) \
    REASON(refused, list_damaged, list_damaged) \
    REASON(refused, list_foreign, list_foreign) \
    REASON(refused, list_memory, list_ended_for_memory) \
    REASON(refused, server_memory, list_out_of_memory) \
    REASON(ended, down, ended_down) \
    REASON(ended, name, ended_name) \
    REASON(ended, unfit, ended_unfit) \
    REASON(ended, ejected, ended_ejected) \
    REASON(ended, drained, ended_drained) \
    REASON(ended, descriptors, ended_descriptors) \
    REASON(ended, queue_full, ended_queue_full) \
    REASON(ended, unknown_there, ended_unknown_there) \
    REASON(ended, timeout, backend_timeouts) \
    REASON(ended, lost, ended_lost) \
    REASON(ended, shutdown, ended_shutdown) \
    REASON(closed, descriptors, accept_failures) \
    REASON(closed, max_connections, rejected_connections) \
    REASON(closed, other_protocol, other_protocols) \
    REASON(closed, tls, tls_failures) \
    REASON(closed, idle, idle_kicks) \
    REASON(closed, request_timeout, request_timeouts) \
    REASON(closed, slow, clients_dropped_slow) \
    REASON(closed, memory, clients_dropped_memory) \
    REASON(closed, by_client, closed_by_client) \
    REASON(closed, lost, closed_lost) \
    REASON(dropped, slow_client, answers_dropped) \
    REASON(dropped, cache_full, cache_evictions) \
    REASON(dropped, log_line, log_lines_dropped) \
    REASON(dropped, shadow_bytes, shadow_dropped) \
    REASON(dropped, shadow_meaning, shadow_skipped) \
    REASON(dropped, shadow_failed, shadow_failed) \
    REASON(retried, conflict, list_conflicts) \
    REASON(retried, connected_anew, ended_stale) \
    REASON(retried, compaction, list_giveups) \
    REASON(retried, other_node, cluster_retries) \
    REASON(retried, failover_read, failover_reads) \
    REASON(retried, failover_set, failover_sets) \
    REASON(retried, failover_delete, failover_deletes)

/* The rows. */
struct reason {
    const char *what, *name;
    const char *counter; /* its name in `stats` */
};
extern const struct reason reasons[];
extern const size_t reason_count;

#endif
