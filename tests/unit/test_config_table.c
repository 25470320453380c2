/* SPDX-License-Identifier: BSD-3-Clause */
/* conf/mclistd.ini and docs/configuration.md against the table of keys. Run from the top folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/help.h"
#include "config/table.h"
#include "config/value.h"
#include "support_config.h"

#define CONF "conf/mclistd.ini"
#define DOCS "docs/configuration.md"

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fail_msg("%s cannot be opened; run this test from the top folder", path);
    }
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    assert_true(n > 0);
    fclose(file);
    return text;
}

static void test_table(void **state)
{
    (void)state;
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(config_key_find(keys[i].section, slice_of(keys[i].name)), &keys[i]);
        assert_true(keys[i].min <= keys[i].max);
        assert_true(strlen(keys[i].help) > 8);
        assert_null(strchr(keys[i].help, '\n'));
        assert_int_equal(keys[i].type == TYPE_WORD, keys[i].words != NULL);
        assert_int_equal(keys[i].section == SECTION_LISTS, keys[i].dialects != 0);
        assert_int_equal(keys[i].section == SECTION_POOL, keys[i].types != 0);
    }
    assert_null(config_key_find(SECTION_PROXY, SLICE_LIT("timeout_ms")));
}

/* The words of the table stand in the order of the enums. */
static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        enum config_section section;
        const char *word;
        unsigned value;
    } words[] = {
        {"log_level", SECTION_PROXY, "debug", LOG_DEBUG_LEVEL},
        {"type", SECTION_POOL, "couchbase", POOL_COUCHBASE},
        {"durability", SECTION_POOL, "persist_majority", POOL_DURABILITY_PERSIST_MAJORITY},
        {"network", SECTION_POOL, "external", NETWORK_EXTERNAL},
        {"distribution", SECTION_POOL, "modula", DISTRIBUTION_MODULA},
        {"hash", SECTION_POOL, "hsieh", HASH_HSIEH},
        {"on_missing", SECTION_LISTS, "refuse", ON_MISSING_REFUSE},
        {"on_damaged", SECTION_LISTS, "miss", ON_DAMAGED_MISS},
        {"placement", SECTION_LISTS, "spread", PLACEMENT_SPREAD},
        {"dialect", SECTION_LISTS, "native", DIALECT_NATIVE},
        {"dialect", SECTION_LISTS, "simple", DIALECT_SIMPLE},
        {"dialect", SECTION_LISTS, "tombstone", DIALECT_TOMBSTONE},
        {"dialect", SECTION_LISTS, "signed", DIALECT_SIGNED},
        {"dialect", SECTION_LISTS, "paired", DIALECT_PAIRED},
        {"dialect", SECTION_LISTS, "flip", DIALECT_FLIP},
        {"dialect", SECTION_LISTS, "marker", DIALECT_MARKER},
        {"dialect", SECTION_LISTS, "sublists", DIALECT_SUBLISTS},
        {"dialect", SECTION_LISTS, "ring", DIALECT_RING},
        {"migrate", SECTION_LISTS, "native", MIGRATE_NATIVE},
    };
    size_t count = sizeof words / sizeof words[0];
    for (size_t i = 0; i < count; i++) {
        const struct config_key *key = config_key_find(words[i].section, slice_of(words[i].key));
        assert_string_equal(key->words[words[i].value], words[i].word);
        bool last = i + 1 == count || strcmp(words[i].key, words[i + 1].key) != 0;
        assert_int_equal(key->words[words[i].value + 1] == NULL, last);
    }
}

/* A line of the file that is a setting or a section once its # is taken away. */
static bool is_commented_setting(const char *line)
{
    return line[0] == '#' && (islower((unsigned char)line[1]) || line[1] == '[');
}

static void test_conf_is_what_the_daemon_prints(void **state)
{
    (void)state;
    char *conf = read_all(CONF);
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    config_help_print(out);
    assert_int_equal(fclose(out), 0);
    if (strcmp(printed, conf) != 0) {
        fail_msg("%s is not what `mclistd --help-config` prints; write that to it", CONF);
    }
    free(printed);
    free(conf);
}

