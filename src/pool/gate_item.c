/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/gate_item.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "config/table.h"
#include "config/value.h"
#include "pool/locate/shard.h"

#define FIRST_LINE "mclistd gate 1"
/* So many keys tell two mappings apart whose servers differ by a thousandth of the keys. */
#define PROBES 4096
#define ELSEWHERE "elsewhere"
/* Longest value of a setting when escaped, and a key. */
#define ESCAPED_MAX (4 * (CONFIG_NAME_MAX + 1) + 8)
/* Of a list of servers, so much is told. */
#define SERVERS_TOLD_MAX 400

/* Steps that operators take; gate_item_change has room for so many. */
#define GATE_TURN_MAX 0x1fffffff

struct line {
    struct slice prefix; /* escaped */
    bool anywhere;       /* it may stand anywhere in a key: a * is in front of it in the item */
    struct slice rules;  /* ELSEWHERE: its lists are in another pool */
};

struct gate_item {
    char *text; /* which the slices lie in */
    uint64_t change;
    size_t server;
    struct slice places;
    struct slice next; /* places by the new servers; empty: lists do not move */
    struct slice dead; /* which of the old ones is gone; empty: none */
    struct gate_step step;
    struct slice servers, distribution, hash; /* as written; empty: a bucket */
    struct pool_config *rule;
    struct shard *shard; /* see shard_of */
    bool shard_tried;
    struct line *lines;
    size_t line_count;
};

/* --- places --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct server_config *)a)->name, ((const struct server_config *)b)->name);
}

static bool sorts(const struct pool_config *pool)
{
    return pool->distribution != DISTRIBUTION_MODULA;
}

/* A copy of the pool's rule, its servers in the order of their places. free_rule frees it. */
static struct pool_config *copy_rule(const struct pool_config *pool)
{
    struct pool_config *rule = malloc(sizeof *rule);
    CHECK(rule != NULL);
    *rule = *pool;
    rule->hash_cache_bytes = 0;
    rule->servers = calloc(pool->server_count + 1, sizeof *rule->servers);
    CHECK(rule->servers != NULL);
    for (size_t i = 0; i < pool->server_count; i++) {
        rule->servers[i] = pool->servers[i];
    }
    if (sorts(pool)) {
        qsort(rule->servers, rule->server_count, sizeof *rule->servers, by_name);
    }
    return rule;
}

static void free_rule(struct pool_config *rule)
{
    if (rule != NULL) {
        free(rule->servers);
        free(rule);
    }
}

size_t gate_item_place(const struct pool_config *pool, size_t server_index)
{
    size_t place = 0;
    if (pool->type == POOL_COUCHBASE) {
        return 0;
    }
    for (size_t i = 0; i < pool->server_count; i++) {
        int order = strcmp(pool->servers[i].name, pool->servers[server_index].name);
        place += sorts(pool) ? order < 0 || (order == 0 && i < server_index) : i < server_index;
    }
    return place;
}

static uint64_t places_of_shard(const struct shard *shard, size_t server_count)
{
    char places[PROBES], key[32];
    for (size_t i = 0; i < PROBES; i++) {
        int n = snprintf(key, sizeof key, "mclistd-probe-%zu", i);
        places[i] = (char)shard_index(shard, slice_make(key, (size_t)n));
    }
    int n = snprintf(key, sizeof key, "%zu servers", server_count);
    return hash_stable(slice_make(places, sizeof places),
                       hash_stable(slice_make(key, (size_t)n), 0));
}

static uint64_t places_of(const struct pool_config *pool)
{
    if (pool->type == POOL_COUCHBASE) { /* its cluster says where keys are */
        uint64_t hash = hash_stable(slice_of(pool->bucket), 0);
        return hash_stable(slice_of(pool->collection), hash_stable(slice_of(pool->scope), hash));
    }
    char error[CONFIG_ERROR_MAX];
    uint64_t places = 0;
    struct pool_config *rule = copy_rule(pool);
    struct shard *shard = shard_create(rule, error);
    if (shard != NULL) {
        places = places_of_shard(shard, rule->server_count);
    }
    shard_destroy(&shard);
    free_rule(rule);
    return places;
}

