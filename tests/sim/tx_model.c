/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "../world/txlog.h"
#include "tags.h"
#include "tx_model.h"

struct txs *txs_create(unsigned lists)
{
    struct txs *txs = calloc(1, sizeof *txs);
    CHECK(txs != NULL);
    txs->lists = lists;
    txs->tails = calloc(lists, sizeof *txs->tails);
    CHECK(txs->tails != NULL);
    return txs;
}

void txs_destroy(struct txs **txs)
{
    for (unsigned b = 0; *txs != NULL && b < BUCKETS; b++) {
        while ((*txs)->buckets[b] != NULL) {
            struct tx *tx = (*txs)->buckets[b];
            (*txs)->buckets[b] = tx->next;
            for (unsigned i = 0; i < tx->part_count; i++) {
                block_unref(&tx->parts[i].entries);
            }
            ids_fini(&tx->moved);
            free(tx);
        }
    }
    for (unsigned i = 0; *txs != NULL && i < (*txs)->lists; i++) {
        ids_fini(&(*txs)->tails[i].base);
        free((*txs)->tails[i].ops);
        free((*txs)->tails[i].there);
    }
    if (*txs != NULL) {
        free((*txs)->tails);
    }
    free(*txs);
    *txs = NULL;
}

void txs_count(const struct txs *txs, uint64_t *committed, uint64_t *aborted)
{
    *committed = txs == NULL ? 0 : txs->committed;
    *aborted = txs == NULL ? 0 : txs->aborted;
}

void tx_wrong(const struct tx *tx, unsigned list, const char *what)
{
    char text[512];
    call_describe(tx->call, text, sizeof text);
    sim_violation("transaction %s in L%u: %s: %s", tx->name, list, what, text);
}

static struct tx **bucket(const struct txs *txs, struct slice name)
{
    return (struct tx **)&txs->buckets[hash_bytes(name.p, name.len, 5) % BUCKETS];
}

static struct tx *find(const struct txs *txs, struct slice name)
{
    struct tx *tx = *bucket(txs, name);
    while (tx != NULL && !slice_equal(slice_of(tx->name), name)) {
        tx = tx->next;
    }
    return tx;
}

struct tx_part *tx_part_of(struct tx *tx, unsigned list)
{
    for (unsigned i = 0; i < tx->part_count; i++) {
        if (tx->parts[i].list == list) {
            return &tx->parts[i];
        }
    }
    tx_wrong(tx, list, "stored in a list that it does not name");
}

enum fate tx_fate_in(const struct tx *tx, const struct tx_part *part)
{
    if (part == &tx->parts[0] || !tx->forgotten || part->local != OPEN) {
        return part != &tx->parts[0] && part->local != OPEN ? part->local : tx->fate;
    }
    return OPEN;
}

bool txs_is_open(const struct oracle *o, unsigned list)
{
    const struct tail *tail = o->txs == NULL ? NULL : &o->txs->tails[list];
    for (size_t i = 0; tail != NULL && i < tail->there_count; i++) {
        if (tx_fate_in(tail->there[i], tx_part_of(tail->there[i], list)) == OPEN) {
            return true;
        }
    }
    return false;
}

bool txs_is_primary(const struct oracle *o, unsigned list)
{
    const struct tail *tail = o->txs == NULL ? NULL : &o->txs->tails[list];
    for (size_t i = 0; tail != NULL && i < tail->there_count; i++) {
        const struct tx *tx = tail->there[i];
        if (tx->parts[0].list == list && tx->fate == COMMITTED && !tx->done) {
            return true;
        }
    }
    return false;
}

/* A new version of the list, of that moment, if its content is another one or if it may be read
 * again, or not any more. */
static void renew(struct oracle *o, unsigned list, uint64_t at)
{
    const struct version *now = oracle_now(o, list);
    struct ids items = {0};
    if (o->txs->tails[list].count > 0) {
        (void)tx_replay(o, list, NULL, &items);
    } else {
        ids_copy(&items, &now->items);
    }
    if (!ids_equal(&items, &now->items) || now->open != txs_is_open(o, list)) {
        oracle_push_version(o, list, now->exists, &items, at);
    }
    ids_fini(&items);
}

