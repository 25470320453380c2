/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake with a node of Couchbase, answer by answer, and how its refusals read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "pool/couchbase/wire_couchbase.h"
#include "proto/server/binary.h"

/* The example of RFC 7677, whose user is "user" and whose password is "pencil". */
#define NONCE "rOprNGfwEbeRWgbNEkqO"
#define CHALLENGE \
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
#define PROOF "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
#define SIGNATURE "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

struct fixture {
    struct scram_cache cache;
    struct wire_login login;
    struct handshake hs;
    struct handshake_step step;
    char in[4096]; /* what the node sends */
    size_t in_len;
};

static int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    f.login = (struct wire_login){.bucket = SLICE_LIT("lists"),
                                  .user = SLICE_LIT("user"),
                                  .password = SLICE_LIT("pencil"),
                                  .cache = &f.cache};
    f.hs.login = &f.login;
    snprintf(f.hs.nonce, sizeof f.hs.nonce, NONCE);
    *state = &f;
    return 0;
}

/* The node's answer to a step, whose number is the opaque. */
static void say(struct fixture *f, unsigned opcode, uint16_t status, unsigned opaque,
                const char *value)
{
    size_t len = strlen(value);
    char *to = f->in + f->in_len;
    const unsigned char header[24] = {0x81,
                                      (unsigned char)opcode,
                                      [6] = (unsigned char)(status >> 8),
                                      [7] = (unsigned char)status,
                                      [10] = (unsigned char)(len >> 8),
                                      [11] = (unsigned char)len,
                                      [15] = (unsigned char)opaque};
    memcpy(to, header, sizeof header);
    memcpy(to + sizeof header, value, len);
    f->in_len += sizeof header + len;
}

/* Hands the bytes over one by one more; returns what the handshake says at the end. */
static enum handshake_result hear(struct fixture *f)
{
    static char held[4096];
    enum handshake_result result = HANDSHAKE_MORE;
    size_t from = 0;
    for (size_t n = 1; n <= f->in_len && result == HANDSHAKE_MORE; n++) {
        memcpy(held, f->in, n);
        f->step.in = slice_make(held + from, n - from);
        result = wire_couchbase.handshake(&f->hs, &f->step);
        from = n - f->step.in.len;
        assert_true(result != HANDSHAKE_MORE || n < f->in_len || f->step.in.len == 0);
        assert_true(f->step.need == 0 || f->step.need > f->step.in.len);
    }
    f->in_len = 0;
    return result;
}

/* One request in what was sent. */
static void expect_sent(const struct fixture *f, unsigned opcode, const char *key,
                        const char *value)
{
    char wanted[HANDSHAKE_SEND_MAX];
    size_t key_len = strlen(key), len = key_len + strlen(value);
    snprintf(wanted, sizeof wanted, "%s%s", key, value);
    assert_int_equal(f->step.send_len, 24 + len);
    assert_int_equal((unsigned char)f->step.send[0], 0x80);
    assert_int_equal((unsigned char)f->step.send[1], opcode);
    assert_int_equal(f->step.send[3], key_len);
    assert_memory_equal(f->step.send + 24, wanted, len);
}

static void begin(struct fixture *f)
{
    f->step.in = SLICE_NONE;
    assert_int_equal(wire_couchbase.handshake(&f->hs, &f->step), HANDSHAKE_MORE);
}

/* Up to the login. */
static enum handshake_result greet(struct fixture *f, const char *mechanisms)
{
    begin(f);
    say(f, 0x1f, 0, 1, "");
    say(f, 0x0b, 0, 2, "7.6.1-ee");
    say(f, 0xfe, 0, 3, "{}");
    say(f, 0x20, 0, 4, mechanisms);
    return hear(f);
}

static void refused(const struct fixture *f, enum handshake_result result, const char *reason)
{
    assert_int_equal(result, HANDSHAKE_REFUSED);
    assert_string_equal(f->step.error, reason);
}

