/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done about one key, line by line, for an operator who looks on: requests of clients that
 * name it, and the requests of lists to servers. The admin listener's thread begins, takes what
 * there is, and ends; all workers add. One trace at a time.
 */
#ifndef PROXY_CORE_TRACE_H
#define PROXY_CORE_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"
#include "proto/key.h"
#include "proto/server/backend.h"

/* Lines that were not taken yet; what does not fit is lost, and counted. */
#define TRACE_BYTES ((size_t)1 << 18)
#define TRACE_NAMES_MAX 5

/* An item of the list. */
struct trace_name {
    char text[CONFIG_NAME_MAX + KEY_BYTES_MAX];
    size_t len;
    bool numbered; /* a number stands behind it */
};

struct trace {
    atomic_bool on;       /* workers look here first */
    pthread_mutex_t lock; /* for what follows */
    char key[KEY_BYTES_MAX];
    size_t key_len;
    struct trace_name names[TRACE_NAMES_MAX]; /* besides those that native lists have */
    size_t name_count;
    unsigned left; /* requests of clients that are still to come */
    char *text;    /* TRACE_BYTES */
    size_t len;
    uint64_t lost; /* lines, since the last ones were taken */
};

void trace_init(struct trace *trace);
void trace_fini(struct trace *trace);

/* Begins one of so many requests of clients. False: there is one. */
MUST_CHECK bool trace_begin(struct trace *trace, struct slice key, const struct trace_name *names,
                            size_t name_count, unsigned requests);
void trace_end(struct trace *trace);
/* Moves the lines to out, which has room for TRACE_BYTES; returns how many bytes. *lost: lines that
 * are missing behind them; *over: no more will come. */
size_t trace_take(struct trace *trace, char *out, uint64_t *lost, bool *over);

/* For workers: without one it costs this. */
static inline bool trace_is_on(const struct trace *trace)
{
    return UNLIKELY(atomic_load_explicit(&trace->on, memory_order_relaxed));
}

struct trace_row {
    size_t worker;
    uint64_t us; /* it has taken */
    struct slice verb;
};
/* A client's request is answered. keys: that it names, with blanks between them. */
void trace_add_request(struct trace *trace, const struct trace_row *row, uint64_t client,
                       uint64_t waited_us, struct slice keys);
/* A server has answered, or will not: the reply's text says why. */
void trace_add_reply(struct trace *trace, const struct trace_row *row, struct slice item,
                     const struct be_reply *reply);
/* The verb of a request to a server; lives for ever. */
struct slice trace_verb(enum be_verb verb);

#endif
