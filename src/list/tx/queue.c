/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/tx/queue.h"

#include "list/core/engine_state.h"

uint64_t tx_queue_bits(struct slice item)
{
    uint32_t hash = item_hash(item);
    uint32_t first = hash & 63, second = (first + 1 + (hash >> 6) % 63) & 63;
    return (UINT64_C(1) << first) | (UINT64_C(1) << second);
}

/* The two bits of an item may be those of two others. */
static bool meets(const struct tx_part *a, const struct tx_part *b)
{
    uint64_t both = a->item_bits & b->item_bits;
    return (both & (both - 1)) != 0;
}

void tx_queue_enter(struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *mine = &o->parts[i], *other;
        TAILQ_FOREACH(other, &mine->list->transactions, queued)
        {
            o->blockers += meets(mine, other);
        }
        TAILQ_INSERT_TAIL(&mine->list->transactions, mine, queued);
    }
    o->in_queue = true;
}

void tx_queue_leave(struct engine *e, struct op_tx *o)
{
    if (!o->in_queue) {
        return;
    }
    o->in_queue = false;
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *mine = &o->parts[i];
        for (struct tx_part *p = TAILQ_NEXT(mine, queued); p != NULL; p = TAILQ_NEXT(p, queued)) {
            if (meets(mine, p) && --p->tx->blockers == 0) {
                op_wake(e, &p->tx->op);
            }
        }
        TAILQ_REMOVE(&mine->list->transactions, mine, queued);
    }
}
