/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/server.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/endpoint.h"

static const struct {
    const char *text; /* behind "backend NAME" */
    enum be_status status;
} failures[FAILURE_COUNT] = {
#define FAILURE_ROW(name, status, text) [FAILURE_##name] = {text, status},
    FAILURE_TABLE(FAILURE_ROW)
#undef FAILURE_ROW
};

/* --- start and end -------------------------------------------------------------------------- */

/* Where it is, as far as nothing has to be looked up for that. */
static int init_location(struct server *server, struct resolver *resolver,
                         char error[CONFIG_ERROR_MAX])
{
    const struct endpoint *endpoint = &server->config->endpoint;
    if (address_of_endpoint(endpoint, &server->location)) {
        return 0;
    }
    if (endpoint->port == 0) {
        snprintf(error, CONFIG_ERROR_MAX, "backend %s: the path is too long", server->config->name);
        return -1;
    }
    server->name = resolver_find(resolver, endpoint);
    return 0;
}

enum resolver_answer server_locate(struct server *server)
{
    uint16_t port = server->config->endpoint.port;
    if (server->name == NULL) {
        return server->location.address.len > 0 ? RESOLVER_KNOWN : RESOLVER_UNKNOWN;
    }
    enum resolver_answer answer = resolver_ask(server->name, &server->location, &server->version);
    address_set_port(&server->location.address, port);
    address_set_port(&server->location.twin, port);
    return answer;
}

int server_init(struct server *server, struct pool_context *context,
                const struct server_config *config, struct resolver *resolver,
                char error[CONFIG_ERROR_MAX])
{
    *server = (struct server){.context = context, .config = config};
    if (init_location(server, resolver, error) < 0) {
        return -1;
    }
    server->caps.server_name = config->name;
    server->caps.rolls_back = context->config->type == POOL_COUCHBASE &&
                              context->config->durability == POOL_DURABILITY_NONE;
    for (int failure = FAILURE_NONE + 1; failure < FAILURE_COUNT; failure++) {
        snprintf(server->texts[failure], SERVER_TEXT_MAX, "backend %s%s", config->name,
                 failures[failure].text);
    }
    snprintf(server->texts[FAILURE_EJECTED], SERVER_TEXT_MAX,
             "backend %s down: %u requests in a row timed out; probing", config->name,
             context->config->eject_failures);
    CHECK(pthread_mutex_init(&server->text_lock, NULL) == 0);
    health_join(server);
    return 0;
}

void server_fini(struct server *server)
{
    health_leave(server);
    pthread_mutex_destroy(&server->text_lock);
    if (server->name != NULL) {
        resolver_release(server->name);
    }
}

/* What an item takes beside its key and value, at most: less than this. */
#define ITEM_REST_BYTES 128

bool server_may_tell_cas(const struct server *server, const struct be_operation *op)
{
    const struct be_caps *caps = &server->caps;
    return server->context->cluster != NULL ||
           (caps->evicts && op->key.len + op->value.len + ITEM_REST_BYTES <= caps->item_size_max);
}

/* --- what it said --------------------------------------------------------------------------- */

void server_learn(struct server *server, const struct handshake *hs, const struct address *address)
{
    bool returned = server->is_lost || !server->caps_known;
    bool news = health_back(server);
    if (news && hs->login != NULL) {
        struct slice collection = hs->login->collection;
        log_info("backend %s: up, %s %s, bucket %.*s%s%.*s", server->config->name,
                 server->context->wire->kind, hs->version, SLICE_ARGS(hs->login->bucket),
                 collection.len == 0 ? "" : ", collection ", SLICE_ARGS(collection));
    } else if (news) {
        log_info("backend %s: up, %s %s, item_size_max %llu, cas %s, evictions %s, "
                 "flush_all %s%s",
                 server->config->name, server->context->wire->kind, hs->version,
                 (unsigned long long)hs->item_size_max, hs->cas_disabled ? "off" : "on",
                 hs->evictions_disabled ? "off" : "on", hs->flush_disabled ? "off" : "on",
                 hs->speaks == NULL || hs->speaks->lack == NULL ? "" : hs->speaks->lack);
    }
    uint64_t wanted = server->context->config->item_bytes_wanted;
    if (returned && server->context->watch && hs->item_size_max != 0 &&
        hs->item_size_max < wanted) {
        log_warn("backend %s: its item_size_max (-I) cuts log_hard_limit_bytes or "
                 "sublist_limit_bytes of lists, which want %llu: start it with a larger -I",
                 server->config->name, (unsigned long long)wanted);
    }
    server->caps.item_size_max = hs->item_size_max;
    server->caps.evicts = !hs->evictions_disabled;
    server->caps.cas_enabled = !hs->cas_disabled;
    server->caps_known = true;
    if (hs->cas_disabled && !server->cas_warned && server->context->watch) {
        log_warn("backend %s: runs without CAS (-C): list verbs are refused there",
                 server->config->name);
        server->cas_warned = true;
    }
    if (hs->takes_few && !server->few_told && server->context->watch) {
        log_info(
            "backend %s: takes 20 requests of a connection at a time, its default: with -R 200 "
            "or more it has less work with a proxy",
            server->config->name);
        server->few_told = true;
    }
    pthread_mutex_lock(&server->text_lock);
    memcpy(server->version_text, hs->version, sizeof server->version_text);
    address_text(address, server->address_text);
    pthread_mutex_unlock(&server->text_lock);
}

