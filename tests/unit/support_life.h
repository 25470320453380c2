/* SPDX-License-Identifier: BSD-3-Clause */
/* A list that changes by chance, in memory: what follows it from head to head must show it. */
#ifndef SUPPORT_LIFE_H
#define SUPPORT_LIFE_H

#include "base/chain.h"
#include "support_list.h"

#define RUNS_MAX 12
#define PIECES_MAX 64

/* The life of a list: its runs and log now, and what the model says of it. What was replayed stays
 * in memory. */
struct life {
    struct rng rng;
    struct log_shape shape;
    struct test_run runs[RUNS_MAX];
    struct block *entries[RUNS_MAX]; /* of the runs */
    size_t run_count;
    char next_name;
    struct block *log;
    struct model model;
    uint64_t cas;
    struct block *pieces[PIECES_MAX];
    size_t piece_count, flipped_count; /* flipped: the runs say what these say */
};

void life_init(struct life *l, uint64_t seed);
void life_fini(struct life *l);
/* Some entries more in the log: by chance, or these; the piece becomes the life's. */
void life_append(struct life *l);
void life_append_text(struct life *l, const char *entries);
void life_append_piece(struct life *l, struct block *piece);
/* The log becomes a run. */
void life_flip(struct life *l);
/* Two neighbouring runs become one; there are two. */
void life_merge(struct life *l);
/* One of these. */
void life_go(struct life *l);
/* The list's head, the caller's. */
struct head *life_head(struct life *l);
/* What the model has at these positions, joined by ',', in a block that the caller owns; back: 0 is
 * the newest item. */
struct block *life_joined(const struct life *l, uint64_t from, uint64_t to, bool back);
/* Fails unless that is what was written, and empties it. */
void assert_written_as(struct chain *out, const struct block *want);

#endif
