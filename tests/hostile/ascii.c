/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's ASCII protocol, told truly or not. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "hostile.h"

#define VALUE_MAX ((size_t)20000)
#define WORDS_MAX 260

struct asked {
    struct slice words[WORDS_MAX];
    size_t count;
    struct slice data;
    bool has_data;
};

static const struct {
    const char *verb;
    size_t size_at;
} storing[] = {{"set", 4},     {"add", 4}, {"replace", 4}, {"append", 4},
               {"prepend", 4}, {"cas", 4}, {"ms", 2}};

static bool is_word(struct slice word, const char *text)
{
    return slice_equal(word, slice_of(text));
}

static uint64_t number_of(const struct asked *a, size_t at)
{
    uint64_t n = 0;
    return at < a->count && slice_to_u64(a->words[at], &n) ? n : 0;
}

static void split(struct slice line, struct asked *a)
{
    a->count = 0;
    while (line.len > 0 && a->count < WORDS_MAX) {
        const char *blank = memchr(line.p, ' ', line.len);
        size_t n = blank == NULL ? line.len : (size_t)(blank - line.p);
        if (n > 0) {
            a->words[a->count++] = slice_make(line.p, n);
        }
        (void)slice_take(&line, blank == NULL ? n : n + 1);
    }
}

/* Takes a request apart; its length, or 0 when it is not whole. */
static size_t take(struct slice in, struct asked *a)
{
    const char *end = in.len == 0 ? NULL : memchr(in.p, '\n', in.len);
    if (end == NULL) {
        return 0;
    }
    size_t len = (size_t)(end - in.p) + 1;
    CHECK(len > 2 && end[-1] == '\r');
    split(slice_make(in.p, len - 2), a);
    CHECK(a->count > 0);
    a->has_data = false;
    a->data = SLICE_NONE;
    for (size_t i = 0; i < sizeof storing / sizeof storing[0]; i++) {
        if (is_word(a->words[0], storing[i].verb)) {
            size_t size = number_of(a, storing[i].size_at);
            if (in.len < len + size + 2) {
                return 0;
            }
            a->has_data = true;
            a->data = slice_make(in.p + len, size);
            CHECK(memcmp(a->data.p + size, "\r\n", 2) == 0);
            len += size + 2;
        }
    }
    return len;
}

static void add_value(struct bytes *out, struct slice key, const struct item *item, bool cas)
{
    bytes_text(out, "VALUE %.*s %u %zu", SLICE_ARGS(key), item->flags, item->value.len);
    if (cas) {
        bytes_text(out, " %llu", (unsigned long long)item->cas);
    }
    bytes_add(out, "\r\n", 2);
    bytes_add(out, item->value.p, item->value.len);
    bytes_add(out, "\r\n", 2);
}

/* Of `gat` and `gats`, a time comes first. */
static void answer_get(const struct asked *a, struct talk *t)
{
    bool cas = a->words[0].len == 4;
    for (size_t i = a->words[0].p[1] == 'a' ? 2 : 1; i < a->count; i++) {
        const struct item *item = store_find(a->words[i]);
        if (item != NULL) {
            add_value(&t->out, a->words[i], item, cas);
        }
        if (is_lie(t) && rng_below(t->rng, 4) == 0) {
            add_garbage(&t->out, t->rng);
        }
    }
    bytes_add(&t->out, "END\r\n", 5);
}

static void add_flag(const struct asked *a, struct slice word, const struct item *item,
                     struct bytes *out)
{
    switch (word.p[0]) {
    case 'k':
        bytes_text(out, " k%.*s", SLICE_ARGS(a->words[1]));
        break;
    case 'O':
        bytes_text(out, " %.*s", SLICE_ARGS(word));
        break;
    case 'f':
        bytes_text(out, " f%u", item->flags);
        break;
    case 'c':
        bytes_text(out, " c%llu", (unsigned long long)item->cas);
        break;
    case 's':
        bytes_text(out, " s%zu", item->value.len);
        break;
    case 't':
        bytes_text(out, " t-1");
        break;
    case 'b':
        bytes_text(out, " b");
        break;
    default:
        break;
    }
}

/* A meta command that finds nothing to say but its flags. */
static void say_code(const struct asked *a, size_t from, const char *code, const struct item *item,
                     struct bytes *out)
{
    static const struct item none;
    bytes_text(out, "%s", code);
    for (size_t i = from; i < a->count; i++) {
        add_flag(a, a->words[i], item == NULL ? &none : item, out);
    }
    bytes_add(out, "\r\n", 2);
}

