/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls on lists of dialects end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_engine.h"

/* More than half of what the session may have unread. */
#define LIST "+0123456789+1123456789+2123456789+3123456789"
#define LIMIT_BYTES 60

struct test {
    struct rig rig;
    struct list_session reader, writer;
    struct list_call calls[3];
};

static int setup(void **state)
{
    static struct test t;
    t = (struct test){0};
    rig_init(&t.rig);
    t.rig.config->lists[0].dialect = DIALECT_SIGNED;
    t.rig.config->lists[0].migrate = MIGRATE_NATIVE;
    t.reader.limit_bytes = LIMIT_BYTES;
    for (size_t i = 0; i < 3; i++) {
        chain_init(&t.calls[i].answer);
    }
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    rig_fini(&t->rig);
    for (size_t i = 0; i < 3; i++) {
        chain_fini(&t->calls[i].answer);
    }
    return 0;
}

static struct list_call *submit_key(struct test *t, size_t number, enum list_verb verb,
                                    struct list_session *session, struct slice key)
{
    static const struct slice item = {"item", 4};
    struct list_call *call = &t->calls[number];
    call->verb = verb;
    call->key = key;
    call->policy = &t->rig.config->lists[0];
    call->session = session;
    call->items = &item;
    call->item_count = verb == LIST_ADD || verb == LIST_DEL;
    engine_submit(t->rig.engine, call, t->rig.now);
    return call;
}

static struct list_call *submit(struct test *t, size_t number, enum list_verb verb,
                                struct list_session *session)
{
    return submit_key(t, number, verb, session, SLICE_LIT("key"));
}

static struct list_request *take_request(struct test *t, enum be_verb verb)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    struct list_request *request = engine_take_request(t->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->be.verb, verb);
    return request;
}

/* The next request must be a look at that key. */
static void answer_key(struct test *t, const char *key, enum be_status status, const char *value)
{
    struct list_request *request = take_request(t, BE_GET);
    assert_true(slice_equal(request->be.key, slice_of(key)));
    rig_answer(&t->rig, request, status, value, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
}

static void answer(struct test *t, enum be_status status, const char *value)
{
    answer_key(t, "key", status, value);
}

static void expect_done(struct test *t, const struct list_call *call, enum list_status status)
{
    assert_ptr_equal(engine_take_done(t->rig.engine), call);
    assert_int_equal(call->status, status);
}

/* The call is done, and was answered with that text. */
static void expect_text(struct test *t, struct list_call *call, const char *text)
{
    char got[256];
    size_t len = 0;
    expect_done(t, call, LIST_OK);
    while (call->answer.bytes > 0) {
        struct iovec iov;
        assert_int_equal(chain_iov(&call->answer, &iov, 1), 1);
        assert_true(len + iov.iov_len < sizeof got);
        memcpy(got + len, iov.iov_base, iov.iov_len);
        len += iov.iov_len;
        chain_consume(&call->answer, iov.iov_len);
    }
    got[len] = '\0';
    assert_string_equal(got, text);
}

static void test_a_held_read_that_fails_is_not_held_any_more(void **state)
{
    struct test *t = *state;
    struct list_call *first = submit(t, 0, LIST_GET, &t->reader);
    answer(t, BE_HIT, LIST); /* where is it? */
    answer(t, BE_HIT, LIST); /* the list */
    answer(t, BE_HIT, LIST); /* and it has not moved */
    expect_done(t, first, LIST_OK);
    t->reader.unread_bytes = LIMIT_BYTES;
    struct list_call *held = submit(t, 1, LIST_GET, &t->reader);
    struct list_call *change = submit(t, 2, LIST_ADD, &t->writer);
    answer(t, BE_MISS, NULL); /* it has moved: looked for anew */
    assert_true(session_has_deferred(&t->reader));
    answer(t, BE_DOWN, NULL);
    expect_done(t, change, LIST_SERVER_ERROR);
    expect_done(t, held, LIST_SERVER_ERROR);
    assert_false(session_has_deferred(&t->reader));
    assert_false(engine_busy(t->rig.engine));
}

static void test_a_key_without_room_for_names_is_not_converted(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].key_bytes_max = 2;
    expect_done(t, submit(t, 0, LIST_CONVERT, &t->writer), LIST_CLIENT_ERROR);
    assert_string_equal(t->calls[0].error,
                        "key must have 1 to 2 bytes, or the names of its items are too long");
}

