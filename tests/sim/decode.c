/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is stored, read as the manual says. Items of a format that no item of a run has are errors:
 * no client can have put them there.
 */
#include <stdlib.h>

#include "base/check.h"
#include "format.h"

/* Sublists of one list. */
#define NUMBERS_MAX 4096

/* An item's place is the step at which it was added. */
struct replay {
    uint32_t place[ITEMS_MAX]; /* step + 1, 0 = absent */
    struct ids steps;
};

void decoded_fini(struct decoded *c)
{
    ids_fini(&c->items);
    ids_fini(&c->adds);
    ids_fini(&c->deletes);
}

/* ---- items between delimiters ---- */

/* Passes over empty ones. False at the end. */
static bool next_delimited(struct slice *rest, struct slice *item)
{
    *item = SLICE_NONE;
    while (rest->len > 0 && item->len == 0) {
        const char *end = memchr(rest->p, ',', rest->len);
        *item = slice_take(rest, end == NULL ? rest->len : (size_t)(end - rest->p));
        if (end != NULL) {
            (void)slice_take(rest, 1);
        }
    }
    return item->len > 0;
}

static void take_delimited(struct slice text, struct ids *out, struct decoded *c)
{
    struct slice item;
    uint16_t id = 0;
    while (next_delimited(&text, &item)) {
        if (item_of_name(item, &id)) {
            ids_push(out, id);
        } else {
            c->malformed = "an unknown item";
        }
    }
}

void count_items(const struct ids *adds, const struct ids *deletes, struct ids *out)
{
    static uint32_t deleted[ITEMS_MAX];
    memset(deleted, 0, sizeof deleted);
    ids_clear(out);
    for (uint32_t i = 0; i < deletes->count; i++) {
        deleted[deletes->ids[i]]++;
    }
    /* Each deletion cancels one of them, from the front; the first one left is the item's. */
    for (uint32_t i = 0; i < adds->count; i++) {
        uint16_t id = adds->ids[i];
        if (deleted[id] == 0) {
            ids_push(out, id);
            deleted[id] = UINT32_MAX;
        } else if (deleted[id] != UINT32_MAX) {
            deleted[id]--;
        }
    }
}

static void decode_simple(struct slice value, struct decoded *c)
{
    take_delimited(value, &c->adds, c);
    for (uint32_t i = 0; i < c->adds.count; i++) {
        (void)ids_add(&c->items, c->adds.ids[i]);
    }
}

static void decode_tombstone(const struct format *f, struct slice value, struct decoded *c)
{
    const char *bar = value.len == 0 ? NULL : memchr(value.p, f->bar, value.len);
    if (bar != NULL) {
        take_delimited(slice_take(&value, (size_t)(bar - value.p)), &c->deletes, c);
        (void)slice_take(&value, 1);
    }
    take_delimited(value, &c->adds, c);
    count_items(&c->adds, &c->deletes, &c->items);
}

/* ---- signed logs ---- */

bool signed_take(const struct format *f, struct slice *rest, char *sign, struct slice *item)
{
    if (f->delimited) {
        *sign = f->plus;
        return next_delimited(rest, item);
    }
    if (rest->len == 0) {
        return false;
    }
    *sign = slice_take(rest, 1).p[0];
    size_t n = 0;
    while (n < rest->len && rest->p[n] != f->plus && rest->p[n] != f->minus) {
        n++;
    }
    *item = slice_take(rest, n);
    return true;
}

struct note {
    uint64_t taken; /* bytes of the other log; 0: the log begins here */
    bool is_place;  /* a copy of that log is to come here */
    struct slice hash;
    struct slice behind; /* the rest of its log */
};