static void log_in(struct fixture *f)
{
    assert_int_equal(greet(f, "SCRAM-SHA256 PLAIN"), HANDSHAKE_MORE);
    expect_sent(f, 0x21, "SCRAM-SHA256", "n,,n=user,r=" NONCE);
    say(f, 0x21, 0x21, 6, CHALLENGE);
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0x22, "SCRAM-SHA256",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=" PROOF);
}

static void from_hello_to_the_map(void **state)
{
    struct fixture *f = *state;
    begin(f);
    /* HELLO with eight features, then the three others. */
    assert_int_equal((unsigned char)f->step.send[1], 0x1f);
    size_t agent = (unsigned char)f->step.send[3];
    assert_memory_equal(f->step.send + 24, "mclistd/", 8);
    assert_memory_equal(f->step.send + 24 + agent, "\0\3\0\7\0\10\0\20\0\21\0\x0c\0\x1f\0\x1d", 16);
    assert_int_equal(f->step.send_len, 4 * 24 + agent + 16 + 2);
    f->hs.step = 0;
    log_in(f);
    say(f, 0x22, 0, 7, SIGNATURE);
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0x89, "lists", "");
    say(f, 0x89, 0, 8, "");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0xb5, "", "");
    assert_string_equal(f->hs.waits_for, "GET_CLUSTER_CONFIG");
    say(f, 0xb5, 0, 9, "{\"rev\":1}");
    assert_int_equal(hear(f), HANDSHAKE_DONE);
    assert_true(slice_equal(f->step.map, SLICE_LIT("{\"rev\":1}")));
    assert_string_equal(f->hs.version, "7.6.1-ee");
    assert_true(f->cache.filled);
}

static void the_strongest_login_is_taken(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(greet(f, "PLAIN SCRAM-SHA1 SCRAM-SHA512 SCRAM-SHA256"), HANDSHAKE_MORE);
    expect_sent(f, 0x21, "SCRAM-SHA512", "n,,n=user,r=" NONCE);
}

static void a_password_is_not_shown(void **state)
{
    struct fixture *f = *state;
    refused(f, greet(f, "PLAIN"), "it offers no login but PLAIN, which would show the password");
    (void)setup(state);
    refused(f, greet(f, "SCRAM-SHA2 GSSAPI"),
            "it offers no login that the proxy knows: SCRAM or PLAIN");
    (void)setup(state);
    f->login.plain = true;
    assert_int_equal(greet(f, "PLAIN"), HANDSHAKE_MORE);
    assert_int_equal(f->step.send_len, 24 + 5 + 12);
    assert_memory_equal(f->step.send + 24, "PLAIN\0user\0pencil", 17);
    say(f, 0x21, 0, 5, "Authenticated");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0x89, "lists", "");
}