static void load_text(struct config *config, const char *text)
{
    if (config_load_bytes(config, text, strlen(text)) != 0 ||
        config_finish(config, config_error) != 0) {
        fail_msg("%s", config_error);
    }
}

/* Takes the # of settings and sections away, in place. */
static void uncomment(char *text)
{
    char *to = text;
    for (char *from = text; *from != '\0';) {
        if (is_commented_setting(from)) {
            from++;
        }
        size_t n = strcspn(from, "\n");
        n += from[n] == '\n';
        memmove(to, from, n);
        to += n;
        from += n;
    }
    *to = '\0';
}

struct collected {
    char text[16384];
    size_t len;
};

static void collect(void *arg, const char *section, const char *key, const char *value,
                    const char *origin)
{
    (void)origin;
    struct collected *c = arg;
    c->len += (size_t)snprintf(c->text + c->len, sizeof c->text - c->len, "%s.%s=%s\n", section,
                               key, value);
    assert_true(c->len < sizeof c->text);
}

/* Uncommented as a whole, the file sets what is set anyway. */
static void test_conf_loads(void **state)
{
    (void)state;
    char error[CONFIG_ERROR_MAX];
    char *conf = read_all(CONF);
    struct config *as_is = config_create();
    load_text(as_is, conf);
    assert_int_equal(as_is->pool_count, 0);
    assert_int_equal(as_is->list_count, 1);
    uncomment(conf);
    struct config *whole = config_create();
    load_text(whole, conf);
    /* One for each type. */
    assert_int_equal(whole->pool_count, POOL_TYPE_COUNT);
    assert_int_equal(whole->pools[1].type, POOL_COUCHBASE);
    /* One for each dialect, and another. */
    assert_int_equal(whole->list_count, 1 + DIALECT_COUNT);
    assert_int_equal(config_list_policy(whole, SLICE_LIT("topic-1"))->on_missing,
                     ON_MISSING_REFUSE);
    assert_int_equal(config_list_policy(whole, SLICE_LIT("ring-1"))->dialect, DIALECT_RING);
    assert_int_equal(whole->listener_count, 2);
    assert_true(whole->has_routes);
    whole->list_count = whole->pool_count = whole->listener_count = 1;
    whole->has_routes = false;
    free(whole->pools[1].servers);
    assert_int_equal(config_add_pool(as_is, "main", "10.0.0.1:11211, 10.0.0.2:11211", error), 0);
    struct collected left = {.len = 0};
    struct collected right = {.len = 0};
    config_print(as_is, collect, &left);
    config_print(whole, collect, &right);
    assert_string_equal(left.text, right.text);
    assert_non_null(strstr(left.text, "\nproxy.max_line_bytes=1048576\n"));
    assert_non_null(strstr(left.text, "\npool main.servers=10.0.0.1:11211, 10.0.0.2:11211\n"));
    assert_non_null(strstr(left.text, "\nlists.delimiter=,\n"));
    config_destroy(&as_is);
    config_destroy(&whole);
    free(conf);
}

/* Each run of white space as one blank, in place: texts are found however lines are wrapped. */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (!isspace((unsigned char)*from)) {
            *to++ = *from;
        } else if (to > text && to[-1] != ' ') {
            *to++ = ' ';
        }
    }
    *to = '\0';
}

