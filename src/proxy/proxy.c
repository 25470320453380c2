/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/proxy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/block.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "config/tls_files.h"
#include "list/core/cache.h"
#include "list/core/run_index.h"
#include "pool/locate/resolver.h"
#include "pool/placement.h"
#include "proxy/core/gate.h"
#include "proxy/core/shared.h"
#include "proxy/core/timing.h"
#include "proxy/listen/listen_set.h"
#include "proxy/listen/listener.h"
#include "proxy/thread.h"

/* How often proxy_drain looks whether the workers are done. */
#define DRAIN_POLL_MS 5
/* The same of proxy_start and the gate. */
#define GATE_POLL_MS 1
/* How long workers have for the turn that they are in: the longest take tenths of a second. */
#define ASK_S 5

struct proxy {
    struct shared shared;
    struct placement_watch *placement;           /* NULL: nothing to look at */
    struct tls_trust *tls[CONFIG_LISTENERS_MAX]; /* of the listeners; or NULL */
    size_t adopted;                              /* clients of another process */
};

/* Policies that keep the default's cache size share its cache; one that names a size of its own
 * gets its own. */
static void create_caches(struct shared *s)
{
    const struct config *config = s->config;
    s->caches = calloc(config->list_count, sizeof *s->caches);
    CHECK(s->caches != NULL);
    for (size_t i = 0; i < config->list_count; i++) {
        bool shares = i > 0 && config->lists[i].cache_bytes == config->lists[0].cache_bytes;
        s->caches[i] = shares ? s->caches[0] : cache_create(config->lists[i].cache_bytes);
    }
}

static void destroy_caches(struct shared *s)
{
    for (size_t i = s->config->list_count; s->caches != NULL && i-- > 0;) {
        if (i == 0 || s->caches[i] != s->caches[0]) {
            cache_destroy(&s->caches[i]);
        }
    }
    free(s->caches);
}

