/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/upstream.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "pool/link/server.h"

/* After so long without hearing from the server, a connection is looked at before it is used. */
#define PROBE_AFTER_US ((uint64_t)1000000)
/* A connection that held so long, or answered anything, is replaced at once when it is lost. */
#define PROVED_AFTER_US ((uint64_t)1000000)
/* An attempt that was refused at once may be repeated after so long, when a request asks for it. */
#define REPEAT_AFTER_US ((uint64_t)20000)

static uint64_t now_us(const struct upstream *u)
{
    return u->server->context->now->mono_us;
}

void upstream_set_state(struct upstream *u, enum upstream_state state)
{
    _Atomic uint32_t *in_state = u->server->in_state;
    atomic_fetch_sub_explicit(&in_state[u->state], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&in_state[state], 1, memory_order_relaxed);
    u->state = state;
    if (state != UPSTREAM_UP) {
        u->epoch = 0;
    }
}

static void set_favour(struct upstream *u, enum upstream_favour favour)
{
    _Atomic uint32_t *in_favour = u->server->in_favour;
    atomic_fetch_sub_explicit(&in_favour[u->favour], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&in_favour[favour], 1, memory_order_relaxed);
    u->favour = favour;
}

void upstream_set_timer(struct upstream *u, uint64_t ms)
{
    struct timeval tv = timeval_of_ms(ms);
    CHECK(event_add(&u->state_timer, &tv) == 0);
}

/* --- the queue ------------------------------------------------------------------------------ */

static void set_queue_timer(struct upstream *u)
{
    const struct exchange *first = TAILQ_FIRST(&u->queue);
    /* One that was set for an earlier, durable change may be too late for this one. */
    if (first == NULL || u->queue_timer_us <= first->deadline_us) {
        return;
    }
    uint64_t now = now_us(u);
    uint64_t ms = first->deadline_us > now ? (first->deadline_us - now) / 1000 + 1 : 1;
    struct timeval tv = timeval_of_ms(ms);
    CHECK(event_add(&u->queue_timer, &tv) == 0);
    u->queue_timer_us = first->deadline_us;
}

static bool some_was_sent(const struct upstream *u, const struct exchange *x)
{
    return x->start < u->out_written;
}

void upstream_dequeue(struct upstream *u, struct exchange *x)
{
    TAILQ_REMOVE(&u->queue, x, link);
    u->queued--;
    server_count(&u->server->pending, (uint64_t)-1);
}

/* Moves the first len bytes of one chain behind another. */
static void move_bytes(struct chain *to, struct chain *from, size_t len)
{
    while (len > 0) {
        const struct chain_seg *seg = &from->segs[from->first];
        size_t n = seg->len < len ? seg->len : len;
        chain_add(to, seg->block, seg->p, n);
        chain_consume(from, n);
        len -= n;
    }
}

/* Moves what is to be sent for the exchange behind that chain, and returns how long it is there.
 * What was encoded for a connection that spoke otherwise is encoded anew: of a line, that is the
 * same. */
static size_t move_exchange(struct upstream *u, const struct exchange *x, struct chain *to,
                            const struct wire *spoken)
{
    size_t len = (size_t)(x->end - x->start);
    if (LIKELY(u->wire == spoken) || x->op.verb >= BE_LINE) {
        move_bytes(to, &u->out, len);
        return len;
    }
    char room[WIRE_FRONT_MAX];
    struct slice tail;
    struct slice front = u->wire->encode(&x->op, room, &tail);
    size_t rest = x->op.value.len + tail.len;
    chain_consume(&u->out, len - rest);
    chain_copy_slice(to, front);
    move_bytes(to, &u->out, rest);
    return front.len + rest;
}

typedef enum exchange_failure failure_fn(const struct upstream *u, const struct exchange *x);

/* Ends the exchanges for which failure_of names a failure, and makes a new output stream of the
 * others, which must be wholly unsent, and were encoded for a connection that spoke so. For the
 * moments when no connection is in the middle of that stream. */