/* Begins anew when nothing in it can change any more. */
static void trim(const struct oracle *o, unsigned list)
{
    struct tail *tail = &o->txs->tails[list];
    /* A failover of the primary may take back what aborts it, and it may be committed then. */
    bool fails_over = cluster_store(&o->cluster, slice_of(o->list[list].key))->vbuckets != NULL;
    for (size_t i = 0; i < tail->there_count; i++) {
        const struct tx *tx = tail->there[i];
        const struct tx_part *part = tx_part_of(tail->there[i], list);
        bool known = (tx->fate == ABORTED && !fails_over) || part->local != OPEN ||
                     (part == &tx->parts[0] && tx->fate != OPEN);
        if (!known) {
            return;
        }
    }
    tail->count = 0;
}

/* ---- fates ---- */

void tx_renew_all(struct oracle *o, struct tx *tx)
{
    uint64_t at = ++o->moment;
    for (unsigned i = 0; i < tx->part_count; i++) {
        renew(o, tx->parts[i].list, at);
    }
}

static void note_added(void *arg, unsigned list, uint16_t id)
{
    tags_committed(arg, list, id);
}

static void commit(struct oracle *o, struct tx *tx)
{
    struct sim_call *call = tx->call;
    for (unsigned i = 0; i < tx->part_count; i++) {
        if (tx->parts[i].put_at == 0) {
            tx_wrong(tx, tx->parts[i].list, "committed before its intent is there");
        }
    }
    if (tx->doomed) {
        tx_wrong(tx, tx->parts[0].list, "committed though another list says that it is aborted");
    }
    if (++call->commits > 1) {
        tx_wrong(tx, tx->parts[0].list, "its call was committed twice");
    }
    if (call->done && !call_unknown(call)) {
        tx_wrong(tx, tx->parts[0].list, "committed after it was answered");
    }
    tx_check(o, tx);
    tx->fate = COMMITTED;
    call->tx = tx;
    o->txs->committed++;
    txs_each_added(call, note_added, o);
    tx_renew_all(o, tx);
}

static void abort_tx(struct oracle *o, struct tx *tx)
{
    tx->fate = ABORTED;
    o->txs->aborted++;
    tx_renew_all(o, tx);
}

static void settle_part(struct tx *tx, struct tx_part *part, enum txlog_state state)
{
    enum fate local = state == TXLOG_COMMITTED ? COMMITTED
                      : state == TXLOG_ABORTED ? ABORTED
                                               : OPEN;
    if (part->local != OPEN || local == OPEN) {
        return;
    }
    if (local == COMMITTED && tx->fate != COMMITTED) {
        tx_wrong(tx, part->list, "committed here, and not by its primary");
    }
    if (local == ABORTED && tx->fate == COMMITTED && !tx->forgotten) {
        tx_wrong(tx, part->list, "aborted here, and committed by its primary");
    }
    part->local = local;
    tx->doomed = tx->doomed || local == ABORTED; /* its own proxy may abort it in any order */
}

static void finish(struct tx *tx)
{
    tx->done = true;
    for (unsigned i = 1; i < tx->part_count; i++) {
        if (tx->parts[i].is_there && tx->parts[i].local == OPEN) {
            tx_wrong(tx, tx->parts[i].list, "said to be done, and this list does not know of it");
        }
    }
}

/* ---- what logs say ---- */

static unsigned list_number(struct slice key)
{
    uint64_t number = LISTS_MAX;
    if (key.len < 2 || key.p[0] != 'L' ||
        !slice_to_u64(slice_make(key.p + 1, key.len - 1), &number) || number >= LISTS_MAX) {
        sim_violation("an intent names %.*s, which is no list", SLICE_ARGS(key));
    }
    return (unsigned)number;
}

static struct tx *create(struct oracle *o, unsigned list, const struct txlog_intent *found,
                         const struct purpose *purpose)
{
    struct tx *tx = calloc(1, sizeof *tx), **first = bucket(o->txs, found->name);
    CHECK(tx != NULL);
    memcpy(tx->name, found->name.p, TX_NAME_LEN);
    tx->next = *first;
    *first = tx;
    if (purpose == NULL || purpose->kind != PURPOSE_TX || purpose->count != 1) {
        sim_violation("an intent in L%u, %s, that no call asked for", list, tx->name);
    }
    tx->call = purpose->calls[0];
    for (size_t i = 0; i < found->key_count; i++) {
        if (i == JOINT_LISTS_MAX) {
            tx_wrong(tx, list, "it names more lists than were asked for");
        }
        tx->parts[tx->part_count++].list = list_number(found->keys[i]);
    }
    if (tx->parts[0].list != list) {
        tx_wrong(tx, list, "its primary has no intent yet");
    }
    return tx;
}

