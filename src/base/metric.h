/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters. One table names them all; each worker counts in a set of its own, `stats` adds the sets
 * up.
 *
 * METRIC(name, help): name as `stats` prints it; memcached's own name where it means the same.
 */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

#define METRIC_TABLE(METRIC) \
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
    METRIC(cmd_list_exact, "laddx, ldelx, lcreate") \
    METRIC(cmd_list_read, "list verbs that read, per list") \
    METRIC(protected_writes, "plain writes to items of lists, refused (protect_lists)") \
    METRIC(get_hits, "keys found by pass-through reads") \
    METRIC(get_misses, "keys not found by pass-through reads") \
    METRIC(down_reads, "pass-through reads answered as misses because of down_reads = miss") \
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
    METRIC(other_protocols, "clients refused because they speak binary, TLS, HTTP or Redis") \
    METRIC(idle_kicks, "clients closed after idle_timeout_s") \
    METRIC(backend_requests, "requests sent to backends") \
    METRIC(backend_errors, "backend requests that ended without an answer") \
    METRIC(backend_timeouts, "backend requests that timed out") \
    METRIC(backend_ejections, \
           "backend connections given up after eject_failures timeouts in a row") \
    METRIC(backend_connects, "backend connections established") \
    METRIC(backend_connect_failures, "failed attempts to connect to a backend") \
    METRIC(backend_bytes_read, "bytes read from backends") \
    METRIC(backend_bytes_written, "bytes written to backends") \
    METRIC(outcomes_unknown, "changes whose answer was lost") \
    METRIC(list_appends, "APPENDs sent to heads") \
    METRIC(list_appends_combined, "client operations that travelled in another's APPEND") \
    METRIC(list_head_reads, "head reads sent") \
    METRIC(list_head_reads_combined, "client reads that shared another's head read") \
    METRIC(list_part_reads, "items of lists of dialects read") \
    METRIC(list_conversions, "lists of dialects converted") \
    METRIC(list_turns, \
           "batches of changes and looks in turns, decided here and written by one CAS") \
    METRIC(list_creates, "heads created") \
    METRIC(list_removes, "empty heads removed") \
    METRIC(list_folds, "logs folded in place") \
    METRIC(list_flips, "logs flipped into a run") \
    METRIC(list_merges, "merges of runs") \
    METRIC(list_heals, "runs written anew because a sublist was gone but still cached") \
    METRIC(list_conflicts, "CAS refused because the head had changed") \
    METRIC(list_giveups, "flips and merges given up") \
    METRIC(list_holdbacks, "appends held back so that a flip gets through") \
    METRIC(list_sweeps, "announcements of dead proxies swept") \
    METRIC(list_purges_cut, "purges that left names in a head: more than can have been stored") \
    METRIC(list_log_full, "appends refused at log_hard_limit_bytes") \
    METRIC(deadlines_over, "requests that ended at their deadline") \
    METRIC(list_timeouts, "of these, list calls not started because earlier ones took too long") \
    METRIC(list_busy, "operations answered busy") \
    METRIC(list_damaged, "damaged lists met") \
    METRIC(list_foreign, "heads that are no lists or of an unknown version") \
    METRIC(list_foreign_parts, \
           "items under the names of dialects' lists that are not of their format") \
    METRIC(list_out_of_memory, "operations refused by a backend without memory") \
    METRIC(list_clock_errors, "rewritings given up because the server's clock could not be read") \
    METRIC(list_touches, "cached sublists touched in the backend") \
    METRIC(sublist_fetches, "sublists read from backends") \
    METRIC(sublist_fetches_combined, "sublist reads that waited for another's fetch") \
    METRIC(cache_hits, "sublists found in the cache") \
    METRIC(cache_misses, "sublists not found in the cache") \
    METRIC(cache_evictions, "sublists thrown out of the cache by its limit")

enum metric {
#define METRIC_ENUM(name, help) METRIC_##name,
    METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};

/* One worker's counters. Only their owner adds; anybody may read. */
struct metrics {
    _Atomic uint64_t value[METRIC_COUNT];
};

/* A plain add for the single writer: no bus lock. */
static inline void metric_add(struct metrics *m, enum metric which, uint64_t n)
{
    uint64_t v = atomic_load_explicit(&m->value[which], memory_order_relaxed);
    atomic_store_explicit(&m->value[which], v + n, memory_order_relaxed);
}

static inline void metric_inc(struct metrics *m, enum metric which)
{
    metric_add(m, which, 1);
}

static inline uint64_t metric_get(const struct metrics *m, enum metric which)
{
    return atomic_load_explicit(&m->value[which], memory_order_relaxed);
}

/* The name as printed by stats, and what it counts. */
const char *metric_name(enum metric which);
const char *metric_help(enum metric which);

#endif
