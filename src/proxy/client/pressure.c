/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/pressure.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "proxy/client/binary.h"
#include "proxy/client/client.h"
#include "proxy/client/secure.h"
#include "proxy/core/shared.h"
#include "tls/tls.h"

/* A client that holds less has no more than a block of input, and what one small request needs. */
#define VICTIM_BYTES_MIN (2 * BLOCK_BYTES)
/* Nor is one that holds less than this, when closed ones alone hold too much: small requests go on.
 */
#define LARGE_BYTES_MIN (4 * BLOCK_BYTES)
/* Of those that hold nearly as much as the one that holds most, the ones that were silent for
 * longest go first: so one look at all clients serves for many. */
#define NEARLY(bytes) ((bytes) - (bytes) / 8)
/* Others are woken no more often than this. */
#define WAKE_INTERVAL_US 1000
/* Memory that a busy proxy uses again within this is not handed back. */
#define TRIM_AFTER_S 1

struct pressure {
    /* Of calls that were ended since this pass of the engine, and are not freed yet. */
    uint64_t ending_bytes, ending_pass;
    uint64_t woke_others_us;
    struct event trim_timer;
    bool trims; /* trim_timer is set */
    struct log_limit limit;
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is held but for doomed bytes, if so many bytes more are taken. */
static uint64_t held_besides(uint64_t doomed, size_t more)
{
    uint64_t held = memory_held();
    return (held > doomed ? held - doomed : 0) + more;
}

static uint64_t doomed_bytes(const struct worker *w)
{
    return atomic_load_explicit(&w->shared->doomed_bytes, memory_order_relaxed);
}

/* Behind the pass, what is not freed yet counts as held. */
static uint64_t ending_bytes(const struct worker *w)
{
    const struct pressure *p = w->pressure;
    return p->ending_pass == engine_passes(w->engine) ? p->ending_bytes : 0;
}

/* What counts against the limit. */
static uint64_t needed(const struct worker *w, size_t more)
{
    uint64_t doomed = least(doomed_bytes(w), w->config->memory_limit_bytes / 4);
    return held_besides(doomed + ending_bytes(w), more);
}

/* Is it for this worker to close clients? One always holds as much as the mean. That one may have
 * to wait for a processor, while others go on reading: further beyond the limit, half of the mean
 * is enough. */
static bool is_over(const struct worker *w, size_t more)
{
    size_t workers = w->shared->worker_count;
    uint64_t limit = w->config->memory_limit_bytes, bytes = needed(w, more);
    uint64_t share = memory_held_here() * workers * (bytes > limit + limit / 8 ? 2 : 1);
    return bytes > limit && (workers == 1 || share >= memory_held());
}

static void wake_others(struct worker *w)
{
    if (w->now.mono_us < w->pressure->woke_others_us + WAKE_INTERVAL_US) {
        return;
    }
    w->pressure->woke_others_us = w->now.mono_us;
    for (size_t i = 0; i < w->shared->worker_count; i++) {
        if (w->shared->workers[i] != w) {
            worker_wake(w->shared->workers[i]);
        }
    }
}

/* --- which clients to close --- */

/* The block that holds the newest request may be the one that takes the next. */
static uint64_t holds(const struct client *c)
{
    const struct pending *last = TAILQ_LAST(&c->fifo, pending_list);
    bool counts = c->in != NULL && (last == NULL || last->block != c->in);
    return (counts ? c->in->cap : 0) + c->window.held_bytes + c->window.parked_bytes +
           c->out.bytes + c->session.charged_bytes + (c->tls == NULL ? 0 : tls_bytes(c->tls));
}

/* What the worker's clients hold. */
struct census {
    uint64_t most;         /* the most of them */
    uint64_t parts_bytes;  /* those together that wait for the rest of a request, */
    struct client *oldest; /* ... and the one of these that was silent for longest, or NULL */
};

static struct census count_clients(const struct worker *w)
{
    struct census census = {0};
    struct client *c;
    TAILQ_FOREACH(c, &w->clients, link)
    {
        if (client_is_closed(c)) {
            continue;
        }
        census.most = holds(c) > census.most ? holds(c) : census.most;
        if (c->in != NULL && c->parsed) {
            census.parts_bytes += c->in->cap;
            if (census.oldest == NULL || c->active_us < census.oldest->active_us) {
                census.oldest = c;
            }
        }
    }
    return census;
}

/* Where no answer is in the middle of being sent, a line still fits the client's protocol. */
static bool say_why(struct client *c)
{
    static const char text[] =
        "SERVER_ERROR out of memory: memory_limit_bytes is reached, connection closed\r\n";
    struct chain answer;
    struct iovec piece;
    if (c->out.bytes > 0 || c->life >= CLIENT_STOPPED || secure_is_pending(c)) {
        return false;
    }
    metric_inc(&c->worker->metrics, METRIC_server_errors);
    chain_init(&answer);
    if (client_is_binary(c)) {
        binary_translate(&c->binary, SLICE_LIT(text), &answer);
    } else {
        chain_copy_slice(&answer, SLICE_LIT(text));
    }
    (void)chain_iov(&answer, &piece, 1);
    ssize_t sent = c->tls != NULL
                       ? tls_write(c->tls, &piece, 1)
                       : send(c->fd, piece.iov_base, piece.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    chain_fini(&answer);
    return sent > 0;
}

static void close_client(struct client *c)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_clients_dropped_memory);
    if (log_limit_pass(&w->pressure->limit, w->now.wall_s, "clients", more)) {
        log_warn("client %s closed: memory_limit_bytes (%llu) is reached, and it held %llu bytes%s",
                 client_peer(c, peer, sizeof peer),
                 (unsigned long long)w->config->memory_limit_bytes, (unsigned long long)holds(c),
                 more);
    }
    if (say_why(c)) {
        client_dismiss(c);
    } else {
        client_close(c);
    }
    if (c->life < CLIENT_BURIED) {
        c->doomed_bytes = c->window.held_bytes;
        atomic_fetch_add_explicit(&w->shared->doomed_bytes, c->doomed_bytes, memory_order_relaxed);
    }
}

