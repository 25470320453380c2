/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dialect/dialects.h"
#include "proxy/forward.h"
#include "proxy/late.h"
#include "proxy/list_request.h"
#include "proxy/multiget.h"
#include "proxy/pressure.h"
#include "proxy/request_clock.h"
#include "proxy/run.h"

/* How often idle clients are looked for. */
#define IDLE_CHECK_S 1
/* Each kind of spare memory, of all workers, may take this part of memory_limit_bytes, ... */
#define SPARE_PART 64
/* ... and no more than this in one worker. */
#define SPARE_BYTES_MAX ((size_t)4 << 20)

/* --- spare memory --- */

void spare_init(struct spare_list *list, size_t size, size_t bytes_max)
{
    *list = (struct spare_list){.size = size, .max = (uint32_t)(bytes_max / size)};
}

void *spare_new(struct spare_list *list)
{
    void *object = calloc(1, list->size);
    CHECK(object != NULL);
    memory_take(list->size);
    list->made++;
    return object;
}

void spare_free(struct spare_list *list, void *object)
{
    memory_give(list->size);
    list->made--;
    free(object);
}

void spare_fini(struct spare_list *list)
{
    while (list->first != NULL) {
        spare_free(list, spare_take(list));
    }
}

char *worker_scratch(struct worker *w, size_t len)
{
    if (len > w->scratch_cap) {
        free(w->scratch);
        w->scratch_cap = len * 2;
        w->scratch = malloc(w->scratch_cap);
        CHECK(w->scratch != NULL);
    }
    return w->scratch;
}

/* --- the loop --- */

