/* SPDX-License-Identifier: BSD-3-Clause */
#include "txlog.h"

#include <stdlib.h>

#include "base/check.h"
#include "reference.h"

#define NAME_LEN 13
#define LIST_KEY_MAX 220

static bool take_name(struct slice *s, struct slice *name)
{
    if (s->len < NAME_LEN) {
        return false;
    }
    *name = slice_take(s, NAME_LEN);
    for (size_t i = 0; i < NAME_LEN; i++) {
        if (memchr("abcdefghijklmnopqrstuvwxyz234567", name->p[i], 32) == NULL) {
            return false;
        }
    }
    return true;
}

/* A word of at least one byte, and the blank behind it. */
static bool take_word(struct slice *s, struct slice *word)
{
    size_t len = 0;
    while (len < s->len && s->p[len] != ' ') {
        len++;
    }
    if (len == 0 || len == s->len) {
        return false;
    }
    *word = slice_take(s, len);
    (void)slice_take(s, 1);
    return true;
}

static bool is_key(struct slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.p[i];
        if (c <= ' ' || c == 127) {
            return false;
        }
    }
    return key.len <= LIST_KEY_MAX;
}

static bool has_key(const struct txlog_intent *intent, struct slice key)
{
    for (size_t i = 0; i < intent->key_count; i++) {
        if (slice_equal(intent->keys[i], key)) {
            return true;
        }
    }
    return false;
}

bool txlog_parse(struct slice bytes, struct txlog_intent *out)
{
    struct slice word, rest, item;
    uint64_t count = 0;
    char op;
    *out = (struct txlog_intent){.state = TXLOG_OPEN};
    if (!take_name(&bytes, &out->name) || bytes.len == 0 || slice_take(&bytes, 1).p[0] != '.' ||
        !take_word(&bytes, &word) || !slice_to_u64(word, &out->created_s) ||
        out->created_s > INT64_MAX || !take_word(&bytes, &word) || !slice_to_u64(word, &count) ||
        count == 0 || count > TXLOG_KEYS_MAX) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!take_word(&bytes, &word) || !is_key(word) || has_key(out, word)) {
            return false;
        }
        out->keys[out->key_count++] = word;
    }
    out->entries = rest = bytes;
    while (rest.len > 0) {
        if (!ref_take_entry(&rest, &op, &item) || memchr("+-=!.", op, 5) == NULL) {
            return false;
        }
    }
    return true;
}

static bool parse_decision(struct slice bytes, struct slice *name, char *letter)
{
    if (!take_name(&bytes, name) || bytes.len != 2 || bytes.p[0] != ' ') {
        return false;
    }
    *letter = bytes.p[1];
    return *letter == 'c' || *letter == 'a' || *letter == 'd';
}

bool txlog_entry_is_valid(char op, struct slice bytes)
{
    struct txlog_intent intent;
    struct slice name;
    char letter;
    return op == '?' ? txlog_parse(bytes, &intent)
                     : op != '&' || parse_decision(bytes, &name, &letter);
}

void txlog_fini(struct txlog *txlog)
{
    free(txlog->intents);
    *txlog = (struct txlog){0};
}

static struct txlog_intent *find(const struct txlog *txlog, struct slice name)
{
    for (size_t i = 0; i < txlog->count; i++) {
        if (slice_equal(txlog->intents[i].name, name)) {
            return &txlog->intents[i];
        }
    }
    return NULL;
}

const struct txlog_intent *txlog_find(const struct txlog *txlog, struct slice name)
{
    return find(txlog, name);
}

/* Does this entry of another client, behind the intent, conflict with it? */
static bool hurts(char op, struct slice item, struct slice entries)
{
    struct slice mine;
    char my_op;
    bool hurt = op == '!';
    while (!hurt && ref_take_entry(&entries, &my_op, &mine)) {
        hurt = my_op == '!' || slice_equal(mine, item);
    }
    return hurt;
}