static void requeue_as(struct upstream *u, failure_fn *failure_of, const struct wire *spoken)
{
    struct exchange_list all = TAILQ_HEAD_INITIALIZER(all);
    struct chain kept;
    struct exchange *x;
    uint64_t at = u->out_written;
    uint64_t kept_end = 0;
    chain_init(&kept);
    TAILQ_CONCAT(&all, &u->queue, link);
    while ((x = TAILQ_FIRST(&all)) != NULL) {
        enum exchange_failure failure = failure_of(u, x);
        TAILQ_REMOVE(&all, x, link);
        TAILQ_INSERT_TAIL(&u->queue, x, link);
        if (failure != FAILURE_NONE) {
            upstream_dequeue(u, x);
            server_finish(u->server, x, failure);
            continue;
        }
        CHECK(x->start >= at);
        chain_consume(&u->out, (size_t)(x->start - at));
        at = x->end;
        size_t len = move_exchange(u, x, &kept, spoken);
        x->start = kept_end;
        x->end = kept_end = kept_end + len;
    }
    chain_fini(&u->out);
    u->out = kept;
    u->out_written = 0;
    u->out_end = kept_end;
}

static void requeue_unsent(struct upstream *u, failure_fn *failure_of)
{
    requeue_as(u, failure_of, u->wire);
}

/* Ends the exchanges whose time is over, from the front: the deadlines are in the queue's order. */
static void on_queue_timer(evutil_socket_t fd, short what, void *arg)
{
    struct upstream *u = arg;
    struct exchange *x;
    (void)fd, (void)what;
    context_woke(u->server->context);
    u->queue_timer_us = UINT64_MAX;
    while ((x = TAILQ_FIRST(&u->queue)) != NULL && x->deadline_us <= now_us(u)) {
        /* Also when the server answered a request before it took all of it, and then stopped
         * taking: the next one cannot be cut out of the stream. */
        if (some_was_sent(u, x) || x->start != u->out_written) {
            upstream_lost(u, "timeout", true);
            continue;
        }
        chain_consume(&u->out, (size_t)(x->end - x->start));
        u->out_written = x->end;
        upstream_dequeue(u, x);
        server_finish(u->server, x,
                      u->state == UPSTREAM_RESOLVING ? FAILURE_UNRESOLVED : FAILURE_TIMEOUT);
    }
    set_queue_timer(u);
    if (u->ending != 0) {
        (void)upstream_end_if_due(u);
    }
}

/* --- submission ----------------------------------------------------------------------------- */

/* Why the server, as far as it is known, cannot do it at all. */
static enum exchange_failure unfitness(const struct upstream *u, const struct exchange *x)
{
    if (u->state != UPSTREAM_UP) {
        return FAILURE_NONE;
    }
    if (x->needs_cas && !u->server->caps.cas_enabled) {
        return FAILURE_NO_CAS;
    }
    return u->wire->lacks == NULL ? FAILURE_NONE : u->wire->lacks(&x->op);
}

static enum exchange_failure refusal(const struct upstream *u, const struct exchange *x,
                                     size_t bytes)
{
    const struct server *server = u->server;
    if (server->context->closing) {
        return FAILURE_CLOSING;
    }
    if (x->op.epoch != 0 && x->op.epoch != u->epoch) {
        return FAILURE_STALE;
    }
    enum exchange_failure failure = unfitness(u, x);
    if (failure != FAILURE_NONE) {
        return failure;
    }
    const struct pool_config *config = server->context->config;
    if (u->queued >= config->max_pending && !x->is_internal) {
        return FAILURE_QUEUE_FULL;
    }
    /* One that is larger than the limit is taken when there is no other. */
    if (u->out.bytes > 0 && u->out.bytes + bytes > config->max_pending_bytes && !x->is_internal) {
        return FAILURE_QUEUE_FULL;
    }
    if (u->favour >= UPSTREAM_ON_TRIAL && (u->queued > 0 || u->favour == UPSTREAM_DRAINED)) {
        return u->favour == UPSTREAM_DRAINED ? FAILURE_DRAINED : FAILURE_EJECTED;
    }
    if (u->state != UPSTREAM_UP && u->doubtful) {
        return u->down_failure;
    }
    if (u->state == UPSTREAM_DOWN && now_us(u) < u->failed_us + REPEAT_AFTER_US) {
        return u->down_failure;
    }
    return FAILURE_NONE;
}

