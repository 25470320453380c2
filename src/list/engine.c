/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "list/change/capped.h"
#include "list/change/lease.h"
#include "list/core/deadline.h"
#include "list/core/engine_state.h"
#include "list/core/item_fault.h"
#include "list/core/pass.h"
#include "list/core/plugin.h"
#include "list/core/run_index.h"
#include "list/core/held_reads.h"
#include "list/joint/read.h"
#include "list/moving/migrate.h"
#include "list/read/recent.h"
#include "list/schedule.h"
#include "list/tx/refusal.h"
#include "list/tx/tx.h"

/* The longest time of an item: with it the second fits an entry until 2074. */
#define ITEM_SECONDS_MAX 999999999

_Static_assert(CONFIG_PREFIX_MAX == LIST_KEY_BYTES_MAX, "a prefix is as long as a key may be");

/* What one worker knows of its long lists may take this part of what their indexes may. */
#define OUTLINES_PART 8u

struct engine *engine_create(const struct config *config, struct cache *const *caches,
                             const struct list_plugin *plugin, struct rng *rng,
                             struct metrics *metrics)
{
    struct engine *e = calloc(1, sizeof *e);
    CHECK(e != NULL);
    e->config = config;
    e->caches = caches;
    e->plugin = plugin;
    e->rng = rng;
    e->metrics = metrics;
    lists_init(&e->lists, plugin, config->tracked_lists, config->view_bytes);
    TAILQ_INIT(&e->arrived);
    TAILQ_INIT(&e->all_ops);
    TAILQ_INIT(&e->runnable);
    TAILQ_INIT(&e->transactions);
    fetches_init(&e->fetches);
    TAILQ_INIT(&e->expiries);
    TAILQ_INIT(&e->inners);
    TAILQ_INIT(&e->turns);
    STAILQ_INIT(&e->outbox);
    TAILQ_INIT(&e->done);
    TAILQ_INIT(&e->due);
    TAILQ_INIT(&e->due_long);
    TAILQ_INIT(&e->ghosts.deferred);
    e->ghosts.gone = true;
    ops_init(e, 0);
    return e;
}

void engine_set_request_room(struct engine *e, size_t bytes)
{
    ops_init(e, bytes);
}

void engine_set_run_indexes(struct engine *e, struct run_indexes *indexes)
{
    e->indexes = indexes;
    e->lists.outline_limit_bytes =
        indexes == NULL ? 0 : run_indexes_limit_bytes(indexes) / OUTLINES_PART;
}

void engine_set_own_changes(struct engine *e, struct own_changes *changes)
{
    bool wanted = false;
    for (size_t i = 0; i < e->config->list_count; i++) {
        wanted = wanted || e->config->lists[i].max_stale_ms > 0;
    }
    e->own_changes = wanted ? changes : NULL;
}

void engine_destroy(struct engine **slot)
{
    struct engine *e = *slot;
    *slot = NULL;
    if (e == NULL) {
        return;
    }
    e->is_dropped = true;
    expiries_fini(e);
    ops_drop(e);
    inners_fini(e);
    fetches_fini(e);
    while (!STAILQ_EMPTY(&e->outbox)) {
        struct list_request *r = engine_take_request(e);
        request_free(e, &r);
    }
    spare_fini(&e->spare_requests);
    spare_fini(&e->spare_ops);
    lists_fini(&e->lists);
    timers_fini(&e->timers);
    free(e);
}

static RARE bool PRINTF_LIKE(3, 4)
    reject(struct engine *e, struct list_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->error, sizeof call->error, format, args);
    va_end(args);
    call->status = LIST_CLIENT_ERROR;
    TAILQ_INSERT_TAIL(&e->done, call, link);
    return false;
}