static void convert_a_sublist(struct test *t, bool is_known, const char *index)
{
    t->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    (void)submit_key(t, 0, LIST_CONVERT, &t->writer, SLICE_LIT("key.17"));
    if (!is_known) {
        answer_key(t, "key.17", BE_HIT, "+5+6"); /* where is it? */
    }
    answer_key(t, "key", BE_HIT, index);
}

static void test_a_sublist_that_an_index_names_is_not_converted(void **state)
{
    static const char *const indexes[] = {"+0+17", "-17+17", "\1mclistd moved 1 3 7\n^1\n+17"};
    struct test *t = *state;
    for (size_t i = 0; i < 3; i++) {
        convert_a_sublist(t, i > 0, indexes[i]);
        expect_done(t, &t->calls[0], LIST_SERVER_ERROR);
        assert_string_equal(t->calls[0].error, "another list names this item as one of its "
                                               "sublists, not converted");
        assert_false(engine_busy(t->rig.engine));
    }
}

static void test_a_list_that_no_index_names_is_converted(void **state)
{
    struct test *t = *state;
    convert_a_sublist(t, false, "+0+17-17");
    struct list_request *head = take_request(t, BE_GET);
    assert_true(slice_equal(slice_make(head->key, head->be.key.len), SLICE_LIT("key.17#")));
    rig_answer(&t->rig, head, BE_DOWN, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, &t->calls[0], LIST_SERVER_ERROR);
}

/* It was appended, and may have moved with the list. */
static void test_a_change_that_was_written_while_the_list_moved(void **state)
{
    static const char record[] = "\1mclistd moved 1 3 0\n^1\n+0";
    struct test *t = *state;
    t->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    struct list_call *call = submit(t, 0, LIST_ADD, &t->writer);
    answer(t, BE_HIT, "+0"); /* where is it? */
    answer(t, BE_HIT, "+0"); /* which sublist is the newest? */
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "+other", -1); /* is it one? */
    rig_answer(&t->rig, take_request(t, BE_APPEND), BE_STORED, NULL, -1);
    struct list_request *size = take_request(t, BE_SIZE);
    answer(t, BE_HIT, record);
    rig_answer(&t->rig, size, BE_HIT, "+item", -1);
    struct list_request *request;
    while ((request = engine_take_request(t->rig.engine)) != NULL) {
        rig_answer(&t->rig, request, BE_DOWN, NULL, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
    }
    expect_done(t, call, LIST_SERVER_ERROR);
    assert_non_null(strstr(call->error, "outcome unknown"));
}

static void answer_missing(struct test *t, int reads)
{
    while (reads-- > 0) {
        rig_answer(&t->rig, take_request(t, BE_GET), BE_MISS, NULL, -1);
    }
}

/* Its number is taken, and another entry of the same call may stand in its slot. */
static void test_a_ring_that_takes_half_of_a_call(void **state)
{
    static const struct slice items[] = {{"one", 3}, {"two", 3}};
    struct test *t = *state;
    t->rig.config->lists[0].dialect = DIALECT_RING;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    struct list_call *call = submit(t, 0, LIST_ADD, &t->writer);
    call->items = items;
    call->item_count = 2;
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "5", -1);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "5 zero", -1);
    answer_missing(t, 4); /* two are beyond the ring */
    rig_answer(&t->rig, take_request(t, BE_INCR), BE_STORED, NULL, -1);
    answer_missing(t, 4); /* the number is not the expected one */
    struct list_request *first = take_request(t, BE_SET), *second = take_request(t, BE_SET);
    rig_answer(&t->rig, first, BE_STORED, NULL, -1);
    rig_answer(&t->rig, second, BE_TOO_LARGE, NULL, -1);
    expect_done(t, call, LIST_SERVER_ERROR);
    assert_string_equal(call->error,
                        "backend has no room for this list in one item, outcome unknown");
}

/* A call on a ring of two slots that holds more than a look may keep. Ends when all three items are
 * read. */
static struct list_call *submit_to_large_ring(struct test *t, enum list_verb verb,
                                              struct list_session *session)
{
    struct list_policy *policy = &t->rig.config->lists[0];
    char entry[1024];
    (void)snprintf(entry, sizeof entry, "2 %0*d", 800, 0);
    policy->dialect = DIALECT_RING;
    policy->migrate = MIGRATE_NO;
    policy->capacity = 2;
    policy->fold_memory_bytes = 1000;
    struct list_call *call = submit(t, 0, verb, session);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "2", -1);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, entry, -1);
    entry[0] = '1';
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, entry, -1);
    answer_missing(t, 2); /* beyond the ring */
    return call;
}

