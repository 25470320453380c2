/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads an ini file. inih splits lines into keys and values and knows comments; it is fed line by
 * line, because as packaged it tells its handler no line numbers, cuts section names at 49 bytes
 * and does not mention a section that has no keys. So section lines are looked at here, and inih
 * sees empty lines in their place.
 */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/store.h"
#include "config/suggest.h"
#include "config/text.h"
#include "config/value.h"

/* A hundred servers with long names fit. */
#define LINE_BYTES_MAX 65536

struct load {
    struct config *config;
    FILE *file;
    const char *path;
    uint32_t line;
    bool failed;
    char *error; /* CONFIG_ERROR_MAX bytes, the caller's */

    bool in_section;
    enum config_section kind;
    void *section;                   /* what keys are stored in */
    uint32_t *given_line;            /* the section's */
    char shown[300];                 /* the section as written, for error texts */
    uint32_t proxy_line, admin_line; /* where [proxy] and [admin] begin, 0 = not met */
};

static int fail_line(struct load *load, const char *why)
{
    if (!load->failed) {
        (void)config_fail(load->error, "%s:%u: %s", load->path, load->line, why);
    }
    load->failed = true;
    return -1;
}

static int fail_key(struct load *load, const char *key, const char *why)
{
    char text[CONFIG_ERROR_MAX];
    (void)config_fail(text, "%s: %s", key, why);
    return fail_line(load, text);
}

static int fail_again(struct load *load, uint32_t first_line)
{
    char why[CONFIG_ERROR_MAX];
    (void)config_fail(why, "a second %s (the first is in line %u); expected one", load->shown,
                      first_line);
    return fail_line(load, why);
}

/* A section that a file has once; *line: where. */
static int begin_only(struct load *load, uint32_t *line, void *section, uint32_t *given_line)
{
    if (*line != 0) {
        return fail_again(load, *line);
    }
    *line = load->line;
    load->section = section;
    load->given_line = given_line;
    return 0;
}

static int begin_pool(struct load *load, struct slice name)
{
    char why[CONFIG_ERROR_MAX];
    struct pool_config *pool = config_new_pool(load->config, name, why);
    if (pool == NULL) {
        return fail_key(load, load->shown, why);
    }
    pool->line = load->line;
    load->section = pool;
    load->given_line = pool->given_line;
    return 0;
}

static int begin_listener(struct load *load, struct slice name)
{
    char why[CONFIG_ERROR_MAX];
    struct listener_config *listener = config_new_listener(load->config, name, why);
    if (listener == NULL) {
        return fail_key(load, load->shown, why);
    }
    listener->line = load->line;
    load->section = listener;
    load->given_line = listener->given_line;
    return 0;
}

static int begin_lists(struct load *load, struct slice prefix)
{
    char why[CONFIG_ERROR_MAX];
    struct list_policy *policy = &load->config->lists[0];
    if (slice_equal(prefix, SLICE_LIT("*"))) {
        return fail_key(load, load->shown,
                        "expected [lists] for the lists of all keys without a prefix of their own");
    }
    if (prefix.len > 0) {
        policy = config_new_lists(load->config, prefix, why);
        if (policy == NULL) {
            return fail_key(load, load->shown, why);
        }
    } else if (policy->line != 0) {
        return fail_again(load, policy->line);
    }
    policy->line = load->line;
    load->section = policy;
    load->given_line = policy->given_line;
    return 0;
}

static int begin_route(struct load *load, struct slice prefix)
{
    char why[CONFIG_ERROR_MAX];
    struct route_config *route = &load->config->routes[0];
    if (slice_equal(prefix, SLICE_LIT("*"))) {
        return fail_key(load, load->shown,
                        "expected [route] for all plain keys without a prefix of their own");
    }
    if (prefix.len > 0) {
        route = config_new_route(load->config, prefix, why);
        if (route == NULL) {
            return fail_key(load, load->shown, why);
        }
    } else if (route->line != 0) {
        return fail_again(load, route->line);
    }
    route->line = load->line;
    load->section = route;
    load->given_line = route->given_line;
    return 0;
}

