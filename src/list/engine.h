/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list engine of one worker: list calls go in, backend requests come out; backend replies go
 * in, finished calls come out. No sockets, no threads, no clock: the same code runs in the daemon
 * and in the simulator.
 *
 *     engine_submit(call)  --> [arrived]
 *     engine_run()             [arrived] --> [queues per list] --> engine_take_request()  --> pool
 *     engine_take_done()   <-- [operations]      <-- engine_reply()                       <-- pool
 *
 * Calls on the same list that wait together travel together: all changes in one APPEND, all reads
 * on one head read. Calls of the same session keep their order.
 */
#ifndef LIST_ENGINE_H
#define LIST_ENGINE_H

#include "base/clock.h"
#include "base/rng.h"
#include "config/config.h"
#include "list/core/list_call.h"
#include "list/core/metrics.h"
#include "list/core/request.h"

struct engine;
struct cache;
struct list_plugin;
struct run_indexes;
struct own_changes;

/* Returns an engine, owned by the caller until engine_destroy. caches is indexed by
 * list_policy.index and shared by all workers; plugin knows the lists of other layouts (plugin.h).
 * All that is handed in outlives the engine. */
struct engine *engine_create(const struct config *config, struct cache *const *caches,
                             const struct list_plugin *plugin, struct rng *rng,
                             struct metrics *metrics);
/* Leaves so many bytes free behind each request for its carrier, see list/core/request.h; 0 unless
 * set. Call it before the first engine_submit. */
void engine_set_request_room(struct engine *engine, size_t bytes);
/* Where the indexes of long lists' runs are kept, for all workers; it outlives the engine. Without
 * it, or with NULL, there are none. Call it before the first engine_submit. */
void engine_set_run_indexes(struct engine *engine, struct run_indexes *indexes);
/* Where this proxy's workers count their changes, for lists that have max_stale_ms; it outlives the
 * engine. Without it, or with NULL, all reads are exact. Call it before the first engine_submit. */
void engine_set_own_changes(struct engine *engine, struct own_changes *changes);
/* Drops everything at once, as a crash would: calls are not answered, requests not taken back are
 * freed. No reply may come in afterwards. */
void engine_destroy(struct engine **engine);

/* Checks the call against its policy and queues it; done at the earliest in the next engine_run,
 * and at the latest in the first one at or after its deadline. */
void engine_submit(struct engine *engine, struct list_call *call, struct now now);
/* Ends the call, in place of engine_submit: SERVER_ERROR with that text. It is done at the next
 * engine_take_done. */
void engine_refuse(struct engine *engine, struct list_call *call, const char *text, struct now now);
/* What the submitter says of itself in the session is new, and session_has_deferred. */
void engine_session_changed(struct engine *engine, struct list_session *session);
/* Memory has run short: the call that holds most of what the session is charged with ends with an
 * error, and its operation lets go of what it holds, at once or when its requests are answered.
 * Returns how much that is; 0: there is no such call. */
uint64_t engine_end_largest(struct engine *engine, struct list_session *session, struct now now);
/* Takes back a request with its reply. Exactly once for each request that engine_take_request gave.
 */
void engine_reply(struct engine *engine, struct list_request *request, const struct be_reply *reply,
                  struct now now);
/* Starts what can be started: once per turn, after all submissions and replies, and again when
 * *next_us has come. Returns the mono_us of the earliest delay in progress, or UINT64_MAX; a value
 * <= now.mono_us asks for another run soon (a long fold goes on in slices). */
uint64_t engine_run(struct engine *engine, struct now now);
/* How often that was called. */
uint64_t engine_passes(const struct engine *engine);

/* The next request to send, or NULL. It stays the engine's memory, to be given back by
 * engine_reply. */
struct list_request *engine_take_request(struct engine *engine);
/* The next finished call, or NULL; from here on the submitter's alone. What was begun for a call
 * that ended at its deadline may go on without it. */
struct list_call *engine_take_done(struct engine *engine);

/* True while calls or background operations (flips, merges) are under way. */
bool engine_busy(const struct engine *engine);

/* The name of the step that the oldest operation on this list waits in, for logs and traces; ""
 * when none. */
const char *engine_waiting(const struct engine *engine, struct slice key);

#endif