/* laddt: until when the items are in the list. The moment counts in which the call came. */
static bool give_time(struct engine *e, struct list_call *call)
{
    int64_t until_s = e->now.wall_s + call->seconds;
    if (call->policy->migrate != MIGRATE_NO || call->policy->dialect != DIALECT_NATIVE) {
        return reject(e, call,
                      "laddt works on lists of dialect native only: no other has items "
                      "with a time of their own");
    }
    if (call->policy->max_items != 0) {
        return reject(e, call,
                      "laddt: the list has max_items, and items of such a list have no time of "
                      "their own");
    }
    if (call->seconds < 1 || call->seconds > ITEM_SECONDS_MAX) {
        return reject(e, call, "laddt: SECONDS must be 1 to %d, about 31 years", ITEM_SECONDS_MAX);
    }
    if (until_s < ENTRY_UNTIL_MIN_S || until_s > ENTRY_UNTIL_MAX_S) {
        return reject(e, call,
                      "laddt: the items would be over in the year 2106 or later, which "
                      "no entry can say: is the clock right?");
    }
    call->until_s = (uint32_t)until_s;
    return true;
}

/* Why its COUNT is refused, or NULL. */
static const char *count_refusal(const struct list_call *call)
{
    if (call->verb == LIST_POP && call->count == 0) {
        return "COUNT must not be 0: a positive one takes the oldest items, a negative one the "
               "newest";
    }
    if (list_verb_has(call->verb, LIST_PICKS) && call->count < 1) {
        return "COUNT must be 1 or more";
    }
    return NULL;
}

/* An answer that joins items needs a delimiter; one item needs none. */
static bool joins(struct engine *e, struct list_call *call)
{
    bool joined = list_verb_has(call->verb, LIST_GIVES_ITEMS | LIST_TAKES) ||
                  (call->verb == LIST_HAS && call->item_count > 1);
    if (!joined || call->form != LIST_FORM_JOINED || call->policy->delimiter >= 0) {
        return true;
    }
    if (list_verb_kind(call->verb) == LIST_KIND_JOINT) {
        const char *word = list_verb_word(call->verb);
        return reject(e, call,
                      "%s: the first list has no delimiter: name another one first, or use "
                      "%sstore and ask for its DST by lgetb",
                      word, word);
    }
    return reject(e, call, "this list has no delimiter: use %s",
                  call->verb == LIST_POP      ? "lpopb"
                  : call->verb == LIST_RANDOM ? "lrandomb"
                  : call->verb == LIST_HAS    ? "lhasb, item by item"
                                              : "lgetb");
}

/* Checks a call against its list's policy; a call that does not pass is done. */
static bool admissible(struct engine *e, struct list_call *call, bool is_change)
{
    const struct list_policy *policy = call->policy;
    if (call->key.len == 0 || call->key.len > LIST_KEY_BYTES_MAX) {
        return reject(e, call, "key must have 1 to %d bytes", LIST_KEY_BYTES_MAX);
    }
    for (size_t i = 0; i < call->item_count; i++) {
        struct slice item = call->items[i];
        char text[LIST_ERROR_MAX];
        const char *why = item_fault(policy, item, is_change, text);
        if (why != NULL) {
            return reject(e, call, "%s", why);
        }
        call->log_bytes +=
            call->verb == LIST_ADDT ? entry_timed_bytes_max(item.len) : entry_bytes(item.len);
    }
    if (call->verb == LIST_ADDT && !give_time(e, call)) {
        return false;
    }
    if (call->verb == LIST_LEASE) {
        const char *why = lease_refusal(policy);
        if (why != NULL) {
            return reject(e, call, "%s", why);
        }
        if (call->seconds < 1 || call->seconds > policy->lease_max_s) {
            return reject(e, call, "llease: SECONDS must be 1 to %u (lease_max_s)",
                          policy->lease_max_s);
        }
    }
    const char *count_why = count_refusal(call);
    if (count_why != NULL) {
        return reject(e, call, "%s", count_why);
    }
    if (list_verb_kind(call->verb) == LIST_KIND_TX) {
        char text[LIST_ERROR_MAX];
        const char *why = tx_refusal(call, text);
        return why == NULL || reject(e, call, "%s", why);
    }
    if (list_verb_kind(call->verb) == LIST_KIND_JOINT || list_verb_has(call->verb, LIST_STORES)) {
        char text[LIST_ERROR_MAX];
        const char *why = joint_read_refusal(e, call, text);
        if (why != NULL) {
            return reject(e, call, "%s", why);
        }
    } else if (call->verb == LIST_MIGRATE) {
        const char *why = migrate_refusal(e->config, policy);
        if (why != NULL) {
            return reject(e, call, "%s", why);
        }
    } else if (policy->dialect != DIALECT_NATIVE || call->verb == LIST_CONVERT) {
        char text[LIST_ERROR_MAX];
        const char *why = e->plugin->refusal(call, text);
        if (why != NULL) {
            return reject(e, call, "%s", why);
        }
    }
    if (call->verb != LIST_TOUCH && call->has_exptime && call->exptime < 0) {
        return reject(e, call, "EXPTIME is over already: ldrop removes a list");
    }
    return joins(e, call);
}