/* text is what stands between the brackets. */
static int begin_section(struct load *load, struct slice text)
{
    static const char expected[] =
        "expected [proxy], [listener NAME], [admin], [pool NAME], [route], "
        "[route PREFIX], [lists] or [lists PREFIX]";
    char why[CONFIG_ERROR_MAX];
    char name[256];
    struct slice all = text_trim(text);
    size_t n = 0;
    while (n < all.len && all.p[n] != ' ' && all.p[n] != '\t') {
        n++;
    }
    struct slice rest = all;
    struct slice kind = slice_take(&rest, n);
    rest = text_trim(rest);
    (void)snprintf(load->shown, sizeof load->shown, "[%s]", text_show(all, name, sizeof name));
    load->in_section = true;
    if (slice_equal(kind, SLICE_LIT("proxy")) && rest.len == 0) {
        load->kind = SECTION_PROXY;
        return begin_only(load, &load->proxy_line, load->config, load->config->given_line);
    }
    if (slice_equal(kind, SLICE_LIT("admin")) && rest.len == 0) {
        struct admin_config *admin = &load->config->admin;
        load->kind = SECTION_ADMIN;
        return begin_only(load, &load->admin_line, admin, admin->given_line);
    }
    if (slice_equal(kind, SLICE_LIT("listener"))) {
        load->kind = SECTION_LISTENER;
        return begin_listener(load, rest);
    }
    if (slice_equal(kind, SLICE_LIT("pool"))) {
        load->kind = SECTION_POOL;
        return begin_pool(load, rest);
    }
    if (slice_equal(kind, SLICE_LIT("route"))) {
        load->kind = SECTION_ROUTE;
        return begin_route(load, rest);
    }
    if (slice_equal(kind, SLICE_LIT("lists"))) {
        load->kind = SECTION_LISTS;
        return begin_lists(load, rest);
    }
    static const char *const kinds[] = {"proxy", "listener", "admin", "pool",
                                        "route", "lists",    NULL};
    const char *near = suggest(kind, kinds);
    char hint[32] = "";
    if (near != NULL) {
        bool is_named = strcmp(near, "pool") == 0 || strcmp(near, "listener") == 0;
        const char *more = is_named ? " NAME" : "";
        (void)snprintf(hint, sizeof hint, " (did you mean [%s%s]?)", near, more);
    }
    (void)config_fail(why, "unknown section %s%s; %s", load->shown, hint, expected);
    return fail_line(load, why);
}

static int section_line(struct load *load, struct slice line)
{
    const char *end = memchr(line.p, ']', line.len);
    if (end == NULL) {
        return fail_line(load, "a section without ]; expected [NAME]");
    }
    struct slice behind = text_trim(slice_make(end + 1, line.len - (size_t)(end + 1 - line.p)));
    if (behind.len > 0 && behind.p[0] != '#' && behind.p[0] != ';') {
        return fail_line(load, "text behind ]; expected a line with [NAME] only");
    }
    return begin_section(load, slice_make(line.p + 1, (size_t)(end - line.p) - 1));
}

/* The keys of the section, or the section that the key is for. */
static int fail_unknown(struct load *load, struct slice name)
{
    char why[CONFIG_ERROR_MAX];
    char shown[80];
    size_t count;
    const struct config_key *keys = config_keys(&count);
    text_show(name, shown, sizeof shown);
    size_t n = (size_t)snprintf(why, sizeof why, "not a key of %s; expected", load->shown);
    bool elsewhere = false;
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(slice_of(keys[i].name), name)) {
            n += (size_t)snprintf(why + n, sizeof why - n, " %s %s", elsewhere ? "or" : "in",
                                  config_section_name(keys[i].section));
            elsewhere = true;
        }
    }
    if (elsewhere) {
        return fail_key(load, shown, why);
    }
    const char *names[CONFIG_KEYS_MAX + 1] = {NULL};
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (keys[i].section == load->kind) {
            names[known++] = keys[i].name;
        }
    }
    const char *near = suggest(name, names);
    if (near != NULL) {
        (void)config_fail(why, "not a key of %s; did you mean %s?", load->shown, near);
        return fail_key(load, shown, why);
    }
    for (size_t i = 0; i < known && n < sizeof why; i++) {
        n += (size_t)snprintf(why + n, sizeof why - n, " %s", names[i]);
    }
    return fail_key(load, shown, why);
}

