/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a pair holds, for proxies and for clients by hand.
 */
#include "base/check.h"
#include "format.h"

/* What a folding leaves in both items: @ and sixteen digits. */
static bool is_mark(const char *p, size_t len)
{
    size_t digits = 0;
    while (digits + 1 < len && strchr("0123456789abcdef", p[digits + 1]) != NULL) {
        digits++;
    }
    return len == 17 && *p == '@' && digits == 16;
}

/* The items of a text, marks as MARK. */
struct words {
    enum { WORDS_MAX = 1 << 16, MARK = ITEMS_MAX } kind;
    uint32_t count, last_mark; /* its place and 1; 0: there is none */
    const char *at[WORDS_MAX];
    uint16_t id[WORDS_MAX];
};

static void take_words(struct slice text, struct words *w, struct decoded *c)
{
    const char *p = text.p, *end = text.p + text.len;
    w->count = w->last_mark = 0;
    for (const char *next; p < end; p = next + 1) {
        next = memchr(p, ',', (size_t)(end - p));
        next = next == NULL ? end : next;
        size_t len = (size_t)(next - p);
        uint16_t id = MARK;
        bool marks = is_mark(p, len);
        if (len == 0) {
            continue;
        }
        if (!marks && !item_of_name(slice_make(p, len), &id)) {
            c->malformed = "an unknown item";
            return;
        }
        CHECK(w->count < WORDS_MAX);
        w->at[w->count] = p;
        w->id[w->count++] = id;
        w->last_mark = marks ? w->count : w->last_mark;
    }
}

static bool has_word(const struct words *w, uint32_t from, uint32_t to, uint16_t id)
{
    uint32_t i = from;
    while (i < to && w->id[i] != id) {
        i++;
    }
    return i < to;
}

/* A client by hand knows no marks: it subtracts all deletions. It must see what is in the list, but
 * for items that were added since the last folding, behind deletions that are still to be cut off.
 */
static void check_by_hand(const struct words *adds, const struct words *deletes, uint32_t cut,
                          struct decoded *c)
{
    static struct ids by_hand_adds, by_hand_deletes, by_hand;
    ids_clear(&by_hand_adds);
    ids_clear(&by_hand_deletes);
    uint32_t marks = 0;
    for (uint32_t i = 0; i < adds->count; i++) {
        if (adds->id[i] != MARK) {
            ids_push(&by_hand_adds, adds->id[i]);
        }
        marks += adds->id[i] == MARK;
    }
    for (uint32_t i = 0; i < deletes->count; i++) {
        if (deletes->id[i] != MARK) {
            ids_push(&by_hand_deletes, deletes->id[i]);
        }
    }
    count_items(&by_hand_adds, &by_hand_deletes, &by_hand);
    uint32_t at = 0; /* most are in the same order */
    for (uint32_t i = 0; i < c->items.count; i++) {
        uint16_t id = c->items.ids[i];
        at = ids_find(&by_hand, id, at);
        bool since =
            !has_word(adds, 0, adds->last_mark, id) || has_word(deletes, cut, deletes->count, id);
        bool hidden = since && has_word(deletes, 0, cut, id);
        if (!hidden && at == by_hand.count) {
            c->malformed = "an item that a client by hand does not see";
        }
    }
    if (marks > 1) {
        c->malformed = "several marks among the additions";
    }
}

/* Deletions before the mark of the additions do not count; before it copies of an item are one. */
void decode_paired(const struct format *f, unsigned list, int64_t now_s, struct decoded *c)
{
    static struct words adds, deletes;
    struct slice a = format_value(f, list, FORMAT_ADDS, 0, now_s);
    struct slice d = format_value(f, list, FORMAT_DELETES, 0, now_s);
    uint32_t behind = 0;
    take_words(a, &adds, c);
    take_words(d, &deletes, c);
    bool marked = adds.last_mark > 0;
    for (uint32_t i = deletes.count; marked && i-- > 0;) {
        if (deletes.id[i] == MARK && memcmp(deletes.at[i], adds.at[adds.last_mark - 1], 17) == 0) {
            behind = i + 1;
        }
    }
    for (uint32_t i = 0; i < adds.count; i++) {
        bool copy = i + 1 < adds.last_mark && i > 0 && adds.id[i] == adds.id[i - 1];
        if (adds.id[i] != MARK && !copy) {
            ids_push(&c->adds, adds.id[i]);
        }
    }
    for (uint32_t i = behind; i < deletes.count; i++) {
        if (deletes.id[i] != MARK) {
            ids_push(&c->deletes, deletes.id[i]);
        }
    }
    count_items(&c->adds, &c->deletes, &c->items);
    c->parts = (a.p != NULL) + (d.p != NULL);
    c->exists = c->items.count > 0;
    if (marked && behind == 0) {
        c->malformed = "a mark that is not among the deletions";
    }
    check_by_hand(&adds, &deletes, behind, c);
}
