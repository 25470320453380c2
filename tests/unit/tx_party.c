/* SPDX-License-Identifier: BSD-3-Clause */
#include "tx_party.h"

#include <stdio.h>

#define STEPS_MAX 400

static void party_init(struct party *p)
{
    *p = (struct party){0};
    rig_init(&p->rig);
}

struct list_policy *tx_policy(struct party *p)
{
    return &p->rig.config->lists[0];
}

int tx_setup(void **state)
{
    static struct tx_test t;
    t = (struct tx_test){.fault_count = 0, .hook_at = UINT32_MAX, .second_at = UINT32_MAX};
    store_init(&t.store, 1 << 20, "s");
    party_init(&t.tx);
    party_init(&t.other);
    party_init(&t.reader);
    rng_init_seed(&t.other.rig.rng, 2);
    rng_init_seed(&t.reader.rig.rng, 3);
    *state = &t;
    return 0;
}

int tx_teardown(void **state)
{
    struct tx_test *t = *state;
    rig_fini(&t->tx.rig);
    chain_fini(&t->tx.call.answer);
    chain_fini(&t->other.call.answer);
    rig_fini(&t->other.rig);
    rig_fini(&t->reader.rig);
    store_fini(&t->store);
    for (size_t i = 0; i < t->late_count; i++) {
        block_unref(&t->late_values[i]);
    }
    return 0;
}

void tx_begin_anew(void **state)
{
    (void)tx_teardown(state);
    (void)tx_setup(state);
}

/* ---- what stands in the store ---- */

enum be_status tx_write_raw(struct tx_test *t, enum be_verb verb, const char *key,
                            const char *value)
{
    struct be_operation r = {.verb = verb, .key = slice_of(key), .value = slice_of(value)};
    struct be_reply reply = {0};
    store_execute(&t->store, &r, t->tx.rig.now.wall_s, &reply);
    block_unref(&reply.block);
    return reply.status;
}

void tx_assert_head(struct tx_test *t, const char *key, const char *value)
{
    const struct item *item = store_find(&t->store, slice_of(key), t->tx.rig.now.wall_s);
    assert_non_null(item);
    char text[1024];
    snprintf(text, sizeof text, "%.*s", SLICE_ARGS(item_value(item)));
    assert_string_equal(text, value);
}

/* ---- running ---- */

static void execute(struct tx_test *t, const struct list_request *r, struct be_reply *reply)
{
    store_execute(&t->store, &r->be, t->tx.rig.now.wall_s, reply);
    reply->epoch = 1;
}

static void keep_late(struct tx_test *t, const struct list_request *r)
{
    assert_true(t->late_count < sizeof t->late / sizeof t->late[0]);
    t->late[t->late_count] = *r;
    t->late[t->late_count].be.key.p = t->late[t->late_count].key;
    t->late_values[t->late_count++] = r->be.block != NULL ? block_ref(r->be.block) : NULL;
}

void tx_late_ones_arrive(struct tx_test *t)
{
    for (size_t i = 0; i < t->late_count; i++) {
        struct be_reply reply = {0};
        execute(t, &t->late[i], &reply);
        block_unref(&reply.block);
        block_unref(&t->late_values[i]);
    }
    t->late_count = 0;
}

static void lose(struct be_reply *reply, enum be_verb verb)
{
    block_unref(&reply->block);
    *reply = (struct be_reply){.status = BE_LOST,
                               .text = verb < BE_ADD ? "s: connection lost"
                                                     : "s: connection lost, outcome unknown"};
}

void tx_answer(struct tx_test *t, struct party *p, struct list_request *r, enum fault fault)
{
    struct be_reply reply = {0};
    bool append = r->be.verb == BE_APPEND || r->be.verb == BE_ADD;
    if (fault == FAULT_NONE || fault == FAULT_REPLY_LOST ||
        (fault == FAULT_NOT_STORED && !append)) {
        execute(t, r, &reply);
    } else if (fault == FAULT_LATE && append) {
        keep_late(t, r);
    } else if (fault == FAULT_NOT_STORED) {
        reply.status = BE_NOT_STORED;
    } else if (fault == FAULT_DOWN) {
        reply = (struct be_reply){.status = BE_DOWN, .text = "s down"};
    }
    if (fault == FAULT_REPLY_LOST || fault == FAULT_REQUEST_LOST || fault == FAULT_LATE) {
        lose(&reply, r->be.verb);
    }
    engine_reply(p->rig.engine, r, &reply, p->rig.now);
    block_unref(&reply.block);
}

