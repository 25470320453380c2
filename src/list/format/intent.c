/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/intent.h"

/* Takes the word in front of the next blank, and the blank. False when there is none. */
static bool take_word(struct slice *rest, struct slice *word)
{
    const char *end = rest->len > 0 ? memchr(rest->p, ' ', rest->len) : NULL;
    if (end == NULL || end == rest->p) {
        return false;
    }
    *word = slice_take(rest, (size_t)(end - rest->p));
    (void)slice_take(rest, 1);
    return true;
}

/* Is the key one of those that were taken so far? */
static bool names(const struct intent *intent, struct slice key)
{
    for (size_t i = 0; i < intent->key_count; i++) {
        if (slice_equal(intent->keys[i], key)) {
            return true;
        }
    }
    return false;
}

/* As clients may name lists (proto/client/request_parse.c). */
static bool is_list_key(struct slice key)
{
    return key.len <= LIST_KEY_BYTES_MAX && key_is_word(key);
}

static bool take_keys(struct slice *rest, uint64_t count, struct intent *intent)
{
    intent->key_count = 0;
    if (count < 1 || count > INTENT_KEYS_MAX) {
        return false;
    }
    while (intent->key_count < count) {
        struct slice key;
        if (!take_word(rest, &key) || !is_list_key(key) || names(intent, key)) {
            return false;
        }
        intent->keys[intent->key_count++] = key;
    }
    return true;
}

static bool entries_fit(struct slice entries)
{
    struct entry entry;
    enum entry_status status;
    while ((status = entry_next(&entries, &entry)) == ENTRY_OK) {
        bool takes_item = entry.op == ENTRY_ADD || entry.op == ENTRY_DEL ||
                          entry.op == ENTRY_READD || entry.op == ENTRY_CONDITION;
        if (!takes_item && entry.op != ENTRY_CLEAR) {
            return false;
        }
    }
    return status == ENTRY_END;
}

bool intent_parse(struct slice bytes, struct intent *out)
{
    struct slice count_word, created;
    uint64_t count, second;
    if (!name_take(&bytes, &out->name) || bytes.len == 0 || slice_take(&bytes, 1).p[0] != '.' ||
        !take_word(&bytes, &created) || !slice_to_u64(created, &second) || second > INT64_MAX ||
        !take_word(&bytes, &count_word) || !slice_to_u64(count_word, &count) ||
        !take_keys(&bytes, count, out) || !entries_fit(bytes)) {
        return false;
    }
    out->created_s = (int64_t)second;
    out->entries = bytes;
    return true;
}

static size_t count_digits(uint64_t number)
{
    char digits[21];
    return format_u64(digits, number);
}

/* Bytes of the words in front of the entries, with the blank behind them. */
static size_t header_bytes(const struct intent *intent)
{
    size_t bytes = NAME_BYTES + 1 + count_digits((uint64_t)intent->created_s) + 1 +
                   count_digits(intent->key_count);
    for (size_t i = 0; i < intent->key_count; i++) {
        bytes += 1 + intent->keys[i].len;
    }
    return bytes + 1;
}

size_t intent_size(const struct intent *intent)
{
    return entry_bytes(header_bytes(intent) + intent->entries.len);
}

static char *put(char *p, struct slice bytes)
{
    if (bytes.len > 0) {
        memcpy(p, bytes.p, bytes.len);
    }
    return p + bytes.len;
}

void intent_append(struct block **b, const struct intent *intent)
{
    size_t size = intent_size(intent);
    char *start = block_reserve(b, size), *p = start;
    *p++ = ENTRY_INTENT;
    p += format_u64(p, header_bytes(intent) + intent->entries.len);
    *p++ = ':';
    p = put(p, slice_make(intent->name.text, NAME_BYTES));
    *p++ = '.';
    p += format_u64(p, (uint64_t)intent->created_s);
    *p++ = ' ';
    p += format_u64(p, intent->key_count);
    for (size_t i = 0; i < intent->key_count; i++) {
        *p++ = ' ';
        p = put(p, intent->keys[i]);
    }
    *p++ = ' ';
    p = put(p, intent->entries);
    CHECK((size_t)(p - start) == size);
    (*b)->used += size;
}

void intent_items_init(struct intent_items *items, struct slice entries)
{
    struct entry entry;
    items->all = false;
    fold_init(&items->fold);
    while (entry_next(&entries, &entry) == ENTRY_OK) {
        items->all = items->all || entry.op == ENTRY_CLEAR;
        if (entry.op != ENTRY_CLEAR) {
            fold_apply(&items->fold, ENTRY_ADD, entry.bytes);
        }
    }
}

void intent_items_fini(struct intent_items *items)
{
    fold_fini(&items->fold);
}

bool intent_items_meet(const struct intent_items *items, struct slice entries)
{
    struct entry entry;
    bool meet = items->all;
    while (!meet && entry_next(&entries, &entry) == ENTRY_OK) {
        meet = entry.op == ENTRY_CLEAR || fold_find(&items->fold, entry.bytes) != NULL;
    }
    return meet;
}

bool decision_parse(struct slice bytes, struct name *name, enum decision *out)
{
    if (!name_take(&bytes, name) || bytes.len != 2 || bytes.p[0] != ' ') {
        return false;
    }
    char letter = bytes.p[1];
    *out = (enum decision)letter;
    return letter == DECISION_COMMIT || letter == DECISION_ABORT || letter == DECISION_DONE;
}

void decision_append(struct block **b, const struct name *name, enum decision decision)
{
    char text[NAME_BYTES + 2];
    memcpy(text, name->text, NAME_BYTES);
    text[NAME_BYTES] = ' ';
    text[NAME_BYTES + 1] = (char)decision;
    entry_append(b, ENTRY_DECISION, slice_make(text, sizeof text));
}
