/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which clients leave their answers unread, in bounded memory: for how long in the last minutes,
 * how much lies unread now, and how many of their connections were closed for it. All connections
 * from one address are one client, since the next connection of a program has another port.
 *
 * A worker notes that, any thread may read. It happens only where a socket is full.
 */
#ifndef PROXY_CORE_LAGGARDS_H
#define PROXY_CORE_LAGGARDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"

/* Clients that a worker keeps: of more, those that are least in the way give their place away. */
#define LAGGARDS_KEPT 64
#define LAGGARD_NAME_BYTES 64
/* Times are halved so often. */
#define LAGGARDS_HALF_S 60

struct laggard {
    char name[LAGGARD_NAME_BYTES]; /* "" = the place is free */
    uint64_t unread_ms;            /* of its connections, added up, until they took something */
    uint64_t unread_bytes;         /* now */
    uint64_t stuck;                /* connections that leave something unread now */
    uint64_t since_us;             /* the sum of when these began: times add up with it */
    uint64_t closed;               /* connections closed at client_hard_bytes */
    uint64_t now_ms; /* of a sum: how long they have been stuck, on average, where that is longest
                      */
    bool is_told;    /* the log says so */
};

struct laggards {
    pthread_mutex_t lock; /* for what follows */
    struct laggard places[LAGGARDS_KEPT];
    int64_t halved_s;
    struct log_limit limit;
};

/* A connection's part. Zero-initialise. */
struct lag {
    struct laggard *place; /* NULL: it leaves nothing unread, or there was no place */
    uint64_t since_us;
    size_t bytes;
};

void laggards_init(struct laggards *laggards);
void laggards_fini(struct laggards *laggards);

/* The connection's socket is full; name is its client's. bytes: unread. */
void lag_begin(struct laggards *laggards, struct lag *lag, const char *name, size_t bytes,
               const struct now *now);
/* So many bytes are unread now. */
void lag_set_bytes(struct laggards *laggards, struct lag *lag, size_t bytes);
/* The client has taken something, or its connection ends, which is_closed for what it left. */
void lag_end(struct laggards *laggards, struct lag *lag, const struct now *now, bool is_closed);

/* Logs which clients have left something unread for slow_us or longer and still do, each once. At
 * most one line a second. */
void laggards_tell(struct laggards *laggards, uint64_t slow_us, const struct now *now);

/* Those of several workers, added up. */
struct laggards_sum {
    size_t count;
    size_t cap;
    uint64_t unread_ms;   /* of all */
    struct laggard *rows; /* the worst first, once they are sorted; unread_ms up to now */
};
/* Adds those of one; starts with a zeroed sum. Thread-safe. */
void laggards_sum_add(struct laggards_sum *sum, struct laggards *from, const struct now *now);
void laggards_sum_sort(struct laggards_sum *sum);
void laggards_sum_fini(struct laggards_sum *sum);

#endif