void server_set_unfit(struct server *server, const char *reason)
{
    char text[SERVER_TEXT_MAX];
    snprintf(text, sizeof text, "backend %s: %s", server->config->name, reason);
    if (health_unfit(server, text)) {
        log_error("%s", text);
    }
    memcpy(server->texts[FAILURE_UNFIT], text, sizeof text);
}

const char *garbled_name(enum garbled reason)
{
    static const char *const names[] = {
#define GARBLED_NAME(name, text) #name,
        GARBLED_TABLE(GARBLED_NAME)
#undef GARBLED_NAME
    };
    return names[reason];
}

void server_refuses_for_memory(struct server *server)
{
    int64_t now_s = server->context->now->wall_s;
    server_count(&server->refused_full, 1);
    atomic_store_explicit(&server->full_s, now_s, memory_order_relaxed);
    if (now_s >= server->full_told_s + HEALTH_TELL_S || now_s < server->full_told_s) {
        server->full_told_s = now_s;
        health_full(server);
    }
}

const char *server_answers_garbage(struct server *server, enum garbled reason,
                                   char text[HANDSHAKE_ERROR_MAX])
{
    static const char *const texts[] = {
#define GARBLED_TEXT(name, text) text,
        GARBLED_TABLE(GARBLED_TEXT)
#undef GARBLED_TEXT
    };
    server_count(&server->garbled[reason], 1);
    atomic_store_explicit(&server->garbled_s, server->context->now->wall_s, memory_order_relaxed);
    snprintf(text, HANDSHAKE_ERROR_MAX,
             "it answers garbage: %s; see \"A server answers garbage\" in operations.md",
             texts[reason]);
    return text;
}

/* Of Couchbase's ports, the one that is known best is not that for data. */
static const char *port_hint(const struct server *server)
{
    if (server->context->cluster == NULL) {
        return "";
    }
    switch (server->config->endpoint.port) {
    case COUCHBASE_HTTP_PORT:
        return "; 8091 is Couchbase's port for HTTP: name the data port, 11210";
    case COUCHBASE_HTTPS_PORT:
        return "; 18091 is Couchbase's port for HTTPS: name the data port, 11207";
    default:
        return "";
    }
}

void server_log_down(struct server *server, const char *what, const char *reason)
{
    char more[LOG_MORE_MAX];
    if (!health_lost(server, more)) {
        log_debug("backend %s: %s: %s", server->config->name, what, reason);
        return;
    }
    log_warn("backend %s: %s: %s%s%s", server->config->name, what, reason, port_hint(server), more);
}

/* --- ends without an answer ----------------------------------------------------------------- */

/* Which counter a reason has; 0: none of its own. */
static unsigned counter_of(enum exchange_failure failure)
{
    switch (failure) {
    case FAILURE_DOWN:
        return METRIC_ended_down;
    case FAILURE_UNRESOLVED:
        return METRIC_ended_name;
    case FAILURE_UNFIT:
        return METRIC_ended_unfit;
    case FAILURE_EJECTED:
        return METRIC_ended_ejected;
    case FAILURE_DRAINED:
        return METRIC_ended_drained;
    case FAILURE_NO_DESCRIPTOR:
        return METRIC_ended_descriptors;
    case FAILURE_QUEUE_FULL:
        return METRIC_ended_queue_full;
    case FAILURE_NO_CAS:
    case FAILURE_NO_META:
    case FAILURE_NO_TIMES:
        return METRIC_ended_unknown_there;
    case FAILURE_LOST:
        return METRIC_ended_lost;
    case FAILURE_CLOSING:
        return METRIC_ended_shutdown;
    case FAILURE_STALE:
        return METRIC_ended_stale;
    default:
        return 0; /* timeouts have another one; what was withdrawn is a deadline's */
    }
}

static void count_failure(struct server *server, const struct exchange *x,
                          enum exchange_failure failure)
{
    struct metrics *metrics = server->context->metrics;
    unsigned counter = counter_of(failure);
    if (!x->is_internal && counter != 0) {
        metric_inc(metrics, counter);
    }
    if (x->is_internal || failure == FAILURE_STALE || failure == FAILURE_NO_CAS ||
        failure == FAILURE_NO_META || failure == FAILURE_NO_TIMES) {
        return; /* refusals that belong to normal life */
    }
    metric_inc(metrics, METRIC_backend_errors);
    server_count(&server->errors, 1);
    if (failure == FAILURE_TIMEOUT || failure == FAILURE_TIMEOUT_LOST) {
        metric_inc(metrics, METRIC_backend_timeouts);
        server_count(&server->timeouts, 1);
    }
    if (failures[failure].status == BE_LOST && x->changes && !exchange_is_told(x)) {
        metric_inc(metrics, METRIC_outcomes_unknown);
    }
}