static void append(struct upstream *u, struct exchange *x, struct slice front, struct slice tail)
{
    const struct be_operation *op = &x->op;
    CHECK(front.len > 0);
    x->start = u->out_end;
    chain_copy_slice(&u->out, front);
    if (op->block != NULL) {
        chain_add(&u->out, op->block, op->value.p, op->value.len);
    } else {
        chain_copy_slice(&u->out, op->value);
    }
    chain_copy_slice(&u->out, tail);
    x->end = u->out_end = u->out_end + front.len + op->value.len + tail.len;
    TAILQ_INSERT_TAIL(&u->queue, x, link);
    u->queued++;
    server_count(&u->server->pending, 1);
    set_queue_timer(u);
}

/* A node of a cluster answers in order, too: what stands behind a durable change waits as long. */
static uint64_t deadline_in_cluster(const struct upstream *u, const struct exchange *x)
{
    const struct pool_config *config = u->server->context->config;
    const struct exchange *last = TAILQ_LAST(&u->queue, exchange_list);
    uint32_t ms = x->takes_turn ? config->durable_timeout_ms : config->timeout_ms;
    uint64_t us = x->since_us + (uint64_t)ms * 1000;
    return last != NULL && last->deadline_us > us ? last->deadline_us : us;
}

void upstream_submit(struct upstream *u, struct exchange *x)
{
    struct pool_context *context = u->server->context;
    x->since_us = now_us(u);
    x->deadline_us = context->cluster != NULL
                         ? deadline_in_cluster(u, x)
                         : x->since_us + (uint64_t)context->config->timeout_ms * 1000;
    /* Without this, the first request after a quiet time in which the server restarted would be
     * lost. */
    if (u->state == UPSTREAM_UP && u->queued == 0 && !u->is_reading &&
        now_us(u) >= u->heard_us + PROBE_AFTER_US && !upstream_probe(u)) {
        upstream_lost(u, "closed by the server", false);
    }
    if (UNLIKELY(x->op.cas_optional) && !server_may_tell_cas(u->server, &x->op)) {
        x->op.asks_cas = false;
    }
    char room[WIRE_FRONT_MAX];
    struct slice tail;
    struct slice front = u->wire->encode(&x->op, room, &tail);
    enum exchange_failure failure = refusal(u, x, front.len + x->op.value.len);
    if (failure != FAILURE_NONE) {
        server_finish(u->server, x, failure);
        return;
    }
    append(u, x, front, tail);
    if (!x->is_internal) {
        metric_inc(context->metrics, METRIC_backend_requests);
        server_count(&u->server->requests, 1);
    }
    if (u->state == UPSTREAM_UP && !u->is_dirty) {
        u->is_dirty = true;
        TAILQ_INSERT_TAIL(&context->dirty, u, dirty_link);
    } else if (u->state == UPSTREAM_IDLE || u->state == UPSTREAM_DOWN) {
        upstream_attempt(u);
    }
}

void upstream_flush(struct upstream *u)
{
    if (u->state == UPSTREAM_UP && !u->socket_full && !u->write_failed &&
        (u->ending & UPSTREAM_STALE) == 0) {
        upstream_write(u);
    }
}

/* --- up and down ---------------------------------------------------------------------------- */

static void fall_mute(struct upstream *u, uint64_t since_us, const char *reason)
{
    u->is_doubted = true;
    if (u->silence != SILENCE_MUTE) {
        health_mute(u->server, &u->silence, since_us, reason);
    }
}

static void end_silence(struct upstream *u)
{
    if (u->silence != SILENCE_NONE) {
        health_not_mute(u->server, &u->silence);
    }
}

static void close_socket(struct upstream *u)
{
    upstream_end_turn(u);
    if (u->fd >= 0) {
        event_del(&u->write_event);
        event_del(&u->read_event);
        tls_close(&u->tls);
        close(u->fd);
        u->fd = -1;
    }
    u->socket_full = u->write_failed = false;
    u->ending = 0;
    block_unref(&u->in);
    u->in_parsed = u->in_need = 0;
}

