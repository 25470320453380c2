/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/couchbase/cluster_waits.h"

#include <event2/event.h>
#include <stdio.h>

#include "proto/server/binary.h"

void cluster_set_timer(struct cluster *c, uint64_t at_us)
{
    if (at_us >= c->timer_us || c->context->closing) {
        return;
    }
    struct timeval tv = timeval_until(at_us, cluster_now_us(c));
    CHECK(event_add(c->timer, &tv) == 0);
    c->timer_us = at_us;
}

uint64_t cluster_deadline_us(const struct cluster *c, const struct exchange *x)
{
    const struct pool_config *config = c->context->config;
    return x->first_us +
           (uint64_t)(x->takes_turn ? config->durable_timeout_ms : config->timeout_ms) * 1000;
}

bool cluster_is_over(const struct cluster *c, const struct exchange *x)
{
    return x->failure != FAILURE_NONE || cluster_deadline_us(c, x) <= cluster_now_us(c) ||
           c->context->closing;
}

/* May one more wait? */
static bool has_room(const struct cluster *c, const struct exchange *x)
{
    const struct pool_config *config = c->context->config;
    return c->waiting < config->max_pending &&
           (c->waiting_bytes == 0 ||
            c->waiting_bytes + x->op.value.len <= config->max_pending_bytes);
}

void cluster_add_waiting(struct cluster *c, struct exchange_list *list, struct exchange *x)
{
    x->server = NULL;
    x->failure = FAILURE_NONE;
    c->waiting++;
    c->waiting_bytes += x->op.value.len;
    TAILQ_INSERT_TAIL(list, x, link);
    cluster_set_timer(c, cluster_deadline_us(c, x));
}

void cluster_wait_or_end(struct cluster *c, struct exchange_list *list, struct exchange *x)
{
    if (has_room(c, x)) {
        cluster_add_waiting(c, list, x);
    } else {
        cluster_end(c, x, FAILURE_QUEUE_FULL);
    }
}

void cluster_remove_waiting(struct cluster *c, struct exchange_list *list, struct exchange *x)
{
    TAILQ_REMOVE(list, x, link);
    c->waiting--;
    c->waiting_bytes -= x->op.value.len;
}

struct exchange *cluster_take_waiting(struct cluster *c, struct exchange_list *list)
{
    struct exchange *x = TAILQ_FIRST(list);
    cluster_remove_waiting(c, list, x);
    return x;
}

/* --- ends --------------------------------------------------------------------------------------
 */

void cluster_end(struct cluster *c, struct exchange *x, enum exchange_failure failure)
{
    if (x->failure == FAILURE_NONE) {
        x->failure = (uint8_t)failure;
    }
    x->code = x->failure == FAILURE_NO_NODE ? 0 : x->code; /* that was another node's, earlier */
    x->server = NULL;
    change_turn_end(&c->turns, x);
    TAILQ_INSERT_TAIL(&c->ended, x, link);
    cluster_set_timer(c, 0);
}

void cluster_end_over(struct cluster *c, struct exchange *x)
{
    cluster_end(c, x, c->context->closing ? FAILURE_CLOSING : FAILURE_TIMEOUT);
}

void cluster_end_those_over(struct cluster *c, struct exchange_list *list)
{
    while (!TAILQ_EMPTY(list) && cluster_is_over(c, TAILQ_FIRST(list))) {
        cluster_end_over(c, cluster_take_waiting(c, list));
    }
}

/* No node has the vBucket, or the map does not show the way to the one that has it. */
static void explain_no_node(const struct cluster *c, const struct exchange *x, char *text,
                            size_t cap)
{
    const char *pool = c->context->config->name;
    int owner = x->op.vbucket < c->map->vbucket_count
                    ? cluster_map_owner(c->map, x->op.vbucket, false)
                    : -1;
    if (owner >= 0 && c->of_map[owner] == NULL) {
        snprintf(text, cap, "pool %s: the cluster map %s, nothing done", pool,
                 c->map->nodes[owner].problem);
        return;
    }
    snprintf(text, cap, "pool %s: no node has vBucket %u, which this key is in, nothing done", pool,
             x->op.vbucket);
}

static void explain(const struct cluster *c, const struct exchange *x, char *text, size_t cap)
{
    const struct pool_config *config = c->context->config;
    const char *pool = config->name;
    bool of_scope = x->code == BINARY_STATUS_UNKNOWN_SCOPE;
    if (of_scope ||
        (x->code == BINARY_STATUS_UNKNOWN_COLLECTION && x->failure != FAILURE_WITHDRAWN)) {
        snprintf(text, cap, "pool %s: bucket %.100s has no %s %.100s (0x%x), nothing done", pool,
                 config->bucket, of_scope ? "scope" : "collection",
                 of_scope ? config->scope : c->collection.path, x->code);
        return;
    }
    if (x->code != 0 && x->failure != FAILURE_WITHDRAWN) {
        snprintf(text, cap, "pool %s: %s (0x%x), nothing done", pool, binary_status_text(x->code),
                 x->code);
        return;
    }
    switch (x->failure) {
    case FAILURE_QUEUE_FULL:
        snprintf(text, cap, "pool %s: queue full", pool);
        return;
    case FAILURE_NO_NODE:
        metric_inc(c->context->metrics, METRIC_ended_down);
        explain_no_node(c, x, text, cap);
        return;
    case FAILURE_WITHDRAWN:
        snprintf(text, cap, "pool %s: withdrawn, not sent", pool);
        return;
    case FAILURE_KEY_LONG:
        snprintf(text, cap,
                 "pool %s: key too long, %zu bytes at most in a collection, nothing done", pool,
                 c->key_bytes_max);
        return;
    case FAILURE_CLOSING:
        snprintf(text, cap, "pool %s: shutting down, not sent", pool);
        return;
    default:
        snprintf(text, cap, "pool %s: %s, nothing done", pool,
                 !cluster_is_ready(c) ? "no node has answered yet"
                                      : "it could not be sent in time");
        return;
    }
}

bool cluster_deliver(struct cluster *c)
{
    struct exchange_list list = TAILQ_HEAD_INITIALIZER(list);
    struct exchange *x;
    bool any = !TAILQ_EMPTY(&c->ended);
    TAILQ_CONCAT(&list, &c->ended, link);
    while ((x = TAILQ_FIRST(&list)) != NULL) {
        char text[WIRE_TEXT_MAX];
        bool refused = x->code != 0 && x->failure != FAILURE_WITHDRAWN;
        struct be_reply reply = {.status = refused ? BE_REFUSED : BE_DOWN,
                                 .code = x->code,
                                 .text = text,
                                 .server_down = failure_is_outage(x->failure)};
        TAILQ_REMOVE(&list, x, link);
        explain(c, x, text, sizeof text);
        if (x->failure != FAILURE_WITHDRAWN) {
            metric_inc(c->context->metrics, METRIC_backend_errors);
        }
        c->context->busy--;
        x->done(x, &reply);
    }
    return any;
}