static bool is_repeatable(const struct config_key *key)
{
    return key->type == TYPE_LISTEN || key->type == TYPE_SERVERS;
}

static int set_key(struct load *load, const char *name, const char *value)
{
    char why[CONFIG_ERROR_MAX];
    if (!load->in_section) {
        return fail_key(load, name, "stands before any section; expected [proxy] or another first");
    }
    const struct config_key *key = config_key_find(load->kind, slice_of(name));
    if (key == NULL) {
        return fail_unknown(load, slice_of(name));
    }
    size_t at = config_key_index(key);
    if (load->given_line[at] != CONFIG_GIVEN_NOT && !is_repeatable(key)) {
        return fail_key(load, name, "given twice; expected once in a section");
    }
    if (load->given_line[at] == CONFIG_GIVEN_NOT && key->type == TYPE_LISTEN) {
        value_clear_listen(key, load->section); /* the first one replaces the default */
    }
    load->given_line[at] = load->line;
    if (value_parse(key, load->section, text_trim(slice_of(value)), why) != 0) {
        return fail_key(load, name, why);
    }
    return 0;
}

/* inih's idea of success is not 0. */
static int handle(void *user, const char *section, const char *name, const char *value)
{
    (void)section;
    return set_key(user, name, value) == 0;
}

/* inih's fgets: one line per call, an empty one in place of a section. */
static char *read_line(char *out, int cap, void *user)
{
    struct load *load = user;
    if (load->failed) {
        return NULL;
    }
    errno = 0;
    char *text = NULL;
    size_t room = 0;
    ssize_t n = getline(&text, &room, load->file);
    if (n < 0) {
        free(text);
        return NULL;
    }
    load->line++;
    struct slice line = slice_make(text, (size_t)n);
    if (load->line == 1 && slice_starts_with(line, SLICE_LIT("\xef\xbb\xbf"))) {
        (void)slice_take(&line, 3); /* a byte order mark, as editors of other systems write it */
    }
    line = text_trim(line);
    if (n >= cap) {
        (void)fail_line(load, "the line is too long; expected less than 64k");
    } else if (memchr(text, '\0', (size_t)n) != NULL) {
        (void)fail_line(load, "the line holds a NUL byte; expected text");
    } else if (line.len > 0 && line.p[0] == '[') {
        (void)section_line(load, line);
        line.len = 0;
    }
    if (!load->failed) {
        memcpy(out, line.p, line.len);
        memcpy(out + line.len, "\n", 2);
    }
    free(text);
    return load->failed ? NULL : out;
}

static void prepare_inih(void)
{
    ini_use_stack = false;
    ini_initial_alloc = LINE_BYTES_MAX;
    ini_max_line = LINE_BYTES_MAX;
    ini_stop_on_first_error = true;
    /* An indented line is a key like any other. */
    ini_allow_multiline = false;
    ini_inline_comment_prefixes = "#;";
}

int config_load(struct config *config, const char *path, char error[CONFIG_ERROR_MAX])
{
    struct load load = {.config = config, .path = path, .error = error};
    (void)snprintf(config->path, sizeof config->path, "%s", path);
    load.file = fopen(path, "re");
    if (load.file == NULL) {
        return config_fail(error, "%s: cannot be opened: %s", path, strerror(errno));
    }
    prepare_inih();
    int result = ini_parse_stream(read_line, &load, handle, &load);
    if (!load.failed && ferror(load.file)) {
        load.failed = true;
        (void)config_fail(error, "%s: cannot be read: %s", path, strerror(errno));
    }
    if (!load.failed && result != 0) {
        (void)fail_line(&load, "no = in this line; expected KEY = VALUE, [SECTION] or # comment");
    }
    fclose(load.file);
    return load.failed ? -1 : 0;
}
