/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/laggards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"

void laggards_init(struct laggards *l)
{
    *l = (struct laggards){.halved_s = 0};
    CHECK(pthread_mutex_init(&l->lock, NULL) == 0);
}

void laggards_fini(struct laggards *l)
{
    pthread_mutex_destroy(&l->lock);
}

static void halve(struct laggards *l, int64_t now_s)
{
    if (now_s < l->halved_s + LAGGARDS_HALF_S && now_s >= l->halved_s) {
        return;
    }
    l->halved_s = now_s;
    for (size_t i = 0; i < LAGGARDS_KEPT; i++) {
        l->places[i].unread_ms /= 2;
    }
}

/* The client's place, or that of the one that was least in the way and is not now; NULL: all are in
 * the way now. */
static struct laggard *place_of(struct laggards *l, const char *name)
{
    struct laggard *least = NULL;
    for (size_t i = 0; i < LAGGARDS_KEPT; i++) {
        struct laggard *p = &l->places[i];
        if (strcmp(p->name, name) == 0) {
            return p;
        }
        if (p->stuck == 0 && (least == NULL || p->unread_ms < least->unread_ms)) {
            least = p;
        }
    }
    if (least != NULL) {
        *least = (struct laggard){.stuck = 0};
        snprintf(least->name, sizeof least->name, "%s", name);
    }
    return least;
}

void lag_begin(struct laggards *l, struct lag *lag, const char *name, size_t bytes,
               const struct now *now)
{
    pthread_mutex_lock(&l->lock);
    halve(l, now->wall_s);
    struct laggard *place = place_of(l, name);
    if (place != NULL) {
        place->is_told = place->is_told && place->stuck > 0;
        place->stuck++;
        place->since_us += now->mono_us;
        place->unread_bytes += bytes;
    }
    *lag = (struct lag){place, now->mono_us, bytes};
    pthread_mutex_unlock(&l->lock);
}

void lag_set_bytes(struct laggards *l, struct lag *lag, size_t bytes)
{
    if (lag->place != NULL) {
        pthread_mutex_lock(&l->lock);
        lag->place->unread_bytes += bytes - lag->bytes;
        lag->bytes = bytes;
        pthread_mutex_unlock(&l->lock);
    }
}

void lag_end(struct laggards *l, struct lag *lag, const struct now *now, bool is_closed)
{
    struct laggard *place = lag->place;
    if (place != NULL) {
        pthread_mutex_lock(&l->lock);
        place->stuck--;
        place->since_us -= lag->since_us;
        place->unread_ms += (now->mono_us - lag->since_us) / 1000;
        place->unread_bytes -= lag->bytes;
        place->closed += is_closed;
        pthread_mutex_unlock(&l->lock);
    }
    lag->place = NULL;
}

/* How long its connections have been stuck, on average. */
static uint64_t stuck_us(const struct laggard *p, const struct now *now)
{
    uint64_t until_us = p->stuck * now->mono_us;
    return p->stuck == 0 || until_us < p->since_us ? 0 : (until_us - p->since_us) / p->stuck;
}

void laggards_tell(struct laggards *l, uint64_t slow_us, const struct now *now)
{
    char more[LOG_MORE_MAX];
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LAGGARDS_KEPT; i++) {
        struct laggard *p = &l->places[i];
        uint64_t us = stuck_us(p, now);
        if (us < slow_us || p->is_told || p->stuck == 0) {
            continue;
        }
        p->is_told = true;
        if (log_limit_pass(&l->limit, now->wall_s, "clients", more)) {
            log_warn("slow: client %s leaves %" PRIu64 " bytes of answers unread, for %" PRIu64
                     " ms up to now (slow_ms)%s",
                     p->name, p->unread_bytes, us / 1000, more);
        }
    }
    pthread_mutex_unlock(&l->lock);
}

/* --- sums --- */

static struct laggard *row_of(struct laggards_sum *sum, const char *name)
{
    for (size_t i = 0; i < sum->count; i++) {
        if (strcmp(sum->rows[i].name, name) == 0) {
            return &sum->rows[i];
        }
    }
    sum->rows = array_room(sum->rows, sum->count, &sum->cap, sizeof *sum->rows);
    struct laggard *row = &sum->rows[sum->count++];
    *row = (struct laggard){.stuck = 0};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

void laggards_sum_add(struct laggards_sum *sum, struct laggards *from, const struct now *now)
{
    pthread_mutex_lock(&from->lock);
    for (size_t i = 0; i < LAGGARDS_KEPT; i++) {
        const struct laggard *p = &from->places[i];
        uint64_t until_us = p->stuck * now->mono_us;
        uint64_t ms = p->unread_ms + (until_us > p->since_us ? (until_us - p->since_us) / 1000 : 0);
        if (ms == 0 && p->stuck == 0 && p->closed == 0) {
            continue;
        }
        struct laggard *row = row_of(sum, p->name);
        row->unread_ms += ms;
        row->unread_bytes += p->unread_bytes;
        uint64_t now_ms = stuck_us(p, now) / 1000;
        row->now_ms = now_ms > row->now_ms ? now_ms : row->now_ms;
        row->stuck += p->stuck;
        row->closed += p->closed;
        sum->unread_ms += ms;
    }
    pthread_mutex_unlock(&from->lock);
}

static int worst_first(const void *a, const void *b)
{
    uint64_t left = ((const struct laggard *)a)->unread_ms,
             right = ((const struct laggard *)b)->unread_ms;
    return left > right ? -1 : left < right;
}

void laggards_sum_sort(struct laggards_sum *sum)
{
    if (sum->count > 0) {
        qsort(sum->rows, sum->count, sizeof *sum->rows, worst_first);
    }
}

void laggards_sum_fini(struct laggards_sum *sum)
{
    free(sum->rows);
}
