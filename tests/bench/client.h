/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection that sends a batch of requests, waits until all are answered, sends the next. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"
#include "reply.h"
#include "tape.h"

/* What all clients of a run share. */
struct run {
    int epoll;
    char *input; /* INPUT_BYTES: where all clients read into */
    uint64_t now_ns;
    uint64_t requests_left; /* that may still be sent */
    uint64_t replies;       /* that came, warm-up included */
    uint64_t bytes_read;
    uint64_t bytes_written;
    size_t waiting;              /* clients with a batch under way */
    struct histogram *histogram; /* NULL: not measured now */
    char error[512];             /* empty: none */
};

struct client {
    int fd;
    struct tape *tape;
    char *room; /* for a batch of running numbers */
    const char *output;
    size_t output_bytes;
    unsigned batch;    /* requests of the batch under way */
    unsigned answered; /* of these */
    uint64_t sent_ns;
    struct reply_reader reader;
    char partial[REPLY_LINE_BYTES_MAX]; /* a line that has not come whole */
    size_t partial_bytes;
    bool wants_write;
};

#define INPUT_BYTES (1u << 20)

/* Connects to host:port and registers with the run's epoll. Returns false with run->error set. */
bool client_connect(struct client *client, struct run *run, struct tape *tape, const char *host,
                    const char *port);
void client_close(struct client *client);

/* Sends the next batch, unless no requests are left. False with run->error set when the connection
 * is broken. */
bool client_start(struct client *client, struct run *run);

/* The socket is readable, or writable. False with run->error set when a reply was not the expected
 * one or the connection is broken. */
bool client_read(struct client *client, struct run *run);
bool client_write(struct client *client, struct run *run);

/* Nothing may be unread when a run is over. False with run->error set. */
bool client_check_silent(struct client *client, struct run *run);

uint64_t clock_ns(void);

#endif