/* Brings the party forward by one answer. False when it is at rest. */
bool tx_step(struct tx_test *t, struct party *p)
{
    struct list_request *r = engine_take_request(p->rig.engine);
    while (r == NULL) {
        uint64_t next_us = engine_run(p->rig.engine, p->rig.now);
        p->done = p->done || engine_take_done(p->rig.engine) != NULL;
        r = engine_take_request(p->rig.engine);
        if (r == NULL && (!engine_busy(p->rig.engine) || next_us == UINT64_MAX)) {
            return false;
        }
        if (r == NULL) {
            p->rig.now.mono_us = next_us > p->rig.now.mono_us ? next_us : p->rig.now.mono_us;
        }
    }
    if (p == &t->tx && p->steps == t->hook_at) {
        t->hook(t);
    }
    if (p == &t->tx && p->steps == t->second_at) {
        t->second(t);
    }
    bool faulty = p == &t->tx && p->steps >= t->fault_at && p->steps < t->fault_at + t->fault_count;
    p->steps++;
    tx_answer(t, p, r, faulty ? t->fault : FAULT_NONE);
    return true;
}

void tx_run(struct tx_test *t, struct party *p)
{
    unsigned steps = 0;
    while (tx_step(t, p)) {
        assert_true(++steps < STEPS_MAX);
    }
    p->done = p->done || engine_take_done(p->rig.engine) != NULL;
    assert_true(p->done);
    assert_false(engine_busy(p->rig.engine));
}

/* ---- calls ---- */

void tx_submit(struct party *p, enum list_verb verb)
{
    p->done = false;
    p->steps = 0;
    chain_init(&p->call.answer);
    p->call.verb = verb;
    p->call.key = p->lists[0].key;
    p->call.policy = &p->rig.config->lists[0];
    p->call.session = &p->session;
    p->call.lists = p->lists;
    engine_submit(p->rig.engine, &p->call, p->rig.now);
}

void tx_name_list(struct party *p, size_t i, const char *key)
{
    p->lists[i] = (struct call_list){
        .key = slice_of(key), .policy = &p->rig.config->lists[0], .changes = p->changes[i]};
    p->call.list_count = i + 1;
}

void tx_also(struct party *p, enum tx_op op, const struct slice *items, size_t count)
{
    struct call_list *list = &p->lists[p->call.list_count - 1];
    p->changes[p->call.list_count - 1][list->change_count++] = (struct tx_change){op, items, count};
}

const struct slice tx_x = {"x", 1}, tx_y = {"y", 1}, tx_z = {"z", 1};

/* ltx: x joins "a", and y "b". */
void tx_submit_two(struct party *p)
{
    tx_name_list(p, 0, "a");
    tx_also(p, TX_OP_ADD, &tx_x, 1);
    tx_name_list(p, 1, "b");
    tx_also(p, TX_OP_ADD, &tx_y, 1);
    tx_submit(p, LIST_TX);
}

/* Three lists: z joins "c". */
void tx_submit_three(struct party *p)
{
    tx_name_list(p, 0, "a");
    tx_also(p, TX_OP_ADD, &tx_x, 1);
    tx_name_list(p, 1, "b");
    tx_also(p, TX_OP_ADD, &tx_y, 1);
    tx_name_list(p, 2, "c");
    tx_also(p, TX_OP_ADD, &tx_z, 1);
    tx_submit(p, LIST_TX);
}

void tx_run_two(struct tx_test *t, unsigned hook_at, void (*hook)(struct tx_test *t))
{
    tx_make_lists(t);
    t->hook_at = hook_at;
    t->hook = hook;
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
}

/* Is the item in the list, as another proxy sees it? */
bool tx_has(struct tx_test *t, const char *key, struct slice item)
{
    struct party *p = &t->reader;
    p->rig.now.mono_us += 100000;
    p->call = (struct list_call){.items = &item, .item_count = 1};
    tx_name_list(p, 0, key);
    tx_submit(p, LIST_HAS);
    tx_run(t, p);
    chain_fini(&p->call.answer);
    assert_true(p->call.status == LIST_OK || p->call.status == LIST_MISSING);
    return p->call.number == 1;
}

enum outcome tx_outcome(const struct party *p)
{
    if (p->call.status == LIST_OK) {
        return DONE;
    }
    return p->call.status == LIST_SERVER_ERROR && strstr(p->call.error, "unknown") != NULL
               ? UNKNOWN
               : NOTHING_DONE;
}

/* The lists hold all that the transaction adds, or nothing of it, as the client was told. */
void tx_assert_as_told(struct tx_test *t, bool three)
{
    bool a = tx_has(t, "a", tx_x), b = tx_has(t, "b", tx_y);
    enum outcome outcome = tx_outcome(&t->tx);
    assert_int_equal(a, b);
    if (three) {
        assert_int_equal(a, tx_has(t, "c", tx_z));
    }
    if (outcome != UNKNOWN) {
        assert_int_equal(a, outcome == DONE);
    }
}

void tx_make_lists(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1\n+1:q"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "c#", "^1\n+1:r"), BE_STORED);
}
