/* SPDX-License-Identifier: BSD-3-Clause */
#include "rollback.h"

#include <stdlib.h>

#include "tags.h"
#include "tx_model.h"

/* What one list's log says of a transaction. */
struct saved_tx {
    struct tx *tx;
    struct tx_part part;
    enum fate fate; /* the primary's: of what this list says */
    bool done;
};

struct saved {
    unsigned list;
    struct sim_call **calls; /* that the write carries */
    size_t call_count;

    uint32_t version, max;
    bool refuses;
    struct ids adds, deletes;
    uint64_t token;
    int64_t until_s;
    uint64_t lease_over; /* the moment, of the last lease */
    struct pending *pending;
    size_t pending_count;
    uint64_t *tags; /* added_at, then acknowledged_at, of this list */
    struct ids base;
    struct tail_op *ops;
    size_t op_count;
    struct saved_tx *txs;
    size_t tx_count;
};

/* A copy, or NULL of nothing. */
static void *copy_of(const void *from, size_t bytes)
{
    void *to = bytes == 0 ? NULL : malloc(bytes);
    if (bytes > 0) {
        CHECK(to != NULL);
        memcpy(to, from, bytes);
    }
    return to;
}

/* ---- before a write ---- */

static void save_txs(const struct oracle *o, struct saved *s)
{
    const struct tail *tail = &o->txs->tails[s->list];
    ids_copy(&s->base, &tail->base);
    s->op_count = tail->count;
    s->ops = copy_of(tail->ops, tail->count * sizeof *tail->ops);
    s->tx_count = tail->there_count;
    s->txs = calloc(s->tx_count + 1, sizeof *s->txs);
    CHECK(s->txs != NULL);
    for (size_t i = 0; i < s->tx_count; i++) {
        struct tx *tx = tail->there[i];
        s->txs[i] = (struct saved_tx){tx, *tx_part_of(tx, s->list), tx->fate, tx->done};
    }
}

struct saved *rollback_save(struct oracle *o, unsigned list, const struct purpose *purpose)
{
    const struct model_list *l = &o->list[list];
    struct saved *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->list = list;
    s->call_count = purpose->count;
    s->calls = copy_of(purpose->calls, purpose->count * sizeof(struct sim_call *));
    s->version = l->count - 1;
    s->max = l->max;
    s->refuses = l->refuses;
    ids_copy(&s->adds, &l->adds);
    ids_copy(&s->deletes, &l->deletes);
    s->token = l->absence.token;
    s->until_s = l->absence.until_s;
    size_t given = l->absence.given_count;
    s->lease_over = given == 0 ? 0 : l->absence.given[given - 1].over;
    s->pending_count = l->absence.pending_count;
    s->pending = copy_of(l->absence.pending, s->pending_count * sizeof *s->pending);
    if (o->tags != NULL) {
        s->tags = malloc(2 * sizeof o->tags->added_at[list]);
        CHECK(s->tags != NULL);
        memcpy(s->tags, o->tags->added_at[list], sizeof o->tags->added_at[list]);
        memcpy(s->tags + ITEMS_MAX, o->tags->acknowledged_at[list],
               sizeof o->tags->acknowledged_at[list]);
    }
    if (o->txs != NULL) {
        save_txs(o, s);
    }
    return s;
}

void rollback_forget(void *saved)
{
    struct saved *s = saved;
    ids_fini(&s->adds);
    ids_fini(&s->deletes);
    ids_fini(&s->base);
    free(s->calls);
    free(s->pending);
    free(s->tags);
    free(s->ops);
    free(s->txs);
    free(s);
}

/* ---- transactions ---- */

/* An intent that came behind what is left. */
static void lose_intent(struct oracle *o, unsigned list, struct tx *tx)
{
    struct tx_part *part = tx_part_of(tx, list);
    if (tx->fate == COMMITTED) {
        tx_wrong(tx, list, "a failover has lost its intent, and it is committed");
    }
    part->is_there = false;
    part->put_at = 0;
    part->local = OPEN;
    block_unref(&part->entries);
    if (part == &tx->parts[0]) {
        tx->fate = ABORTED;
        tx_renew_all(o, tx);
    }
}

static const struct saved_tx *saved_of(const struct saved *s, const struct tx *tx)
{
    for (size_t i = 0; i < s->tx_count; i++) {
        if (s->txs[i].tx == tx) {
            return &s->txs[i];
        }
    }
    return NULL;
}

