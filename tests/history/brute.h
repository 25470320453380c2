/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same question answered by trying everything: every order that keeps to real time, on a plain
 * list, without remembering or foreseeing anything. For small histories, to hold the checker
 * against; shares no code with it.
 */
#ifndef HISTORY_BRUTE_H
#define HISTORY_BRUTE_H

#include "history.h"

#define BRUTE_OPS_MAX 16

/* Is there an order of these operations on one list? */
bool brute_linearizable(bool refuse, const struct history_op *ops, unsigned count);

#endif
