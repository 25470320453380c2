/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs are found by a perfect hash: no two words have the same slot, so one look is enough. The
 * hash is a multiplication of a word's front, its first eight bytes as a number. The factor is
 * searched once, before main.
 */
#include "proto/client/verb.h"

#include <endian.h>

#include "base/check.h"

/* Bytes of a word that are hashed; no two words begin with the same ones. */
#define FRONT_BYTES 8u
/* So many slots that a factor is found after some dozen. */
#define SLOT_BITS 9

/* Which list verbs change something: as their kind. */
enum {
#define LIST_KIND(id, changes) CHANGES_##id = (changes),
    LIST_KIND_TABLE(LIST_KIND)
#undef LIST_KIND
#define LIST_VERB(id, kind, traits) VERB_CHANGES_##id = CHANGES_##kind,
#define LIST_WORD(id, word, takes, answer)
        LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
};

static const struct verb_info verbs[VERB_COUNT] = {
#define VERB_ROW(id, name, verb_shape) \
    [VERB_##id] = {{name, sizeof(name) - 1}, VERB_##id, verb_shape, false},
#define LIST_VERB(id, kind, traits)
#define LIST_WORD(id, word, takes, answer) \
    [VERB_## \
        word] = {{#word, sizeof(#word) - 1}, VERB_##word, SHAPE_LIST_##takes, VERB_CHANGES_##id},
    VERB_TABLE(VERB_ROW) LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef VERB_ROW
#undef LIST_VERB
#undef LIST_WORD
};

static struct {
    uint64_t factor;
    uint64_t fronts[VERB_COUNT];
    uint8_t slots[1 << SLOT_BITS]; /* the verb whose word has that hash, or any other */
} table;

_Static_assert(VERB_COUNT <= UINT8_MAX, "a slot holds a verb");

/* The first bytes of a word, the first one lowest; 0 where it is shorter. */
static uint64_t front_of(struct slice word)
{
    uint64_t front = 0;
    size_t len = word.len < FRONT_BYTES ? word.len : FRONT_BYTES;
    for (size_t i = len; i-- > 0;) {
        front = front << 8 | (unsigned char)word.p[i];
    }
    return front;
}

static inline size_t slot_of(uint64_t front)
{
    return front * table.factor >> (64 - SLOT_BITS);
}

/* Fills the slots; false when two words have the same one. */
static bool fill_slots(void)
{
    bool taken[1 << SLOT_BITS] = {false};
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        size_t slot = slot_of(table.fronts[v]);
        if (taken[slot]) {
            return false;
        }
        taken[slot] = true;
        table.slots[slot] = (uint8_t)v;
    }
    return true;
}

static void __attribute__((constructor)) make_table(void)
{
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        table.fronts[v] = front_of(verbs[v].text);
    }
    unsigned tries = 0;
    do {
        CHECK(tries++ < 100000); /* or two words begin with the same bytes */
        /* Random enough: a linear congruential generator with the constants of Knuth's MMIX. */
        table.factor = table.factor * 6364136223846793005u + 1442695040888963407u;
    } while (!fill_slots());
}

const struct verb_info *verb_info(enum verb verb)
{
    CHECK((unsigned)verb < VERB_COUNT);
    return &verbs[verb];
}

static RARE bool same_tail(struct slice a, struct slice b)
{
    return memcmp(a.p + FRONT_BYTES, b.p + FRONT_BYTES, a.len - FRONT_BYTES) == 0;
}

static inline const struct verb_info *find(struct slice word, uint64_t front)
{
    unsigned v = table.slots[slot_of(front)];
    const struct verb_info *info = &verbs[v];
    if (table.fronts[v] != front || info->text.len != word.len ||
        (word.len > FRONT_BYTES && !same_tail(info->text, word))) {
        return NULL;
    }
    return info;
}

/* The lowest bit that is set is the highest one of the first blank; 0: there is none. */
static inline uint64_t mark_blanks(uint64_t bytes)
{
    uint64_t x = bytes ^ 0x2020202020202020u;
    return (x - 0x0101010101010101u) & ~x & 0x8080808080808080u;
}

/* The first bytes of a line, without reading behind its end: as front_of. */
static inline uint64_t line_front(struct slice line)
{
    if (LIKELY(line.len >= FRONT_BYTES)) {
        uint64_t bytes;
        memcpy(&bytes, line.p, sizeof bytes);
        return le64toh(bytes);
    }
    if (line.len >= 4) {
        uint32_t low, high; /* they overlap */
        memcpy(&low, line.p, sizeof low);
        memcpy(&high, line.p + line.len - sizeof high, sizeof high);
        return le32toh(low) | (uint64_t)le32toh(high) << 8 * (line.len - sizeof high);
    }
    return front_of(line);
}

const struct verb_info *verb_take(struct slice *line)
{
    uint64_t front = line_front(*line), blanks = mark_blanks(front);
    size_t len;
    if (LIKELY(blanks != 0)) {
        len = (size_t)__builtin_ctzll(blanks) / 8;
        front &= ((blanks & -blanks) >> 7) - 1;
    } else {
        for (len = line->len < FRONT_BYTES ? line->len : FRONT_BYTES; len < line->len; len++) {
            if (line->p[len] == ' ') {
                break;
            }
        }
    }
    return find(slice_take(line, len), front);
}

const struct verb_info *verb_find(struct slice word)
{
    const struct verb_info *info = verb_take(&word);
    return word.len == 0 ? info : NULL;
}

bool verb_set_is_empty(const struct verb_set *set)
{
    uint64_t any = 0;
    for (size_t i = 0; i < sizeof set->bits / sizeof set->bits[0]; i++) {
        any |= set->bits[i];
    }
    return any == 0;
}