static void restore_part(struct tx *tx, unsigned list, const struct saved_tx *was)
{
    struct tx_part *part = tx_part_of(tx, list);
    bool is_primary = part == &tx->parts[0];
    if (is_primary && tx->fate == COMMITTED && was->fate != COMMITTED) {
        tx_wrong(tx, list, "a failover has lost its commit");
    }
    if (!is_primary && tx->done && part->local != OPEN && was->part.local == OPEN) {
        tx_wrong(tx, list, "a failover has lost its commit here, and its primary says it is done");
    }
    part->is_there = true;
    part->local = was->part.local;
    if (is_primary) {
        tx->fate = was->fate;
        tx->done = was->done;
    }
}

static void restore_txs(struct oracle *o, struct saved *s)
{
    struct tail *tail = &o->txs->tails[s->list];
    for (size_t i = 0; i < tail->there_count; i++) {
        if (saved_of(s, tail->there[i]) == NULL) {
            lose_intent(o, s->list, tail->there[i]);
        }
    }
    ids_copy(&tail->base, &s->base);
    free(tail->ops);
    tail->ops = s->ops;
    tail->count = tail->cap = s->op_count;
    s->ops = NULL;
    tail->there = realloc(tail->there, (s->tx_count + 1) * sizeof *tail->there);
    CHECK(tail->there != NULL);
    tail->there_count = s->tx_count;
    tail->there_cap = s->tx_count + 1;
    for (size_t i = 0; i < s->tx_count; i++) {
        tail->there[i] = s->txs[i].tx;
        restore_part(s->txs[i].tx, s->list, &s->txs[i]);
    }
}

/* ---- the loss ---- */

void rollback_lose(struct oracle *o, struct saved *saved)
{
    for (size_t i = 0; i < saved->call_count; i++) {
        struct sim_call *call = saved->calls[i];
        call->lost++;
        const char *wrong = call->done ? rollback_judge(call) : NULL;
        if (wrong != NULL) {
            char text[320];
            call_describe(call, text, sizeof text);
            sim_violation("%s: %s", wrong, text);
        }
    }
    if (o->lost[saved->list] != NULL) {
        rollback_forget(o->lost[saved->list]);
    }
    o->lost[saved->list] = saved;
}

static void restore(struct oracle *o, struct saved *s, int64_t now_s)
{
    struct model_list *l = &o->list[s->list];
    struct ids items = {0};
    bool exists = l->versions[s->version].exists;
    ids_copy(&items, &l->versions[s->version].items);
    l->max = s->max;
    l->refuses = s->refuses;
    ids_copy(&l->adds, &s->adds);
    ids_copy(&l->deletes, &s->deletes);
    l->absence.token = s->token;
    l->absence.until_s = s->until_s;
    if (l->absence.given_count > 0) {
        l->absence.given[l->absence.given_count - 1].over = s->lease_over;
    }
    free(l->absence.pending);
    l->absence.pending = s->pending;
    l->absence.pending_count = l->absence.pending_cap = s->pending_count;
    s->pending = NULL;
    if (s->tags != NULL) {
        memcpy(o->tags->added_at[s->list], s->tags, sizeof o->tags->added_at[s->list]);
        memcpy(o->tags->acknowledged_at[s->list], s->tags + ITEMS_MAX,
               sizeof o->tags->acknowledged_at[s->list]);
    }
    if (o->txs != NULL) {
        restore_txs(o, s);
        if (o->txs->tails[s->list].count > 0) {
            (void)tx_replay(o, s->list, NULL, &items);
        }
    }
    oracle_push_version(o, s->list, exists, &items, ++o->moment);
    for (size_t i = 0; i < s->tx_count; i++) {
        tx_renew_all(o, s->txs[i].tx);
    }
    oracle_note_return(o, s->list, s->version);
    oracle_note_mark(o, s->list, now_s);
    oracle_note_life(o, s->list, now_s);
    ids_fini(&items);
}

void rollback_end(struct oracle *o, int64_t now_s)
{
    for (unsigned i = 0; i < o->lists; i++) {
        if (o->lost[i] != NULL) {
            restore(o, o->lost[i], now_s);
            rollback_forget(o->lost[i]);
            o->lost[i] = NULL;
        }
    }
}

const char *rollback_judge(const struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    bool may = verb == LIST_ADD || verb == LIST_DEL || verb == LIST_ADDT || verb == LIST_SET ||
               is_tx(call); /* an intent alone does nothing */
    bool answered = call->call.status != LIST_SERVER_ERROR && !call->abandoned;
    return call->lost > 0 && answered && !may
               ? "a failover has lost what was answered, and is no blind change"
               : NULL;
}