static void a_node_must_know_the_password(void **state)
{
    struct fixture *f = *state;
    log_in(f);
    say(f, 0x22, 0, 7, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G8A");
    refused(f, hear(f), "it accepts the login, but does not know the password itself");
    (void)setup(state);
    log_in(f);
    say(f, 0x22, 0, 7, "");
    refused(f, hear(f), "it accepts the login, but does not know the password itself");
    (void)setup(state);
    /* Success before the proof. */
    assert_int_equal(greet(f, "SCRAM-SHA256"), HANDSHAKE_MORE);
    say(f, 0x21, 0, 6, SIGNATURE);
    refused(f, hear(f), "it answers SASL_AUTH with: success (0x0)");
    (void)setup(state);
    log_in(f);
    say(f, 0x22, 0x20, 7, "");
    refused(f, hear(f), "it refuses user user: wrong user or password");
}

static void expect_plain(const struct fixture *f)
{
    assert_int_equal(f->step.send_len, 24 + 5 + 12);
    assert_int_equal(f->step.send[1], 0x21);
    assert_memory_equal(f->step.send + 24, "PLAIN\0user\0pencil", 17);
}

/* It offers SCRAM, but not to this user; or mixes it up with another connection's. */
static void where_scram_does_not_do_plain_may(void **state)
{
    struct fixture *f = *state;
    f->login.plain = true;
    log_in(f);
    say(f, 0x22, 0x20, 7, "");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_plain(f);
    assert_true(f->hs.logs_in);
    say(f, 0x21, 0, 5, "");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0x89, "lists", "");
    assert_false(f->hs.logs_in);
    (void)setup(state);
    f->login.plain = true;
    log_in(f);
    say(f, 0x22, 0, 7, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G8A,e=failed");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_plain(f);
    say(f, 0x21, 0x20, 5, "");
    refused(f, hear(f), "it refuses user user: wrong user or password");
    (void)setup(state);
    f->login.plain = true;
    assert_int_equal(greet(f, "PLAIN SCRAM-SHA1"), HANDSHAKE_MORE);
    say(f, 0x21, 0x20, 6, "");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_plain(f);
}

static void it_may_not_where_the_node_or_the_file_does_not_let_it(void **state)
{
    struct fixture *f = *state;
    f->login.plain = true;
    assert_int_equal(greet(f, "SCRAM-SHA256"), HANDSHAKE_MORE);
    say(f, 0x21, 0x20, 6, "");
    refused(f, hear(f), "it refuses user user: wrong user or password");
    (void)setup(state);
    log_in(f); /* PLAIN is offered */
    say(f, 0x22, 0x20, 7, "");
    refused(f, hear(f), "it refuses user user: wrong user or password");
    (void)setup(state);
    log_in(f);
    say(f, 0x22, 0, 7, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G8A,e=failed");
    refused(f, hear(f), "it refuses user user: wrong user or password");
    (void)setup(state);
    f->login.plain = true;
    log_in(f);
    say(f, 0x22, 0x86, 7, ""); /* that is no refusal of the user */
    refused(f, hear(f), "it answers SASL_STEP with: temporary failure (0x86)");
}

static void old_nodes_do_not_know_hello(void **state)
{
    struct fixture *f = *state;
    static const uint16_t statuses[] = {0x81, 0x83, 0x24};
    for (size_t i = 0; i < 3; i++) {
        (void)setup(state);
        begin(f);
        say(f, 0x1f, statuses[i], 1, "");
        say(f, 0x0b, 0x81, 2, "");
        say(f, 0xfe, 0x81, 3, "");
        say(f, 0x20, 0, 4, "SCRAM-SHA1");
        assert_int_equal(hear(f), HANDSHAKE_MORE);
        expect_sent(f, 0x21, "SCRAM-SHA1", "n,,n=user,r=" NONCE);
    }
}

/* TLS has told the user: there is nothing to log in with. */
static void a_certificate_takes_the_place_of_a_login(void **state)
{
    struct fixture *f = *state;
    f->login = (struct wire_login){.bucket = SLICE_LIT("lists"), .by_certificate = true};
    begin(f);
    say(f, 0x1f, 0, 1, "");
    say(f, 0x0b, 0, 2, "");
    say(f, 0xfe, 0, 3, "");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0x89, "lists", "");
    assert_false(f->hs.logs_in);
    say(f, 0x89, 0x24, 8, "");
    refused(f, hear(f), "the user of tls_cert has no access to bucket lists, or it is not there");
}

static void durability_must_be_there_when_it_is_wanted(void **state)
{
    struct fixture *f = *state;
    f->login.durable = true;
    refused(f, greet(f, "SCRAM-SHA1"),
            "it has no durable writes, Couchbase 6.5 or newer is needed for them");
}

/* Up to the question for the collection's id. */
static void ask_for_collection(struct fixture *f)
{
    f->login.collection = SLICE_LIT("shop.carts");
    begin(f);
    assert_int_equal((unsigned char)f->step.send[f->step.send_len - 24 - 26 - 24 - 1], 0x12);
    say(f, 0x1f, 0, 1, "");
    f->in[f->in_len - 24 + 11] = 2; /* one feature */
    memcpy(f->in + f->in_len, "\0\x12", 2);
    f->in_len += 2;
    say(f, 0x0b, 0, 2, "");
    say(f, 0xfe, 0, 3, "");
    say(f, 0x20, 0, 4, "SCRAM-SHA256");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    say(f, 0x21, 0x21, 6, CHALLENGE);
    (void)hear(f);
    say(f, 0x22, 0, 7, SIGNATURE);
    (void)hear(f);
    say(f, 0x89, 0, 8, "");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0xbb, "", "shop.carts");
    assert_string_equal(f->hs.waits_for, "GET_COLLECTION_ID");
}