static void test_a_list_larger_than_a_look_may_keep(void **state)
{
    struct test *t = *state;
    struct list_call *call = submit_to_large_ring(t, LIST_LEN, &t->reader);
    expect_done(t, call, LIST_SERVER_ERROR);
    assert_string_equal(call->error, "list needs more than fold_memory_bytes to be read");
}

static void test_such_a_list_can_be_dropped(void **state)
{
    struct test *t = *state;
    struct list_call *call = submit_to_large_ring(t, LIST_DROP, &t->writer);
    for (int slot = 0; slot < 4; slot++) { /* two are beyond the ring */
        enum be_status status = slot < 2 ? BE_NOT_FOUND : BE_DELETED;
        rig_answer(&t->rig, take_request(t, BE_DELETE), status, NULL, -1);
    }
    expect_done(t, call, LIST_OK);
}

/* Whatever stands there: an append sees nothing of it. */
static void test_a_list_that_is_not_known_is_looked_at_before_it_is_appended_to(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    struct list_call *call = submit(t, 0, LIST_ADD, &t->writer);
    answer(t, BE_HIT, "12345");
    expect_done(t, call, LIST_SERVER_ERROR);
    assert_string_equal(call->error,
                        "key is not of dialect signed: no sign at the beginning, nothing done; "
                        "ldrop key removes it");
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_list_foreign_parts), 1);
    assert_false(engine_busy(t->rig.engine));
    /* It is looked at again, and then not any more. */
    call = submit(t, 0, LIST_ADD, &t->writer);
    answer(t, BE_HIT, "+12345");
    for (int n = 0; n < 2; n++) {
        rig_answer(&t->rig, take_request(t, BE_APPEND), BE_STORED, NULL, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
        expect_done(t, call, LIST_OK);
        call = submit(t, 0, LIST_ADD, &t->writer);
    }
    rig_answer(&t->rig, take_request(t, BE_APPEND), BE_STORED, NULL, -1);
}

/* A read that finds something else there has the next append look again. */
static void test_a_list_that_became_something_else_is_not_known_any_more(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    struct list_call *call = submit(t, 0, LIST_LEN, &t->reader);
    answer(t, BE_HIT, "+1");
    expect_done(t, call, LIST_OK);
    call = submit(t, 0, LIST_LEN, &t->reader);
    answer(t, BE_HIT, "[5,1,1,3]");
    expect_done(t, call, LIST_SERVER_ERROR);
    call = submit(t, 0, LIST_ADD, &t->writer);
    answer(t, BE_HIT, "[5,1,1,3]");
    expect_done(t, call, LIST_SERVER_ERROR);
    assert_false(engine_busy(t->rig.engine));
}

/* An append that finds no item looks for the reason; what it finds is not joined either. */
static void test_what_came_in_place_of_a_list_is_not_written_whole(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    struct list_call *call = submit(t, 0, LIST_LEN, &t->reader);
    answer(t, BE_HIT, "+1");
    expect_done(t, call, LIST_OK);
    call = submit(t, 0, LIST_ADD, &t->writer);
    rig_answer(&t->rig, take_request(t, BE_APPEND), BE_NOT_STORED, NULL, -1);
    answer(t, BE_HIT, "12345");
    expect_done(t, call, LIST_SERVER_ERROR);
    assert_false(engine_busy(t->rig.engine));
}

/* Three exact changes of one list, in one batch, which begins with that list stored. Each is to end
 * well, with that number. */
