/* SPDX-License-Identifier: BSD-3-Clause */
/* What proxies must agree on, as a text; what differs between two of them, and for which lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pool/gate_item.h"
#include "support_config.h"

#define SERVERS_MAX 8

static char why[GATE_WHY_MAX];

static struct gate_item *item_of(const char *file, size_t place)
{
    struct config *config = good(file);
    char *body = gate_item_body(config, 0, (struct gate_step){.step = config->pools[0].step}),
         *text = gate_item_write(body, place);
    struct gate_item *item;
    assert_int_equal(gate_item_read(slice_of(text), &item), GATE_ITEM);
    assert_int_equal(gate_item_server(item), place);
    free(text);
    free(body);
    config_destroy(&config);
    return item;
}

/* Do the proxies with these files agree? Sets why. */
static bool agree(const char *a, const char *b)
{
    struct gate_item *mine = item_of(a, 0), *other = item_of(b, 0);
    why[0] = '\0';
    bool agrees = gate_item_agrees(mine, other, 0, why);
    assert_int_equal(agrees, why[0] == '\0');
    assert_int_equal(agrees, gate_item_agrees(other, mine, 0, NULL));
    gate_item_destroy(&mine);
    gate_item_destroy(&other);
    return agrees;
}

static void assert_differs(const char *a, const char *b, const char *text)
{
    assert_false(agree(a, b));
    assert_string_equal(why, text);
}

#define POOL "[pool p]\nservers = "

static void writes_what_must_agree(void **state)
{
    (void)state;
    struct config *config =
        good(POOL "b:2, a:1 3\nchange = 7\n[pool q]\nservers = x\n[lists]\n[lists s ]\n"
                  "dialect = signed\nmigrate = native\n[lists q:]\npool = q\n");
    char *body = gate_item_body(config, 0, (struct gate_step){.step = config->pools[0].step}),
         *text = gate_item_write(body, 1);
    const char *places = strstr(text, "places = ");
    assert_non_null(places);
    memcpy((char *)(uintptr_t)places, "places = 0123456789abcdef", 25);
    assert_string_equal(text,
                        "mclistd gate 1\nserver = 1\nchange = 7\nplaces = 0123456789abcdef\n"
                        "distribution = ketama_weighted\nhash = default\nservers = a:1 3, b:2\n"
                        "lists \"\" placement=head on_missing=create dialect=native\n"
                        "lists \"q:\" elsewhere\n"
                        "lists \"s\" on_missing=create dialect=signed add_sign=+ delete_sign=-\n"
                        "lists \"s\" placement=head on_missing=create dialect=native\n"
                        "end\n");
    free(text);
    free(body);
    config_destroy(&config);
}

static void tells_which_servers_it_knows(void **state)
{
    (void)state;
    struct gate_item *item = item_of(POOL "b:2, a:1 3\n", 0);
    assert_true(gate_item_has_server(item, "a:1"));
    assert_true(gate_item_has_server(item, "b:2"));
    assert_false(gate_item_has_server(item, "a:2"));
    gate_item_destroy(&item);
}

static void keys_are_names(void **state)
{
    (void)state;
    struct pool_config *pool = calloc(1, sizeof *pool);
    char key[KEY_BYTES_MAX + 1];
    (void)snprintf(pool->name, sizeof pool->name, "main");
    gate_item_key(pool, key);
    assert_string_equal(key, "mclistd#pool.main");
    (void)snprintf(pool->name, sizeof pool->name, "with a blank");
    gate_item_key(pool, key);
    assert_int_equal(strlen(key), strlen("mclistd#pool.") + 16);
    memset(pool->name, 'x', CONFIG_NAME_MAX);
    gate_item_key(pool, key);
    assert_int_equal(strlen(key), strlen("mclistd#pool.") + 16);
    free(pool);
}

