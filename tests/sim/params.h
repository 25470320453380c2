/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which world a seed stands for: sizes, speeds and faults are mixed anew for each.
 */
#ifndef SIM_PARAMS_H
#define SIM_PARAMS_H

#include "world.h"

/* Run without arguments. */
#define SEEDS_DEFAULT 200

void params_of_seed(struct params *params, uint64_t seed);
void params_print(const struct params *params);

#endif