/* "@L:HHHHHHHHHHHHHHHH", or "@L::HHHHHHHHHHHHHHHH" */
static bool take_note(struct slice item, struct note *note)
{
    const char *colon = memchr(item.p, ':', item.len);
    note->is_place = colon != NULL && item.p + item.len - colon == 18 && colon[1] == ':';
    if (item.p[0] != '@' || colon == NULL ||
        item.p + item.len - colon != 17 + (ptrdiff_t)note->is_place ||
        !slice_to_u64(slice_make(item.p + 1, (size_t)(colon - item.p) - 1), &note->taken)) {
        return false;
    }
    note->hash = slice_make(item.p + item.len - 16, 16);
    return true;
}

static void replay_item(struct replay *r, bool adds, uint16_t id, struct decoded *c)
{
    ids_push(adds ? &c->adds : &c->deletes, id);
    if (!adds) {
        r->place[id] = 0;
    } else if (r->place[id] == 0) {
        ids_push(&r->steps, id);
        r->place[id] = r->steps.count;
    }
}

static void replay_log(const struct format *f, struct replay *r, struct slice log,
                       struct decoded *c)
{
    char sign;
    struct slice item, note_open = SLICE_NONE;
    struct note note;
    uint16_t id = 0;
    while (signed_take(f, &log, &sign, &item)) {
        if ((sign != f->plus && sign != f->minus) || item.len == 0) {
            c->malformed = "a log that does not begin with a sign";
            return;
        }
        if (take_note(item, &note)) {
            /* A client by hand that counts signs sees nothing of it: it is added and deleted. */
            bool added = note_open.len > 0 && slice_equal(note_open, item);
            if (added != (sign == f->minus)) {
                c->malformed = "a note that a client by hand sees";
                return;
            }
            note_open = added ? SLICE_NONE : item;
            continue;
        }
        if (note_open.len > 0) {
            c->malformed = "half a note";
            return;
        }
        if (!item_of_name(item, &id)) {
            c->malformed = "an unknown item";
            return;
        }
        replay_item(r, sign == f->plus, id, c);
    }
}

static struct replay *replay_begin(void)
{
    static struct replay replay; /* its memory is used again */
    memset(replay.place, 0, sizeof replay.place);
    replay.steps.count = 0;
    return &replay;
}

static void replay_end(const struct replay *r, struct decoded *c)
{
    for (uint32_t i = 0; i < r->steps.count; i++) {
        if (r->place[r->steps.ids[i]] == i + 1) {
            ids_push(&c->items, r->steps.ids[i]);
        }
    }
}

/* ---- two logs in turns ---- */

/* The last note of a log that says what it has taken. */
static bool last_note(const struct format *f, struct slice log, struct note *last)
{
    char sign;
    struct slice item;
    struct note note;
    bool found = false;
    while (signed_take(f, &log, &sign, &item)) {
        if (sign == f->minus && item.len > 0 && take_note(item, &note) && note.taken > 0) {
            *last = note;
            last->behind = log;
            found = true;
        }
    }
    return found;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_more(uint64_t hash, const char *p, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        hash = (hash ^ (unsigned char)p[i]) * 1099511628211ULL;
    }
    return hash;
}

/* Has this log taken the beginning of the other, as its last note says? */
static bool has_taken(const struct format *f, struct slice log, struct slice other,
                      struct note *note)
{
    enum { HASHED = 64 }; /* at both ends */
    char text[16];
    if (!last_note(f, log, note) || note->taken > other.len) {
        return false;
    }
    uint64_t bytes = note->taken < HASHED ? note->taken : HASHED;
    uint64_t hash = hash_more(14695981039346656037ULL, other.p, bytes);
    hash = hash_more(hash, other.p + note->taken - bytes, bytes);
    for (int i = 15; i >= 0; i--, hash >>= 4) {
        text[i] = "0123456789abcdef"[hash & 15];
    }
    bool at_end = note->taken == other.len || other.p[note->taken] == f->plus ||
                  other.p[note->taken] == f->minus;
    return at_end && slice_equal(note->hash, slice_make(text, 16));
}

static struct slice without(struct slice text, uint64_t front)
{
    return slice_make(text.p + front, text.len - front);
}