static void answer_mg(const struct asked *a, struct talk *t)
{
    const struct item *item = store_find(a->words[1]);
    bool value = false;
    if (item == NULL) {
        bytes_add(&t->out, "EN\r\n", 4);
        return;
    }
    for (size_t i = 2; i < a->count; i++) {
        value = value || is_word(a->words[i], "v");
    }
    if (value) {
        bytes_text(&t->out, "VA %zu", item->value.len);
    } else {
        bytes_text(&t->out, "HD");
    }
    for (size_t i = 2; i < a->count; i++) {
        add_flag(a, a->words[i], item, &t->out);
    }
    bytes_add(&t->out, "\r\n", 2);
    if (value) {
        bytes_add(&t->out, item->value.p, item->value.len);
        bytes_add(&t->out, "\r\n", 2);
    }
}

static const char *grow(struct item *item, struct slice data, bool behind)
{
    if (item == NULL) {
        return "NOT_STORED\r\n";
    }
    if (item->value.len + data.len > VALUE_MAX) {
        return "SERVER_ERROR object too large for cache\r\n";
    }
    struct bytes whole = {0};
    struct slice old = slice_make(item->value.p, item->value.len);
    struct slice first = behind ? old : data, second = behind ? data : old;
    bytes_add(&whole, first.p, first.len);
    bytes_add(&whole, second.p, second.len);
    store_set(slice_make(item->key, item->key_len), slice_make(whole.p, whole.len), item->flags);
    free(whole.p);
    return "STORED\r\n";
}

static const char *change(const struct asked *a)
{
    struct slice verb = a->words[0], key = a->words[1];
    struct item *item = store_find(key);
    bool is_cas = is_word(verb, "cas"), over = a->count > 3 && a->words[3].p[0] == '-';
    if (is_word(verb, "delete")) {
        if (item != NULL) {
            store_drop(item);
        }
        return item == NULL ? "NOT_FOUND\r\n" : "DELETED\r\n";
    }
    if (is_word(verb, "touch")) {
        return item == NULL ? "NOT_FOUND\r\n" : "TOUCHED\r\n";
    }
    if (is_word(verb, "append") || is_word(verb, "prepend")) {
        return grow(item, a->data, verb.p[0] == 'a');
    }
    if (is_cas && item == NULL) {
        return "NOT_FOUND\r\n";
    }
    if (is_cas && item->cas != number_of(a, 5)) {
        return "EXISTS\r\n";
    }
    if ((is_word(verb, "add") && item != NULL) || (is_word(verb, "replace") && item == NULL)) {
        return "NOT_STORED\r\n";
    }
    item = store_set(key, a->data, (uint32_t)number_of(a, 2));
    if (over) {
        store_drop(item);
    }
    return "STORED\r\n";
}

