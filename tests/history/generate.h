/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories that are linearizable by construction: every operation gets a moment between its
 * invocation and its completion, and a plain list is asked at these moments, in their order.
 */
#ifndef HISTORY_GENERATE_H
#define HISTORY_GENERATE_H

#include "base/arena.h"
#include "history.h"

struct generate_options {
    uint64_t seed;
    unsigned operations, lists, clients;
    unsigned depth;            /* operations of a client under way at once */
    unsigned items;            /* different ones, per list */
    unsigned items_max;        /* of one change */
    unsigned unknown_permille; /* unknown outcomes */
    unsigned wipe_permille;    /* lset, ldrop, lcreate */
    unsigned duration;         /* of an operation, on average; thinking takes as long */
    bool refuse;
    bool hints; /* ops tell the order of the moments */
};

struct generated {
    struct history_op *ops; /* in the order of their moments */
    unsigned count;
    char *names;
    struct arena arena; /* what ops point to */
};

void generate(const struct generate_options *options, struct generated *out);
void generated_fini(struct generated *g);

#endif