static enum exchange_failure failure_while_down(const struct upstream *u, const struct exchange *x)
{
    (void)x;
    return u->down_failure;
}

static void enter_down(struct upstream *u, enum exchange_failure failure)
{
    struct pool_context *context = u->server->context;
    uint64_t ms = u->retry_ms;
    u->down_failure = failure;
    upstream_set_state(u, UPSTREAM_DOWN);
    requeue_unsent(u, failure_while_down);
    /* Spread by a quarter either way, so that many proxies do not come back in step; of logins,
     * which may be in each other's way (pool/link/login_turn.h), by a half. */
    uint64_t percent = context->login == NULL ? 75 + rng_below(&context->rng, 51)
                                              : 50 + rng_below(&context->rng, 101);
    upstream_set_timer(u, (ms * percent + 99) / 100);
    u->retry_ms = ms * 2 < context->config->retry_max_ms ? ms * 2 : context->config->retry_max_ms;
}

void upstream_attempt_failed(struct upstream *u, const char *reason, bool quickly,
                             enum exchange_failure failure)
{
    struct server *server = u->server;
    close_socket(u);
    if (failure != FAILURE_NO_DESCRIPTOR) { /* that is no failure of the server's */
        metric_inc(server->context->metrics, METRIC_backend_connect_failures);
        server_count(&server->connect_failures, 1);
    }
    u->doubtful = !quickly;
    u->failed_us = now_us(u);
    if (quickly || failure == FAILURE_UNFIT) {
        end_silence(u);
    }
    if (failure == FAILURE_UNFIT) {
        server_set_unfit(server, reason);
    } else if (u->silence == SILENCE_NONE) { /* else that is what it is called */
        server_log_down(server, "cannot connect", reason);
    }
    enter_down(u, failure);
}

static enum exchange_failure failure_before_sending(const struct upstream *u,
                                                    const struct exchange *x)
{
    return x->failure == FAILURE_NONE ? unfitness(u, x) : (enum exchange_failure)x->failure;
}

void upstream_established(struct upstream *u)
{
    static _Atomic uint64_t last_epoch;
    struct server *server = u->server;
    event_del(&u->state_timer);
    upstream_end_turn(u);
    upstream_set_state(u, UPSTREAM_UP);
    u->epoch = atomic_fetch_add(&last_epoch, 1) + 1;
    u->up_since_us = u->heard_us = now_us(u);
    u->answered = u->doubtful = false;
    metric_inc(server->context->metrics, METRIC_backend_connects);
    server_count(&server->connects, 1);
    if (u->favour == UPSTREAM_EJECTED) {
        set_favour(u, UPSTREAM_ON_TRIAL);
    }
    if (u->silence == SILENCE_MUTE && u->timeouts == 0) {
        health_heard(server, &u->silence); /* only handshakes have failed */
    } else if (u->silence == SILENCE_MUTE) {
        health_shook_hands(server, &u->silence);
    }
    server_learn(server, &u->handshake, &u->address);
    const struct wire *spoken = u->wire;
    u->wire = u->handshake.speaks != NULL ? u->handshake.speaks : spoken;
    requeue_as(u, failure_before_sending, spoken);
    upstream_write(u);
}

static enum exchange_failure failure_when_lost(const struct upstream *u, const struct exchange *x)
{
    if (some_was_sent(u, x)) {
        return FAILURE_LOST;
    }
    /* Its CAS number means nothing on the next connection (storage rule 5). */
    return x->op.epoch != 0 ? FAILURE_STALE : FAILURE_NONE;
}

static enum exchange_failure failure_at_timeout(const struct upstream *u, const struct exchange *x)
{
    return some_was_sent(u, x) && x->deadline_us <= now_us(u) ? FAILURE_TIMEOUT_LOST
                                                              : failure_when_lost(u, x);
}

