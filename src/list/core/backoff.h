/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a worker compacts a list, and when it keeps its own appends back so that another proxy's
 * compaction gets through.
 *
 * A CAS needs a moment without appends, from the reading of the head to the CAS: one round trip. To
 * a server that is near this is short: a worker that sees a log far over its line delays its next
 * append a little. To a server that is far, as many appends of others arrive in a round trip as
 * there are proxies, and delays that are not made together do not help. There a worker
 *
 *     asks for the log's size with each append,
 *     compacts when its own append carried the log over the line, and
 *     sends no appends while it sees the log far over the line: all proxies fall silent together,
 *     within a round trip. It asks for the size until the log is short again. Calls wait within
 *     their deadlines. What would end at its deadline is appended as long as the log has room.
 *
 * A worker that has waited for some round trips compacts itself: no other worker seems to. A flip
 * reads the head again behind its sublists, so that one round trip lies between that and its CAS
 * (compact/flip.c); an automatic compaction that meets conflicts time and again leaves the list to
 * the others. Lists stay right also without all that: it decides when requests are sent.
 */
#ifndef LIST_CORE_BACKOFF_H
#define LIST_CORE_BACKOFF_H

#include "list/core/lists.h"

/* The round trip of a request for the head took so long. Short ones count most: a longer one may be
 * due to a load that passes. */
void list_note_trip(struct list *list, uint64_t trip_us);
/* Is the head's server so far that proxies wait for each other's compactions? */
bool list_is_far(const struct list *list);
/* Keeps this worker's appends back for a while. */
void list_back_off_appends(struct engine *e, struct list *list, uint64_t delay_us);
/* Is it, and the log far over its line? */
bool list_is_crowded_far(const struct list *list);
/* Is the change to wait for a compaction by another worker? The log's size is to be asked for,
 * until that is done. */
bool list_awaits_compactor(const struct engine *e, const struct list *list,
                           const struct list_call *call);
/* After a change or a read: wishes for a compaction or holds appends back where the log's size asks
 * for it, or a head that is full. log_bytes_before: the log as it was known before. */
void list_consider_compaction(struct engine *e, struct list *list, uint64_t log_bytes_before);
/* After a change: wishes for a compaction where the head, as last seen, has another cap than the
 * file says. Where the files of two proxies disagree, each does so once in ten seconds at most. */
void list_consider_cap(struct engine *e, struct list *list);

#endif