/* Ends the client's largest call. Returns what that held; 0: there is none. */
static uint64_t end_largest(struct client *c)
{
    struct worker *w = c->worker;
    struct pressure *p = w->pressure;
    uint64_t before = memory_held_here();
    uint64_t bytes = engine_end_largest(w->engine, &c->session, w->now), after = memory_held_here();
    uint64_t freed = before > after ? before - after : 0;
    p->ending_bytes = ending_bytes(w) + (bytes > freed ? bytes - freed : 0);
    p->ending_pass = engine_passes(w->engine);
    w->engine_dirty = w->engine_dirty || bytes > 0;
    memory_settle();
    return bytes;
}

/* The same, where that is what the client holds. */
static void end_call(struct client *c)
{
    if (c->session.charged_bytes >= holds(c) / 2) {
        (void)end_largest(c);
    }
}

/* No client waits for the calls of closed ones, which may go on to take more. */
static void end_calls_of_closed(struct worker *w)
{
    struct client *c;
    TAILQ_FOREACH(c, &w->clients, link)
    {
        while (client_is_closed(c) && end_largest(c) > 0) {
        }
    }
}

/* Ends calls of those that hold so much, the youngest clients' first: the others come to their end
 * and make room. Then closes those that still do. */
static void relieve_of(struct worker *w, size_t more, uint64_t bytes)
{
    struct client *c, *next;
    TAILQ_FOREACH_REVERSE(c, &w->clients, client_list, link)
    {
        if (!is_over(w, more)) {
            return;
        }
        if (!client_is_closed(c) && holds(c) >= bytes) {
            end_call(c);
        }
    }
    for (c = TAILQ_FIRST(&w->clients); c != NULL && is_over(w, more); c = next) {
        next = TAILQ_NEXT(c, link);
        if (!client_is_closed(c) && holds(c) >= bytes) {
            close_client(c);
            memory_settle();
        }
    }
}

/* Frees what those hold that hold nearly as much as the one that holds most, until there is room.
 * Where each holds little, and parts of requests take the memory, the client goes that has kept
 * such a part for longest. Returns false when there is nothing to free. */
static bool relieve(struct worker *w, size_t more)
{
    bool closed_ones_hold_it = held_besides(doomed_bytes(w), more) <= w->config->memory_limit_bytes;
    struct census census = count_clients(w);
    if (census.most >= (closed_ones_hold_it ? LARGE_BYTES_MIN : VICTIM_BYTES_MIN)) {
        relieve_of(w, more, NEARLY(census.most));
        return true;
    }
    if (closed_ones_hold_it || census.parts_bytes <= memory_held_here() / 2) {
        return false;
    }
    close_client(census.oldest);
    memory_settle();
    return true;
}

static void make_room(struct worker *w, size_t more)
{
    memory_settle();
    if (needed(w, more) <= w->config->memory_limit_bytes) {
        return;
    }
    block_drop_spare();
    memory_settle();
    end_calls_of_closed(w);
    while (is_over(w, more) && relieve(w, more)) {
    }
    if (needed(w, more) > w->config->memory_limit_bytes) {
        wake_others(w);
    }
}

void pressure_make_room(struct client *c, size_t bytes)
{
    struct worker *w = c->worker;
    uint64_t limit = w->config->memory_limit_bytes;
    if (LIKELY(memory_held() + bytes <= limit)) {
        return;
    }
    make_room(w, bytes);
    if (!client_is_closed(c) && needed(w, bytes) > limit + limit / 8) {
        close_client(c);
    }
}

bool pressure_has_room(struct worker *w, size_t bytes)
{
    if (LIKELY(memory_held() + bytes <= w->config->memory_limit_bytes)) {
        return true;
    }
    memory_settle();
    return memory_held() + bytes <= w->config->memory_limit_bytes;
}

void pressure_act(struct worker *w)
{
    bool pressed = memory_held() > w->pressure_bytes;
    if (pressed && !w->pressed) {
        metric_inc(&w->metrics, METRIC_memory_pressure);
        block_drop_spare();
        memory_settle();
    }
    w->pressed = pressed;
    make_room(w, 0);
}

/* --- memory that is free --- */

static void on_trim(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    (void)fd;
    (void)what;
    worker_woke(w);
    w->pressure->trims = false;
    /* Another worker may have done it. */
    memory_settle();
    if (memory_wants_trim()) {
        block_drop_spare();
        memory_trim();
    }
}

void pressure_trim_later(struct worker *w)
{
    struct timeval delay = {TRIM_AFTER_S, 0};
    if (!w->pressure->trims) {
        w->pressure->trims = event_add(&w->pressure->trim_timer, &delay) == 0;
    }
}

void pressure_take_config(struct worker *w)
{
    w->pressure_bytes = w->config->memory_limit_bytes / 4 * 3;
}

void pressure_init(struct worker *w)
{
    pressure_take_config(w);
    w->pressure = calloc(1, sizeof *w->pressure);
    CHECK(w->pressure != NULL);
    evtimer_assign(&w->pressure->trim_timer, w->base, on_trim, w);
}

void pressure_fini(struct worker *w)
{
    if (w->pressure != NULL) {
        event_del(&w->pressure->trim_timer);
        free(w->pressure);
    }
}