/* Adds once more what the log says + of last. */
static void replay_additions(const struct format *f, struct replay *r, struct slice log)
{
    static bool added[ITEMS_MAX];
    char sign;
    struct slice item, rest = log;
    uint16_t id = 0;
    memset(added, 0, sizeof added);
    while (signed_take(f, &rest, &sign, &item)) {
        if (item_of_name(item, &id)) {
            added[id] = sign == f->plus;
        }
    }
    for (rest = log; signed_take(f, &rest, &sign, &item);) {
        if (item_of_name(item, &id) && added[id] && r->place[id] == 0) {
            ids_push(&r->steps, id);
            r->place[id] = r->steps.count;
        }
    }
}

static bool begins_with(const struct format *f, struct slice log, struct note *note)
{
    char sign;
    struct slice item;
    return signed_take(f, &log, &sign, &item) && item.len > 0 && take_note(item, note);
}

static bool begins_with_note(const struct format *f, struct slice log)
{
    struct note note;
    return begins_with(f, log, &note) && note.taken == 0;
}

static bool is_place(const struct format *f, struct slice log)
{
    struct note note;
    return begins_with(f, log, &note) && note.is_place;
}

/* Does a log hold additions alone, of what the other one amounted to at some point? So it is while
 * a client by hand folds. */
static bool is_past(const struct format *f, struct slice past, struct slice log)
{
    static bool wanted[ITEMS_MAX], in[ITEMS_MAX];
    char sign;
    struct slice item;
    uint16_t id = 0;
    unsigned wrong = 0;
    bool same = false;
    memset(wanted, 0, sizeof wanted);
    memset(in, 0, sizeof in);
    while (signed_take(f, &past, &sign, &item)) {
        if (sign != f->plus || !item_of_name(item, &id)) {
            return false;
        }
        wrong += !wanted[id];
        wanted[id] = true;
    }
    while (!same && signed_take(f, &log, &sign, &item)) {
        if (item_of_name(item, &id) && in[id] != (sign == f->plus)) {
            in[id] = sign == f->plus;
            wrong = in[id] == wanted[id] ? wrong - 1 : wrong + 1;
        }
        same = wrong == 0;
    }
    return same;
}

/* Since one log was copied into the other, changes may have come to both: in each the later sign
 * wins, between the two an addition wins. Logs without copies were flipped by hand; or two clients
 * by hand have begun the list at once (begun_twice). */
static void decode_logs(const struct format *f, struct slice active, struct slice other,
                        bool begun_twice, struct decoded *c)
{
    struct replay *r = replay_begin();
    struct note note;
    if (other.len == 0) {
        replay_log(f, r, active, c);
    } else if (has_taken(f, active, other, &note)) {
        struct slice late = without(other, note.taken);
        replay_log(f, r, slice_make(active.p, active.len - note.behind.len), c);
        replay_log(f, r, late, c);
        replay_log(f, r, note.behind, c);
        replay_additions(f, r, late);
    } else if (has_taken(f, other, active, &note)) {
        replay_log(f, r, slice_make(active.p, note.taken), c);
        replay_log(f, r, note.behind, c);
        replay_log(f, r, without(active, note.taken), c);
        replay_additions(f, r, note.behind);
    } else if (begins_with_note(f, active) && last_note(f, active, &note)) {
        /* It was emptied before, or removed and made anew: what it holds came late. */
        replay_log(f, r, slice_make(active.p, active.len - note.behind.len), c);
        replay_log(f, r, other, c);
        replay_log(f, r, note.behind, c);
        replay_additions(f, r, other);
    } else {
        replay_log(f, r, other, c);
        replay_log(f, r, active, c);
        if (begun_twice || begins_with_note(f, active)) {
            replay_additions(f, r, other);
        }
    }
    replay_end(r, c);
}