/* A fill of a list in another layout is what its dialect can do, if that is the same. */
static bool fit_dialect(struct engine *e, struct list_call *call)
{
    if (call->verb != LIST_PUT || call->policy->dialect == DIALECT_NATIVE) {
        return true;
    }
    bool exact = call->condition == LIST_ALWAYS || call->condition == LIST_IF_MISSING;
    if (call->has_exptime || !exact) {
        return reject(e, call, "%s: lists of other dialects take neither EXPTIME nor TOKEN",
                      list_verb_word(call->verb));
    }
    call->verb = call->condition == LIST_ALWAYS ? LIST_SET : LIST_CREATE;
    return true;
}

/* Both lists of an lcopy are in the engine's own layout. One that is copied over itself stays. */
static bool fit_copy(struct engine *e, struct list_call *call)
{
    if (call->verb != LIST_COPY) {
        return true;
    }
    const struct list_policy *from = call->source_policy, *to = call->policy;
    if (from->dialect != DIALECT_NATIVE || to->dialect != DIALECT_NATIVE) {
        return reject(e, call, "lcopy: both lists must be native, and a dialect keeps one of them");
    }
    if (slice_equal(call->source, call->key)) {
        if (call->has_exptime || call->condition != LIST_ALWAYS) {
            return reject(e, call,
                          "lcopy: SRC and DST are the same list: that does nothing but count, "
                          "and takes neither EXPTIME nor new");
        }
        call->verb = LIST_LEN; /* answer.c knows it by its source */
    }
    return true;
}

/* A whole content that is too long for the log waits as long as other long calls. */
static void make_fill(struct engine *e, struct list_call *call)
{
    const struct config *config = e->config;
    if (call->verb == LIST_SET || call->verb == LIST_CREATE) {
        call->condition = call->verb == LIST_SET ? LIST_ALWAYS : LIST_IF_MISSING;
    }
    if (!list_verb_has(call->verb, LIST_LONG) && call->deadline_us != 0 &&
        config->long_timeout_ms > config->deadline_ms) {
        uint64_t more_us = (uint64_t)(config->long_timeout_ms - config->deadline_ms) * 1000;
        call->deadline_us += more_us;
        call->time_us += more_us;
    }
    call->fills = true;
}

/* One command's items travel in one append, which must leave room for others in the log. A whole
 * content may also become a run. */
static bool fits_log(struct engine *e, const struct list *list, struct list_call *call)
{
    size_t most = list_log_hard_limit(list) / 2, bytes = call->log_bytes;
    bool native = call->policy->dialect == DIALECT_NATIVE;
    if (call->verb == LIST_PUT && bytes <= most && call->condition == LIST_ALWAYS &&
        !call->has_exptime) {
        call->verb = LIST_SET; /* one append, which no other writer can refuse */
    }
    if (call->verb == LIST_PUT || call->verb == LIST_COPY ||
        list_verb_has(call->verb, LIST_STORES) ||
        (native && bytes > most && (call->verb == LIST_SET || call->verb == LIST_CREATE))) {
        make_fill(e, call);
        return true;
    }
    if (bytes > most) {
        return reject(e, call,
                      "too many items in one command: they take %zu bytes, and half of "
                      "log_hard_limit_bytes is %zu: use several commands%s",
                      bytes, most, native ? ", or lput for a whole list" : "");
    }
    return true;
}

