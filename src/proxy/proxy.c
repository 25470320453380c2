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
#include "list/core/cache.h"
#include "list/core/run_index.h"
#include "pool/locate/resolver.h"
#include "pool/placement.h"
#include "proxy/core/shared.h"
#include "proxy/core/spare.h"
#include "proxy/core/timing.h"
#include "proxy/listen/listen_set.h"
#include "proxy/thread.h"

/* How often proxy_drain looks whether the workers are done. */
#define DRAIN_POLL_MS 5

struct proxy {
    struct shared shared;
    struct placement_watch *placement; /* NULL: nothing to look at */
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

static struct listen_set *open_listeners(const struct config *config, char error[CONFIG_ERROR_MAX])
{
    struct listen_part parts[CONFIG_LISTENERS_MAX];
    struct socket_rights rights = {config->socket_mode, config->socket_group};
    for (size_t i = 0; i < config->listener_count; i++) {
        const struct listener_config *listener = &config->listeners[i];
        parts[i] = (struct listen_part){&listener->listen, listener};
    }
    return listen_set_open(parts, config->listener_count, &rights, config->threads, error);
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

struct proxy *proxy_start(const struct config *config, char error[CONFIG_ERROR_MAX])
{
    struct proxy *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    struct shared *s = &p->shared;
    s->config = config;
    s->started_us = clock_now().mono_us;
    signal(SIGPIPE, SIG_IGN);
    struct rng rng;
    rng_init_system(&rng);
    hash_set_secret(rng_unique(&rng));
    memory_init();
    block_limit_spare(spare_bytes_max(config));
    create_caches(s);
    s->slow = slow_log_create();
    CHECK(pthread_mutex_init(&s->timing_baseline.lock, NULL) == 0);
    s->indexes = run_indexes_create(config->index_bytes, LOCATOR_CHECK_BITS);
    s->listen = open_listeners(config, error);
    s->resolver = s->listen == NULL ? NULL : resolver_create(config, error);
    if (s->resolver == NULL || start_workers(s, error) != 0) {
        proxy_stop(&p);
    } else {
        p->placement = placement_start(config, s->resolver);
    }
    return p;
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
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_order(s->workers[i], THREAD_DRAIN);
    }
    uint64_t end_us = clock_now().mono_us + (uint64_t)s->config->drain_timeout_ms * 1000;
    while (!all_drained(s) && clock_now().mono_us < end_us) {
        struct timespec pause = {0, DRAIN_POLL_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
}

void proxy_stop(struct proxy **slot)
{
    struct proxy *p = *slot;
    *slot = NULL;
    struct shared *s = &p->shared;
    placement_stop(&p->placement);
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_order(s->workers[i], THREAD_STOP);
    }
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_join(s->workers[i]);
    }
    for (size_t i = 0; i < s->worker_count; i++) {
        thread_destroy(&s->workers[i]);
    }
    free(s->workers);
    resolver_destroy(&s->resolver);
    listen_set_close(&s->listen);
    destroy_caches(s);
    run_indexes_destroy(&s->indexes);
    slow_log_destroy(&s->slow);
    pthread_mutex_destroy(&s->timing_baseline.lock);
    block_thread_fini();
    free(p);
}

struct shared *proxy_shared(struct proxy *p)
{
    return &p->shared;
}

size_t proxy_listen_count(const struct proxy *p)
{
    return listen_set_count(p->shared.listen);
}

const char *proxy_listen_name(const struct proxy *p, size_t i)
{
    return listen_set_name(p->shared.listen, i);
}
