/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operation of the engine waits for, by the innermost name that it has, for traces. */
#ifndef WORLD_STEP_H
#define WORLD_STEP_H

struct op;

/* op: of a request, NULL for one that fetches a sublist. Lives as long as the program. */
const char *step_name(const struct op *op);

#endif