static void run_batch(struct test *t, const enum list_verb verbs[3], const uint64_t numbers[3])
{
    static const struct slice fresh[] = {{"n1", 2}, {"n2", 2}};
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    for (size_t i = 0; i < 3; i++) {
        struct list_call *call = &t->calls[i];
        bool pops = verbs[i] == LIST_POP;
        *call = (struct list_call){.verb = verbs[i],
                                   .key = SLICE_LIT("key"),
                                   .policy = &t->rig.config->lists[0],
                                   .session = &t->writer,
                                   .items = fresh,
                                   .item_count = pops ? 0 : 2,
                                   .count = 1000,
                                   .form = i == 1 ? LIST_FORM_ITEMS : LIST_FORM_JOINED};
        engine_submit(t->rig.engine, call, t->rig.now);
    }
    answer(t, BE_HIT, "+with,delimiter+plain");
    rig_answer(&t->rig, take_request(t, BE_CAS), BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    for (size_t i = 0; i < 3; i++) {
        expect_done(t, &t->calls[i], LIST_OK);
        assert_int_equal(t->calls[i].number, numbers[i]);
    }
}

/* What the look has found is no more once lset has emptied it: neither its memory nor its items. */
static void test_a_pop_behind_an_lset_in_one_batch(void **state)
{
    run_batch(*state, (enum list_verb[]){LIST_SET, LIST_POP, LIST_POP}, (uint64_t[]){2, 2, 0});
}

/* The item that holds the delimiter was taken off by the call in front. */
static void test_a_pop_behind_a_pop_in_one_batch(void **state)
{
    run_batch(*state, (enum list_verb[]){LIST_ADDX, LIST_POP, LIST_POP}, (uint64_t[]){2, 4, 0});
}

/* A bridge's append of both signs, where it is written whole. */
static void test_deletions_among_additions_that_are_written_whole(void **state)
{
    static const struct slice items[] = {{"new", 3}, {"old", 3}};
    struct test *t = *state;
    struct list_call *call = submit(t, 0, LIST_ADD, &t->writer);
    call->items = items;
    call->item_count = 2;
    static const char ops[] = "+-";
    call->ops = ops;
    answer(t, BE_HIT, "+old+other"); /* where is it? */
    answer(t, BE_HIT, "+old+other");
    struct list_request *request = take_request(t, BE_CAS);
    assert_true(slice_equal(request->be.value, SLICE_LIT("+other+new")));
    rig_answer(&t->rig, request, BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_OK);
    assert_ptr_equal(call->items, items); /* not the operation's own, which are gone with it */
    assert_ptr_equal(call->ops, ops);
}

/* An lpurge takes a name off if the stored item has not changed since before the name's plain item
 * was deleted: an ladd changes it, also of a name that is in the list, also where its append had no
 * room. */
static void test_an_addition_without_room_is_seen_by_an_lpurge(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    struct list_call *call = submit(t, 0, LIST_ADD, &t->writer);
    answer(t, BE_HIT, "+item+other");
    rig_answer(&t->rig, take_request(t, BE_APPEND), BE_TOO_LARGE, NULL, -1);
    answer(t, BE_HIT, "+item+other");
    rig_answer(&t->rig, take_request(t, BE_CAS), BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_OK);
}

static struct list_call *submit_to_a_pair(struct test *t, enum list_verb verb)
{
    static const struct slice item = {"new", 3};
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_PAIRED;
    struct list_call *call = submit(t, 0, verb, &t->writer);
    call->items = &item;
    call->item_count = verb == LIST_SET;
    return call;
}

/* NULL: the item is missing. */
static void answer_look_at_pair(struct test *t, const char *adds, const char *deletes)
{
    enum be_status there = adds == NULL ? BE_MISS : BE_HIT;
    answer_key(t, "follow-key", there, adds);
    answer_key(t, "unfollow-key", deletes == NULL ? BE_MISS : BE_HIT, deletes);
    rig_answer(&t->rig, take_request(t, BE_SIZE), there, adds, -1);
}

/* Adds to the deletions what the engine appends to them. */
static void store_mark(struct test *t, char *deletes, size_t size)
{
    struct list_request *mark = take_request(t, BE_APPEND);
    size_t len = strlen(deletes);
    (void)snprintf(deletes + len, size - len, "%.*s", SLICE_ARGS(mark->be.value));
    rig_answer(&t->rig, mark, BE_STORED, NULL, -1);
}

/* An ldrop may remove the item that holds the mark before these additions come: a client by hand
 * would take the mark for an item. Nothing is pending, so none is needed. */
static void test_an_lset_of_a_pair_without_additions_leaves_no_mark(void **state)
{
    struct test *t = *state;
    char deletes[64] = "";
    struct list_call *call = submit_to_a_pair(t, LIST_SET);
    answer_look_at_pair(t, NULL, "old,");
    store_mark(t, deletes, sizeof deletes);
    answer_look_at_pair(t, NULL, deletes); /* another proxy has folded and drops it */
    struct list_request *add = take_request(t, BE_ADD);
    assert_true(slice_equal(add->be.value, SLICE_LIT("new,")));
    rig_answer(&t->rig, add, BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_OK);
}

/* Where deletions are pending a mark is needed. An ADD of it would be stored, too, when others have
 * made, folded and removed additions meanwhile, and with them the mark. */
static void test_additions_with_a_mark_are_written_over_an_item_that_is_there(void **state)
{
    struct test *t = *state;
    char deletes[64] = "old,";
    struct list_call *call = submit_to_a_pair(t, LIST_SET);
    answer_look_at_pair(t, NULL, deletes);
    store_mark(t, deletes, sizeof deletes);
    answer_look_at_pair(t, NULL, deletes);
    struct list_request *add = take_request(t, BE_ADD);
    assert_int_equal(add->be.value.len, 0);
    rig_answer(&t->rig, add, BE_STORED, NULL, -1);
    answer_look_at_pair(t, "", deletes);
    struct list_request *cas = take_request(t, BE_CAS);
    assert_true(slice_starts_with(cas->be.value, SLICE_LIT("new,@")));
    rig_answer(&t->rig, cas, BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_OK);
    rig_answer(&t->rig, take_request(t, BE_CAS), BE_STORED, NULL, -1); /* cuts the deletions */
    answer_look_at_pair(t, "new,", "");
}

/* Another proxy may have folded since, by a mark that would go with the additions: its deletions
 * would count again. */
static void test_an_ldrop_of_a_pair_removes_the_additions_that_it_has_read(void **state)
{
    struct test *t = *state;
    struct list_call *call = submit_to_a_pair(t, LIST_DROP);
    answer_look_at_pair(t, "old,", NULL);
    rig_answer(&t->rig, take_request(t, BE_CAS_DELETE), BE_EXISTS, NULL, -1);
    rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "follow-key"), BE_MISS, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    answer_key(t, "unfollow-key", BE_MISS, NULL);
    rig_answer(&t->rig, take_request(t, BE_SIZE), BE_MISS, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_OK);
}

