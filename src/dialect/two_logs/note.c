/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/two_logs/note.h"

#include <stdio.h>

#include "dialect/shared/dialect.h"

/* How many bytes at the beginning and at the end are hashed; each copy begins with a number of its
 * own. */
#define HASHED_BYTES ((size_t)64)
#define NOTE_MAX 64

bool note_parse(struct slice item, struct note *note)
{
    if (item.len < 19 || item.p[0] != '@') {
        return false;
    }
    struct slice digits = slice_make(item.p + 1, item.len - 18);
    note->is_place = digits.len > 0 && digits.p[digits.len - 1] == ':';
    digits.len -= note->is_place;
    if (item.p[item.len - 17] != ':' || !slice_to_u64(digits, &note->bytes) ||
        (note->is_place && note->bytes == 0)) {
        return false;
    }
    static const char digits16[] = "0123456789abcdef";
    note->hash = 0;
    for (size_t i = item.len - 16; i < item.len; i++) {
        const char *digit = memchr(digits16, item.p[i], 16);
        if (digit == NULL) {
            return false;
        }
        note->hash = note->hash << 4 | (uint64_t)(digit - digits16);
    }
    return true;
}

bool note_allows(struct slice item)
{
    struct note note;
    return !note_parse(item, &note);
}

bool note_last(struct slice text, struct signs signs, struct note *last)
{
    const char *start = text.p;
    enum entry_op op;
    struct slice item, added = SLICE_NONE; /* the entry before, if it is the first of a note */
    struct note note;
    bool found = false;
    while (signed_next(&text, signs, &op, &item)) {
        bool about = note_parse(item, &note) && note.bytes > 0;
        if (about && op == ENTRY_DEL) {
            note.start = (size_t)((slice_equal(added, item) ? added.p : item.p) - 1 - start);
            note.end = (size_t)(item.p + item.len - start);
            *last = note;
            found = true;
        }
        added = about && op == ENTRY_ADD ? item : SLICE_NONE;
    }
    return found;
}

static uint64_t prefix_hash(struct slice text, uint64_t bytes)
{
    size_t count = bytes < HASHED_BYTES ? bytes : HASHED_BYTES;
    uint64_t hash = hash_stable(slice_make(text.p, count), 0);
    return hash_stable(slice_make(text.p + bytes - count, count), hash);
}

/* Do so many bytes end where an entry ends? Else they are another log's, which happens to begin as
 * one that is gone. */
static bool ends_an_entry(struct slice text, uint64_t bytes, struct signs signs)
{
    return bytes == text.len || text.p[bytes] == signs.add || text.p[bytes] == signs.delete;
}

bool note_is_about(const struct note *note, struct slice text, struct signs signs)
{
    return note->bytes <= text.len && prefix_hash(text, note->bytes) == note->hash &&
           ends_an_entry(text, note->bytes, signs);
}

static void append_twice(struct block **b, struct signs signs, size_t bytes, bool is_place,
                         uint64_t hash)
{
    char note[NOTE_MAX];
    int len = snprintf(note, sizeof note, "@%zu:%s%016llx", bytes, is_place ? ":" : "",
                       (unsigned long long)hash);
    signed_append(b, ENTRY_ADD, slice_make(note, (size_t)len), signs);
    signed_append(b, ENTRY_DEL, slice_make(note, (size_t)len), signs);
}

void note_append(struct block **b, struct slice text, uint64_t number, struct signs signs)
{
    uint64_t hash = text.len > 0 ? prefix_hash(text, text.len) : number;
    append_twice(b, signs, text.len, false, hash);
}

void note_append_place(struct block **b, struct slice text, struct signs signs)
{
    append_twice(b, signs, text.len, true, prefix_hash(text, text.len));
}
