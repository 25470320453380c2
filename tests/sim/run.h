/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of a seed in processes of their own: a failed check must not end the others.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include <sys/types.h>

#include "../world/trace.h"
#include "params.h"

/* Begins a run in a child; -1: there is none. quiet: it prints nothing. */
pid_t run_start(const struct params *params, enum trace_mode mode, bool quiet);
/* To its end, and whether it was a good one. */
bool run_wait(const struct params *params, enum trace_mode mode, bool quiet);

/* minimise.c: looks for a smaller run that fails as well, by trying, for a bounded time; shows how
 * it ends and the command for it. */
void minimise(const struct params *params);

#endif