void upstream_answered(struct upstream *u)
{
    u->is_doubted = false;
    u->timeouts = 0;
    if (u->favour == UPSTREAM_ON_TRIAL) {
        set_favour(u, UPSTREAM_TRUSTED);
    }
    if (u->silence != SILENCE_NONE) {
        health_heard(u->server, &u->silence);
    }
}

/* The first exchange has timed out. Has the server been given all the time that it may have, and
 * said nothing in it? */
static bool was_silent(const struct upstream *u)
{
    const struct pool_config *config = u->server->context->config;
    const struct exchange *x = TAILQ_FIRST(&u->queue);
    uint64_t since_us = x->since_us > u->up_since_us ? x->since_us : u->up_since_us;
    return u->heard_us <= since_us &&
           now_us(u) >= x->since_us + (uint64_t)config->timeout_ms * 1000;
}

/* Is it, for the last time? */
static bool is_to_be_ejected(struct upstream *u)
{
    const struct pool_config *config = u->server->context->config;
    u->timeouts++;
    return config->eject_failures != 0 && u->timeouts >= config->eject_failures;
}

static void eject(struct upstream *u)
{
    struct server *server = u->server;
    if (u->favour == UPSTREAM_TRUSTED) {
        u->retry_ms = server->context->config->retry_min_ms;
        if (health_first_ejected(server)) {
            log_warn("backend %s: %" PRIu32 " requests in a row timed out: it gets no more until "
                     "it answers again",
                     server->config->name, u->timeouts);
        }
    }
    metric_inc(server->context->metrics, METRIC_backend_ejections);
    server_count(&server->ejections, 1);
    set_favour(u, UPSTREAM_EJECTED);
    u->doubtful = true;
    u->failed_us = now_us(u);
    enter_down(u, FAILURE_EJECTED);
}

/* Drained, it has no connection and wants none. */
static void rest(struct upstream *u)
{
    event_del(&u->state_timer);
    close_socket(u);
    u->doubtful = true;
    u->down_failure = FAILURE_DRAINED;
    upstream_set_state(u, UPSTREAM_DOWN);
    requeue_unsent(u, failure_while_down);
}

void upstream_lost(struct upstream *u, const char *reason, bool timed_out)
{
    CHECK(u->state == UPSTREAM_UP);
    bool silent = timed_out && u->favour != UPSTREAM_DRAINED && was_silent(u);
    bool ejected = silent && is_to_be_ejected(u);
    if (silent) {
        fall_mute(u, TAILQ_FIRST(&u->queue)->since_us, reason);
    } else {
        server_log_down(u->server, "connection lost", reason);
    }
    close_socket(u);
    upstream_set_state(u, UPSTREAM_CONNECTING);
    requeue_unsent(u, timed_out ? failure_at_timeout : failure_when_lost);
    if (u->favour == UPSTREAM_DRAINED) {
        rest(u);
        return;
    }
    if (ejected) {
        eject(u);
        return;
    }
    if (u->favour == UPSTREAM_ON_TRIAL) {
        /* Requests do not wait for the next probe. */
        set_favour(u, UPSTREAM_EJECTED);
        u->doubtful = true;
        u->down_failure = FAILURE_EJECTED;
    }
    if (u->answered || now_us(u) >= u->up_since_us + PROVED_AFTER_US) {
        u->retry_ms = u->server->context->config->retry_min_ms;
        upstream_attempt(u);
        return;
    }
    u->doubtful = true;
    u->failed_us = now_us(u);
    enter_down(u, FAILURE_DOWN);
}

bool upstream_end_if_due(struct upstream *u)
{
    const struct exchange *first = TAILQ_FIRST(&u->queue);
    if ((u->ending & UPSTREAM_DRAINING) != 0 && first == NULL) {
        rest(u);
        return true;
    }
    if ((u->ending & UPSTREAM_STALE) != 0 && (first == NULL || first->end > u->out_written)) {
        upstream_lost(u, "it wants another login", false);
        return true;
    }
    return false;
}