static void say_collection(struct fixture *f, const char *extras, size_t len)
{
    say(f, 0xbb, 0, 10, "");
    f->in[f->in_len - 24 + 4] = f->in[f->in_len - 24 + 11] = (char)len;
    memcpy(f->in + f->in_len, extras, len);
    f->in_len += len;
}

static void the_id_of_the_collection_comes_before_the_map(void **state)
{
    struct fixture *f = *state;
    ask_for_collection(f);
    say_collection(f, "\0\0\0\0\0\0\1\2\0\0\0\x0b", 12);
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0xb5, "", "");
    assert_int_equal(f->hs.collection, COLLECTION_IS_THERE);
    assert_int_equal(f->hs.collection_id, 11);
    assert_int_equal(f->hs.manifest, 0x102);
}

static void a_collection_that_is_missing_is_no_fault_of_the_node(void **state)
{
    struct fixture *f = *state;
    ask_for_collection(f);
    say(f, 0xbb, 0x88, 10, "{\"manifest_uid\":\"1F\",\"x\":1}");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    expect_sent(f, 0xb5, "", "");
    assert_int_equal(f->hs.collection, COLLECTION_IS_MISSING);
    assert_int_equal(f->hs.manifest, 0x1f);
    (void)setup(state);
    ask_for_collection(f);
    say(f, 0xbb, 0x8c, 10, "{\"manifest_uid\":\"no\"}");
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    assert_int_equal(f->hs.collection, COLLECTION_LACKS_SCOPE);
    assert_int_equal(f->hs.manifest, 0);
}

static void answers_that_tell_no_id(void **state)
{
    struct fixture *f = *state;
    ask_for_collection(f);
    say_collection(f, "\0\0\0\0\0\0\1\2\0\0\0\0", 12);
    refused(f, hear(f), "it tells no id of the collection");
    (void)setup(state);
    ask_for_collection(f);
    say_collection(f, "\0\0\0\0\0\0\1\2", 8);
    refused(f, hear(f), "it tells no id of the collection");
    (void)setup(state);
    ask_for_collection(f);
    say(f, 0xbb, 0x89, 10, "");
    refused(f, hear(f),
            "it answers GET_COLLECTION_ID with: the node knows no collections yet (0x89)");
}

static void old_nodes_have_no_collections(void **state)
{
    struct fixture *f = *state;
    f->login.collection = SLICE_LIT("shop.carts");
    refused(f, greet(f, "SCRAM-SHA1"),
            "it has no collections, Couchbase 7.0 or newer is needed for them");
}

static void what_the_node_refuses(void **state)
{
    struct fixture *f = *state;
    log_in(f);
    say(f, 0x22, 0, 7, SIGNATURE);
    (void)hear(f);
    say(f, 0x89, 0x24, 8, "");
    refused(f, hear(f), "user user has no access to bucket lists, or it is not there");
    (void)setup(state);
    log_in(f);
    say(f, 0x22, 0, 7, SIGNATURE);
    (void)hear(f);
    say(f, 0x89, 0, 8, "");
    (void)hear(f);
    say(f, 0xb5, 0x0d, 9, "");
    refused(f, hear(f),
            "it answers GET_CLUSTER_CONFIG with: this node serves no documents yet (0xd)");
    (void)setup(state);
    log_in(f);
    say(f, 0x22, 0, 7, SIGNATURE);
    (void)hear(f);
    say(f, 0x89, 0x81, 8, ""); /* an old one, whose login decides which bucket it is */
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    say(f, 0xb5, 0x83, 9, "");
    refused(f, hear(f),
            "it does not tell its map over the data port: expected a bucket of type Couchbase or "
            "Ephemeral, of Couchbase 5.0 or later");
}