static void answer_two_logs(struct test *t, const char *a, const char *b)
{
    answer_key(t, "key.a", a == NULL ? BE_MISS : BE_HIT, a);
    answer_key(t, "key.b", b == NULL ? BE_MISS : BE_HIT, b);
}

/* key.a, to which this worker appends, is closed, and no other log is there yet. That is looked at
 * until it is sure, but no change goes to key.a meanwhile: a client by hand may begin key.b. */
static void test_a_log_that_is_seen_closed_takes_no_more_changes(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_MARKER;
    struct list_call *known = submit(t, 0, LIST_LEN, &t->reader);
    answer_two_logs(t, "+one", NULL);
    answer_two_logs(t, "+one", NULL);
    expect_done(t, known, LIST_OK);
    struct list_call *read = submit(t, 1, LIST_LEN, &t->reader);
    answer_two_logs(t, "^+one", NULL);
    struct list_call *change = submit(t, 2, LIST_ADD, &t->writer);
    for (unsigned look = 0; look < 2; look++) {
        answer_two_logs(t, "^+one", NULL); /* of the change */
        answer_two_logs(t, "^+one", NULL); /* of the read */
    }
    expect_done(t, read, LIST_OK);
    answer_two_logs(t, "^+one", NULL);
    rig_answer(&t->rig, rig_take(&t->rig, BE_APPEND, "key.b"), BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, change, LIST_OK);
}

/* Without numbers and without a counter the times tell which entry is the newest. Here a writer
 * whose clock is behind comes while the slots are read: its counter tells better. */
static void test_a_ring_whose_counter_is_made_while_it_is_read(void **state)
{
    static const char *const slots[] = {NULL, "one 1700000002", "two 1700000001", NULL};
    static const int first[] = {0, 3, 2, 1}, second[] = {2, 1, 0};
    struct test *t = *state;
    struct list_policy *policy = &t->rig.config->lists[0];
    policy->migrate = MIGRATE_NO;
    policy->dialect = DIALECT_RING;
    policy->capacity = 4;
    (void)snprintf(policy->slot, sizeof policy->slot, "%%v %%t");
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_MISS, NULL, -1);
    for (size_t i = 0; i < 4; i++) {
        const char *value = slots[first[i]];
        enum be_status status = value == NULL ? BE_MISS : BE_HIT;
        rig_answer(&t->rig, take_request(t, BE_GET), status, value, -1);
    }
    answer_missing(t, 2);            /* beyond the ring */
    for (size_t i = 0; i < 2; i++) { /* behind the slots, and in front of them */
        rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "2", -1);
    }
    for (size_t i = 0; i < 3; i++) {
        const char *value = slots[second[i]];
        enum be_status status = value == NULL ? BE_MISS : BE_HIT;
        rig_answer(&t->rig, take_request(t, BE_GET), status, value, -1);
    }
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "2", -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_text(t, call, "two 1700000001,one 1700000002");
}

/* Where there still is no counter, the times tell. */
static void test_a_ring_without_a_counter(void **state)
{
    struct test *t = *state;
    struct list_policy *policy = &t->rig.config->lists[0];
    policy->migrate = MIGRATE_NO;
    policy->dialect = DIALECT_RING;
    policy->capacity = 2;
    (void)snprintf(policy->slot, sizeof policy->slot, "%%v %%t");
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_MISS, NULL, -1);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "old 1700000001", -1);
    rig_answer(&t->rig, take_request(t, BE_GET), BE_HIT, "new 1700000002", -1);
    answer_missing(t, 3); /* two beyond the ring, and the counter again */
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_text(t, call, "new 1700000002,old 1700000001");
}

