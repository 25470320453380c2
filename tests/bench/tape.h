/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests from templates, in batches of the pipeline's depth. Batches without running numbers are
 * written once, before the measurement, and sent again and again from where they stand:
 *
 *     bytes   get key:17\r\nget key:803\r\n ... | get key:5\r\nget key:442\r\n ... | ...
 *     ends              ^            ^                 ^            ^
 *             one batch of `depth` requests       the next one
 *
 * In a template,
 *     %k  a random number below `keys`        %n  a running number
 *     %m  a random number below `members`     %s  the running number modulo `keys`
 *     %v  `value_bytes` letters               %%  a per cent sign
 *     %z  a random number below `keys`, small ones more often (Zipf's law, exponent 1)
 *     %r  the random number before it in the request once more
 * A number may have a width, filled up with zeros: %6k. "\r" and "\n" may be written as such. */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reply.h"

#define TAPE_TEMPLATES_MAX 8

struct tape_ranges {
    uint64_t keys;
    uint64_t members;
    size_t value_bytes;
};

/* Where numbers come from: shared by all tapes of a run. */
struct tape_source {
    uint64_t running;
    uint64_t random; /* not 0 */
};

struct tape_template {
    const char *text;
    struct expectation expectation;
};

struct tape {
    struct tape_template templates[TAPE_TEMPLATES_MAX]; /* request i is made from i % count */
    size_t template_count;
    unsigned depth;
    struct tape_ranges ranges;
    struct tape_source *source;
    bool is_running; /* has running numbers: written batch by batch */
    char *bytes;
    size_t *ends; /* of each request in `bytes` */
    size_t batch_count;
    size_t next_batch;
    size_t batch_bytes_max;
};

/* Writes the batches. False, with the reason in *error, when a template cannot be read. The
 * templates must be set, depth above 0, and stay as they are. */
bool tape_init(struct tape *tape, const char **error);
void tape_fini(struct tape *tape);

/* The next batch's first `count` requests (depth at most), *bytes long. They stand in the tape, or,
 * when it has running numbers, in `room` of batch_bytes_max bytes. */
const char *tape_take(struct tape *tape, unsigned count, char *room, size_t *bytes);

#endif