/* --- writing -------------------------------------------------------------------------------- */

/* Settings of [lists] that decide how lists are stored: proxies that differ in one of them would
 * not find each other's, or take them for something else. */
static const char *const stored[] = {
    "placement",    "on_missing",        "dialect",      "delimiter",
    "sublist_text", "deleted_delimiter", "add_sign",     "delete_sign",
    "add_name",     "delete_name",       "a_name",       "b_name",
    "active_name",  "closed_mark",       "sublist_name", "seq_name",
    "slot_name",    "capacity",          "slot",         "counter_wraps",
};

/* Of native lists the delimiter is one of answers; only some dialects store it. */
static bool stores(const struct list_policy *policy, const struct config_key *key)
{
    if (strcmp(key->name, "delimiter") == 0) {
        return policy->dialect == DIALECT_SIMPLE || policy->dialect == DIALECT_TOMBSTONE ||
               policy->dialect == DIALECT_PAIRED || list_policy_delimits_sublists(policy);
    }
    return (key->dialects >> policy->dialect & 1) != 0;
}

static void write_rules(FILE *out, const struct list_policy *policy)
{
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        const struct config_key *key = config_key_known(SECTION_LISTS, stored[i]);
        if (stores(policy, key)) {
            char shown[ESCAPED_MAX];
            char *value = value_format(key, policy);
            fprintf(out, " %s=%s", key->name, slice_escape(slice_of(value), shown, sizeof shown));
            free(value);
        }
    }
}

/* A prefix or a key: a * in front of a prefix says something else. */
static const char *escape(struct slice bytes, char out[ESCAPED_MAX])
{
    return slice_escape_also(bytes, " \"\\*", out, ESCAPED_MAX);
}

/* Lists in another pool are that one's to say. */
static void write_lists(FILE *out, const struct list_policy *policy, size_t pool_index)
{
    char shown[ESCAPED_MAX];
    (void)escape(slice_make(policy->prefix, policy->prefix_len), shown);
    fprintf(out, "lists \"%s%s\"", policy->anywhere ? "*" : "", shown);
    if (policy->pool_index != pool_index) {
        fputs(" " ELSEWHERE "\n", out);
        return;
    }
    write_rules(out, policy);
    fputc('\n', out);
    if (policy->dialect != DIALECT_NATIVE && policy->migrate == MIGRATE_NATIVE) {
        struct list_policy *native = malloc(sizeof *native);
        CHECK(native != NULL);
        *native = *policy;
        native->dialect = DIALECT_NATIVE;
        native->migrate = MIGRATE_NO;
        write_lists(out, native, pool_index);
        free(native);
    }
}

static void write_rule(FILE *out, const struct pool_config *pool)
{
    static const char *const names[] = {"distribution", "hash", "servers"};
    struct pool_config *rule = copy_rule(pool);
    for (size_t i = 0; pool->type == POOL_MEMCACHED && i < 3; i++) {
        char *value = value_format(config_key_known(SECTION_POOL, names[i]), rule);
        fprintf(out, "%s = %s\n", names[i], value);
        free(value);
    }
    free_rule(rule);
}

static const struct config_key *step_key(void)
{
    return config_key_known(SECTION_POOL, "step");
}

char *gate_item_body(const struct config *config, size_t pool_index, struct gate_step step)
{
    const struct pool_config *pool = &config->pools[pool_index];
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    CHECK(out != NULL);
    fprintf(out, "change = %" PRIu32 "\nplaces = %016" PRIx64 "\n", pool->change, places_of(pool));
    if (pool->next_name[0] != '\0') {
        fprintf(out, "next = %016" PRIx64 " %s %" PRIu32 "\n",
                places_of(&config->pools[pool->next_index]), step_key()->words[step.step],
                step.turn);
        if (pool->dead[0] != '\0') {
            fprintf(out, "dead = %s\n", pool->dead);
        }
    }
    write_rule(out, pool);
    for (size_t i = 0; i < config->list_count; i++) {
        write_lists(out, &config->lists[i], pool_index);
    }
    fputs("end\n", out);
    CHECK(fclose(out) == 0);
    return text;
}

