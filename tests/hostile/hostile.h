/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that lies, before the real daemon: whole conversations, with random answers to each verb
 * that the proxy can send. main.c runs the daemon, its clients and the sockets; store.c is what the
 * server holds; ascii.c and binary.c answer.
 *
 *     clients --random requests--> daemon --requests--> this server, which answers truly or not
 *        ^ values of plain keys begin with their key: no client sees another key's
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/slice.h"

/* Bytes to send, or that have come. */
struct bytes {
    char *p;
    size_t len, cap;
};
void bytes_add(struct bytes *b, const void *p, size_t len);
void bytes_text(struct bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bytes_take(struct bytes *b, size_t len);

struct item {
    char key[256];
    size_t key_len;
    struct bytes value;
    uint32_t flags;
    uint64_t cas;
};

/* What the server holds. */
struct item *store_find(struct slice key);
struct item *store_set(struct slice key, struct slice value, uint32_t flags);
void store_drop(struct item *item);
/* Some item that is there, or NULL. */
struct item *store_any(struct rng *rng);

/* One connection of the daemon. Each takes a whole request off in and appends what it answers.
 * Returns false when there is none yet. They set is_over to end the connection. */
struct talk {
    struct bytes in, out;
    struct rng *rng;
    bool is_over;
    bool is_old; /* it has said that it is a memcached before 1.6.10 */
    uint64_t answers;
    unsigned one_in; /* so many answers are true for each that is not; 0: all are */
};
bool ascii_answer(struct talk *talk);
bool binary_answer(struct talk *talk, unsigned port);

static inline bool is_lie(struct talk *talk)
{
    return talk->one_in > 0 && rng_below(talk->rng, talk->one_in) == 0;
}

/* Random bytes, or one of the texts that parsers look for. */
void add_garbage(struct bytes *b, struct rng *rng);
/* Changes, drops or adds some of the bytes from `from` on. */
void mangle(struct bytes *b, size_t from, struct rng *rng);

/* What a client sends next: a batch of requests that ends with `mn`. */
void compose(struct bytes *b, struct rng *rng);

#endif
