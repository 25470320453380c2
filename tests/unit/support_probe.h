/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to the pool of a fake_world, and what comes of them. Include cmocka.h and what it needs
 * before this.
 */
#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include "support_fake_server.h"

/* An exchange and what came of it. */
struct probe {
    struct exchange x;
    bool done;
    int status;
    char line[200];
    struct slice value;
    struct block *block; /* a reference, when there was a value */
    uint64_t epoch;
    bool no_times;
    char text[200];
    unsigned turn; /* order of completion */
};

/* The verb for a line of memcached's protocol. */
enum be_verb probe_verb(const char *line);
/* Submits the line for the key "key"; it is written by the next turn. */
void submit(struct fake_world *w, struct probe *p, const char *line);
/* The same for an operation; value may be NULL. */
void submit_operation(struct fake_world *w, struct probe *p, enum be_verb verb, const char *value);
/* Waits for that answer. */
void expect_answer(struct fake_world *w, struct probe *p, const char *line);
/* Waits for an end without an answer, with that status and text. */
void expect_end(struct fake_world *w, struct probe *p, int status, const char *text);
/* Brings the connection up and proves it: one request, one answer. Returns its epoch. */
uint64_t warm_up(struct fake_world *w);

/* For cmocka: *state is a struct fake_world without a pool. */
int probe_setup(void **state);
int probe_teardown(void **state);

#endif