static inline void begin_call(struct engine *e, struct list_call *call, struct now now)
{
    e->now = now;
    call->status = LIST_OK;
    call->number = 0;
    call->until_s = 0;
    call->version = 0;
    if (call->verb == LIST_STAT) {
        call->stat = (struct list_stat){0};
    }
    call->error[0] = '\0';
    call->time_us = call->deadline_us > now.mono_us ? call->deadline_us - now.mono_us : 0;
    call->head = NULL;
    call->op = NULL;
    call->list = NULL;
    call->inner = NULL;
    call->deferred = call->in_doubt = call->ghost = call->fills = false;
    call->due_in = NULL;
    call->given_items = NULL;
    call->given_ops = NULL;
    call->waits = 0;
    call->refused = false;
    call->log_bytes = 0;
    call->charged_bytes = call->wanted_bytes = call->room_bytes = 0;
}

void engine_refuse(struct engine *e, struct list_call *call, const char *text, struct now now)
{
    begin_call(e, call, now);
    (void)snprintf(call->error, sizeof call->error, "%s", text);
    call->status = LIST_SERVER_ERROR;
    TAILQ_INSERT_TAIL(&e->done, call, link);
}

void engine_submit(struct engine *e, struct list_call *call, struct now now)
{
    begin_call(e, call, now);
    if (!fit_dialect(e, call) || !fit_copy(e, call)) {
        return;
    }
    if (!admissible(e, call, list_verb_changes(call->verb))) {
        return;
    }
    if (capped_refuses_whole(call)) {
        call->status = LIST_NOT_STORED;
        TAILQ_INSERT_TAIL(&e->done, call, link);
        return;
    }
    call->key_hash = lists_expect(&e->lists, call->key);
    TAILQ_INSERT_TAIL(&e->arrived, call, link);
}

/* The call joins the others on its list. */
static void queue_call(struct engine *e, struct list_call *call)
{
    struct list *list = lists_get_expected(&e->lists, call->key, call->key_hash, call->policy);
    if (list_verb_changes(call->verb) && list_verb_kind(call->verb) != LIST_KIND_TX &&
        !fits_log(e, list, call)) {
        return;
    }
    e->calls++;
    call->list = list;
    TAILQ_INSERT_TAIL(&list->queue, call, link);
    deadline_start(e, call);
    lists_mark_ready(&e->lists, list);
}

/* Calls that came together are most often on many lists: the memory of those behind is fetched
 * while this one's is used. */
static void queue_arrived(struct engine *e)
{
    enum { AHEAD = 6 };
    struct list_call *call = TAILQ_FIRST(&e->arrived), *next, *ahead = call;
    for (int i = 0; ahead != NULL && i < AHEAD; i++, ahead = TAILQ_NEXT(ahead, link)) {
        lists_fetch(&e->lists, ahead->key_hash);
    }
    TAILQ_INIT(&e->arrived);
    for (; call != NULL; call = next) {
        if (ahead != NULL) {
            lists_fetch(&e->lists, ahead->key_hash);
            ahead = TAILQ_NEXT(ahead, link);
        }
        next = TAILQ_NEXT(call, link);
        queue_call(e, call);
    }
}

void engine_session_changed(struct engine *e, struct list_session *session)
{
    struct list_call *call = session->joint;
    if (session->gone && call != NULL) {
        deadline_give_up(e, call);
    }
    TAILQ_FOREACH(call, &session->deferred, deferred_link)
    {
        if (session->gone || session_has_room(call)) {
            lists_mark_ready(&e->lists, lists_find(&e->lists, call->key));
        }
    }
}

uint64_t engine_end_largest(struct engine *e, struct list_session *session, struct now now)
{
    struct list_call *call, *largest = NULL;
    e->now = now;
    LIST_FOREACH(call, &session->charged, charged_link)
    {
        bool larger = largest == NULL || call->charged_bytes > largest->charged_bytes;
        largest = call->op != NULL && larger ? call : largest;
    }
    if (largest == NULL) {
        return 0;
    }
    uint64_t bytes = largest->charged_bytes;
    deadline_end_for_memory(e, largest);
    session_discharge(largest);
    return bytes;
}

/* A head that has no room for what is appended: a node of a bucket says so, memcached answers
 * NOT_STORED, as where there is no head. What is done about it begins with a look in both cases. */
