/* SPDX-License-Identifier: BSD-3-Clause */
#include "step.h"

#include "list/change/round.h"
#include "list/compact/compact.h"
#include "list/core/engine_state.h"

const char *step_name(const struct op *op)
{
    if (op == NULL) {
        return "fetching";
    }
    const struct list *list = op->list;
    if (list->compaction == op || list->merge == op) {
        const struct op_compact *c = (const struct op_compact *)op;
        const struct co *cos[] = {&c->innermost, &c->inner, &c->outer};
        for (size_t i = 0; i < 3; i++) {
            if (cos[i]->resume != 0 && cos[i]->waiting != NULL && cos[i]->waiting[0] != '\0') {
                return cos[i]->waiting;
            }
        }
    } else if (list->round == op && ((const struct op_round *)op)->create.resume != 0) {
        return ((const struct op_round *)op)->create.waiting;
    }
    return op->co.waiting;
}