char *gate_item_write(const char *body, size_t place)
{
    char *text = NULL;
    CHECK(asprintf(&text, FIRST_LINE "\nserver = %zu\n%s", place, body) > 0);
    return text;
}

void gate_item_key(const struct pool_config *pool, char out[KEY_BYTES_MAX + 1])
{
    size_t room = KEY_BYTES_MAX + 1, len = strlen(pool->name);
    bool good = len <= 200;
    for (const char *p = pool->name; *p != '\0'; p++) {
        good = good && *p > ' ' && *p <= '~';
    }
    if (good) {
        (void)snprintf(out, room, "mclistd#pool.%.*s", (int)len, pool->name);
    } else {
        (void)snprintf(out, room, "mclistd#pool.%016" PRIx64, hash_stable(slice_of(pool->name), 0));
    }
}

/* --- reading -------------------------------------------------------------------------------- */

/* Takes what stands before the byte, and the byte. */
static bool take_until(struct slice *rest, char byte, struct slice *taken)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->p, byte, rest->len);
    if (end == NULL) {
        return false;
    }
    *taken = slice_take(rest, (size_t)(end - rest->p));
    (void)slice_take(rest, 1);
    return true;
}

static bool take_word(struct slice *rest, struct slice word)
{
    if (!slice_starts_with(*rest, word)) {
        return false;
    }
    (void)slice_take(rest, word.len);
    return true;
}

/* lists "PREFIX" RULES */
static bool read_lists(struct gate_item *item, struct slice line)
{
    struct line *found = &item->lines[item->line_count];
    if (!take_until(&line, '"', &found->prefix) || !take_word(&line, SLICE_LIT(" "))) {
        return false;
    }
    found->anywhere = take_word(&found->prefix, SLICE_LIT("*"));
    found->rules = line;
    item->line_count++;
    return true;
}

static bool read_rule(struct gate_item *item, const char *name, struct slice value)
{
    char error[CONFIG_ERROR_MAX];
    return value_parse(config_key_known(SECTION_POOL, name), item->rule, value, error) == 0;
}

/* PLACES STEP TURN */
static bool read_next(struct gate_item *item, struct slice line)
{
    struct slice word;
    uint64_t turn;
    unsigned step;
    if (!take_until(&line, ' ', &item->next) || !take_until(&line, ' ', &word) ||
        !config_word_find(step_key(), word, &step) || !slice_to_u64(line, &turn) ||
        turn > GATE_TURN_MAX) {
        return false;
    }
    item->step = (struct gate_step){(enum pool_step)step, (uint32_t)turn};
    return true;
}

static bool read_line(struct gate_item *item, struct slice line)
{
    uint64_t number;
    if (take_word(&line, SLICE_LIT("lists \""))) {
        return read_lists(item, line);
    }
    if (take_word(&line, SLICE_LIT("server = "))) {
        item->server = slice_to_u64(line, &number) ? (size_t)number : 0;
        return true;
    }
    if (take_word(&line, SLICE_LIT("change = "))) {
        return slice_to_u64(line, &item->change);
    }
    if (take_word(&line, SLICE_LIT("places = "))) {
        item->places = line;
        return true;
    }
    if (take_word(&line, SLICE_LIT("next = "))) {
        return read_next(item, line);
    }
    if (take_word(&line, SLICE_LIT("dead = "))) {
        item->dead = line;
        return true;
    }
    if (take_word(&line, SLICE_LIT("distribution = "))) {
        item->distribution = line;
        return read_rule(item, "distribution", line);
    }
    if (take_word(&line, SLICE_LIT("hash = "))) {
        item->hash = line;
        return read_rule(item, "hash", line);
    }
    if (take_word(&line, SLICE_LIT("servers = "))) {
        item->servers = line;
        return item->rule->server_count == 0 && read_rule(item, "servers", line);
    }
    return false;
}

/* Each list has a line: that of the empty prefix, if no other. */
static bool has_line_for_all(const struct gate_item *item)
{
    for (size_t i = 0; i < item->line_count; i++) {
        if (item->lines[i].prefix.len == 0) {
            return true;
        }
    }
    return false;
}