static void places(void **state)
{
    (void)state;
    assert_true(agree(POOL "a, b", POOL "a, b"));
    assert_true(agree(POOL "a, b", POOL "b, a"));
    assert_true(agree(POOL "a", POOL "localhost"));
    assert_true(agree(POOL "a, b\ndistribution = modula", POOL "x, y\ndistribution = modula"));
    assert_true(agree(POOL "a, b\nhash = md5", POOL "a, b"));
    assert_true(agree(POOL "a, b\ntimeout_ms = 7", POOL "a, b\ngate_s = 9\nchange = 3"));
    assert_differs(POOL "a, b, c", POOL "a, b",
                   "servers: this proxy: a:11211, b:11211, c:11211, the pool: a:11211, b:11211");
    assert_differs(POOL "a, b", POOL "a, b 2",
                   "servers: this proxy: a:11211, b:11211, the pool: a:11211, b:11211 2");
    assert_differs(POOL "a, b\nhash = crc", POOL "a, b",
                   "hash: this proxy: crc, the pool: default");
    assert_differs(POOL "a, b\ndistribution = modula", POOL "a, b",
                   "distribution: this proxy: modula, the pool: ketama_weighted");
    assert_differs(POOL "a, b\ndistribution = ketama\nhash = crc", POOL "a, c",
                   "servers: this proxy: a:11211, b:11211, the pool: a:11211, c:11211; "
                   "distribution: this proxy: ketama, the pool: ketama_weighted; "
                   "hash: this proxy: crc, the pool: default");
}

static void order_of_modula(void **state)
{
    (void)state;
    static const char file[] = POOL "b, a\ndistribution = modula";
    struct gate_item *mine = item_of(file, 0), *other = item_of(file, 1);
    assert_false(gate_item_agrees(mine, other, 0, why));
    assert_string_equal(why, "order of the servers: this proxy: b:11211, a:11211, "
                             "the pool: b:11211, a:11211");
    assert_true(gate_item_agrees(mine, other, 1, why));
    gate_item_destroy(&mine);
    gate_item_destroy(&other);
    struct config *config = good(file);
    assert_int_equal(gate_item_place(&config->pools[0], 0), 0);
    config_destroy(&config);
    config = good(POOL "b, c, a");
    assert_int_equal(gate_item_place(&config->pools[0], 0), 1);
    assert_int_equal(gate_item_place(&config->pools[0], 1), 2);
    assert_int_equal(gate_item_place(&config->pools[0], 2), 0);
    config_destroy(&config);
}

#define ONE POOL "a\n"

static void lists(void **state)
{
    (void)state;
    /* What is not stored, or each proxy decides for itself. */
    assert_true(agree(ONE "[lists]\nmax_items = 3\ndelimiter = |\nttl_s = 5", ONE));
    assert_true(agree(ONE "[lists a]\nmax_items = 3", ONE));
    assert_true(agree(ONE "[lists a]\ndialect = signed\n[lists ab]\ndialect = signed",
                      ONE "[lists a]\ndialect = signed"));
    assert_differs(ONE "[lists a]\ndialect = signed", ONE,
                   "lists of prefix \"a\": this proxy: on_missing=create dialect=signed "
                   "add_sign=+ delete_sign=-, the pool: placement=head on_missing=create "
                   "dialect=native");
    assert_false(agree(ONE "[lists]\nplacement = spread", ONE));
    assert_false(agree(ONE "[lists a]\ndialect = simple", ONE "[lists a]\ndialect = simple\n"
                                                              "delimiter = |"));
    assert_false(agree(ONE "[lists a]\ndialect = paired", ONE "[lists a]\ndialect = paired\n"
                                                              "add_name = x%s"));
    assert_false(agree(ONE "[pool q]\nservers = b\n[lists a]\npool = q", ONE));
    assert_true(agree(ONE "[pool q]\nservers = b\n[lists a]\npool = q",
                      ONE "[pool r]\nservers = c\n[lists a]\npool = r"));
    /* Only what the other has between two prefixes of ours. */
    assert_false(agree(ONE "[lists a]\ndialect = signed\n[lists abc]\ndialect = native",
                       ONE "[lists a]\ndialect = signed\n[lists ab]\ndialect = simple\n"
                           "[lists abc]\ndialect = native"));
    /* What may stand anywhere, whether the other says it in the same words or not at all. */
    assert_true(agree(ONE "[lists *a|]\ndialect = signed", ONE "[lists *a|]\ndialect = signed"));
    assert_true(agree(ONE "[lists *a|]\nmax_items = 3", ONE));
    assert_differs(ONE "[lists *a|]\ndialect = signed", ONE,
                   "lists of prefix \"*a|\": this proxy: on_missing=create dialect=signed "
                   "add_sign=+ delete_sign=-, the pool: placement=head on_missing=create "
                   "dialect=native");
    assert_false(agree(ONE, ONE "[lists *a|]\ndialect = signed"));
    assert_false(agree(ONE "[lists a|]\ndialect = signed", ONE "[lists *a|]\ndialect = signed"));
    assert_false(
        agree(ONE "[lists \\x2aa|]\ndialect = signed", ONE "[lists *a|]\ndialect = signed"));
    assert_true(agree(ONE "[lists *a|]\ndialect = signed\nmigrate = native", ONE));
}