bool txlog_conflict(struct slice entries, struct slice others)
{
    struct slice item;
    char op;
    bool hurt = false;
    while (!hurt && ref_take_entry(&others, &op, &item)) {
        hurt = hurts(op, item, entries);
    }
    return hurt;
}

static bool take_intent(struct txlog *out, struct slice bytes, struct slice own, size_t at,
                        size_t end)
{
    struct txlog_intent intent;
    if (!txlog_parse(bytes, &intent) || !has_key(&intent, own) || find(out, intent.name) != NULL) {
        return false;
    }
    intent.is_primary = slice_equal(intent.keys[0], own);
    intent.at = at;
    intent.end = end;
    if (out->count == out->cap) {
        out->cap = out->cap * 2 + 4;
        out->intents = realloc(out->intents, out->cap * sizeof *out->intents);
        CHECK(out->intents != NULL);
    }
    out->intents[out->count++] = intent;
    return true;
}

static bool take_decision(struct txlog *out, struct slice bytes)
{
    struct slice name;
    char letter;
    if (!parse_decision(bytes, &name, &letter)) {
        return false;
    }
    struct txlog_intent *intent = find(out, name);
    if (intent == NULL) {
        return true;
    }
    if (intent->state == TXLOG_OPEN && letter != 'd') {
        intent->state = letter == 'c' ? TXLOG_COMMITTED : TXLOG_ABORTED;
    }
    intent->done = intent->done || (letter == 'd' && intent->state == TXLOG_COMMITTED);
    return true;
}

static void cross(struct txlog *out, char op, struct slice item, bool capped)
{
    for (size_t i = 0; i < out->count; i++) {
        struct txlog_intent *intent = &out->intents[i];
        if (intent->state == TXLOG_OPEN && (capped || hurts(op, item, intent->entries))) {
            intent->crossed = true;
            intent->state = intent->is_primary ? TXLOG_ABORTED : TXLOG_OPEN;
        }
    }
}

bool txlog_read(struct txlog *out, struct slice log, struct slice own, bool capped)
{
    struct slice rest = log, bytes;
    uint64_t until;
    char op;
    *out = (struct txlog){0};
    while (rest.len > 0) {
        size_t at = log.len - rest.len;
        if (!ref_take_timed(&rest, &op, &until, &bytes) || op == '.') {
            return false;
        }
        if (op == '?' && !take_intent(out, bytes, own, at, log.len - rest.len)) {
            return false;
        }
        if (op == '&' && !take_decision(out, bytes)) {
            return false;
        }
        if (memchr("+-=!@", op, 5) != NULL) {
            cross(out, op, bytes, capped);
        }
    }
    return true;
}

static void append_effects(struct block **plain, struct slice entries)
{
    const char *start = entries.p;
    struct slice item;
    char op;
    while (ref_take_entry(&entries, &op, &item)) {
        if (op != '.') {
            block_append(plain, start, (size_t)(entries.p - start));
        }
        start = entries.p;
    }
}

struct block *txlog_resolve(struct slice log, struct slice own, bool capped, txlog_ask *ask,
                            void *arg)
{
    struct txlog txlog;
    struct block *plain = block_new(log.len + 1);
    if (!txlog_read(&txlog, log, own, capped)) {
        txlog_fini(&txlog);
        block_unref(&plain);
        return NULL;
    }
    struct slice rest = log, bytes;
    size_t next = 0;
    char op;
    for (const char *start = log.p; ref_take_entry(&rest, &op, &bytes); start = rest.p) {
        if (op == '?') {
            const struct txlog_intent *intent = &txlog.intents[next++];
            if (intent->state == TXLOG_COMMITTED ||
                (intent->state == TXLOG_OPEN && ask != NULL && ask(arg, intent))) {
                append_effects(&plain, intent->entries);
            }
        } else if (op != '&') {
            block_append(&plain, start, (size_t)(rest.p - start));
        }
    }
    txlog_fini(&txlog);
    return plain;
}