/* The lines behind the first one. */
static bool read_lines(struct gate_item *item, struct slice rest)
{
    struct slice line;
    size_t count = 0;
    for (size_t i = 0; i < rest.len; i++) {
        count += rest.p[i] == '\n';
    }
    item->lines = calloc(count + 1, sizeof *item->lines);
    CHECK(item->lines != NULL);
    while (take_until(&rest, '\n', &line)) {
        if (slice_equal(line, SLICE_LIT("end"))) {
            return rest.len == 0 && has_line_for_all(item) && item->places.len > 0;
        }
        if (!read_line(item, line)) {
            return false;
        }
    }
    return false;
}

enum gate_kind gate_item_read(struct slice text, struct gate_item **out)
{
    struct slice first;
    *out = NULL;
    if (!slice_starts_with(text, SLICE_LIT("mclistd gate "))) {
        return GATE_FOREIGN;
    }
    if (text.len > GATE_ITEM_BYTES_MAX) {
        return GATE_NEWER;
    }
    struct gate_item *item = calloc(1, sizeof *item);
    CHECK(item != NULL);
    item->rule = calloc(1, sizeof *item->rule);
    item->text = malloc(text.len);
    CHECK(item->rule != NULL && item->text != NULL);
    memcpy(item->text, text.p, text.len);
    struct slice rest = slice_make(item->text, text.len);
    if (!take_until(&rest, '\n', &first) || !slice_equal(first, SLICE_LIT(FIRST_LINE)) ||
        !read_lines(item, rest)) {
        gate_item_destroy(&item);
        return GATE_NEWER;
    }
    *out = item;
    return GATE_ITEM;
}

void gate_item_destroy(struct gate_item **slot)
{
    struct gate_item *item = *slot;
    *slot = NULL;
    if (item != NULL) {
        shard_destroy(&item->shard);
        free_rule(item->rule);
        free(item->lines);
        free(item->text);
        free(item);
    }
}

uint64_t gate_item_change(const struct gate_item *item)
{
    return item->change << 32 | (uint64_t)item->step.turn << 3 | item->step.step;
}

const char *gate_step_name(struct gate_step step)
{
    return step_key()->words[step.step];
}

struct gate_step gate_item_later_step(const struct gate_item *mine, const struct gate_item *item)
{
    bool same = gate_item_same_places(mine, item) && slice_equal(mine->next, item->next);
    return same && item->step.turn > mine->step.turn ? item->step : mine->step;
}

size_t gate_item_server(const struct gate_item *item)
{
    return item->server;
}

bool gate_item_has_server(const struct gate_item *item, const char *name)
{
    return config_has_server(item->rule, name);
}

bool gate_item_same_places(const struct gate_item *a, const struct gate_item *b)
{
    return slice_equal(a->places, b->places);
}

/* --- comparing ------------------------------------------------------------------------------ */

/* The first line of the longest prefix of the key of that sort, which is escaped as prefixes are:
 * what one byte becomes never begins what another one does. NULL: none. */
static const struct line *longest(const struct gate_item *item, struct slice key, bool anywhere)
{
    const struct line *best = NULL;
    for (size_t i = 0; i < item->line_count; i++) {
        const struct line *line = &item->lines[i];
        if (line->anywhere == anywhere && slice_starts_with(key, line->prefix) &&
            (best == NULL || line->prefix.len > best->prefix.len)) {
            best = line;
        }
    }
    return best;
}

/* The first line that holds for the key behind something that no prefix begins. */
static const struct line *line_within(const struct gate_item *item, struct slice key)
{
    const struct line *best = NULL;
    while (best == NULL && key.len > 0) {
        best = longest(item, key, true);
        (void)slice_take(&key, key.p[0] == '\\' && key.len >= 4 ? 4 : 1);
    }
    return best != NULL ? best : longest(item, SLICE_NONE, false);
}

/* The first line that holds for the key, as config_prefix_find finds it. */
static const struct line *line_of(const struct gate_item *item, struct slice key)
{
    const struct line *best = longest(item, key, false);
    return best != NULL && best->prefix.len == 0 ? line_within(item, key) : best;
}