static void arrive(struct oracle *o, unsigned list, const struct txlog_intent *found,
                   const struct purpose *purpose)
{
    struct tail *tail = &o->txs->tails[list];
    struct tx *tx = find(o->txs, found->name);
    tx = tx != NULL ? tx : create(o, list, found, purpose);
    struct tx_part *part = tx_part_of(tx, list);
    if (part->put_at != 0) {
        tx_wrong(tx, list, "its intent has come a second time");
    }
    if (tx->fate == COMMITTED) {
        tx_wrong(tx, list, "its intent has come behind its commit");
    }
    part->put_at = ++o->moment;
    if (oracle_now(o, list)->exists) {
        tx_push_op(o, list, (struct tail_op){.tx = tx});
        part->put_at = o->moment;
    }
    part->is_there = true;
    part->entries = block_new(found->entries.len + 1);
    block_append(&part->entries, found->entries.p, found->entries.len);
    if (tx->call->call.verb != LIST_TX && tx->call->lists[0] == list) {
        tx_read_moved(tx, found->entries);
    }
    if (tail->there_count == tail->there_cap) {
        tail->there_cap = tail->there_cap * 2 + 4;
        tail->there = realloc(tail->there, tail->there_cap * sizeof *tail->there);
        CHECK(tail->there != NULL);
    }
    tail->there[tail->there_count++] = tx;
}

/* What the primary was lost with, another list may have been told as one or the other: its content
 * tells. */
static enum fate told_by_content(struct oracle *o, unsigned list, struct tx_part *part,
                                 int64_t now_s)
{
    struct ids expected = {0}, items = {0};
    struct stored stored;
    part->local = ABORTED;
    (void)tx_replay(o, list, NULL, &expected);
    oracle_decode(o, list, now_s, &items, &stored);
    part->local = OPEN;
    bool aborted = ids_equal(&expected, &items);
    ids_fini(&expected);
    ids_fini(&items);
    return aborted ? ABORTED : COMMITTED;
}

/* What decides intents of an item that is full takes them off the log. The primary's is aborted by
 * that, or done. */
static void depart_settled(struct oracle *o, unsigned list, struct tx *tx, int64_t now_s)
{
    struct tx_part *part = tx_part_of(tx, list);
    bool is_primary = part == &tx->parts[0];
    if (is_primary && tx->fate == OPEN) {
        abort_tx(o, tx);
    } else if (is_primary && tx->fate == COMMITTED && !tx->done) {
        finish(tx);
    } else if (!is_primary && part->local == OPEN && tx->forgotten) {
        part->local = told_by_content(o, list, part, now_s);
        tx->doomed = tx->doomed || part->local == ABORTED;
    } else if (!is_primary && part->local == OPEN && tx->fate != OPEN) {
        settle_part(tx, part, tx->fate == COMMITTED ? TXLOG_COMMITTED : TXLOG_ABORTED);
    }
}

/* The log does not hold its intent any more. */
static void depart(struct oracle *o, unsigned list, struct tx *tx, const struct purpose *purpose,
                   int64_t now_s)
{
    struct tx_part *part = tx_part_of(tx, list);
    bool is_primary = part == &tx->parts[0], lost = purpose == NULL;
    part->is_there = false;
    if (!lost && purpose->settles) {
        depart_settled(o, list, tx, now_s);
    }
    if (!lost && tx_fate_in(tx, part) == OPEN) {
        tx_wrong(tx, list, "its intent was taken off the log before it was decided");
    }
    if (!lost && is_primary && tx->fate == COMMITTED && !tx->done) {
        tx_wrong(tx, list, "its primary has forgotten it before all lists know");
    }
    if (lost && is_primary && tx->fate == OPEN) {
        abort_tx(o, tx);
    } else if (lost && is_primary && !tx->done) {
        tx->forgotten = true;
        for (unsigned i = 0; tx->fate == COMMITTED && i < tx->part_count; i++) {
            const struct block *entries = tx->parts[i].entries;
            tags_forgotten(o, tx->parts[i].list, slice_make(entries->data, entries->used));
        }
        tx_renew_all(o, tx);
    }
}