void server_finish(struct server *server, struct exchange *x, enum exchange_failure failure)
{
    struct pool_context *context = server->context;
    static const struct timeval at_once = {0, 0};
    count_failure(server, x, failure);
    if (!x->changes && failures[failure].status == BE_LOST) {
        failure = failure == FAILURE_TIMEOUT_LOST ? FAILURE_TIMEOUT_READ : FAILURE_LOST_READ;
    }
    x->failure = (uint8_t)failure;
    if (TAILQ_EMPTY(&context->finished)) {
        /* A timer, and not an active event: the loop goes around once before it, however often
         * done() submits again. */
        CHECK(event_add(context->finish_timer, &at_once) == 0);
    }
    TAILQ_INSERT_TAIL(&context->finished, x, link);
}

bool server_withdraw(struct server *server, struct exchange *x)
{
    if (x->failure != FAILURE_NONE) {
        return failures[x->failure].status != BE_LOST; /* it has ended: done() is on its way */
    }
    if (atomic_load_explicit(&server->in_state[UPSTREAM_UP], memory_order_relaxed) > 0) {
        return false;
    }
    x->failure = FAILURE_WITHDRAWN;
    return true;
}

void server_deliver_finished(struct pool_context *context)
{
    struct exchange_list list = TAILQ_HEAD_INITIALIZER(list);
    struct exchange *x;
    TAILQ_CONCAT(&list, &context->finished, link);
    while ((x = TAILQ_FIRST(&list)) != NULL) {
        const struct server *server = x->server;
        struct be_reply reply = {
            .status = failures[x->failure].status,
            .caps = server->caps_known ? &server->caps : NULL,
            .text = server->texts[x->failure],
            .server_down = failure_is_outage(x->failure),
        };
        TAILQ_REMOVE(&list, x, link);
        exchange_answer(context, x, &reply);
    }
}

/* --- snapshot ------------------------------------------------------------------------------- */

static const char *state_name(struct server *server)
{
    bool has_connection = atomic_load(&server->in_state[UPSTREAM_UP]) > 0;
    if (atomic_load(&server->in_favour[UPSTREAM_DRAINED]) > 0) {
        return has_connection ? "draining" : "drained";
    }
    uint32_t on_trial = atomic_load(&server->in_favour[UPSTREAM_ON_TRIAL]);
    if (atomic_load(&server->in_state[UPSTREAM_UP]) > on_trial) {
        return "up";
    }
    if (on_trial > 0 || atomic_load(&server->in_favour[UPSTREAM_EJECTED]) > 0) {
        return "ejected";
    }
    if (atomic_load(&server->in_state[UPSTREAM_CONNECTING]) > 0 ||
        atomic_load(&server->in_state[UPSTREAM_HANDSHAKE]) > 0 ||
        atomic_load(&server->in_state[UPSTREAM_RESOLVING]) > 0) {
        return "connecting";
    }
    return atomic_load(&server->in_state[UPSTREAM_DOWN]) > 0 ? "down" : "idle";
}

void server_snapshot(struct server *server, struct server_stats *out)
{
    *out = (struct server_stats){
        .requests = atomic_load_explicit(&server->requests, memory_order_relaxed),
        .errors = atomic_load_explicit(&server->errors, memory_order_relaxed),
        .timeouts = atomic_load_explicit(&server->timeouts, memory_order_relaxed),
        .ejections = atomic_load_explicit(&server->ejections, memory_order_relaxed),
        .connects = atomic_load_explicit(&server->connects, memory_order_relaxed),
        .connect_failures = atomic_load_explicit(&server->connect_failures, memory_order_relaxed),
        .pending = atomic_load_explicit(&server->pending, memory_order_relaxed),
        .evictions = atomic_load_explicit(&server->evictions, memory_order_relaxed),
        .refused_full = atomic_load_explicit(&server->refused_full, memory_order_relaxed),
        .full_s = atomic_load_explicit(&server->full_s, memory_order_relaxed),
        .drained_since_s = atomic_load_explicit(&server->drained_since_s, memory_order_relaxed),
        .garbled_s = atomic_load_explicit(&server->garbled_s, memory_order_relaxed),
    };
    for (size_t i = 0; i < GARBLED_COUNT; i++) {
        out->garbled[i] = atomic_load_explicit(&server->garbled[i], memory_order_relaxed);
    }
    histogram_sum_add(&out->times, &server->times);
    snprintf(out->name, sizeof out->name, "%s", server->config->name);
    snprintf(out->state, sizeof out->state, "%s", state_name(server));
    out->is_ejected = atomic_load(&server->in_favour[UPSTREAM_EJECTED]) > 0;
    health_snapshot(server, out);
    pthread_mutex_lock(&server->text_lock);
    memcpy(out->version, server->version_text, sizeof out->version);
    memcpy(out->address, server->address_text, sizeof out->address);
    pthread_mutex_unlock(&server->text_lock);
}
