/* SPDX-License-Identifier: BSD-3-Clause */
/* What the list engine and the dialects count. */
#ifndef LIST_CORE_METRICS_H
#define LIST_CORE_METRICS_H

#include "proto/server/metrics.h"

#define LIST_METRIC_TABLE(METRIC) \
    METRIC(list_appends, "APPENDs sent to heads") \
    METRIC(list_appends_combined, "client operations that travelled in another's APPEND") \
    METRIC(list_head_reads, "head reads sent") \
    METRIC(list_head_reads_combined, "client reads that shared another's head read") \
    METRIC(list_part_reads, "items of lists of dialects read") \
    METRIC(list_conversions, "lists of dialects converted") \
    METRIC(list_turns, \
           "batches of changes and looks in turns, decided here and written by one CAS") \
    METRIC(list_creates, "heads created") \
    METRIC(list_puts, \
           "contents replaced as a whole by lput or lcopy, or by a long lset or lcreate") \
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
    METRIC(list_renewals, "times to live renewed by a CAS of their own") \
    METRIC(list_leases, "leases given to fill a missing list") \
    METRIC(list_leases_refused, "leases not given, since another client had them") \
    METRIC(list_fills_late, "fills refused, since their lease was not valid any more") \
    METRIC(list_touches, "cached sublists touched in the backend") \
    METRIC(sublist_fetches, "sublists read from backends") \
    METRIC(sublist_fetches_combined, "sublist reads that waited for another's fetch") \
    METRIC(cache_hits, "sublists found in the cache") \
    METRIC(cache_misses, "sublists not found in the cache") \
    METRIC(cache_evictions, "sublists thrown out of the cache by its limit")

enum list_metric {
    LIST_METRIC_BEFORE = 7, /* the number before the first */
#define METRIC_ENUM(name, help) METRIC_##name,
    LIST_METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        LIST_METRIC_END
};

/* The same for `stats`. */
extern const struct metric_table list_metrics;

#endif
