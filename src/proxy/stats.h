/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stats verb: counters of all workers added up, backends, settings.
 */
#ifndef PROXY_STATS_H
#define PROXY_STATS_H

#include "base/chain.h"
#include "base/slice.h"

struct worker;

/* Appends the whole answer of `stats ARGS` (empty: the counters) to out. Returns an empty slice, or
 * the line of error where there is no such group or its words are wrong; it lives for ever. */
struct slice stats_answer(struct worker *worker, struct slice args, struct chain *out);

#endif