/* Its additions change during each look. Between its fourth look at them and at the deletions
 * others fold the pair and drop it: no mark tells. */
static void test_a_pair_that_is_folded_and_dropped_while_it_is_read(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_PAIRED;
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    for (uint64_t look = 0; look < 4; look++) {
        bool dropped = look == 3;
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "follow-key"), BE_HIT, "old,", -1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "unfollow-key"), dropped ? BE_MISS : BE_HIT,
                   dropped ? NULL : "old,", -1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_SIZE, "follow-key"), BE_MISS, NULL, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
        assert_null(engine_take_done(t->rig.engine));
    }
    answer_look_at_pair(t, NULL, NULL);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_MISSING);
}

/* Where deletions only come, the fourth look ends. */
static void test_a_pair_that_changes_during_each_look(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_PAIRED;
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    for (uint64_t look = 0; look < 4; look++) {
        assert_null(engine_take_done(t->rig.engine));
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "follow-key"), BE_HIT, "a,b,c,", -1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "unfollow-key"), BE_HIT,
                   look < 3 ? "b," : "b,c,", -1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_SIZE, "follow-key"), BE_MISS, NULL, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
    }
    expect_text(t, call, "a");
}

/* Behind the mark of a folding another client deletes an item and adds it again. The folding takes
 * all that was deleted by then into account: by its mark, the item would be in the additions once,
 * and the deletion take that away. */
static void test_a_fold_of_a_pair_that_is_added_to_behind_its_mark(void **state)
{
    struct test *t = *state;
    char deletes[64];
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_PAIRED;
    (void)submit(t, 0, LIST_COMPACT, &t->writer);
    answer_look_at_pair(t, "a,b,", "b,");
    struct list_request *mark = rig_take(&t->rig, BE_APPEND, "unfollow-key");
    (void)snprintf(deletes, sizeof deletes, "b,%.*sa,", SLICE_ARGS(mark->be.value));
    rig_answer(&t->rig, mark, BE_STORED, NULL, -1);
    rig_answer_cas(&t->rig, rig_take(&t->rig, BE_GET, "follow-key"), BE_HIT, "a,b,a,", -1, 8);
    rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "unfollow-key"), BE_HIT, deletes, -1);
    rig_answer_cas(&t->rig, rig_take(&t->rig, BE_SIZE, "follow-key"), BE_HIT, NULL, -1, 8);
    struct list_request *another = rig_take(&t->rig, BE_APPEND, "unfollow-key");
    rig_answer(&t->rig, another, BE_DOWN, NULL, -1);
}

/* Other writers append between each of its looks and the CAS behind that. */
static unsigned tries_of_a_deletion(struct test *t, uint64_t deadline_us)
{
    struct list_call *call = &t->calls[0], *done;
    call->deadline_us = deadline_us;
    (void)submit(t, 0, LIST_DEL, &t->writer);
    unsigned tries = 0;
    while ((done = engine_take_done(t->rig.engine)) == NULL) {
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "key"), BE_HIT, "other,item,", -1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_CAS, "key"), BE_EXISTS, NULL, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
        tries++;
    }
    assert_ptr_equal(done, call);
    assert_int_equal(call->status, LIST_SERVER_ERROR);
    assert_string_equal(call->error, "busy, nothing done: other writers were faster each time");
    return tries;
}

static void test_a_deletion_tries_for_as_long_as_its_client_waits(void **state)
{
    struct test *t = *state;
    struct list_policy *policy = &t->rig.config->lists[0];
    policy->migrate = MIGRATE_NO;
    policy->dialect = DIALECT_SIMPLE;
    assert_int_equal(tries_of_a_deletion(t, 0), 64);
    assert_true(tries_of_a_deletion(t, t->rig.now.mono_us + 10000000) > 1000);
}

/* What two looks at once see of a list that is folded twice meanwhile: the first log as it was
 * before the folding, the second with what it has taken of that, and the pointer at the first. */
static void answer_torn_look(struct test *t, struct list_request *requests[3])
{
    struct slice late = SLICE_LIT("+late");
    char second[128];
    (void)snprintf(second, sizeof second, "+@0:%016x-@0:%016x+one+two+@5:%016llx-@5:%016llx", 1, 1,
                   (unsigned long long)hash_stable(late, hash_stable(late, 0)),
                   (unsigned long long)hash_stable(late, hash_stable(late, 0)));
    const char *const values[] = {late.p, second, "key.a"};
    for (size_t i = 0; i < 3; i++) {
        rig_answer(&t->rig, requests[i], BE_HIT, values[i], -1);
    }
    (void)engine_run(t->rig.engine, t->rig.now);
}

