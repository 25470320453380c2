/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary protocol beside the ASCII one, on one real memcached, which speaks both: the same
 * operations, on keys of their own, must have the same outcome. It has no GET_META (BE_GET,
 * BE_TIME), and passes over the vBucket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "proto/server/ascii_format.h"
#include "proto/server/ascii_parse.h"
#include "proto/server/binary.h"

#define ROOM ((size_t)4 << 20)
#define ITEM_MAX ((size_t)1 << 20)

static char dir[64], path[96];
static pid_t server;
static int ascii_fd = -1, binary_fd = -1;
static char ascii_in[ROOM], binary_in[ROOM];
static char large[2 * ITEM_MAX];
static uint32_t opaque;
/* Are changes meta commands in the ASCII protocol, which tell CAS numbers? */
static bool by_meta;

static int connect_to_it(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    for (int i = 0; i < 1000; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0) {
            return fd;
        }
        close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return -1;
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/test_binary.XXXXXX");
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/socket", dir);
    server = fork();
    if (server == 0) {
        execlp("memcached", "memcached", "-s", path, "-u", "root", "-m", "64", "-U", "0",
               (char *)NULL);
        _exit(127);
    }
    memset(large, 'x', sizeof large);
    ascii_fd = connect_to_it();
    binary_fd = connect_to_it();
    return server < 0 || ascii_fd < 0 || binary_fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    close(ascii_fd);
    close(binary_fd);
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    unlink(path);
    return rmdir(dir);
}

static void send_all(int fd, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        assert_true(n > 0);
        (void)slice_take(&bytes, (size_t)n);
    }
}

static size_t receive(int fd, char *in, size_t len)
{
    assert_true(len < ROOM);
    ssize_t n = recv(fd, in + len, ROOM - len, 0);
    assert_true(n > 0);
    return len + (size_t)n;
}

static struct be_reply ask_ascii(const struct be_operation *op)
{
    char line[ASCII_LINE_MAX];
    struct be_reply reply = {0};
    size_t len = 0, size;
    enum ascii_parse_result result;
    send_all(ascii_fd, slice_make(line, ascii_format(op, line)));
    if (be_has_value(op->verb)) {
        send_all(ascii_fd, op->value);
        send_all(ascii_fd, SLICE_LIT("\r\n"));
    }
    do {
        len = receive(ascii_fd, ascii_in, len);
        result = ascii_parse(op, slice_make(ascii_in, len), ASCII_VALUE_MAX, &reply, &size);
    } while (result == ASCII_PARSE_MORE);
    assert_int_equal(result, ASCII_PARSE_OK);
    assert_int_equal(size, len);
    assert_int_equal(ascii_reply_read(op, &reply), 0);
    return reply;
}

static struct be_reply ask_binary(struct be_operation op)
{
    char front[BINARY_FRONT_MAX];
    struct be_reply reply;
    size_t len = 0, size;
    enum binary_result result;
    op.opaque = ++opaque;
    op.vbucket = (uint16_t)(opaque % 1024);
    send_all(binary_fd, slice_make(front, binary_format(&op, front)));
    if (be_has_value(op.verb)) {
        send_all(binary_fd, op.value);
    }
    do {
        len = receive(binary_fd, binary_in, len);
        reply = (struct be_reply){0};
        result = binary_decode(&op, slice_make(binary_in, len), ROOM, 0, &reply, &size);
    } while (result == BINARY_MORE);
    assert_int_equal(result, BINARY_OK);
    assert_int_equal(size, len);
    return reply;
}

/* The operation on the key "a:NAME" by the one, on "b:NAME" by the other; the CAS numbers that they
 * have seen last are their own. */
struct cas_pair {
    uint64_t ascii, binary;
};

static bool same(const struct be_operation *op, const struct be_reply *a, const struct be_reply *b)
{
    bool hit = a->status == BE_HIT;
    bool has_value = hit && op->verb != BE_SIZE && op->verb != BE_PROBE;
    return a->status == b->status && a->number == b->number &&
           (!has_value || (a->flags == b->flags && slice_equal(a->value, b->value))) &&
           (!hit || op->verb == BE_PROBE || a->size_bytes == b->size_bytes || op->verb == BE_GAT ||
            op->verb == BE_FETCH);
}

static enum be_status both(struct be_operation op, const char *name, struct cas_pair *cas)
{
    char key[64];
    uint64_t wrong = op.cas;
    op.key = slice_make(key, (size_t)snprintf(key, sizeof key, "a:%s", name));
    op.cas = cas->ascii - wrong;
    op.asks_cas = !be_changes(op.verb) || op.verb == BE_GAT || by_meta;
    struct be_reply a = ask_ascii(&op);
    key[0] = 'b';
    op.cas = cas->binary - wrong;
    struct be_reply b = ask_binary(op);
    if (!same(&op, &a, &b)) {
        fail_msg("verb %d of %s: ASCII %d (%.*s), binary %d (code 0x%x), %zu bytes of value",
                 op.verb, name, a.status, SLICE_ARGS(a.line), b.status, b.code, op.value.len);
    }
    if (by_meta && a.status == BE_STORED && op.verb != BE_CAS_DELETE) {
        assert_true(a.cas != 0 && b.cas != 0);
    }
    if (a.cas != 0 && a.status == BE_HIT && op.verb != BE_PROBE) {
        *cas = (struct cas_pair){a.cas, b.cas};
    }
    return a.status;
}

