/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a read must have been answered, byte by byte.
 */
#ifndef FUZZ_ANSWERS_H
#define FUZZ_ANSWERS_H

#include "../world/reference.h"
#include "list/engine.h"

/* Ends the program unless the call was answered with what the list of these items answers. */
void check_answer_bytes(const struct list_call *call, const struct ref_items *items);

#endif