static void a_migration(void **state)
{
    (void)state;
    static const char before[] = ONE "[lists a]\ndialect = signed";
    static const char under_way[] = ONE "[lists a]\ndialect = signed\nmigrate = native";
    assert_true(agree(before, under_way));
    assert_true(agree(under_way, ONE));
    assert_false(agree(before, ONE));
}

static size_t moving(const char *a, const char *b, const char *prefix, size_t count)
{
    size_t unknown[SERVERS_MAX], moves = 0;
    struct gate_item *mine = item_of(a, 0), *other = item_of(b, 0);
    memset(unknown, 0xff, sizeof unknown);
    assert_int_equal(unknown[0], GATE_NO_PLACE);
    for (size_t i = 0; i < count; i++) {
        char key[64];
        int n = snprintf(key, sizeof key, "%s%zu", prefix, i);
        moves += gate_item_moves(mine, other, unknown, slice_make(key, (size_t)n));
    }
    gate_item_destroy(&mine);
    gate_item_destroy(&other);
    return moves;
}

static void lists_that_move(void **state)
{
    (void)state;
    assert_int_equal(moving(POOL "a, b", POOL "b, a", "k", 500), 0);
    assert_int_equal(moving(POOL "a, b", POOL "c, d", "k", 500), 500);
    assert_int_equal(moving(POOL "a", POOL "b", "k", 500), 500);
    /* A server more moves a share of the lists. */
    assert_in_range(moving(POOL "a, b, c", POOL "a, b, c, d", "k", 1000), 150, 400);
    /* Where a list has several items, one of them may. */
    assert_int_equal(moving(POOL "a, b, c\n[lists]\nplacement = spread",
                            POOL "a, b, c, d\n[lists]\nplacement = spread", "k", 100),
                     100);
    /* A prefix. */
    assert_int_equal(moving(ONE "[lists x]\ndialect = signed", ONE, "x", 10), 10);
    assert_int_equal(moving(ONE "[lists x]\ndialect = signed", ONE, "y", 10), 0);
    assert_int_equal(moving(ONE "[lists \\xe4]\ndialect = signed", ONE, "\\xe4", 10), 0);
    assert_int_equal(moving(ONE "[lists \\xe4]\ndialect = signed", ONE, "\xe4", 10), 10);
    assert_int_equal(moving(ONE "[lists *x|]\ndialect = signed", ONE, "app:x|", 10), 10);
    assert_int_equal(moving(ONE "[lists *x|]\ndialect = signed", ONE, "*x|", 10), 10);
    assert_int_equal(moving(ONE "[lists *x|]\ndialect = signed", ONE, "app:x:", 10), 0);
    assert_int_equal(moving(ONE "[lists *xe4]\ndialect = signed", ONE, "\xe4", 10), 0);
    assert_int_equal(moving(ONE "[lists \\x2ax|]\ndialect = signed", ONE, "*x|", 10), 10);
    assert_int_equal(moving(ONE "[lists \\x2ax|]\ndialect = signed", ONE, "ax|", 10), 0);
}