static void each_operation_on_each_kind_of_item(void **state)
{
    (void)state;
    static const char *const names[] = {"missing", "text", "number", "empty", "large"};
    static const enum be_verb verbs[] = {
        BE_FETCH, BE_SIZE, BE_PROBE, BE_ADD, BE_REPLACE,    BE_SET,    BE_APPEND, BE_PREPEND,
        BE_INCR,  BE_DECR, BE_CAS,   BE_CAS, BE_CAS_DELETE, BE_DELETE, BE_TOUCH,  BE_GAT,
    };
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            const struct slice values[] = {SLICE_NONE, SLICE_LIT("some text"), SLICE_LIT("41"),
                                           SLICE_LIT(""), slice_make(large, ITEM_MAX - 4096)};
            struct cas_pair cas = {12345678, 12345678};
            char name[64];
            snprintf(name, sizeof name, "%s:%zu", names[n], v);
            if (n > 0) {
                both((struct be_operation){.verb = BE_SET, .flags = 77, .value = values[n]}, name,
                     &cas);
                both((struct be_operation){.verb = BE_FETCH}, name, &cas);
            }
            struct be_operation op = {.verb = verbs[v], .delta = 43, .flags = 5, .exptime = 1000};
            op.value = be_has_value(op.verb) ? SLICE_LIT("7") : SLICE_NONE;
            op.cas = v == 11; /* the second BE_CAS has one that is wrong */
            both(op, name, &cas);
            both((struct be_operation){.verb = BE_FETCH}, name, &cas);
        }
    }
}

static void a_time_in_the_past_is_over(void **state)
{
    (void)state;
    static const enum be_verb verbs[] = {BE_SET, BE_TOUCH, BE_GAT};
    struct cas_pair cas = {0, 0};
    for (size_t i = 0; i < 3; i++) {
        both((struct be_operation){.verb = BE_SET, .value = SLICE_LIT("x")}, "past", &cas);
        both((struct be_operation){.verb = verbs[i], .exptime = -1, .value = SLICE_LIT("y")},
             "past", &cas);
        assert_int_equal(both((struct be_operation){.verb = BE_FETCH}, "past", &cas), BE_MISS);
    }
}

static void a_cas_of_zero_is_a_condition(void **state)
{
    (void)state;
    struct cas_pair cas = {0, 0};
    struct be_operation op = {.verb = BE_CAS, .value = SLICE_LIT("x")};
    assert_int_equal(both(op, by_meta ? "zero:meta" : "zero", &cas), BE_NOT_FOUND);
    op.verb = BE_SET;
    both(op, by_meta ? "zero:meta" : "zero", &cas);
    op.verb = BE_CAS;
    assert_int_equal(both(op, by_meta ? "zero:meta" : "zero", &cas), BE_EXISTS);
    op = (struct be_operation){.verb = BE_CAS_DELETE};
    assert_int_equal(both(op, by_meta ? "zero:meta" : "zero", &cas), BE_EXISTS);
}

static void a_value_beyond_the_servers_limit(void **state)
{
    (void)state;
    struct cas_pair cas = {0, 0};
    struct be_operation op = {.verb = BE_SET, .value = slice_make(large, ITEM_MAX + 1)};
    assert_int_equal(both(op, "beyond", &cas), BE_TOO_LARGE);
    op.verb = BE_ADD;
    assert_int_equal(both(op, "beyond", &cas), BE_TOO_LARGE);
}

static void random_operations_have_the_same_outcome(void **state)
{
    (void)state;
    static const enum be_verb verbs[] = {
        BE_FETCH, BE_SIZE, BE_PROBE, BE_ADD,        BE_REPLACE, BE_SET,   BE_APPEND, BE_PREPEND,
        BE_INCR,  BE_DECR, BE_CAS,   BE_CAS_DELETE, BE_DELETE,  BE_TOUCH, BE_GAT,    BE_SET,
    };
    static const char *const values[] = {"", "1", "99", "18446744073709551615", "a", "two words"};
    struct cas_pair cas[4] = {{0, 0}};
    struct rng rng;
    rng_init_seed(&rng, 20261122);
    for (int i = 0; i < 20000; i++) {
        size_t item = (size_t)rng_below(&rng, 4);
        char name[32];
        struct be_operation op = {
            .verb = verbs[rng_below(&rng, sizeof verbs / sizeof verbs[0])],
            .flags = (uint32_t)rng_below(&rng, 3),
            .exptime = (int32_t)(rng_below(&rng, 3) * 500),
            .delta = rng_below(&rng, 3) == 0 ? UINT64_MAX : rng_below(&rng, 200),
            .cas = rng_below(&rng, 5) == 0,
        };
        if (be_has_value(op.verb)) {
            op.value = slice_of(values[rng_below(&rng, 6)]);
        }
        bool counts = op.verb == BE_INCR || op.verb == BE_DECR;
        if (by_meta && rng_below(&rng, 2) == 0) {
            op.with_cas = counts || op.verb == BE_APPEND || op.verb == BE_PREPEND;
            op.creates = counts;
            op.initial = rng_below(&rng, 2) == 0 ? UINT64_MAX : 7;
        }
        snprintf(name, sizeof name, "random:%zu", item);
        both(op, name, &cas[item]);
    }
}

static int use_meta(void **state)
{
    (void)state;
    by_meta = true;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_on_each_kind_of_item),
        cmocka_unit_test(a_time_in_the_past_is_over),
        cmocka_unit_test(a_cas_of_zero_is_a_condition),
        cmocka_unit_test(a_value_beyond_the_servers_limit),
        cmocka_unit_test(random_operations_have_the_same_outcome),
        cmocka_unit_test_setup(each_operation_on_each_kind_of_item, use_meta),
        cmocka_unit_test(a_time_in_the_past_is_over),
        cmocka_unit_test(a_cas_of_zero_is_a_condition),
        cmocka_unit_test(a_value_beyond_the_servers_limit),
        cmocka_unit_test(random_operations_have_the_same_outcome),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