static void count(const struct asked *a, struct talk *t)
{
    struct item *item = store_find(a->words[1]);
    uint64_t n;
    char digits[24];
    if (item == NULL) {
        bytes_text(&t->out, "NOT_FOUND\r\n");
    } else if (!slice_to_u64(slice_make(item->value.p, item->value.len), &n)) {
        bytes_text(&t->out, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    } else {
        n += number_of(a, 2);
        store_set(a->words[1], slice_make(digits, format_u64(digits, n)), item->flags);
        bytes_text(&t->out, "%llu\r\n", (unsigned long long)n);
    }
}

/* Each connection may meet another release. To one without meta commands none may be sent. */
static void answer_version(struct talk *t)
{
    t->is_old = rng_below(t->rng, 3) == 0;
    bytes_text(&t->out, t->is_old ? "VERSION 1.5.22\r\n" : "VERSION 1.6.18\r\n");
}

static void answer_truly(const struct asked *a, struct talk *t)
{
    struct slice verb = a->words[0];
    bool is_meta = verb.len == 2 && verb.p[0] == 'm';
    CHECK(!t->is_old || !is_meta || is_word(verb, "mn"));
    if (is_word(verb, "version")) {
        answer_version(t);
    } else if (is_word(verb, "stats")) {
        bytes_text(&t->out, a->count > 1 ? "STAT item_size_max 1048576\r\nEND\r\n"
                                         : "STAT evictions 0\r\nEND\r\n");
    } else if (is_word(verb, "mn")) {
        bytes_text(&t->out, t->is_old ? "ERROR\r\n" : "MN\r\n");
    } else if (is_word(verb, "flush_all")) {
        bytes_text(&t->out, "OK\r\n");
    } else if (verb.p[0] == 'g') {
        answer_get(a, t);
    } else if (is_word(verb, "mg")) {
        answer_mg(a, t);
    } else if (is_word(verb, "ms")) {
        say_code(a, 3, "HD", store_set(a->words[1], a->data, 0), &t->out);
    } else if (is_word(verb, "md")) {
        struct item *item = store_find(a->words[1]);
        say_code(a, 2, item == NULL ? "NF" : "HD", item, &t->out);
        if (item != NULL) {
            store_drop(item);
        }
    } else if (is_word(verb, "ma")) {
        bytes_text(&t->out, "NF\r\n");
    } else if (is_word(verb, "me")) {
        bytes_text(&t->out, "EN\r\n");
    } else if (is_word(verb, "incr") || is_word(verb, "decr")) {
        count(a, t);
    } else {
        const char *line = change(a);
        bytes_add(&t->out, line, strlen(line));
    }
}

/* A value that says nothing: a client that is given it has been lied to by the server alone. */
static void blot_out(struct slice key)
{
    struct item *item = store_find(key);
    if (item != NULL && item->value.len > 0) {
        memset(item->value.p, '?', item->value.len);
    }
}

/* Of another key, as after a shift: it says so itself. */
static void answer_for_another(struct asked *a, struct talk *t)
{
    const struct item *other = store_any(t->rng);
    if (other != NULL && a->count > 1 && (is_word(a->words[0], "mg") || a->words[0].p[0] == 'g')) {
        a->words[1] = slice_make(other->key, other->key_len);
    }
    answer_truly(a, t);
}

/* As if other flags stood there; of what is not there, more than that. */
static void answer_beside(struct asked *a, struct talk *t)
{
    if (is_word(a->words[0], "mg") && store_find(a->words[1]) == NULL) {
        bytes_text(&t->out, "EN junk\r\n");
        return;
    }
    if (is_word(a->words[0], "mg") && a->count > 2) {
        size_t at = 2 + rng_below(t->rng, a->count - 2);
        a->words[at] = rng_below(t->rng, 2) == 0 ? SLICE_LIT("v") : SLICE_LIT("q");
    }
    answer_truly(a, t);
}

static void lie(struct asked *a, struct talk *t)
{
    size_t from = t->out.len;
    switch (rng_below(t->rng, 10)) {
    case 0:
        add_garbage(&t->out, t->rng);
        answer_truly(a, t);
        return;
    case 1:
        add_garbage(&t->out, t->rng);
        return;
    case 2:
        answer_truly(a, t);
        t->out.len = from + rng_below(t->rng, t->out.len - from + 1);
        t->is_over = true;
        return;
    case 3:
        answer_for_another(a, t);
        return;
    case 4: /* never, until it is given up */
        t->is_over = rng_below(t->rng, 50) != 0;
        return;
    case 5:
        answer_beside(a, t);
        return;
    case 6: /* a value that is none */
        if (a->count > 1 && store_find(a->words[1]) != NULL) {
            struct bytes value = {0};
            bytes_add(&value, "?", 1);
            add_garbage(&value, t->rng);
            store_set(a->words[1], slice_make(value.p, value.len), (uint32_t)rng_below(t->rng, 3));
            free(value.p);
        }
        answer_truly(a, t);
        return;
    default:
        for (size_t i = 1; i < a->count; i++) {
            blot_out(a->words[i]);
        }
        answer_truly(a, t);
        mangle(&t->out, from, t->rng);
        return;
    }
}

bool ascii_answer(struct talk *t)
{
    struct asked asked;
    size_t len = take(slice_make(t->in.p, t->in.len), &asked);
    if (len == 0) {
        return false;
    }
    bool handshake = is_word(asked.words[0], "version") || asked.words[0].len == 5;
    if (!(handshake && rng_below(t->rng, 50) != 0) && is_lie(t)) {
        lie(&asked, t);
        t->is_old = t->is_old && !handshake; /* who knows what it has said */
    } else {
        answer_truly(&asked, t);
    }
    t->answers++;
    bytes_take(&t->in, len);
    return true;
}
