/* SPDX-License-Identifier: BSD-3-Clause */
#include "step.h"

#include "list/core/op.h"

const char *step_name(const struct op *op)
{
    return op == NULL ? "fetching" : op->co.waiting;
}