static void decode_flip(const struct format *f, unsigned list, int64_t now_s, struct decoded *c)
{
    char name[KEY_BYTES_MAX + 1];
    struct slice pointer = format_value(f, list, FORMAT_ACTIVE, 0, now_s);
    struct slice b_name = slice_make(name, format_key(f, list, FORMAT_B, 0, name));
    struct slice a = format_value(f, list, FORMAT_A, 0, now_s);
    struct slice b = format_value(f, list, FORMAT_B, 0, now_s);
    bool b_active = pointer.p == NULL ? a.p == NULL && b.p != NULL : slice_equal(pointer, b_name);
    c->parts = (a.len > 0) + (b.len > 0);
    c->second_active = b_active;
    c->exists = a.p != NULL || b.p != NULL;
    decode_logs(f, b_active ? b : a, b_active ? a : b, false, c);
}

static bool take_marks(const struct format *f, struct slice *log)
{
    bool marked = false;
    while (log->len > 0 && log->p[0] == f->mark) {
        (void)slice_take(log, 1);
        marked = true;
    }
    return marked;
}

static void decode_marker(const struct format *f, unsigned list, int64_t now_s, struct decoded *c)
{
    struct slice a = format_value(f, list, FORMAT_A, 0, now_s);
    struct slice b = format_value(f, list, FORMAT_B, 0, now_s);
    c->parts = (a.p != NULL) + (b.p != NULL);
    c->exists = c->parts > 0;
    struct note note;
    bool a_there = a.p != NULL, b_there = b.p != NULL;
    bool a_closed = take_marks(f, &a), b_closed = take_marks(f, &b), b_active = !a_there;
    if (a_closed != b_closed) {
        b_active = a_closed;
    } else if (a_there && b_there) {
        /* Both closed: the later copy, which is more than a place for one. Both open: one of them
         * is a copy that does not count yet; or a client by hand has created one beside the other,
         * which is a copy of older ones. */
        if (has_taken(f, b, a, &note)) {
            b_active = a_closed && !is_place(f, b);
        } else if (has_taken(f, a, b, &note)) {
            b_active = !a_closed || is_place(f, a);
        } else {
            b_active = begins_with_note(f, b) && !begins_with_note(f, a);
        }
    }
    struct slice active = b_active ? b : a, other = b_active ? a : b;
    c->second_active = b_active;
    bool begun_twice = !a_closed && !b_closed && !is_past(f, other, active);
    decode_logs(f, active, other, begun_twice, c);
}

/* ---- sublists ---- */

struct numbers {
    uint64_t at[NUMBERS_MAX];
    uint32_t count;
};

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The numbers that an index names, in order: the later sign wins. False: it is no index. */
static bool take_index(const struct format *f, struct slice index, struct numbers *numbers)
{
    char sign;
    struct slice item;
    uint64_t number;
    numbers->count = 0;
    while (signed_take(f, &index, &sign, &item)) {
        uint32_t i = 0;
        if (!slice_to_u64(item, &number) || numbers->count == NUMBERS_MAX) {
            return false;
        }
        while (i < numbers->count && numbers->at[i] != number) {
            i++;
        }
        if (sign == f->plus && i == numbers->count) {
            numbers->at[numbers->count++] = number;
        } else if (sign == f->minus && i < numbers->count) {
            numbers->at[i] = numbers->at[--numbers->count];
        }
    }
    qsort(numbers->at, numbers->count, sizeof numbers->at[0], by_number);
    return true;
}

bool index_newest(const struct format *f, struct slice index, uint64_t *newest)
{
    static struct numbers numbers;
    if (!take_index(f, index, &numbers) || numbers.count == 0) {
        return false;
    }
    *newest = numbers.at[numbers.count - 1];
    return true;
}

bool index_next(const struct format *f, struct slice index, uint64_t *number)
{
    static struct numbers numbers;
    uint32_t i = 0;
    if (!take_index(f, index, &numbers)) {
        return false;
    }
    while (i < numbers.count && numbers.at[i] < *number) {
        i++;
    }
    *number = i < numbers.count ? numbers.at[i] : *number;
    return i < numbers.count;
}

