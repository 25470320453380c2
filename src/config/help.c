/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/help.h"

#include <string.h>

#include "config/table.h"
#include "config/value.h"

#define LINE_MAX_BYTES 100

static const char preface[] =
    "# mclistd.ini: every setting, commented out, with its default.\n"
    "#\n"
    "# With nothing set the daemon listens on 127.0.0.1:11220 and starts a memcached of its own.\n"
    "# In front of your own memcacheds, this is all it needs:\n"
    "#\n"
    "#   [proxy]\n"
    "#   listen = 127.0.0.1:11220\n"
    "#\n"
    "#   [pool main]\n"
    "#   servers = 10.0.0.1:11211, 10.0.0.2:11211\n"
    "#\n"
    "# How to read this file: a line that begins with # and a letter is a setting or a section;\n"
    "# take the # away and change it. \"# \" with a blank begins an explanation. Comments may "
    "also\n"
    "# follow a value, behind a blank. Sizes may end in k, m or g. mclistd -t -c FILE checks a\n"
    "# file; mclistd --help-config prints this one.\n";

#define RULE \
    "\n\n# " \
    "=========================================================================================\n"

/* The parts of the file. A setting that only some types of pools or some dialects use stands in the
 * part of the first of these. */
static const struct part {
    const char *text;
    enum config_section section;
    unsigned first; /* enum pool_type, or enum list_dialect */
    bool no_keys;
} parts[] = {
    {RULE "# The daemon: clients, limits, log.\n"
          "[proxy]\n",
     .section = SECTION_PROXY},
    {RULE
     "# Another address for clients, with rules of its own. There may be several, each with a\n"
     "# name. What it does not set is as in [proxy].\n"
     "#[listener local]\n",
     .section = SECTION_LISTENER},
    {RULE "# Where operators look: metrics, health, the status page. docs/operations.md\n"
          "[admin]\n",
     .section = SECTION_ADMIN},
    {RULE
     "# A pool: memcacheds that share the keys. There may be several, each with a name.\n"
     "#\n"
     "# The proxy spreads keys as other clients do: ketama_weighted is what php-memcached calls\n"
     "# OPT_LIBKETAMA_COMPATIBLE; php-memcached and pylibmc use modula when nothing is set.\n"
     "# docs/clients.md has more.\n"
     "#[pool main]\n",
     .section = SECTION_POOL, .first = POOL_MEMCACHED},
    {"\n"
     "# --- the bucket of a Couchbase cluster ---\n"
     "# The settings above are for such a pool, too, but those that name another type.\n"
     "#[pool documents]\n"
     "#type = couchbase\n"
     "#servers = 10.0.0.3, 10.0.0.4\n",
     .section = SECTION_POOL, .first = POOL_COUCHBASE},
    {RULE
     "# Where plain keys go besides: [route] is for all of them, [route PREFIX] for those with\n"
     "# that prefix, which may have a pool of their own. What such a section does not set is as\n"
     "# in [route].\n"
     "#[route]\n",
     .section = SECTION_ROUTE},
    {RULE "# Lists: the settings for all of them.\n"
          "[lists]\n",
     .section = SECTION_LISTS, .first = DIALECT_NATIVE},
    {RULE
     "# Lists whose keys begin with a prefix. The longest prefix that fits a key counts.\n"
     "#\n"
     "# A setting that is not given here is as in [lists], wherever that stands in the file. A\n"
     "# prefix may hold \\xNN.\n"
     "#[lists topic-]\n"
     "\n"
     "# For a cache in front of a database: a list that memcached has evicted must not come back\n"
     "# with only its newest item.\n"
     "#on_missing = refuse\n",
     .no_keys = true},
    {RULE
     "# Lists that applications keep by hand. Each dialect stands here under a prefix of its own.\n"
     "# docs/configuration.md says which settings of [lists] each of them uses.\n",
     .no_keys = true},
};

/* Behind these each dialect has a part. */
static const char *const formats[DIALECT_COUNT] = {
    [DIALECT_SIMPLE] = "\"a,b,\": appended to; deleting writes it anew",
    [DIALECT_TOMBSTONE] = "\"b,|a,b,c,\": what is deleted stands before the bar",
    [DIALECT_SIGNED] = "\"+a+b-a\": the later sign wins",
    [DIALECT_PAIRED] = "two items, \"a,b,\" and \"a,\": what was added, what was deleted",
    [DIALECT_FLIP] = "two signed logs, and an item that names the one in use",
    [DIALECT_MARKER] =
        "two signed logs, \"+a+b\" and \"^+a\": the mark closes one. a_name and b_name as in flip",
    [DIALECT_SUBLISTS] = "\"+0+1\", and the signed logs with these numbers",
    [DIALECT_RING] = "the last entries of something: a counter, and a slot for each entry",
};

/* What the table does not say of a setting: what it and those behind it are about, and what stands
 * for it where it has no default. */
