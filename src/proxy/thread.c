/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/thread.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/rng.h"
#include "dialect/dialects.h"
#include "list/engine.h"
#include "pool/pool.h"
#include "proxy/client/client.h"
#include "proxy/client/deadline.h"
#include "proxy/client/linger.h"
#include "proxy/client/move.h"
#include "proxy/client/pressure.h"
#include "proxy/client/request_clock.h"
#include "proxy/client/reserve.h"
#include "proxy/core/gate.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/dispatch.h"
#include "proxy/listen/listener.h"
#include "proxy/lists/call_part.h"
#include "proxy/lists/run.h"
#include "proxy/plain/forward.h"
#include "proxy/plain/multiget.h"
#include "proxy/plain/route.h"
#include "proxy/plain/shadow.h"

/* How often idle clients are looked for. */
#define IDLE_CHECK_S 1
/* How often hot keys and slow clients are looked for: operators hear of them within a minute. */
#define LOOK_S 10
/* A worker, and what only this file needs of it. */
struct thread {
    struct worker worker; /* the first member: see thread_of */
    pthread_t id;
    bool started;
    struct event wake_event;
    _Atomic int order;    /* enum thread_order, set by main */
    _Atomic bool drained; /* told to main */
    _Atomic(struct job *) job;
    struct rng rng;
    uint64_t engine_next_us; /* when engine_run asked to be called again */
    struct event timer;
    uint64_t timer_us; /* what timer is set to, UINT64_MAX = not set */
    struct event idle_timer;
    struct event look_timer;
};

static struct thread *thread_of(struct worker *w)
{
    return (struct thread *)w;
}

/* --- the loop --- */

static void set_timer(struct worker *w)
{
    struct thread *t = thread_of(w);
    if (t->engine_next_us == t->timer_us) {
        return;
    }
    t->timer_us = t->engine_next_us;
    if (t->timer_us == UINT64_MAX) {
        event_del(&t->timer);
        return;
    }
    struct timeval delay = timeval_until(t->timer_us, w->now.mono_us);
    event_add(&t->timer, &delay);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    struct thread *t = thread_of(w);
    (void)fd;
    (void)what;
    worker_woke(w);
    /* The flush of this turn sees that the time has come, or sets the timer again. */
    t->timer_us = UINT64_MAX;
}

static void pump_clients(struct worker *w)
{
    struct client *c;
    while ((c = TAILQ_FIRST(&w->touched)) != NULL) {
        TAILQ_REMOVE(&w->touched, c, touched_link);
        c->touched = false;
        client_pump(c);
        /* Here, not once a turn: what the requests of many clients draw at once adds up. */
        pressure_check(w);
    }
}

static void write_clients(struct worker *w)
{
    struct client *c;
    while ((c = TAILQ_FIRST(&w->unsent)) != NULL) {
        TAILQ_REMOVE(&w->unsent, c, write_link);
        c->unsent = false;
        client_write(c);
    }
}

/* Moves requests and answers until nothing moves any more. Servers and clients get one write each,
 * at the end. */
static void flush(struct worker *w)
{
    struct thread *t = thread_of(w);
    if (t->engine_next_us <= w->now.mono_us) {
        w->engine_dirty = true;
    }
    do {
        do {
            pressure_check(w); /* each pass of the engine may take more */
            pump_clients(w);
        } while (run_engine(w, &t->engine_next_us));
        run_flush_pools(w);
        write_clients(w);
    } while (!TAILQ_EMPTY(&w->touched) || w->engine_dirty);
    struct client *dead;
    while ((dead = TAILQ_FIRST(&w->graveyard)) != NULL) {
        client_destroy(&dead);
    }
    pressure_check_trim(w);
}

static void start_draining(struct worker *w)
{
    struct client *c;
    w->draining = true;
    listener_stop(w);
    w->moving = atomic_load(&w->shared->heir) >= 0;
    TAILQ_FOREACH(c, &w->clients, link)
    {
        w->moving && c->tls == NULL ? move_begin(c) : client_finish(c);
    }
    linger_drain(w);
}

/* Clients wait until all of the process has started: else one that gives up would close them. */
static void begin_to_listen(struct worker *w)
{
    if (w->listener == NULL && !w->draining && atomic_load(&w->shared->serves)) {
        listener_start(w, w->shared->listen);
    }
}

/* To the process that takes this one's place. One that is slow to take them is waited for in many
 * short turns: between them requests that are under way go on. */
static void move_clients(struct worker *w)
{
    struct client *c, *next;
    for (c = TAILQ_FIRST(&w->clients); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (!move_try(c)) {
            worker_wake(w);
            return;
        }
    }
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    struct thread *t = thread_of(w);
    uint64_t count;
    (void)what;
    worker_woke(w);
    if (read(fd, &count, sizeof count) < 0) {
        return;
    }
    if (!w->draining && atomic_load(&t->order) == THREAD_DRAIN) {
        start_draining(w);
    }
    gate_woken(w);
    begin_to_listen(w);
}