static void take_look(struct test *t, struct list_request *requests[3])
{
    static const char *const keys[] = {"key.a", "key.b", "key.active"};
    for (size_t i = 0; i < 3; i++) {
        requests[i] = rig_take(&t->rig, BE_GET, keys[i]);
    }
}

static void test_a_look_is_not_proved_by_one_beside_it(void **state)
{
    struct test *t = *state;
    struct list_request *first[3], *second[3];
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_FLIP;
    (void)submit(t, 0, LIST_COMPACT, &t->writer);
    take_look(t, first);
    (void)submit(t, 1, LIST_GET, &t->reader);
    take_look(t, second);
    answer_torn_look(t, first);
    answer_torn_look(t, second);
    assert_null(engine_take_done(t->rig.engine));
}

/* The second log seems to have been emptied since the first took it in, and to hold late entries.
 * It may have been read before that, and these be the old ones. */
static void test_what_came_to_an_emptied_log_is_looked_at_twice(void **state)
{
    struct test *t = *state;
    struct list_request *look[3];
    const char *const values[] = {
        "+@0:0000000000000001-@0:0000000000000001+one+@99:0000000000000002-@99:0000000000000002",
        "+late", "key.a"};
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_FLIP;
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    for (unsigned number = 1; number <= 3; number++) {
        assert_null(engine_take_done(t->rig.engine));
        take_look(t, look);
        for (size_t i = 0; i < 3; i++) {
            rig_answer(&t->rig, look[i], BE_HIT, values[i], -1);
        }
        (void)engine_run(t->rig.engine, t->rig.now);
    }
    expect_done(t, call, LIST_OK);
}

/* One look at a list whose second log is active: what the first one holds, which has that CAS
 * number, and the second one behind its beginning. */
static void answer_look_at_second(struct test *t, uint64_t cas, const char *first, const char *more)
{
    struct list_request *look[3];
    char second[128];
    (void)snprintf(second, sizeof second, "+@0:%016x-@0:%016x+one%s", 1, 1, more);
    take_look(t, look);
    rig_answer_cas(&t->rig, look[0], BE_HIT, first, -1, cas);
    rig_answer(&t->rig, look[1], BE_HIT, second, -1);
    rig_answer(&t->rig, look[2], BE_HIT, "key.b", -1);
    (void)engine_run(t->rig.engine, t->rig.now);
}

/* The active log has taken over what came to the other one: a worker that has seen that twice needs
 * one look from then on. But late entries may come to the emptied log: another proxy takes them
 * over and empties it again while this one reads first the active log, then the other. */
static void test_a_log_that_was_emptied_again_is_looked_at_again(void **state)
{
    static const char taken[] = "+@5:0000000000000002-@5:0000000000000002";
    static const char taken_again[] = "+late+@5:0000000000000003-@5:0000000000000003";
    struct test *t = *state;
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_FLIP;
    t->reader.limit_bytes = UINT64_MAX;
    for (unsigned looks = 4; looks > 0; looks = looks == 4 ? 1 : 0) {
        struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
        for (unsigned n = 0; n < looks; n++) {
            assert_null(engine_take_done(t->rig.engine));
            answer_look_at_second(t, 7, "", taken);
        }
        expect_text(t, call, "one");
    }
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    answer_look_at_second(t, 8, "", taken);
    assert_null(engine_take_done(t->rig.engine));
    answer_look_at_second(t, 8, "", taken_again);
    assert_null(engine_take_done(t->rig.engine));
    answer_look_at_second(t, 8, "", taken_again);
    expect_text(t, call, "one,late");
}

/* The note is about a log that is gone. Another one came to life in its place, under a writer who
 * had found none before; it begins with the same bytes, in the middle of an item. */
static void test_a_log_that_begins_as_the_one_that_was_taken(void **state)
{
    struct test *t = *state;
    struct slice gone = SLICE_LIT("+late");
    unsigned long long hash = (unsigned long long)hash_stable(gone, hash_stable(gone, 0));
    char second[128];
    (void)snprintf(second, sizeof second, "+@0:%016x-@0:%016x+one+@5:%016llx-@5:%016llx", 1, 1,
                   hash, hash);
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_MARKER;
    struct list_call *call = submit(t, 0, LIST_GET, &t->reader);
    for (unsigned look = 0; look < 3; look++) {
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "key.a"), BE_HIT, "+later+last", -1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "key.b"), BE_HIT, second, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
    }
    expect_text(t, call, "one,later,last");
}