static void decode_sublists(const struct format *f, unsigned list, int64_t now_s, struct decoded *c)
{
    static struct numbers numbers;
    struct replay *r = replay_begin();
    struct slice index = format_value(f, list, FORMAT_KEY, 0, now_s);
    if (!take_index(f, index, &numbers)) {
        c->malformed = "an index with something else than numbers";
    }
    c->exists = index.p != NULL;
    c->parts = numbers.count;
    for (uint32_t i = 0; i < numbers.count; i++) {
        replay_log(f, r, format_value(f, list, FORMAT_SUBLIST, numbers.at[i], now_s), c);
    }
    replay_end(r, c);
}

/* ---- rings ---- */

static int newest_first(const void *a, const void *b)
{
    uint64_t x = ((const struct ring_entry *)a)->number, y = ((const struct ring_entry *)b)->number;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void decode_ring(const struct format *f, unsigned list, int64_t now_s, struct decoded *c)
{
    static struct ring_entry entries[CAPACITY_MAX];
    const struct item *counter = format_find(f, list, FORMAT_SEQ, 0, now_s);
    uint32_t count = 0;
    uint64_t most = 0;
    if (counter != NULL) {
        struct slice digits = item_value(counter);
        const char *blank = memchr(digits.p, ' ', digits.len);
        digits.len = blank == NULL ? digits.len : (size_t)(blank - digits.p);
        if (!slice_to_u64(digits, &most)) {
            c->malformed = "a counter that is no number";
        }
    }
    c->counter = most;
    for (uint32_t slot = 0; slot < f->capacity; slot++) {
        struct slice value = format_value(f, list, FORMAT_SLOT, slot, now_s);
        if (value.p == NULL) {
            continue;
        }
        if (!entry_take(f, value, &entries[count])) {
            c->malformed = "a slot that holds no entry";
            return;
        }
        if (f->numbered && entries[count].number % f->capacity != slot) {
            c->malformed = "an entry in another's slot";
        }
        if (!f->numbered) {
            entries[count].number =
                most + f->capacity - (most % f->capacity + f->capacity - slot) % f->capacity;
        }
        count++;
    }
    qsort(entries, count, sizeof *entries, newest_first);
    c->exists = counter != NULL || count > 0;
    uint64_t newest = counter != NULL || count == 0 ? most : entries[0].number;
    for (uint32_t i = 0; i < count; i++) {
        bool counted = counter == NULL || entries[i].number <= most;
        if (!f->numbered || (counted && entries[i].number + f->capacity > newest)) {
            ids_push(&c->items, entries[i].id);
        }
    }
}

void format_decode(const struct format *f, unsigned list, int64_t now_s, struct decoded *c)
{
    struct slice value = format_value(f, list, FORMAT_KEY, 0, now_s);
    ids_clear(&c->items);
    ids_clear(&c->adds);
    ids_clear(&c->deletes);
    c->malformed = NULL;
    c->parts = value.p != NULL;
    c->exists = value.p != NULL;
    c->counter = 0;
    if (f->dialect == DIALECT_SIMPLE) {
        decode_simple(value, c);
    } else if (f->dialect == DIALECT_TOMBSTONE) {
        decode_tombstone(f, value, c);
    } else if (f->dialect == DIALECT_SIGNED) {
        struct replay *r = replay_begin();
        replay_log(f, r, value, c);
        replay_end(r, c);
    } else if (f->dialect == DIALECT_PAIRED) {
        decode_paired(f, list, now_s, c);
    } else if (f->dialect == DIALECT_FLIP) {
        decode_flip(f, list, now_s, c);
    } else if (f->dialect == DIALECT_MARKER) {
        decode_marker(f, list, now_s, c);
    } else if (f->dialect == DIALECT_SUBLISTS) {
        decode_sublists(f, list, now_s, c);
    } else {
        decode_ring(f, list, now_s, c);
    }
}