static void what_is_out_of_step(void **state)
{
    struct fixture *f = *state;
    begin(f);
    say(f, 0x0b, 0, 2, "");
    refused(f, hear(f), "it gives another answer than that to HELLO");
    (void)setup(state);
    begin(f);
    say(f, 0x1f, 0, 1, "");
    say(f, 0x0b, 0, 2, "");
    say(f, 0xfe, 0, 3, "");
    say(f, 0x20, 0, 4, "SCRAM-SHA1");
    say(f, 0x21, 0x21, 6, "");
    /* All at once: the last one came before its request was sent. */
    f->step.in = slice_make(f->in, f->in_len);
    refused(f, wire_couchbase.handshake(&f->hs, &f->step), "it answers before it was asked");
    (void)setup(state);
    begin(f);
    f->step.in = SLICE_LIT("ERROR\r\n");
    refused(f, wire_couchbase.handshake(&f->hs, &f->step),
            "no Couchbase node, its answer is not of the binary protocol");
    (void)setup(state);
    begin(f);
    f->step.in = SLICE_LIT("HTTP/1.1 400 Bad Request\r\n");
    refused(f, wire_couchbase.handshake(&f->hs, &f->step),
            "it speaks HTTP: name its data port, 11210");
}

/* --- what a node says by itself ----------------------------------------------------------------
 */

#define NEWS(opcode) \
    "\x82" opcode "\0\5\x10\0\0\0\0\0\0\x17\0\0\0\0\0\0\0\0\0\0\0\0" \
    "\0\0\0\0\0\0\0\3\0\0\0\0\0\0\1\2" \
    "lists" \
    "{}"

static void news_of_a_map(void **state)
{
    (void)state;
    static const char bytes[] = NEWS("\1"), other[] = NEWS("\2");
    struct wire_news news;
    for (size_t len = 0; len < sizeof bytes - 1; len++) {
        assert_int_equal(wire_couchbase.news(slice_make(bytes, len), &news), WIRE_MORE);
        assert_true(news.size == 0 || news.size == sizeof bytes - 1);
    }
    assert_int_equal(wire_couchbase.news(slice_make(bytes, sizeof bytes - 1), &news), WIRE_ANSWER);
    assert_int_equal(news.size, sizeof bytes - 1);
    assert_true(news.of_map && news.epoch == 3 && news.revision == 0x102);
    assert_true(slice_equal(news.map, SLICE_LIT("{}")));
    assert_int_equal(wire_couchbase.news(slice_make(other, sizeof other - 1), &news), WIRE_ANSWER);
    assert_false(news.of_map);
    static const char endless[] = "\x82\1\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0";
    assert_int_equal(wire_couchbase.news(slice_make(endless, sizeof endless - 1), &news),
                     WIRE_GARBAGE);
}

static void news_in_a_handshake_are_left_out(void **state)
{
    struct fixture *f = *state;
    static const char news[] = NEWS("\1");
    begin(f);
    say(f, 0x1f, 0, 1, "");
    for (unsigned i = 0; i < 2; i++) {
        memcpy(f->in + f->in_len, news, sizeof news - 1);
        f->in_len += sizeof news - 1;
    }
    say(f, 0x0b, 0, 2, "7");
    say(f, 0xfe, 0, 3, "");
    say(f, 0x20, 0, 4, "SCRAM-SHA256");
    memcpy(f->in + f->in_len, news, sizeof news - 1);
    f->in_len += sizeof news - 1;
    assert_int_equal(hear(f), HANDSHAKE_MORE);
    assert_string_equal(f->hs.version, "7");
    say(f, 0x21, 0x21, 6, CHALLENGE);
    assert_int_equal(hear(f), HANDSHAKE_MORE);
}