/* Returns 0, or -1 with the reason in error. */
static int take_trusts(struct proxy *p, const struct config *config, char error[CONFIG_ERROR_MAX])
{
    for (size_t i = 0; i < config->listener_count; i++) {
        const struct listener_config *listener = &config->listeners[i];
        char owner[TLS_OWNER_MAX];
        struct tls_files files = tls_files_of_listener(listener, owner);
        if (listener->tls_cert[0] == '\0') {
            continue;
        }
        p->tls[i] = tls_trust_take(&files, error);
        if (p->tls[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

static struct listen_set *open_listeners(struct proxy *p, const struct config *config,
                                         struct inherited *inherited, char error[CONFIG_ERROR_MAX])
{
    struct listen_part parts[CONFIG_LISTENERS_MAX];
    struct socket_rights rights = {config->socket_mode, config->socket_group};
    if (take_trusts(p, config, error) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        const struct listener_config *listener = &config->listeners[i];
        parts[i] = (struct listen_part){&listener->listen, listener, p->tls[i]};
    }
    return listen_set_open(parts, config->listener_count, &rights, config->threads, inherited,
                           error);
}

static int start_workers(struct shared *s, char error[CONFIG_ERROR_MAX])
{
    size_t count = s->config->threads;
    s->workers = calloc(count, sizeof *s->workers);
    CHECK(s->workers != NULL);
    /* All are there before the first one runs, since stats looks at all. */
    while (s->worker_count < count) {
        struct worker *w = thread_create(s, s->worker_count, error);
        if (w == NULL) {
            return -1;
        }
        s->workers[s->worker_count++] = w;
    }
    for (size_t i = 0; i < count; i++) {
        int rc = thread_start(s->workers[i]);
        if (rc != 0) {
            snprintf(error, CONFIG_ERROR_MAX, "cannot start a thread: %s", strerror(rc));
            return -1;
        }
    }
    return 0;
}

static void init_locks(struct shared *s)
{
    pthread_condattr_t clock;
    CHECK(pthread_condattr_init(&clock) == 0 &&
          pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0 &&
          pthread_cond_init(&s->asking.changed, &clock) == 0 &&
          pthread_mutex_init(&s->asking.turn, NULL) == 0 &&
          pthread_mutex_init(&s->asking.lock, NULL) == 0 &&
          pthread_mutex_init(&s->reloads.lock, NULL) == 0 &&
          pthread_mutex_init(&s->timing_baseline.lock, NULL) == 0);
    (void)pthread_condattr_destroy(&clock);
}

/* A process that waits for this one to serve, as one that hands over its clients, waits until it is
 * known whether other proxies agree: at most until servers have timed out. */
static void await_gate(const struct shared *s)
{
    while (!gate_is_read(s)) {
        struct timespec pause = {0, GATE_POLL_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
}

struct proxy *proxy_start(const struct config *config, struct inherited *inherited,
                          char error[CONFIG_ERROR_MAX])
{
    struct proxy *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    struct shared *s = &p->shared;
    s->config = config;
    atomic_init(&s->heir, -1);
    s->started_us = clock_now().mono_us;
    signal(SIGPIPE, SIG_IGN);
    struct rng rng;
    rng_init_system(&rng);
    hash_set_secret(rng_unique(&rng));
    memory_init();
    block_limit_spare(config_spare_bytes(config));
    create_caches(s);
    s->slow = slow_log_create();
    trace_init(&s->trace);
    hot_keys_init(&s->hot_keys);
    init_locks(s);
    s->reloads.last.last_good_s = clock_now().wall_s;
    s->indexes = run_indexes_create(config->index_bytes, LOCATOR_CHECK_BITS);
    gate_create(s);
    s->listen = open_listeners(p, config, inherited, error);
    s->resolver = s->listen == NULL ? NULL : resolver_create(config, error);
    if (s->resolver == NULL || start_workers(s, error) != 0) {
        proxy_stop(&p);
    } else {
        await_gate(s);
        p->placement = placement_start(config, s->resolver);
    }
    return p;
}

static void order_all(struct shared *s, enum thread_order order)
{
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_order(s->workers[i], order);
    }
}

/* --- between two turns --- */

static struct timespec last_moment(void)
{
    struct timespec until;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    until.tv_sec += ASK_S;
    return until;
}

static int ask_one(struct worker *w, void (*run)(struct worker *worker, void *arg), void *arg,
                   const struct timespec *until)
{
    struct job job = {.run = run, .arg = arg};
    thread_post(w, &job);
    return thread_await(w, &job, until);
}

int proxy_ask(struct proxy *p, void (*run)(struct worker *worker, void *arg), void *arg)
{
    struct shared *s = &p->shared;
    struct timespec until = last_moment();
    int rc = 0;
    pthread_mutex_lock(&s->asking.turn);
    for (size_t i = 0; i < s->worker_count && rc == 0; i++) {
        rc = ask_one(s->workers[i], run, arg, &until);
    }
    pthread_mutex_unlock(&s->asking.turn);
    return rc;
}

static void rest(struct worker *w, void *arg)
{
    struct asking *a = arg;
    pthread_mutex_lock(&a->lock);
    a->resting++;
    pthread_cond_broadcast(&a->changed);
    while (a->rests) {
        pthread_cond_wait(&a->changed, &a->lock);
    }
    a->resting--;
    pthread_mutex_unlock(&a->lock);
    thread_take_config(w);
}

/* Calls change once all workers rest. Returns 0, or an errno when one does not in time. */
static int change_at_rest(struct asking *a, size_t count, const struct timespec *until,
                          void (*change)(void *arg), void *arg)
{
    int rc = 0;
    pthread_mutex_lock(&a->lock);
    while (a->resting != count && rc == 0) {
        rc = pthread_cond_timedwait(&a->changed, &a->lock, until);
    }
    if (a->resting == count) {
        rc = 0;
        change(arg);
    }
    a->rests = false;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

int proxy_change(struct proxy *p, void (*change)(void *arg), void *arg)
{
    struct shared *s = &p->shared;
    struct timespec until = last_moment();
    struct job *jobs = calloc(s->worker_count, sizeof *jobs);
    CHECK(jobs != NULL);
    pthread_mutex_lock(&s->asking.turn);
    /* Its thread reads the configuration as well: it begins anew with what holds then. */
    bool placement_done = placement_stop(&p->placement);
    s->asking.rests = true;
    for (size_t i = 0; i < s->worker_count; i++) {
        jobs[i] = (struct job){.run = rest, .arg = &s->asking};
        thread_post(s->workers[i], &jobs[i]);
    }
    int rc = change_at_rest(&s->asking, s->worker_count, &until, change, arg);
    for (size_t i = 0; i < s->worker_count; i++) {
        /* One that was too late rests no more. */
        (void)!thread_await(s->workers[i], &jobs[i], &until);
    }
    if (!placement_done) {
        p->placement = placement_start(s->config, s->resolver);
    }
    pthread_mutex_unlock(&s->asking.turn);
    free(jobs);
    return rc == 0 ? 0 : -1;
}

static bool all_drained(const struct shared *s)
{
    for (size_t i = 0; i < s->worker_count; i++) {
        if (!thread_is_drained(s->workers[i])) {
            return false;
        }
    }
    return true;
}

void proxy_drain(struct proxy *p)
{
    struct shared *s = &p->shared;
    order_all(s, THREAD_DRAIN);
    uint64_t end_us = clock_now().mono_us + (uint64_t)s->config->drain_timeout_ms * 1000;
    while ((atomic_load(&s->receives) || !all_drained(s)) && clock_now().mono_us < end_us) {
        struct timespec pause = {0, DRAIN_POLL_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
}

void proxy_stop(struct proxy **slot)
{
    struct proxy *p = *slot;
    *slot = NULL;
    struct shared *s = &p->shared;
    (void)placement_stop(&p->placement);
    order_all(s, THREAD_STOP);
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_join(s->workers[i]);
    }
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_destroy(&s->workers[i]);
    }
    free(s->workers);
    gate_destroy(s);
    resolver_destroy(&s->resolver);
    listen_set_close(&s->listen);
    for (size_t i = 0; i < CONFIG_LISTENERS_MAX; i++) {
        tls_trust_give(&p->tls[i]);
    }
    destroy_caches(s);
    run_indexes_destroy(&s->indexes);
    slow_log_destroy(&s->slow);
    trace_fini(&s->trace);
    hot_keys_fini(&s->hot_keys);
    pthread_mutex_destroy(&s->timing_baseline.lock);
    block_thread_fini();
    free(p);
}

struct shared *proxy_shared(struct proxy *p)
{
    return &p->shared;
}

static void adopt(struct worker *w, void *arg)
{
    listener_adopt(w, arg);
}

int proxy_adopt(struct proxy *p, const struct moved *moved)
{
    struct shared *s = &p->shared;
    struct timespec until = last_moment();
    pthread_mutex_lock(&s->asking.turn);
    struct worker *w = s->workers[p->adopted++ % s->worker_count];
    int rc = ask_one(w, adopt, (void *)moved, &until);
    pthread_mutex_unlock(&s->asking.turn);
    return rc;
}

void proxy_serve(struct proxy *p)
{
    struct shared *s = &p->shared;
    listen_set_share(s->listen, false);
    atomic_store(&s->serves, true);
    for (size_t i = 0; i < s->worker_count; i++) {
        worker_wake(s->workers[i]);
    }
}

void proxy_set_receives(struct proxy *p, bool receives)
{
    atomic_store(&p->shared.receives, receives);
}