static void known_places_count_more_than_names(void **state)
{
    (void)state;
    size_t swapped[] = {1, 0}, same[] = {0, 1};
    struct gate_item *mine = item_of(POOL "a, b\ndistribution = modula", 0);
    struct gate_item *other = item_of(POOL "x, y\ndistribution = modula", 0);
    for (size_t i = 0; i < 20; i++) {
        char key[32];
        int n = snprintf(key, sizeof key, "k%zu", i);
        assert_true(gate_item_moves(mine, other, swapped, slice_make(key, (size_t)n)));
        assert_false(gate_item_moves(mine, other, same, slice_make(key, (size_t)n)));
    }
    gate_item_destroy(&mine);
    gate_item_destroy(&other);
}

static void other_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum gate_kind kind;
    } cases[] = {
        {"", GATE_FOREIGN},
        {"mclistd", GATE_FOREIGN},
        {"mclistd gate 2\nend\n", GATE_NEWER},
        {"mclistd gate 1", GATE_NEWER},
        {"mclistd gate 1\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nlists \"\" a\nend\n", GATE_ITEM},
        {"mclistd gate 1\nplaces = 1\nlists \"\" a\nend\n\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nlists \"\" a\nend", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nlists \"\"\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nlists a\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nlists \"x\" a\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nchange = x\nlists \"\" a\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nservers = a,,\nlists \"\" a\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nservers = a\nservers = b\nlists \"\" a\nend\n", GATE_NEWER},
        {"mclistd gate 1\nplaces = 1\nphase = move\nlists \"\" a\nend\n", GATE_NEWER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gate_item *item;
        assert_int_equal(gate_item_read(slice_of(cases[i].text), &item), cases[i].kind);
        assert_true((item != NULL) == (cases[i].kind == GATE_ITEM));
        gate_item_destroy(&item);
    }
}

static void what_is_said_fits(void **state)
{
    (void)state;
    static char file[20000];
    size_t n = (size_t)snprintf(file, sizeof file, POOL "a");
    for (size_t i = 0; i < 99; i++) {
        n += (size_t)snprintf(file + n, sizeof file - n, ", server-with-a-long-name-%zu", i);
    }
    for (size_t i = 0; i < 100; i++) {
        n += (size_t)snprintf(file + n, sizeof file - n, "\n[lists p%zu]\ndialect = signed", i);
    }
    assert_false(agree(file, POOL "b"));
    assert_int_equal(strlen(why), GATE_WHY_MAX - 1);
}

#define NEXT "next = grown\nstep = %s\n[pool grown]\nservers = a:1, b:2, c:3\n[lists]\npool = p\n"

static struct gate_item *item_in_step(const char *file, enum pool_step step, uint32_t turn)
{
    struct config *config = good(file);
    char *body = gate_item_body(config, 0, (struct gate_step){step, turn});
    char *text = gate_item_write(body, 0);
    struct gate_item *item;
    assert_int_equal(gate_item_read(slice_of(text), &item), GATE_ITEM);
    free(text);
    free(body);
    config_destroy(&config);
    return item;
}