static bool is_append_refused(const struct list_request *request, const struct be_reply *reply)
{
    return reply->status == BE_TOO_LARGE && request->be.verb == BE_APPEND &&
           request->op->list->is_native;
}

void engine_reply(struct engine *e, struct list_request *request, const struct be_reply *reply,
                  struct now now)
{
    struct be_reply refused;
    e->now = now;
    if (UNLIKELY(is_append_refused(request, reply))) {
        refused = *reply;
        refused.status = BE_NOT_STORED;
        reply = &refused;
    }
    if (UNLIKELY(e->own_changes != NULL) && be_changes(request->be.verb)) {
        recent_note_change(e, request);
    }
    if (request->expiry != NULL) {
        expiry_reply(e, request, reply);
    } else if (request->op == NULL) {
        fetch_reply(e, request, reply);
    } else if (request->list != NULL) {
        held_reads_reply(e, request, reply);
    } else {
        struct op_event event = {.tag = request->tag,
                                 .reply = reply,
                                 .request = request,
                                 .status = reply->status,
                                 .text = reply->text,
                                 .appended_bytes = request->appended_bytes};
        op_deliver(e, request->op, &event);
    }
    request_free(e, &request);
}

static void run_due_timers(struct engine *e)
{
    struct timer *timer;
    while ((timer = timers_take_due(&e->timers, e->now.mono_us)) != NULL) {
        if (timer->kind == TIMER_OP) {
            op_run(e, timer->owner);
        } else {
            lists_mark_ready(&e->lists, timer->owner);
        }
    }
}

static void run_runnable(struct engine *e)
{
    /* Only those that stand there now: one that yields again gets its next slice in the next run.
     */
    struct op *last = TAILQ_LAST(&e->runnable, runnable_ops);
    struct op *op = NULL;
    while (op != last && (op = TAILQ_FIRST(&e->runnable)) != NULL) {
        op_run(e, op);
    }
}

/* Starts the calls on several lists that wait in the queue. They go beside everything else: a
 * session asks for them when nothing else of it is under way. */
static void start_several(struct engine *e, struct list *list)
{
    struct pass pass = {.e = e, .list = list};
    for (struct list_call *call = TAILQ_FIRST(&list->queue), *next; call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        enum list_kind kind = list_verb_kind(call->verb);
        if (kind == LIST_KIND_JOINT || kind == LIST_KIND_TX) {
            pass_activate(&pass, call);
            (kind == LIST_KIND_TX ? tx_start : joint_read_start)(e, list, call);
        }
    }
}

uint64_t engine_run(struct engine *e, struct now now)
{
    e->passes++;
    e->pass_us = now.mono_us - e->now.mono_us;
    e->now = now;
    queue_arrived(e);
    if (deadline_is_due(e)) {
        deadline_pass(e, schedule_wait_reason);
    }
    run_due_timers(e);
    run_runnable(e);
    struct list *list;
    while ((list = lists_take_ready(&e->lists)) != NULL) {
        start_several(e, list);
        if (list->is_native) {
            schedule_list(e, list);
        } else {
            e->plugin->schedule(e, list);
        }
    }
    return TAILQ_EMPTY(&e->runnable) ? timers_next(&e->timers) : now.mono_us;
}

uint64_t engine_passes(const struct engine *e)
{
    return e->passes;
}

struct list_request *engine_take_request(struct engine *e)
{
    struct list_request *r = STAILQ_FIRST(&e->outbox);
    if (r != NULL) {
        STAILQ_REMOVE_HEAD(&e->outbox, link);
    }
    return r;
}

struct list_call *engine_take_done(struct engine *e)
{
    struct list_call *call = TAILQ_FIRST(&e->done);
    if (call != NULL) {
        TAILQ_REMOVE(&e->done, call, link);
        session_discharge(call);
    }
    return call;
}

bool engine_busy(const struct engine *e)
{
    return e->calls > 0 || !TAILQ_EMPTY(&e->arrived) || !TAILQ_EMPTY(&e->all_ops) ||
           !TAILQ_EMPTY(&e->done) || !TAILQ_EMPTY(&e->lists.ready);
}

const char *engine_waiting(const struct engine *e, struct slice key)
{
    return op_waiting(e, lists_find(&e->lists, key));
}