static void on_idle_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    (void)fd;
    (void)what;
    worker_woke(w);
    uint64_t limit_us = (uint64_t)w->config->idle_timeout_s * 1000000;
    uint64_t since_us = w->now.mono_us > limit_us ? w->now.mono_us - limit_us : 0;
    struct client *c, *next;
    for (c = TAILQ_FIRST(&w->clients); c != NULL && c->active_us <= since_us; c = next) {
        next = TAILQ_NEXT(c, link);
        if (client_is_idle(c, since_us)) {
            metric_inc(&w->metrics, METRIC_idle_kicks);
            client_close(c);
        }
    }
}

static void on_look_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    (void)fd;
    (void)what;
    worker_woke(w);
    laggards_tell(&w->laggards, w->slow_us, &w->now);
    if (w->index == 0) {
        hot_keys_look(w->shared, &w->now);
    }
}

static uint64_t slow_us_of(const struct config *config)
{
    return config->slow_ms == 0 ? UINT64_MAX : (uint64_t)config->slow_ms * 1000;
}

static void set_idle_timer(struct worker *w)
{
    struct timeval interval = {IDLE_CHECK_S, 0};
    if (w->config->idle_timeout_s != 0) {
        event_add(&thread_of(w)->idle_timer, &interval);
    } else {
        event_del(&thread_of(w)->idle_timer);
    }
}

/* What was made of the configuration is made anew; all else is read where it is needed. */
void thread_take_config(struct worker *w)
{
    struct client *c;
    w->slow_us = slow_us_of(w->config);
    set_idle_timer(w);
    request_clock_take_config(w);
    deadline_take_config(w);
    pressure_take_config(w);
    for (size_t i = 0; i < w->config->pool_count; i++) {
        pool_take_config(w->pools[i]);
    }
    TAILQ_FOREACH(c, &w->clients, link)
    {
        client_take_config(c);
    }
}

static void set_state(struct asking *a, struct job *job, int state)
{
    job->state = state;
    pthread_cond_broadcast(&a->changed);
}

static void run_job(struct worker *w)
{
    struct thread *t = thread_of(w);
    struct asking *a = &w->shared->asking;
    pthread_mutex_lock(&a->lock);
    struct job *job = atomic_exchange(&t->job, NULL);
    if (job != NULL) {
        set_state(a, job, JOB_RUNS);
        atomic_store(&t->drained, false); /* it may bring a client */
        pthread_mutex_unlock(&a->lock);
        job->run(w, job->arg);
        pthread_mutex_lock(&a->lock);
        set_state(a, job, JOB_IS_DONE);
    }
    pthread_mutex_unlock(&a->lock);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct thread *t = thread_of(w);
    while (atomic_load(&t->order) != THREAD_STOP) {
        bool asked = UNLIKELY(atomic_load(&t->job) != NULL);
        w->now_fresh = false;
        if (asked) {
            worker_woke(w);
            run_job(w);
        }
        /* A long computation of the engine goes on in slices, and a job may have left work for this
         * turn: then look at the sockets, but do not wait for them. */
        int more = asked || t->engine_next_us <= w->now.mono_us ? EVLOOP_NONBLOCK : 0;
        event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY | more);
        w->now = clock_now();
        w->now_fresh = true;
        flush(w);
        if (UNLIKELY(w->moving)) {
            move_clients(w);
        }
        set_timer(w);
        if (w->draining) {
            atomic_store(&t->drained, TAILQ_EMPTY(&w->clients) && !engine_busy(w->engine));
        }
    }
    block_thread_fini();
    return NULL;
}

/* --- start and stop --- */

static int create_pools(struct worker *w, char error[CONFIG_ERROR_MAX])
{
    w->pools = calloc(w->config->pool_count, sizeof *w->pools);
    CHECK(w->pools != NULL);
    for (size_t i = 0; i < w->config->pool_count; i++) {
        w->pools[i] = pool_create(&w->config->pools[i], w->base, &w->now, &w->metrics,
                                  w->shared->resolver, error);
        if (w->pools[i] == NULL) {
            return -1;
        }
        /* The servers' own counters are the same for all workers. */
        pool_set_watch(w->pools[i], w->index == 0);
        /* So that faults are seen, and the first requests find connections. */
        pool_connect(w->pools[i]);
    }
    return 0;
}

static void init_spares(struct worker *w)
{
    size_t bytes = config_spare_bytes(w->config);
    pending_init(w, bytes);
    forward_init(w, bytes);
    multiget_init(w, bytes);
    shadow_init(w, bytes);
    call_part_init(w, bytes);
}

static void create_events(struct worker *w)
{
    struct thread *t = thread_of(w);
    event_assign(&t->wake_event, w->base, w->wake_fd, EV_READ | EV_PERSIST, on_wake, w);
    event_add(&t->wake_event, NULL);
    evtimer_assign(&t->timer, w->base, on_timer, w);
    deadline_init(w);
    event_assign(&t->idle_timer, w->base, -1, EV_PERSIST, on_idle_timer, w);
    set_idle_timer(w);
    event_assign(&t->look_timer, w->base, -1, EV_PERSIST, on_look_timer, w);
    event_add(&t->look_timer, &(const struct timeval){LOOK_S, 0});
    request_clock_init(w);
    linger_init(w);
    pressure_init(w);
}