static const struct note {
    enum config_section section;
    const char *key, *title, *example;
} notes[] = {
    {SECTION_PROXY, "max_line_bytes", .title = "limits on what one client may take"},
    {SECTION_PROXY, "memory_limit_bytes", .title = "limit on what all clients together may take"},
    {SECTION_PROXY, "tracked_lists", .title = "lists, log"},
    {SECTION_PROXY, "resolver", .title = "names of servers"},
    {SECTION_PROXY, "embedded_memory_mb",
     .title = "the embedded memcached, started only when there is no [pool NAME]"},
    {SECTION_LISTENER, "listen", .example = "unix:/run/mclistd/mclistd.sock"},
    {SECTION_POOL, "servers", .example = "10.0.0.1:11211, 10.0.0.2:11211"},
    {SECTION_POOL, "connect_timeout_ms", .title = "time"},
    {SECTION_POOL, "bucket", .example = "documents"},
    {SECTION_POOL, "username", .example = "mclistd"},
    {SECTION_LISTS, "log_limit_bytes", .title = "when logs are folded, how large things get"},
    {SECTION_LISTS, "cache_bytes", .title = "sublists in memory, several proxies"},
    {SECTION_LISTS, "ttl_s", .title = "what a list is"},
    {SECTION_LISTS, "bridge", .title = "lists by memcached's own verbs, in [lists PREFIX]"},
    {SECTION_LISTS, "dialect", .title = "how lists are stored"},
};

static const struct note *note_of(const struct config_key *key)
{
    static const struct note none;
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (notes[i].section == key->section && strcmp(notes[i].key, key->name) == 0) {
            return &notes[i];
        }
    }
    return &none;
}

/* Some types of pools, or some dialects, use it: first is the first of them. */
static bool is_in(const struct config_key *key, enum config_section section, unsigned first)
{
    uint32_t users = section == SECTION_LISTS  ? key->dialects
                     : section == SECTION_POOL ? key->types
                                               : 1;
    return key->section == section && (users & ((UINT32_C(2) << first) - 1)) == UINT32_C(1)
                                                                                    << first;
}

/* Goes on at *column, or on a new line of comment. */
static void print_words(FILE *out, const char *text, size_t *column)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        bool fits = *column + 1 + n <= LINE_MAX_BYTES;
        fprintf(out, "%s%.*s", fits ? " " : "\n# ", (int)n, text);
        *column = (fits ? *column + 1 : 2) + n;
        text += n + (text[n] == ' ');
    }
}

/* Of names and addresses, the help says it. */
static bool says_what_it_takes(const struct config_key *key)
{
    return key->type != TYPE_TEXT && key->type != TYPE_LISTEN && key->type != TYPE_SERVERS &&
           key->type != TYPE_VERBS;
}

/* What it takes, and who uses it. */
static void print_facts(FILE *out, const struct config_key *key, size_t *column)
{
    char expected[VALUE_EXPECTED_MAX] = "", dialects[CONFIG_DIALECTS_MAX];
    char text[sizeof expected + sizeof dialects + sizeof "(; dialects: )"];
    const char *what = "", *users = "";
    if (says_what_it_takes(key)) {
        (void)value_expected(key, expected);
    }
    if (key->section == SECTION_LISTS && key->dialects != DIALECTS_ALL) {
        what = "dialects: ";
        users = config_dialects_text(key->dialects, dialects);
    } else if (key->section == SECTION_POOL && key->types == UINT32_C(1) << POOL_MEMCACHED) {
        what = "type: ";
        users = config_types_text(key->types);
    }
    const char *between = expected[0] == '\0' || what[0] == '\0' ? "" : "; ";
    (void)snprintf(text, sizeof text, "(%s%s%s%s)", expected, between, what, users);
    if (strlen(text) > strlen("()")) {
        print_words(out, text, column);
    }
}

static void print_key(FILE *out, const struct config_key *key)
{
    const struct note *note = note_of(key);
    const char *value = key->standard == NULL ? note->example : key->standard;
    size_t column = 1;
    if (note->title != NULL) {
        fprintf(out, "\n# --- %s ---\n", note->title);
    }
    fprintf(out, "\n#");
    print_words(out, key->help, &column);
    print_facts(out, key, &column);
    fprintf(out, "\n#%s =%s%s\n", key->name, value[0] == '\0' ? "" : " ", value);
}

static void print_keys(FILE *out, enum config_section section, unsigned first)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        if (is_in(&keys[i], section, first)) {
            print_key(out, &keys[i]);
        }
    }
}

void config_help_print(FILE *out)
{
    const char *const *words = config_key_known(SECTION_LISTS, "dialect")->words;
    fprintf(out, "%s", preface);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        fprintf(out, "%s", parts[i].text);
        if (!parts[i].no_keys) {
            print_keys(out, parts[i].section, parts[i].first);
        }
    }
    for (unsigned i = DIALECT_SIMPLE; i < DIALECT_COUNT; i++) {
        fprintf(out, "\n# %s\n#[lists %s-]\n#dialect = %s\n", formats[i], words[i], words[i]);
        print_keys(out, SECTION_LISTS, i);
    }
}
