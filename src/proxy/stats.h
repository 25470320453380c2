/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stats verb: counters of all workers added up, backends, settings.
 */
#ifndef PROXY_STATS_H
#define PROXY_STATS_H

#include "base/chain.h"
#include "base/slice.h"

/* As `version` answers it. libmemcached rejects a major number below 1 and takes a suffix. */
#ifndef MCLISTD_VERSION
#define MCLISTD_VERSION "0"
#endif
#define PROXY_VERSION "1.6.0-mclistd-" MCLISTD_VERSION

struct worker;

/* Appends the whole answer of `stats ARGS` (empty: the counters) to out. Returns an empty slice, or
 * the line of error where there is no such group or its words are wrong; it lives for ever. */
struct slice stats_answer(struct worker *worker, struct slice args, struct chain *out);

#endif
