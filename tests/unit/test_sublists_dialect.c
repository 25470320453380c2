/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of dialect sublists whose index names a sublist that is missing: it was evicted, or a
 * client wrote the index and has not written the sublist yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dialect/sublists/sublists.h"
#include "support_engine.h"

/* The random numbers of the rig make it the new sublist. */
#define NEW "k.568"

static void expect_replacing(struct script *s, enum be_status status)
{
    static const struct slice item = {"a", 1};
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    script_submit(s, LIST_SET, &item, 1);
    script_expect(s, BE_GET, "k", BE_HIT, "+0");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_SIZE, "k", BE_HIT, "+0");
    script_expect(s, BE_SIZE, "k.0", BE_MISS, NULL);
    script_expect(s, BE_ADD, NEW, BE_STORED, NULL);
    script_expect(s, BE_CAS, "k", status, NULL);
}

/* A list that grows to its number would name the new sublist, and show its items. */
static void test_an_lset_that_fails_takes_back_what_it_has_added(void **state)
{
    struct script *s = *state;
    expect_replacing(s, BE_NO_MEMORY);
    script_expect(s, BE_DELETE, NEW, BE_DELETED, NULL);
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error,
                        "backend has no room for this list in one item, nothing done");
}

static void test_an_lset_that_can_take_nothing_back_is_unknown(void **state)
{
    struct script *s = *state;
    expect_replacing(s, BE_NO_MEMORY);
    script_expect(s, BE_DELETE, NEW, BE_DOWN, NULL);
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error,
                        "backend has no room for this list in one item, outcome unknown");
}

static void test_lset_looks_whether_a_missing_sublist_has_come(void **state)
{
    struct script *s = *state;
    expect_replacing(s, BE_STORED);
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
    assert_false(engine_busy(s->rig.engine));
}

static void test_lset_removes_a_sublist_that_has_come(void **state)
{
    struct script *s = *state;
    expect_replacing(s, BE_STORED);
    script_expect(s, BE_GET, "k.0", BE_HIT, "+late");
    script_expect(s, BE_CAS_DELETE, "k.0", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    assert_false(engine_busy(s->rig.engine));
}

/* Two neighbours become one where they take half of sublist_limit_bytes at most, and the newest is
 * none of them. The later one is written first. */
static void test_lcompact_merges_short_neighbours(void **state)
{
    static const char *const wholes[] = {"k", "k.0", "k.1", "k.2"};
    struct script *s = *state;
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    for (unsigned limit = 16; limit <= 20; limit += 4) {
        const char *const values[] = {"+0+1+2", "+a+b", "+c+d+e", "+f"};
        s->rig.config->lists[0].sublist_limit_bytes = limit;
        script_submit(s, LIST_COMPACT, NULL, 0);
        for (unsigned i = 0; i < 8; i++) {
            /* Sublists that the worker knows are asked for before the index. */
            unsigned at = limit == 16 ? i % 4 : (i + 1) % 4;
            script_expect(s, i < 4 ? BE_GET : BE_SIZE, wholes[at], BE_HIT, values[at]);
        }
        if (limit == 16) {
            script_expect_done(s, LIST_OK);
            continue;
        }
        struct list_request *r = rig_take(&s->rig, BE_CAS, "k.1");
        assert_true(slice_equal(r->be.value, SLICE_LIT("+a+b+c+d+e")));
        rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    }
}

/* Writes the text of a sublist, that many bytes and a NUL, of items that begin so. */
static void write_items(char *out, size_t bytes, char first)
{
    for (size_t at = 0; at < bytes; at += 32) {
        int digits = (int)u64_least(bytes - at, 32) - 2;
        (void)snprintf(out + at, (size_t)digits + 3, "+%c%0*zu", first, digits, at);
    }
}

/* Another proxy may still write k.1 as k.0 and k.1 were before what k.2 deletes had left k.0. It
 * cannot once k.1 is written; k.0 is too long for that. Its sublist_limit_bytes may be a larger one
 * than this proxy's. */
static void test_a_deletion_goes_behind_what_may_be_merged(void **state)
{
    static const char *const wholes[] = {"k", "k.0", "k.1", "k.2"};
    static char long_one[SUBLISTS_MERGED_BYTES_MAX + 1], short_one[SUBLISTS_MERGED_BYTES_MAX];
    const char *const values[] = {"+0+1+2", long_one, short_one, "-x+d"};
    struct script *s = *state;
    write_items(long_one, sizeof long_one - 1, 'a');
    write_items(short_one, sizeof short_one - 1, 'c');
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    s->rig.config->lists[0].sublist_limit_bytes = 16;
    script_submit(s, LIST_COMPACT, NULL, 0);
    for (unsigned i = 0; i < 8; i++) {
        script_expect(s, i < 4 ? BE_GET : BE_SIZE, wholes[i % 4], BE_HIT, values[i % 4]);
    }
    struct list_request *r = rig_take(&s->rig, BE_CAS, "k.1");
    assert_true(slice_equal(r->be.value, slice_of(short_one)));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    r = rig_take(&s->rig, BE_CAS, "k.2");
    assert_true(slice_equal(r->be.value, SLICE_LIT("+d")));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
}

/* An lset has put another index in its place since it was read: only what that names counts. */
static void test_a_look_forgets_the_index_that_was_replaced(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k", BE_HIT, "+0");
    script_expect(s, BE_GET, "k.0", BE_HIT, "+a+b");
    struct be_reply changed = {.status = BE_HIT, .cas = 8, .epoch = 1, .ttl_s = -1};
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_SIZE, "k"), &changed, s->rig.now);
    script_expect(s, BE_GET, "k", BE_HIT, "+5");
    script_expect(s, BE_GET, "k.5", BE_HIT, "+c");
    script_expect(s, BE_GET, "k", BE_HIT, "+5");
    script_expect(s, BE_GET, "k.5", BE_HIT, "+c");
    script_expect(s, BE_SIZE, "k", BE_HIT, "+5");
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
}

