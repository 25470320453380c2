/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens between the proxy and its clients. */
#ifndef PROXY_CORE_METRICS_H
#define PROXY_CORE_METRICS_H

#include "base/metric.h"

#define PROXY_METRIC_TABLE(METRIC) \
    METRIC(total_connections, "client connections accepted since start") \
    METRIC(rejected_connections, "client connections refused: max_connections reached") \
    METRIC(curr_connections, "client connections open now") \
    METRIC(bytes_read, "bytes read from clients") \
    METRIC(bytes_written, "bytes written to clients") \
    METRIC(cmd_get, "keys asked for by pass-through reads") \
    METRIC(cmd_set, "pass-through storage commands") \
    METRIC(cmd_meta, "pass-through meta commands") \
    METRIC(cmd_other, "other pass-through commands") \
    METRIC(cmd_list_write, "list verbs that change, exact ones aside") \
    METRIC(cmd_list_exact, "list verbs that read and decide: laddx, lpop") \
    METRIC(cmd_list_tx, "list verbs that change several lists in one step") \
    METRIC(cmd_list_read, "list verbs that read, per list") \
    METRIC(slow_requests, "requests that took slow_ms or longer") \
    METRIC(protected_writes, "plain writes to items of lists, refused (protect_lists)") \
    METRIC(gate_unequal, "pools whose other proxies have other servers or layouts of lists") \
    METRIC(gate_refused, "list verbs refused because of that (on_unequal = refuse)") \
    METRIC(get_hits, "keys found by pass-through reads") \
    METRIC(get_misses, "keys not found by pass-through reads") \
    METRIC(down_reads, "pass-through reads answered as misses because of down_reads = miss") \
    METRIC(failover_reads, "plain reads sent to a failover pool, since the first gave no answer") \
    METRIC(failover_sets, "values stored in a failover pool, since the first's server was down") \
    METRIC(failover_deletes, "deletes sent to a failover pool, since the first's server was down") \
    METRIC(shadow_requests, "plain requests sent to a shadow pool as well") \
    METRIC(shadow_dropped, "plain requests not sent to a shadow pool because of shadow_bytes") \
    METRIC(shadow_skipped, \
           "plain requests not sent to a shadow pool, as cas: they mean nothing there") \
    METRIC(shadow_failed, "requests to a shadow pool that had no answer") \
    METRIC(plain_moving, "requests for plain keys whose server changes, each key of a get or gat") \
    METRIC(plain_moves, "values of plain keys copied to the servers of next") \
    METRIC(plain_old_hits, "reads in step move that found the value on the old server") \
    METRIC(plain_moves_busy, "changes refused because another client was moving the key") \
    METRIC(client_errors, "requests answered ERROR or CLIENT_ERROR") \
    METRIC(server_errors, "requests answered SERVER_ERROR") \
    METRIC(client_pauses, \
           "times a client was not read from because it had too much unread or unanswered") \
    METRIC(clients_dropped_slow, \
           "clients closed because they left more than the hard limit unread") \
    METRIC(clients_dropped_memory, \
           "clients closed because memory_limit_bytes was reached and they held most") \
    METRIC(memory_pressure, "times that memory came near memory_limit_bytes, per worker") \
    METRIC(request_timeouts, \
           "clients closed because a request took longer than request_timeout_ms") \
    METRIC(other_protocols, "clients refused because they speak TLS, HTTP or Redis") \
    METRIC(idle_kicks, "clients closed after idle_timeout_s") \
    METRIC(auth_cmds, "logins that clients tried (auth_file)") \
    METRIC(auth_errors, "of these, those that were refused") \
    METRIC(tls_connections, "clients whose connection is encrypted, since start") \
    METRIC(tls_in_kernel, "of these, those for which the kernel encrypts") \
    METRIC(tls_failures, "clients closed because the handshake of TLS failed") \
    METRIC(refused_format, "requests that are no valid ones: unknown verb, words, line too long") \
    METRIC(refused_too_large, "values that are larger than max_value_bytes") \
    METRIC(refused_verb, "requests that the proxy does not take, as flush_all where it is off") \
    METRIC(refused_bridge, "plain verbs that cannot be done to a list (bridge)") \
    METRIC(refused_list_call, "list verbs that the list, or what they bring, does not allow") \
    METRIC(refused_by_server, "plain requests that the server has answered by an error") \
    METRIC(accept_failures, "times that clients could not be accepted, for want of descriptors") \
    METRIC(closed_by_client, "clients that have ended their connection") \
    METRIC(closed_lost, "clients whose connection broke") \
    METRIC(answers_dropped, \
           "answers dropped, since a client left too much unread, and asked for again")

enum proxy_metric {
    PROXY_METRIC_BEFORE = 103, /* the number before the first */
#define METRIC_ENUM(name, help) METRIC_##name,
    PROXY_METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        PROXY_METRIC_END
};

/* The same for `stats`. */
extern const struct metric_table proxy_metrics;

#endif