/* The same for the lists of a line of this item or another. */
static const struct line *line_like(const struct gate_item *item, const struct line *other)
{
    return other->anywhere ? line_within(item, other->prefix) : line_of(item, other->prefix);
}

/* Has `done` the servers alone that the lists of the other move to? */
static bool is_behind(const struct gate_item *done, const struct gate_item *moves)
{
    return moves->step.step == STEP_MOVED && done->next.len == 0 &&
           slice_equal(done->places, moves->next);
}

static bool has_next(const struct gate_item *item, const struct line *line)
{
    return line + 1 < item->lines + item->line_count && line[0].anywhere == line[1].anywhere &&
           slice_equal(line[0].prefix, line[1].prefix);
}

/* Does one of the layouts that lists may have there fit one of those here? first: those there. */
static bool same_rules(const struct gate_item *mine, const struct gate_item *other,
                       const struct line *m, const struct line *first)
{
    while (m != NULL) {
        const struct line *o = first;
        while (o != NULL) {
            if (slice_equal(m->rules, o->rules)) {
                return true;
            }
            o = has_next(other, o) ? o + 1 : NULL;
        }
        m = has_next(mine, m) ? m + 1 : NULL;
    }
    return false;
}

/* A line that says more and more, as far as there is room. */
struct why {
    char *text; /* NULL: nothing is wanted */
    size_t len;
};

static void PRINTF_LIKE(2, 3) tell(struct why *why, const char *format, ...)
{
    va_list args;
    if (why->text == NULL || why->len + 1 >= GATE_WHY_MAX) {
        return;
    }
    va_start(args, format);
    int n = vsnprintf(why->text + why->len, GATE_WHY_MAX - why->len, format, args);
    va_end(args);
    why->len += n < 0 ? 0 : (size_t)n;
}

static void tell_both(struct why *why, const char *what, struct slice mine, struct slice other)
{
    char here[SERVERS_TOLD_MAX], there[SERVERS_TOLD_MAX];
    tell(why, "%s%s: this proxy: %s, the pool: %s", why->len == 0 ? "" : "; ", what,
         slice_escape_also(mine, "", here, sizeof here),
         slice_escape_also(other, "", there, sizeof there));
}

static void tell_places(struct why *why, const struct gate_item *mine,
                        const struct gate_item *other)
{
    size_t before = why->len;
    if (!slice_equal(mine->servers, other->servers)) {
        tell_both(why, "servers", mine->servers, other->servers);
    }
    if (!slice_equal(mine->distribution, other->distribution)) {
        tell_both(why, "distribution", mine->distribution, other->distribution);
    }
    if (!slice_equal(mine->hash, other->hash)) {
        tell_both(why, "hash", mine->hash, other->hash);
    }
    if (why->len == before) {
        tell(why, "the same servers, but keys go elsewhere: another libmemcached");
    }
}

static bool tell_lists(struct why *why, const struct gate_item *mine, const struct gate_item *other,
                       const struct gate_item *prefixes)
{
    bool all = true;
    for (size_t i = 0; i < prefixes->line_count; i++) {
        const struct line *line = &prefixes->lines[i];
        const struct line *m = line_like(mine, line), *o = line_like(other, line);
        bool told = prefixes == other && m != NULL && m->anywhere == line->anywhere &&
                    slice_equal(m->prefix, line->prefix);
        if (told || same_rules(mine, other, m, o)) {
            continue;
        }
        all = false;
        char what[300], shown[256];
        (void)snprintf(what, sizeof what, "lists of prefix \"%s%s\"", line->anywhere ? "*" : "",
                       slice_escape_also(line->prefix, "", shown, sizeof shown));
        tell_both(why, what, m == NULL ? SLICE_LIT("none") : m->rules,
                  o == NULL ? SLICE_LIT("none") : o->rules);
    }
    return all;
}

/* Of two that move to the same places: an operator who takes a step leaves no proxy behind.
 * Steps that files say are one apart at most. */
static bool next_agrees(const struct gate_item *a, const struct gate_item *b)
{
    int apart = (int)a->step.step - (int)b->step.step;
    return slice_equal(a->next, b->next) && slice_equal(a->dead, b->dead) &&
           (a->step.turn != b->step.turn || (apart >= -1 && apart <= 1));
}