struct worker *thread_create(struct shared *shared, size_t index, char error[CONFIG_ERROR_MAX])
{
    struct thread *t = calloc(1, sizeof *t);
    CHECK(t != NULL);
    struct worker *w = &t->worker;
    w->shared = shared;
    w->config = shared->config;
    w->index = index;
    w->handlers = &dispatch_handlers;
    w->now = clock_now();
    timing_init(&w->timing);
    laggards_init(&w->laggards);
    w->slow_us = slow_us_of(w->config);
    t->engine_next_us = t->timer_us = UINT64_MAX;
    TAILQ_INIT(&w->clients);
    TAILQ_INIT(&w->touched);
    TAILQ_INIT(&w->unsent);
    TAILQ_INIT(&w->graveyard);
    reserve_init(w);
    rng_init_system(&t->rng);
    w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->base = event_base_new();
    if (w->base == NULL || w->wake_fd < 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot start a worker: %s", strerror(errno));
        thread_destroy(&w);
        return NULL;
    }
    create_events(w);
    if (create_pools(w, error) != 0) {
        thread_destroy(&w);
        return NULL;
    }
    route_init(w);
    init_spares(w);
    w->engine = engine_create(w->config, shared->caches, &dialects, &t->rng, &w->metrics);
    engine_set_request_room(w->engine, run_room_bytes);
    engine_set_run_indexes(w->engine, shared->indexes);
    engine_set_own_changes(w->engine, &shared->own_changes);
    run_create_moves(w, &t->rng);
    gate_attach(w);
    return w;
}

/* Clients go before the engine, since calls are theirs; the pools' last words come while both are
 * still there. */
static void destroy_traffic(struct worker *w)
{
    struct client *c, *next;
    w->ending = true;
    for (c = TAILQ_FIRST(&w->clients); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        client_close(c);
    }
    for (size_t i = 0; w->pools != NULL && i < w->config->pool_count; i++) {
        if (w->pools[i] != NULL) {
            pool_destroy(&w->pools[i]);
        }
    }
    run_destroy_moves(w);
    if (w->engine != NULL) {
        engine_destroy(&w->engine);
    }
    while ((c = TAILQ_FIRST(&w->clients)) != NULL) {
        pending_drop_all(c);
        client_bury(c);
    }
    while ((c = TAILQ_FIRST(&w->graveyard)) != NULL) {
        client_destroy(&c);
    }
}

void thread_destroy(struct worker **slot)
{
    struct worker *w = *slot;
    struct thread *t = thread_of(w);
    *slot = NULL;
    CHECK(!t->started);
    listener_stop(w);
    gate_detach(w);
    destroy_traffic(w);
    free(w->pools);
    if (w->base != NULL) {
        if (event_initialized(&t->wake_event)) {
            event_del(&t->wake_event);
            event_del(&t->timer);
            deadline_fini(w);
            event_del(&t->idle_timer);
            event_del(&t->look_timer);
            request_clock_fini(w);
            linger_fini(w);
            pressure_fini(w);
        }
        event_base_free(w->base);
    }
    if (w->wake_fd >= 0) {
        close(w->wake_fd);
    }
    pending_fini(w);
    forward_fini(w);
    multiget_fini(w);
    route_fini(w);
    shadow_fini(w);
    call_part_fini(w);
    timing_fini(&w->timing);
    laggards_fini(&w->laggards);
    free(w->scratch);
    free(t);
}

bool thread_is_drained(struct worker *w)
{
    return atomic_load(&thread_of(w)->drained);
}

int thread_start(struct worker *w)
{
    struct thread *t = thread_of(w);
    int rc = pthread_create(&t->id, NULL, work, w);
    t->started = rc == 0;
    return rc;
}

void thread_order(struct worker *w, enum thread_order order)
{
    struct thread *t = thread_of(w);
    atomic_store(&t->order, order);
    worker_wake(w);
}

void thread_post(struct worker *w, struct job *job)
{
    struct asking *a = &w->shared->asking;
    pthread_mutex_lock(&a->lock);
    job->state = JOB_WAITS;
    CHECK(atomic_exchange(&thread_of(w)->job, job) == NULL);
    pthread_mutex_unlock(&a->lock);
    worker_wake(w);
}

int thread_await(struct worker *w, struct job *job, const struct timespec *until)
{
    struct asking *a = &w->shared->asking;
    int rc = 0;
    pthread_mutex_lock(&a->lock);
    while (job->state != JOB_IS_DONE && (job->state == JOB_RUNS || rc == 0)) {
        rc = job->state == JOB_RUNS ? pthread_cond_wait(&a->changed, &a->lock)
                                    : pthread_cond_timedwait(&a->changed, &a->lock, until);
    }
    bool done = job->state == JOB_IS_DONE;
    if (!done) {
        atomic_store(&thread_of(w)->job, NULL);
    }
    pthread_mutex_unlock(&a->lock);
    return done ? 0 : -1;
}

void thread_join(struct worker *w)
{
    struct thread *t = thread_of(w);
    if (t->started) {
        pthread_join(t->id, NULL);
        t->started = false;
    }
}