static void a_map_is_asked_for_by_what_is_known(void **state)
{
    (void)state;
    char version[BINARY_VERSION_BYTES], room[WIRE_FRONT_MAX];
    struct slice tail;
    binary_put_version(version, 1, 0x203);
    struct be_operation op = {.verb = BE_MAP, .opaque = 7};
    struct slice front = wire_couchbase.encode(&op, room, &tail);
    assert_int_equal(front.len, 24);
    op.value = slice_make(version, sizeof version);
    front = wire_couchbase.encode(&op, room, &tail);
    assert_int_equal(front.len, 24);
    assert_memory_equal(room, "\x80\xb5\0\0\x10\0\0\0\0\0\0\x10\0\0\0\7", 16);
    assert_memory_equal(version, "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\2\3", 16);
}

/* --- operations ---------------------------------------------------------------------------------
 */

static struct wire_answer decode(struct fixture *f, enum be_verb verb, uint16_t status)
{
    struct be_operation op = {.verb = verb, .key = SLICE_LIT("k"), .opaque = 42};
    const struct be_caps caps = {.server_name = "db:11210"};
    struct wire_answer answer = {.now_s = 0, .stale = false};
    f->in_len = 0;
    say(f, binary_opcode(verb), status, 42, "");
    assert_int_equal(wire_couchbase.decode(&op, slice_make(f->in, f->in_len), &caps, &answer),
                     WIRE_ANSWER);
    assert_int_equal(answer.size, f->in_len);
    return answer;
}

static void refusals_name_the_node_and_the_reason(void **state)
{
    struct fixture *f = *state;
    struct wire_answer a = decode(f, BE_SET, 0x86);
    assert_string_equal(a.text, "backend db:11210: temporary failure (0x86)");
    assert_true(a.reply.status == BE_REFUSED && !a.distrust);
    a = decode(f, BE_SET, 0xa3);
    assert_string_equal(
        a.text, "backend db:11210: the durable write was not confirmed (0xa3), outcome unknown");
    assert_int_equal(a.reply.status, BE_LOST);
    a = decode(f, BE_SET, 0x1f);
    assert_true(a.reply.status == BE_REFUSED && !a.distrust && a.stale);
    a = decode(f, BE_SET, 0x84);
    assert_true(a.reply.status == BE_LOST && a.distrust);
    a = decode(f, BE_INCR, 0x84);
    assert_true(a.reply.status == BE_LOST && !a.distrust);
    a = decode(f, BE_DECR, 0x84);
    assert_true(a.reply.status == BE_LOST && !a.distrust);
    a = decode(f, BE_ADD, 0xa1);
    assert_string_equal(a.text,
                        "backend db:11210: too few nodes for a durable change: add some, or lower "
                        "the bucket's replicas (0xa1)");
    a = decode(f, BE_DELETE, 0);
    assert_int_equal(a.reply.status, BE_DELETED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(from_hello_to_the_map, setup),
        cmocka_unit_test_setup(the_strongest_login_is_taken, setup),
        cmocka_unit_test_setup(a_password_is_not_shown, setup),
        cmocka_unit_test_setup(a_node_must_know_the_password, setup),
        cmocka_unit_test_setup(where_scram_does_not_do_plain_may, setup),
        cmocka_unit_test_setup(it_may_not_where_the_node_or_the_file_does_not_let_it, setup),
        cmocka_unit_test_setup(old_nodes_do_not_know_hello, setup),
        cmocka_unit_test_setup(a_certificate_takes_the_place_of_a_login, setup),
        cmocka_unit_test_setup(durability_must_be_there_when_it_is_wanted, setup),
        cmocka_unit_test_setup(the_id_of_the_collection_comes_before_the_map, setup),
        cmocka_unit_test_setup(a_collection_that_is_missing_is_no_fault_of_the_node, setup),
        cmocka_unit_test_setup(answers_that_tell_no_id, setup),
        cmocka_unit_test_setup(old_nodes_have_no_collections, setup),
        cmocka_unit_test_setup(what_the_node_refuses, setup),
        cmocka_unit_test_setup(what_is_out_of_step, setup),
        cmocka_unit_test_setup(news_of_a_map, setup),
        cmocka_unit_test_setup(news_in_a_handshake_are_left_out, setup),
        cmocka_unit_test_setup(a_map_is_asked_for_by_what_is_known, setup),
        cmocka_unit_test_setup(refusals_name_the_node_and_the_reason, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