/* Not where a server counts as gone that the other proxy asks as ever. */
static bool goes_with_stay(const struct gate_item *item)
{
    return item->step.step == STEP_LEARN && item->dead.len == 0;
}

/* Files without next go with `learn`, those with the new servers alone with `done`. */
static bool steps_agree(const struct gate_item *a, const struct gate_item *b)
{
    if (gate_item_same_places(a, b)) {
        return next_agrees(a, b) || (a->next.len == 0 && goes_with_stay(b)) ||
               (b->next.len == 0 && goes_with_stay(a));
    }
    return is_behind(a, b) || is_behind(b, a);
}

bool gate_item_agrees(const struct gate_item *mine, const struct gate_item *other, size_t place,
                      char why_text[GATE_WHY_MAX])
{
    struct why why = {why_text, 0};
    bool agrees = true;
    if (!steps_agree(mine, other)) {
        agrees = false;
        if (!gate_item_same_places(mine, other)) {
            tell_places(&why, mine, other);
        } else {
            tell(&why,
                 "lists that move: this proxy: step = %s, the pool: step = %s, or another next or "
                 "dead",
                 gate_step_name(mine->step), gate_step_name(other->step));
        }
    } else if (gate_item_same_places(mine, other) && place != other->server && !sorts(mine->rule)) {
        agrees = false;
        tell_both(&why, "order of the servers", mine->servers, other->servers);
    }
    agrees = tell_lists(&why, mine, other, mine) && agrees;
    return tell_lists(&why, mine, other, other) && agrees;
}

/* Where keys go by it: made when it is asked for, since that takes some milliseconds of many
 * servers, and most items are only compared. NULL: a bucket, or a rule that this libmemcached does
 * not have. */
static struct shard *shard_of(struct gate_item *item)
{
    char error[CONFIG_ERROR_MAX];
    if (!item->shard_tried && item->rule->server_count > 0) {
        item->shard = shard_create(item->rule, error);
    }
    item->shard_tried = true;
    return item->shard;
}

/* Do the two look for the key on the same server? */
static bool same_server(struct gate_item *mine, struct gate_item *other, const size_t *other_places,
                        struct slice key)
{
    const struct shard *m = shard_of(mine), *o = shard_of(other);
    if (m == NULL || o == NULL) {
        return slice_equal(mine->places, other->places);
    }
    size_t here = shard_index(m, key), there = shard_index(o, key);
    if (other_places[here] != GATE_NO_PLACE) {
        return other_places[here] == there;
    }
    return strcmp(mine->rule->servers[here].name, other->rule->servers[there].name) == 0;
}

/* Is any server another one to the other? */
static bool differs_anywhere(const struct gate_item *mine, const struct gate_item *other,
                             const size_t *other_places)
{
    for (size_t i = 0; i < mine->rule->server_count; i++) {
        if (other_places[i] != GATE_NO_PLACE && other_places[i] != i) {
            return true;
        }
    }
    return !slice_equal(mine->places, other->places);
}

bool gate_item_moves(struct gate_item *mine, struct gate_item *other, const size_t *other_places,
                     struct slice key)
{
    char room[ESCAPED_MAX], head[KEY_BYTES_MAX + 1];
    struct slice escaped = slice_of(escape(key, room));
    if (!same_rules(mine, other, line_of(mine, escaped), line_of(other, escaped)) ||
        (gate_item_same_places(mine, other) && !steps_agree(mine, other))) {
        return true;
    }
    const struct line *line = line_of(mine, escaped);
    if (line == NULL || slice_equal(line->rules, SLICE_LIT(ELSEWHERE)) || key.len > KEY_BYTES_MAX) {
        return false;
    }
    if (!slice_starts_with(line->rules, SLICE_LIT("placement=head"))) {
        /* It has several items, which lie where their own names belong. */
        return differs_anywhere(mine, other, other_places);
    }
    memcpy(head, key.p, key.len);
    head[key.len] = '#';
    return !same_server(mine, other, other_places, slice_make(head, key.len + 1));
}
