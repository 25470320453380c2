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
    METRIC(list_recent_reads, "reads answered without asking the server, as max_stale_ms allows") \
    METRIC(list_part_reads, "items of lists of dialects read") \
    METRIC(list_conversions, "lists of dialects converted") \
    METRIC(list_turns, \
           "batches of changes and looks in turns, decided here and written by one CAS") \
    METRIC(list_creates, "heads created") \
    METRIC(list_puts, \
           "contents replaced as a whole by lput or lcopy, or by a long lset or lcreate") \
    METRIC(list_removes, "empty heads removed") \
    METRIC(list_folds, "logs folded in place") \
    METRIC(list_caps, "caps set, changed or taken away (max_items)") \
    METRIC(list_flips, "logs flipped into a run") \
    METRIC(list_merges, "merges of runs") \
    METRIC(list_heals, "runs written anew because a sublist was gone but still cached") \
    METRIC(list_moves, "lists moved to the servers of next") \
    METRIC(list_moves_kept, "heads met that cannot be moved now") \
    METRIC(list_moves_double, "lists met with a head on the old server and on the new one") \
    METRIC(list_conflicts, "CAS refused because the head had changed") \
    METRIC(list_giveups, "flips and merges given up") \
    METRIC(list_holdbacks, "appends held back so that a flip gets through") \
    METRIC(list_sweeps, "announcements of dead proxies swept") \
    METRIC(transactions_waiting, "transactions of this proxy: now announcing what they change") \
    METRIC(transactions_pending, "of these, all lists have it, and they are being decided") \
    METRIC(transactions_committed, "of these, committed, and all lists are being told") \
    METRIC(transaction_age, "seconds since the oldest of these began") \
    METRIC(list_transactions_finished, \
           "committed transactions of dead proxies of which all lists were told") \
    METRIC(list_purges_cut, \
           "garbage that was left in a head: more names than can have been stored") \
    METRIC(list_intents_settled, \
           "intents of changes of several lists that were met before they were decided") \
    METRIC(list_intents_pushed, "aborts sent because such a change was not decided in time") \
    METRIC(list_log_full, "appends refused at log_hard_limit_bytes") \
    METRIC(deadlines_over, "requests that ended at their deadline") \
    METRIC(list_timeouts, "of these, list calls not started because earlier ones took too long") \
    METRIC(list_ended_for_memory, "list calls ended because memory_limit_bytes was reached") \
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
    METRIC(list_transactions, "transactions of several lists committed") \
    METRIC(list_transactions_refused, "transactions of which a condition did not hold") \
    METRIC(list_transactions_aborted, \
           "attempts at transactions that had announced changes and withdrew them") \
    METRIC(list_transactions_busy, \
           "transactions answered busy, since other writers were in the way each time") \
    METRIC(list_purged_items, "plain items deleted by lpurge") \
    METRIC(list_purge_failures, "names whose items lpurge could not delete") \
    METRIC(list_touches, "cached sublists touched in the backend") \
    METRIC(sublist_fetches, "sublists read from backends") \
    METRIC(sublist_fetches_combined, "sublist reads that waited for another's fetch") \
    METRIC(cache_hits, "sublists found in the cache") \
    METRIC(cache_misses, "sublists not found in the cache") \
    METRIC(list_indexed_reads, "reads of lists too large for view_bytes, answered by an index") \
    METRIC(run_indexes, "runs of such lists of which an index was made") \
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