static void take_off(struct oracle *o, unsigned list, const struct txlog *txlog,
                     const struct purpose *purpose, int64_t now_s)
{
    struct tail *tail = &o->txs->tails[list];
    for (size_t i = 0; i < tail->there_count;) {
        struct tx *tx = tail->there[i];
        if (txlog_find(txlog, slice_of(tx->name)) != NULL) {
            i++;
            continue;
        }
        tail->there_count--;
        memmove(&tail->there[i], &tail->there[i + 1],
                (tail->there_count - i) * sizeof *tail->there);
        depart(o, list, tx, purpose, now_s);
    }
}

static void take_intent(struct oracle *o, unsigned list, const struct txlog_intent *found,
                        const struct purpose *purpose)
{
    struct tx *tx = find(o->txs, found->name);
    if (tx == NULL || !tx_part_of(tx, list)->is_there) {
        arrive(o, list, found, purpose);
        tx = find(o->txs, found->name);
    }
    struct tx_part *part = tx_part_of(tx, list);
    if (part != &tx->parts[0]) {
        settle_part(tx, part, found->state);
        return;
    }
    if (tx->fate == OPEN && found->state == TXLOG_COMMITTED) {
        commit(o, tx);
    } else if (tx->fate == OPEN && found->state == TXLOG_ABORTED) {
        abort_tx(o, tx);
    }
    if (found->done && !tx->done) {
        finish(tx);
    }
}

/* purpose: of what has changed it; NULL: it was lost. */
static void look(struct oracle *o, unsigned list, const struct purpose *purpose, int64_t now_s)
{
    struct slice key = slice_of(o->list[list].head_key), own = slice_of(o->list[list].key);
    const struct item *item = cluster_head(&o->cluster, key, now_s);
    struct slice log = item == NULL ? SLICE_NONE : item_value(item);
    const struct ref_head *head = model_read_head(item);
    if (head != NULL) {
        (void)slice_take(&log, log.len - head->log.len); /* these bytes stay */
    }
    struct txlog txlog = {0};
    if (item != NULL && (head == NULL || !txlog_read(&txlog, log, own, head->max > 0))) {
        sim_violation("L%u: its log is malformed", list);
    }
    take_off(o, list, &txlog, purpose, now_s);
    for (size_t i = 0; i < txlog.count; i++) {
        take_intent(o, list, &txlog.intents[i], purpose);
    }
    renew(o, list, ++o->moment);
    trim(o, list);
    txlog_fini(&txlog);
}

/* Has the request changed items by what it found in the list? */
static bool depends_on_content(const struct purpose *purpose)
{
    return purpose->kind == PURPOSE_EXACT || purpose->kind == PURPOSE_PUT ||
           purpose->kind == PURPOSE_PURGE || purpose->kind == PURPOSE_LEASE;
}

void txs_changed(struct oracle *o, unsigned list, const struct purpose *purpose, int64_t now_s)
{
    struct tail *tail = o->txs == NULL ? NULL : &o->txs->tails[list];
    if (tail == NULL) {
        return;
    }
    if (!oracle_now(o, list)->exists) {
        tail->count = 0; /* what is appended to a missing list is no content */
    }
    if (tail->count > 0 && depends_on_content(purpose)) {
        if (txs_is_open(o, list)) {
            sim_violation("L%u: a change that depends on the content was written behind a "
                          "transaction that is not decided",
                          list);
        }
        tail->count = 0;
    }
    bool clears =
        purpose->kind == PURPOSE_DROP || (purpose->kind == PURPOSE_COMPACT && purpose->clears);
    if (tail->count > 0 && clears) {
        tx_push_op(o, list, (struct tail_op){.clears = true});
    }
    bool blind = purpose->kind == PURPOSE_ROUND || purpose->kind == PURPOSE_TURNS;
    for (size_t i = 0; tail->count > 0 && blind && i < purpose->count; i++) {
        tx_push_op(o, list, (struct tail_op){.call = purpose->calls[i]});
    }
    look(o, list, purpose, now_s);
}

void txs_lost(struct oracle *o, unsigned list, int64_t now_s)
{
    if (o->txs != NULL) {
        o->txs->tails[list].count = 0;
        look(o, list, NULL, now_s);
    }
}

bool txs_is_published(const struct sim_call *call)
{
    const struct tx *tx = call->tx;
    for (unsigned i = 1; i < tx->part_count; i++) {
        if (tx->parts[i].is_there && tx->parts[i].local != COMMITTED) {
            return false;
        }
    }
    return true;
}

const struct ids *txs_moved(const struct sim_call *call)
{
    return &call->tx->moved;
}