/* Writers who have an old pointer append the same item twice to the log that was emptied. If it was
 * taken over as it stands, it would be what the active log's note is about the second time. */
static void test_what_came_to_an_emptied_log_gets_a_number(void **state)
{
    struct test *t = *state;
    struct list_request *write;
    char first[64];
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_FLIP;
    struct list_call *call = submit(t, 0, LIST_COMPACT, &t->writer);
    for (unsigned looks = 0; looks < 3; looks++) {
        answer_look_at_second(t, 7, "+late", "+@99:0000000000000002-@99:0000000000000002");
    }
    write = rig_take(&t->rig, BE_CAS, "key.a");
    assert_true(slice_starts_with(write->be.value, SLICE_LIT("+@0:")));
    (void)snprintf(first, sizeof first, "%.*s", SLICE_ARGS(write->be.value));
    assert_string_equal(first + strlen(first) - strlen("+late"), "+late");
    rig_answer(&t->rig, write, BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    for (unsigned looks = 0; looks < 2; looks++) {
        answer_look_at_second(t, 8, first, "+@99:0000000000000002-@99:0000000000000002");
    }
    write = rig_take(&t->rig, BE_CAS, "key.b");
    (void)snprintf(first, sizeof first, "%.*s", (int)(write->be.value.len - 40),
                   write->be.value.p + 40);
    assert_true(slice_starts_with(slice_of(first), SLICE_LIT("+one+late+@45:")));
    rig_answer(&t->rig, write, BE_DOWN, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    expect_done(t, call, LIST_SERVER_ERROR);
}

/* Two logs without notes about each other, and no pointer: the first one counts as active. Before
 * it takes in the second, the pointer has to say so, or another proxy may have the pointer name the
 * second: then what stands in front of the first one's note would not count. */
static void test_a_log_is_taken_in_under_a_pointer(void **state)
{
    struct test *t = *state;
    struct list_request *look[3];
    t->rig.config->lists[0].migrate = MIGRATE_NO;
    t->rig.config->lists[0].dialect = DIALECT_FLIP;
    (void)submit(t, 0, LIST_COMPACT, &t->writer);
    for (unsigned n = 0; n < 3; n++) {
        take_look(t, look);
        rig_answer(&t->rig, look[0], BE_HIT, "+one", -1);
        rig_answer(&t->rig, look[1], BE_HIT, "+@0:0000000000000001-@0:0000000000000001+two", -1);
        rig_answer(&t->rig, look[2], BE_MISS, NULL, -1);
        (void)engine_run(t->rig.engine, t->rig.now);
    }
    struct list_request *pointer = rig_take(&t->rig, BE_ADD, "key.active");
    assert_true(slice_equal(pointer->be.value, SLICE_LIT("key.a")));
    rig_answer(&t->rig, pointer, BE_STORED, NULL, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_held_read_that_fails_is_not_held_any_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_change_that_was_written_while_the_list_moved, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_ring_that_takes_half_of_a_call, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_list_larger_than_a_look_may_keep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_such_a_list_can_be_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_sublist_that_an_index_names_is_not_converted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_list_that_no_index_names_is_converted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_key_without_room_for_names_is_not_converted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_a_list_that_is_not_known_is_looked_at_before_it_is_appended_to, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_list_that_became_something_else_is_not_known_any_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_came_in_place_of_a_list_is_not_written_whole,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pop_behind_an_lset_in_one_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pop_behind_a_pop_in_one_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deletions_among_additions_that_are_written_whole,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_addition_without_room_is_seen_by_an_lpurge, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_lset_of_a_pair_without_additions_leaves_no_mark,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_additions_with_a_mark_are_written_over_an_item_that_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_ldrop_of_a_pair_removes_the_additions_that_it_has_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deletion_tries_for_as_long_as_its_client_waits,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_look_is_not_proved_by_one_beside_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_came_to_an_emptied_log_is_looked_at_twice, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_log_that_is_seen_closed_takes_no_more_changes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_ring_whose_counter_is_made_while_it_is_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_ring_without_a_counter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pair_that_is_folded_and_dropped_while_it_is_read,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pair_that_changes_during_each_look, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fold_of_a_pair_that_is_added_to_behind_its_mark,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_log_that_was_emptied_again_is_looked_at_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_came_to_an_emptied_log_gets_a_number, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_log_that_begins_as_the_one_that_was_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_log_is_taken_in_under_a_pointer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