/* Who has slept through two steps takes the last one: nothing of it was answered meanwhile. */
static void the_later_step_of_the_same_change_is_taken(void **state)
{
    (void)state;
    char file[256], other_file[256];
    snprintf(file, sizeof file, "[pool p]\nservers = a:1, b:2\n" NEXT, "learn");
    snprintf(other_file, sizeof other_file, "[pool p]\nservers = a:1, d:2\n" NEXT, "learn");
    struct gate_item *mine = item_in_step(file, STEP_LEARN, 0);
    struct gate_item *moves = item_in_step(file, STEP_MOVE, 1);
    struct gate_item *moved = item_in_step(file, STEP_MOVED, 2);
    struct gate_item *back = item_in_step(file, STEP_LEARN, 4);
    struct gate_item *other = item_in_step(other_file, STEP_MOVED, 6);
    snprintf(other_file, sizeof other_file,
             "[pool p]\nservers = a:1, b:2\nnext = grown\n[pool grown]\n"
             "servers = a:1, d:2\n[lists]\npool = p\n");
    struct gate_item *elsewhere = item_in_step(other_file, STEP_MOVED, 6);
    assert_true(gate_item_agrees(mine, moved, 0, NULL));
    assert_int_equal(gate_item_later_step(mine, moved).step, STEP_MOVED);
    assert_int_equal(gate_item_later_step(mine, moved).turn, 2);
    assert_int_equal(gate_item_later_step(moves, back).step, STEP_LEARN);
    assert_int_equal(gate_item_later_step(back, moves).turn, 4);
    assert_int_equal(gate_item_later_step(moves, other).turn, 1);
    assert_int_equal(gate_item_later_step(moves, elsewhere).turn, 1);
    assert_true(gate_item_change(moves) < gate_item_change(moved));
    assert_true(gate_item_change(moved) < gate_item_change(back));
    gate_item_destroy(&elsewhere);
    gate_item_destroy(&mine);
    gate_item_destroy(&moves);
    gate_item_destroy(&moved);
    gate_item_destroy(&back);
    gate_item_destroy(&other);
}

static void test_proxies_one_step_of_a_move_apart_agree(void **state)
{
    (void)state;
    static const char stay[] = "[pool p]\nservers = a:1, b:2\n[lists]\npool = p\n";
    static const char done[] = "[pool p]\nservers = a:1, b:2, c:3\n[lists]\npool = p\n";
    char learn[256], move[256], moved[256];
    snprintf(learn, sizeof learn, "[pool p]\nservers = a:1, b:2\n" NEXT, "learn");
    snprintf(move, sizeof move, "[pool p]\nservers = a:1, b:2\n" NEXT, "move");
    snprintf(moved, sizeof moved, "[pool p]\nservers = a:1, b:2\n" NEXT, "done");
    assert_true(agree(stay, learn));
    assert_true(agree(learn, move));
    assert_true(agree(move, moved));
    assert_true(agree(moved, done));
    assert_false(agree(stay, move));
    assert_false(agree(stay, moved));
    assert_false(agree(move, done));
    assert_false(agree(learn, moved));
    assert_false(agree(learn, done));
    char dead[256], dead_moved[256];
    snprintf(dead, sizeof dead, "[pool p]\nservers = a:1, x:2\ndead = x:2\n" NEXT, "learn");
    snprintf(dead_moved, sizeof dead_moved, "[pool p]\nservers = a:1, x:2\ndead = x:2\n" NEXT,
             "done");
    snprintf(learn, sizeof learn, "[pool p]\nservers = a:1, x:2\n" NEXT, "learn");
    assert_true(agree(dead, dead));
    assert_true(agree(dead_moved, done));
    assert_false(agree(learn, dead));
    assert_false(agree("[pool p]\nservers = a:1, x:2\n[lists]\npool = p\n", dead));
    struct gate_item *mine = item_of(stay, 0), *other = item_of(move, 0);
    const size_t places[] = {0, 1};
    assert_true(gate_item_moves(mine, other, places, SLICE_LIT("any list")));
    assert_true(gate_item_change(mine) < gate_item_change(other));
    gate_item_destroy(&mine);
    gate_item_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxies_one_step_of_a_move_apart_agree),
        cmocka_unit_test(the_later_step_of_the_same_change_is_taken),
        cmocka_unit_test(writes_what_must_agree),
        cmocka_unit_test(tells_which_servers_it_knows),
        cmocka_unit_test(keys_are_names),
        cmocka_unit_test(places),
        cmocka_unit_test(order_of_modula),
        cmocka_unit_test(lists),
        cmocka_unit_test(a_migration),
        cmocka_unit_test(lists_that_move),
        cmocka_unit_test(known_places_count_more_than_names),
        cmocka_unit_test(other_texts),
        cmocka_unit_test(what_is_said_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