static void expect_from(struct script *s, const struct be_caps *server, enum be_verb verb,
                        const char *key, const char *value, uint64_t cas)
{
    struct be_reply reply = {.status = value == NULL ? BE_MISS : BE_HIT,
                             .cas = cas,
                             .epoch = 1,
                             .ttl_s = -1,
                             .caps = server};
    struct list_request *request = rig_take(&s->rig, verb, key);
    if (value != NULL) {
        reply.value = slice_of(value);
        reply.block = block_new(reply.value.len);
        block_append(&reply.block, reply.value.p, reply.value.len);
        reply.value.p = reply.block->data;
    }
    engine_reply(s->rig.engine, request, &reply, s->rig.now);
    block_unref(&reply.block);
}

/* An item was added again, to a sublist that was read before that, and left the older one, which
 * was removed then. Their servers answer in whatever order. */
static void test_a_look_that_finds_the_oldest_removed_looks_at_the_next_again(void **state)
{
    static const struct be_caps one = {0}, other = {0};
    struct script *s = *state;
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    script_submit(s, LIST_LEN, NULL, 0);
    expect_from(s, &one, BE_GET, "k", "+0+1", 1);
    expect_from(s, &one, BE_GET, "k.0", "+a", 2);
    expect_from(s, &other, BE_GET, "k.1", "+b", 3);
    expect_from(s, &one, BE_SIZE, "k", "+0+1", 1);
    expect_from(s, &other, BE_SIZE, "k.1", "+b", 3);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
    script_submit(s, LIST_LEN, NULL, 0);
    expect_from(s, &one, BE_GET, "k.0", NULL, 0);
    expect_from(s, &other, BE_GET, "k.1", "+b", 3);
    expect_from(s, &one, BE_GET, "k", "+0+1-0", 4);
    expect_from(s, &other, BE_SIZE, "k.1", "+b+a", 5);
    expect_from(s, &one, BE_SIZE, "k", "+0+1-0", 4);
    expect_from(s, &other, BE_GET, "k.1", "+b+a", 5);
    expect_from(s, &one, BE_SIZE, "k", "+0+1-0", 4);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_lset_looks_whether_a_missing_sublist_has_come),
        script_test(test_lset_removes_a_sublist_that_has_come),
        script_test(test_an_lset_that_fails_takes_back_what_it_has_added),
        script_test(test_an_lset_that_can_take_nothing_back_is_unknown),
        script_test(test_lcompact_merges_short_neighbours),
        script_test(test_a_deletion_goes_behind_what_may_be_merged),
        script_test(test_a_look_forgets_the_index_that_was_replaced),
        script_test(test_a_look_that_finds_the_oldest_removed_looks_at_the_next_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