static void set_timer(struct worker *w)
{
    if (w->engine_next_us == w->timer_us) {
        return;
    }
    w->timer_us = w->engine_next_us;
    if (w->timer_us == UINT64_MAX) {
        event_del(&w->timer);
        return;
    }
    uint64_t now_us = w->now.mono_us;
    uint64_t delay_us = w->timer_us > now_us ? w->timer_us - now_us : 0;
    struct timeval delay = {(time_t)(delay_us / 1000000), (suseconds_t)(delay_us % 1000000)};
    event_add(&w->timer, &delay);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    (void)fd;
    (void)what;
    worker_woke(w);
    /* The flush of this turn sees that the time has come, or sets the timer again. */
    w->timer_us = UINT64_MAX;
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
    if (w->engine_next_us <= w->now.mono_us) {
        w->engine_dirty = true;
    }
    do {
        pressure_check(w);
        do {
            pump_clients(w);
        } while (run_engine(w));
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
    TAILQ_FOREACH(c, &w->clients, link)
    {
        client_finish(c);
    }
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    uint64_t count;
    (void)what;
    worker_woke(w);
    if (read(fd, &count, sizeof count) < 0) {
        return;
    }
    if (!w->draining && atomic_load(&w->order) == WORKER_DRAIN) {
        start_draining(w);
    }
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

static void *work(void *arg)
{
    struct worker *w = arg;
    while (atomic_load(&w->order) != WORKER_STOP) {
        w->now_fresh = false;
        /* A long computation of the engine goes on in slices: then look at the sockets, but do not
         * wait for them. */
        int more = w->engine_next_us <= w->now.mono_us ? EVLOOP_NONBLOCK : 0;
        event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY | more);
        w->now = clock_now();
        w->now_fresh = true;
        flush(w);
        set_timer(w);
        if (w->draining && TAILQ_EMPTY(&w->clients) && !engine_busy(w->engine)) {
            atomic_store(&w->drained, true);
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

size_t worker_spare_bytes(const struct config *config)
{
    uint64_t bytes = config->memory_limit_bytes / SPARE_PART / config->threads;
    return bytes < SPARE_BYTES_MAX ? (size_t)bytes : SPARE_BYTES_MAX;
}

static void init_spares(struct worker *w)
{
    size_t bytes = worker_spare_bytes(w->config);
    pending_init(w, bytes);
    forward_init(w, bytes);
    multiget_init(w, bytes);
    list_request_init(w, bytes);
}

static void create_events(struct worker *w)
{
    event_assign(&w->wake_event, w->base, w->wake_fd, EV_READ | EV_PERSIST, on_wake, w);
    event_add(&w->wake_event, NULL);
    evtimer_assign(&w->timer, w->base, on_timer, w);
    late_init(w);
    event_assign(&w->idle_timer, w->base, -1, EV_PERSIST, on_idle_timer, w);
    if (w->config->idle_timeout_s != 0) {
        struct timeval interval = {IDLE_CHECK_S, 0};
        event_add(&w->idle_timer, &interval);
    }
    request_clock_init(w);
    pressure_init(w);
}

struct worker *worker_create(struct shared *shared, size_t index, char error[CONFIG_ERROR_MAX])
{
    struct worker *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    w->shared = shared;
    w->config = shared->config;
    w->index = index;
    w->now = clock_now();
    w->engine_next_us = w->timer_us = UINT64_MAX;
    TAILQ_INIT(&w->clients);
    TAILQ_INIT(&w->touched);
    TAILQ_INIT(&w->unsent);
    TAILQ_INIT(&w->graveyard);
    rng_init_system(&w->rng);
    w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->base = event_base_new();
    if (w->base == NULL || w->wake_fd < 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot start a worker: %s", strerror(errno));
        worker_destroy(&w);
        return NULL;
    }
    create_events(w);
    if (create_pools(w, error) != 0) {
        worker_destroy(&w);
        return NULL;
    }
    init_spares(w);
    w->backend = backend_create(w->pools, w->config->pool_count, run_backend_done, w);
    w->engine = engine_create(w->config, shared->caches, &dialects, &w->rng, &w->metrics);
    listener_start(w, shared->listen);
    return w;
}

/* Clients go before the engine, since calls are theirs; the pools' last words come while both are
 * still there. */
static void destroy_traffic(struct worker *w)
{
    struct client *c, *next;
    for (c = TAILQ_FIRST(&w->clients); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        client_close(c);
    }
    for (size_t i = 0; w->pools != NULL && i < w->config->pool_count; i++) {
        if (w->pools[i] != NULL) {
            pool_destroy(&w->pools[i]);
        }
    }
    if (w->engine != NULL) {
        engine_destroy(&w->engine);
    }
    if (w->backend != NULL) {
        backend_destroy(&w->backend);
    }
    while ((c = TAILQ_FIRST(&w->clients)) != NULL) {
        pending_drop_all(c);
        client_bury(c);
    }
    while ((c = TAILQ_FIRST(&w->graveyard)) != NULL) {
        client_destroy(&c);
    }
}

void worker_destroy(struct worker **slot)
{
    struct worker *w = *slot;
    *slot = NULL;
    CHECK(!w->started);
    listener_stop(w);
    destroy_traffic(w);
    free(w->pools);
    if (w->base != NULL) {
        if (event_initialized(&w->wake_event)) {
            event_del(&w->wake_event);
            event_del(&w->timer);
            late_fini(w);
            event_del(&w->idle_timer);
            request_clock_fini(w);
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
    list_request_fini(w);
    free(w->scratch);
    free(w);
}

int worker_start(struct worker *w)
{
    int rc = pthread_create(&w->thread, NULL, work, w);
    w->started = rc == 0;
    return rc;
}

void worker_order(struct worker *w, enum worker_order order)
{
    atomic_store(&w->order, order);
    worker_wake(w);
}

void worker_wake(struct worker *w)
{
    uint64_t one = 1;
    if (write(w->wake_fd, &one, sizeof one) < 0) {
        log_warn("cannot wake a worker: %s", strerror(errno));
    }
}

void worker_join(struct worker *w)
{
    if (w->started) {
        pthread_join(w->thread, NULL);
        w->started = false;
    }
}