void upstream_drain(struct upstream *u)
{
    if (u->favour == UPSTREAM_DRAINED) {
        return;
    }
    end_silence(u);
    u->timeouts = 0;
    set_favour(u, UPSTREAM_DRAINED);
    if (u->state == UPSTREAM_UP && u->queued > 0) {
        u->ending |= UPSTREAM_DRAINING;
    } else {
        rest(u);
    }
}

void upstream_undrain(struct upstream *u)
{
    if (u->favour != UPSTREAM_DRAINED) {
        return;
    }
    set_favour(u, UPSTREAM_TRUSTED);
    u->ending &= (uint8_t)~UPSTREAM_DRAINING;
    if (u->state == UPSTREAM_DOWN) {
        u->doubtful = false;
        u->retry_ms = u->server->context->config->retry_min_ms;
        upstream_attempt(u);
    }
}

void upstream_move(struct upstream *u)
{
    static const char reason[] = "its name means another address now";
    u->retry_ms = u->server->context->config->retry_min_ms;
    u->doubtful = false;
    u->timeouts = 0;
    set_favour(u, UPSTREAM_TRUSTED);
    end_silence(u);
    if (u->state == UPSTREAM_UP) {
        u->answered = true; /* so that it is replaced at once */
        upstream_lost(u, reason, false);
        return;
    }
    event_del(&u->state_timer);
    close_socket(u);
    upstream_attempt(u);
}

static void on_state_timer(evutil_socket_t fd, short what, void *arg)
{
    struct upstream *u = arg;
    (void)fd, (void)what;
    context_woke(u->server->context);
    if (u->state == UPSTREAM_DOWN) {
        upstream_attempt(u);
    } else if (u->awaits_turn) {
        upstream_take_turn(u);
    } else if (u->state == UPSTREAM_CONNECTING || u->state == UPSTREAM_HANDSHAKE) {
        char reason[HANDSHAKE_ERROR_MAX];
        bool connects = u->state == UPSTREAM_CONNECTING;
        snprintf(reason, sizeof reason, "no answer%s%s within connect_timeout_ms (%" PRIu32 ")",
                 connects ? "" : " to ", connects ? "" : u->handshake.waits_for,
                 u->server->context->config->connect_timeout_ms);
        fall_mute(u, now_us(u) - (uint64_t)u->server->context->config->connect_timeout_ms * 1000,
                  reason);
        upstream_attempt_failed(u, reason, false,
                                u->favour == UPSTREAM_EJECTED ? FAILURE_EJECTED : FAILURE_DOWN);
    }
}

/* --- start and end -------------------------------------------------------------------------- */

void upstream_init(struct upstream *u, struct server *server)
{
    struct pool_context *context = server->context;
    *u = (struct upstream){
        .server = server, .wire = context->wire, .fd = -1, .state = UPSTREAM_IDLE};
    atomic_fetch_add(&server->in_state[UPSTREAM_IDLE], 1);
    atomic_fetch_add(&server->in_favour[UPSTREAM_TRUSTED], 1);
    u->retry_ms = context->config->retry_min_ms;
    u->queue_timer_us = UINT64_MAX;
    TAILQ_INIT(&u->queue);
    chain_init(&u->out);
    CHECK(evtimer_assign(&u->state_timer, context->base, on_state_timer, u) == 0);
    CHECK(evtimer_assign(&u->queue_timer, context->base, on_queue_timer, u) == 0);
}

static enum exchange_failure failure_at_shutdown(const struct upstream *u, const struct exchange *x)
{
    return some_was_sent(u, x) ? FAILURE_LOST : FAILURE_CLOSING;
}

void upstream_shutdown(struct upstream *u)
{
    close_socket(u);
    event_del(&u->state_timer);
    event_del(&u->queue_timer);
    upstream_set_state(u, UPSTREAM_IDLE);
    end_silence(u);
    requeue_unsent(u, failure_at_shutdown);
}

void upstream_fini(struct upstream *u)
{
    CHECK(u->fd < 0 && u->queued == 0);
    if (u->is_dirty) {
        TAILQ_REMOVE(&u->server->context->dirty, u, dirty_link);
        u->is_dirty = false;
    }
    chain_fini(&u->out);
}
