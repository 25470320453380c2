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
     "# docs/configuration.md says which settings of [lists] each of them uses.\n"
     "\n"
     "# \"a,b,\": appended to; deleting writes it anew\n"
     "#[lists simple-]\n"
     "#dialect = simple\n",
     .section = SECTION_LISTS, .first = DIALECT_SIMPLE},
    {"\n"
     "# \"b,|a,b,c,\": what is deleted stands before the bar\n"
     "#[lists tombstone-]\n"
     "#dialect = tombstone\n",
     .section = SECTION_LISTS, .first = DIALECT_TOMBSTONE},
    {"\n"
     "# \"+a+b-a\": the later sign wins\n"
     "#[lists signed-]\n"
     "#dialect = signed\n",
     .section = SECTION_LISTS, .first = DIALECT_SIGNED},
    {"\n"
     "# two items, \"a,b,\" and \"a,\": what was added, what was deleted\n"
     "#[lists paired-]\n"
     "#dialect = paired\n",
     .section = SECTION_LISTS, .first = DIALECT_PAIRED},
    {"\n"
     "# two signed logs, and an item that names the one in use\n"
     "#[lists flip-]\n"
     "#dialect = flip\n",
     .section = SECTION_LISTS, .first = DIALECT_FLIP},
    {"\n"
     "# two signed logs, \"+a+b\" and \"^+a\": the mark closes one. a_name and b_name as in flip\n"
     "#[lists marker-]\n"
     "#dialect = marker\n",
     .section = SECTION_LISTS, .first = DIALECT_MARKER},
    {"\n"
     "# \"+0+1\", and the signed logs with these numbers\n"
     "#[lists sublists-]\n"
     "#dialect = sublists\n",
     .section = SECTION_LISTS, .first = DIALECT_SUBLISTS},
    {"\n"
     "# the last entries of something: a counter, and a slot for each entry\n"
     "#[lists ring-]\n"
     "#dialect = ring\n",
     .section = SECTION_LISTS, .first = DIALECT_RING},
};

/* What stands for settings that have no default: they must be given. */
static const struct {
    enum config_section section;
    const char *key, *value;
} examples[] = {
    {SECTION_LISTENER, "listen", "unix:/run/mclistd/mclistd.sock"},
    {SECTION_POOL, "servers", "10.0.0.1:11211, 10.0.0.2:11211"},
    {SECTION_POOL, "bucket", "documents"},
    {SECTION_POOL, "username", "mclistd"},
};

/* What the settings from one on are about. */
static const struct {
    enum config_section section;
    const char *key, *title;
} titles[] = {
    {SECTION_PROXY, "max_line_bytes", "limits on what one client may take"},
    {SECTION_PROXY, "memory_limit_bytes", "limit on what all clients together may take"},
    {SECTION_PROXY, "tracked_lists", "lists, log"},
    {SECTION_PROXY, "resolver", "names of servers"},
    {SECTION_PROXY, "embedded_memory_mb",
     "the embedded memcached, started only when there is no [pool NAME]"},
    {SECTION_POOL, "connect_timeout_ms", "time"},
    {SECTION_LISTS, "log_limit_bytes", "when logs are folded, how large things get"},
    {SECTION_LISTS, "cache_bytes", "sublists in memory, several proxies"},
    {SECTION_LISTS, "ttl_s", "what a list is"},
    {SECTION_LISTS, "bridge", "lists by memcached's own verbs, in [lists PREFIX]"},
    {SECTION_LISTS, "dialect", "how lists are stored"},
};

static bool is_in(const struct config_key *key, const struct part *part)
{
    if (part->no_keys || key->section != part->section) {
        return false;
    }
    uint32_t users = key->section == SECTION_LISTS  ? key->dialects
                     : key->section == SECTION_POOL ? key->types
                                                    : 1;
    return (users & ((UINT32_C(2) << part->first) - 1)) == UINT32_C(1) << part->first;
}

static void print_title(FILE *out, const struct config_key *key)
{
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        if (titles[i].section == key->section && strcmp(titles[i].key, key->name) == 0) {
            fprintf(out, "\n# --- %s ---\n", titles[i].title);
        }
    }
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

static const char *value_of(const struct config_key *key)
{
    for (size_t i = 0; key->standard == NULL && i < sizeof examples / sizeof examples[0]; i++) {
        if (examples[i].section == key->section && strcmp(examples[i].key, key->name) == 0) {
            return examples[i].value;
        }
    }
    return key->standard == NULL ? "" : key->standard;
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
    const char *value = value_of(key);
    size_t column = 1;
    print_title(out, key);
    fprintf(out, "\n#");
    print_words(out, key->help, &column);
    print_facts(out, key, &column);
    fprintf(out, "\n#%s =%s%s\n", key->name, value[0] == '\0' ? "" : " ", value);
}

void config_help_print(FILE *out)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    fprintf(out, "%s", preface);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        fprintf(out, "%s", parts[i].text);
        for (size_t k = 0; k < count; k++) {
            if (is_in(&keys[k], &parts[i])) {
                print_key(out, &keys[k]);
            }
        }
    }
}
