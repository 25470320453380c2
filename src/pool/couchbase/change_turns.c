/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/couchbase/change_turns.h"

#include <stdlib.h>

#include "pool/couchbase/cluster_waits.h"

void change_turns_init(struct change_turns *turns)
{
    TAILQ_INIT(&turns->all);
    TAILQ_INIT(&turns->ready);
}

void change_turns_check_free(const struct change_turns *turns)
{
    CHECK(TAILQ_EMPTY(&turns->all));
}

static uint16_t index_of(const struct exchange *x)
{
    return (uint16_t)(hash_bytes(x->op.key.p, x->op.key.len, 0) % CHANGE_TURNS);
}

static void take(struct cluster *c, struct exchange *x)
{
    struct change_turn **slot = &c->turns.of_key[x->turn];
    if (*slot == NULL) {
        *slot = calloc(1, sizeof **slot);
        CHECK(*slot != NULL);
        (*slot)->index = x->turn;
        TAILQ_INIT(&(*slot)->waiting);
        TAILQ_INSERT_TAIL(&c->turns.all, *slot, link);
    }
    (*slot)->is_taken = x->has_turn = true;
}

static void drop_if_free(struct cluster *c, struct change_turn *turn)
{
    if (!turn->is_taken && TAILQ_EMPTY(&turn->waiting)) {
        c->turns.of_key[turn->index] = NULL;
        TAILQ_REMOVE(&c->turns.all, turn, link);
        free(turn);
    }
}

bool change_turn_waits(struct cluster *c, struct exchange *x)
{
    x->takes_turn = x->changes && cluster_durability(c, &x->op) != BE_DURABILITY_NONE;
    if (!x->takes_turn && TAILQ_EMPTY(&c->turns.all)) {
        return false;
    }
    x->turn = index_of(x);
    struct change_turn *turn = c->turns.of_key[x->turn];
    if (turn == NULL || (TAILQ_EMPTY(&turn->waiting) && !(turn->is_taken && x->changes))) {
        if (x->takes_turn) {
            take(c, x);
        }
        return false;
    }
    cluster_wait_or_end(c, &turn->waiting, x);
    return true;
}

struct exchange *change_turns_next(struct cluster *c)
{
    struct change_turn *turn;
    while ((turn = TAILQ_FIRST(&c->turns.ready)) != NULL) {
        struct exchange *x = TAILQ_FIRST(&turn->waiting);
        bool is_over = x != NULL && cluster_is_over(c, x);
        if (x == NULL || (!is_over && turn->is_taken && x->changes)) {
            TAILQ_REMOVE(&c->turns.ready, turn, ready_link);
            turn->is_ready = false;
            drop_if_free(c, turn);
            continue;
        }
        cluster_remove_waiting(c, &turn->waiting, x);
        if (!is_over) {
            if (x->takes_turn) {
                take(c, x);
            }
            return x;
        }
        cluster_end_over(c, x);
    }
    return NULL;
}

uint64_t change_turns_tend(struct cluster *c)
{
    uint64_t next_us = UINT64_MAX;
    struct change_turn *turn, *next;
    for (turn = TAILQ_FIRST(&c->turns.all); turn != NULL; turn = next) {
        next = TAILQ_NEXT(turn, link);
        cluster_end_those_over(c, &turn->waiting);
        if (!TAILQ_EMPTY(&turn->waiting)) {
            uint64_t at_us = cluster_deadline_us(c, TAILQ_FIRST(&turn->waiting));
            next_us = at_us < next_us ? at_us : next_us;
        }
    }
    return next_us;
}