static void test_docs_show_every_key(void **state)
{
    (void)state;
    char *docs = read_all(DOCS);
    join_lines(docs);
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        char entry[1024];
        char expected[VALUE_EXPECTED_MAX];
        char dialects[CONFIG_DIALECTS_MAX + 16] = "";
        const char *standard = keys[i].standard;
        if (keys[i].section == SECTION_LISTS) {
            char users[CONFIG_DIALECTS_MAX];
            (void)snprintf(dialects, sizeof dialects, "; dialects: %s",
                           config_dialects_text(keys[i].dialects, users));
        } else if (keys[i].types != 0 && keys[i].types != TYPES_ALL) {
            (void)snprintf(dialects, sizeof dialects, "; type: %s",
                           config_types_text(keys[i].types));
        }
        const char *tick = standard == NULL || standard[0] == '\0' ? "" : "`";
        (void)snprintf(entry, sizeof entry, " - `%s`: %s. Takes %s; %s%s%s%s%s.", keys[i].name,
                       keys[i].help, value_expected(&keys[i], expected),
                       standard == NULL ? ""
                       : *tick == '\0'  ? "default: "
                                        : "default ",
                       tick,
                       standard == NULL ? "must be given"
                       : *tick == '\0'  ? "empty"
                                        : standard,
                       tick, dialects);
        if (strstr(docs, entry) == NULL) {
            fail_msg("%s lacks this entry:%s", DOCS, entry);
        }
    }
    free(docs);
}

/* The lines of "## Reload" name the keys that are live, in the order of the table. */
static void test_docs_show_what_a_reload_may_change(void **state)
{
    (void)state;
    static const char *const titles[] = {
        "`[proxy]`",     "`[listener NAME]`",           "`[admin]`",
        "`[pool NAME]`", "`[route]`, `[route PREFIX]`", "`[lists]`, `[lists PREFIX]`"};
    char *docs = read_all(DOCS);
    join_lines(docs);
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (unsigned section = SECTION_PROXY; section <= SECTION_LISTS; section++) {
        char line[4096];
        const char *before = ": ";
        size_t n = (size_t)snprintf(line, sizeof line, " - %s", titles[section]);
        for (size_t i = 0; i < count; i++) {
            if (keys[i].section == section && keys[i].live) {
                n += (size_t)snprintf(line + n, sizeof line - n, "%s`%s`", before, keys[i].name);
                assert_true(n < sizeof line);
                before = ", ";
            }
        }
        (void)snprintf(line + n, sizeof line - n, ".");
        if (strstr(docs, line) == NULL) {
            fail_msg("%s lacks this line:%s", DOCS, line);
        }
    }
    free(docs);
}

static void test_print(void **state)
{
    (void)state;
    struct config *c = config_create();
    struct collected out = {.len = 0};
    load_text(
        c, "[proxy]\nlisten = unix:/x, a:1\nallow_flush_all = no\ninsecure = yes\n"
           "[pool p]\nservers = a:2 3, [::1]:4\nhash = crc\n"
           "[lists]\ndelimiter = \\x20\n[lists a\\xff\\x5d]\ndelimiter = none\ncache_bytes = 2g\n"
           "[lists b]\ndelimiter = \\x3b\n"
           "[lists c]\ndialect = marker\nadd_sign = \\xe4\na_name = \\x23%s;\\xe4\n");
    config_print(c, collect, &out);
    static const char *const lines[] = {
        "proxy.listen=unix:/x, a:1\n",
        "proxy.allow_flush_all=no\n",
        "proxy.log_file=\n",
        "pool p.servers=a:2 3, [::1]:4\n",
        "pool p.hash=crc\n",
        "lists.delimiter=\\x20\n",
        "lists a\\xff\\x5d.delimiter=none\n",
        "lists a\\xff\\x5d.cache_bytes=2147483648\n",
        "lists b.delimiter=\\x3b\n",
        "lists c.add_sign=\\xe4\n",
        "lists c.a_name=\\x23%s\\x3b\\xe4\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strstr(out.text, lines[i]) == NULL) {
            fail_msg("%s is not in:\n%s", lines[i], out.text);
        }
    }
    config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_conf_is_what_the_daemon_prints),
        cmocka_unit_test(test_conf_loads),
        cmocka_unit_test(test_docs_show_every_key),
        cmocka_unit_test(test_docs_show_what_a_reload_may_change),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
