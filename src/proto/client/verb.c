/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/verb.h"

#include "base/check.h"

#define VERB_ROW(id, name, verb_shape, min) \
    [VERB_##id] = {{name, sizeof(name) - 1}, VERB_##id, verb_shape, min},
static const struct verb_info verbs[VERB_COUNT] = {VERB_TABLE(VERB_ROW)};
#undef VERB_ROW

/* A word of up to eight bytes as one number, the first byte highest, so that a switch can tell
 * words apart with a few compares. The letters repeat the table's texts; test_verb looks up every
 * row. */
#define PACK2(a, b) ((uint64_t)(a) << 8 | (uint64_t)(b))
#define PACK3(a, b, c) (PACK2(a, b) << 8 | (uint64_t)(c))
#define PACK4(a, b, c, d) (PACK3(a, b, c) << 8 | (uint64_t)(d))
#define PACK5(a, b, c, d, e) (PACK4(a, b, c, d) << 8 | (uint64_t)(e))
#define PACK6(a, b, c, d, e, f) (PACK5(a, b, c, d, e) << 8 | (uint64_t)(f))
#define PACK7(a, b, c, d, e, f, g) (PACK6(a, b, c, d, e, f) << 8 | (uint64_t)(g))
#define PACK8(a, b, c, d, e, f, g, h) (PACK7(a, b, c, d, e, f, g) << 8 | (uint64_t)(h))

/* Words of two to four bytes: nearly all of the traffic. */
static enum verb find_short(uint64_t packed)
{
    switch (packed) {
    case PACK2('m', 'g'):
        return VERB_MG;
    case PACK2('m', 's'):
        return VERB_MS;
    case PACK2('m', 'd'):
        return VERB_MD;
    case PACK2('m', 'a'):
        return VERB_MA;
    case PACK2('m', 'e'):
        return VERB_ME;
    case PACK2('m', 'n'):
        return VERB_MN;
    case PACK3('g', 'e', 't'):
        return VERB_GET;
    case PACK3('s', 'e', 't'):
        return VERB_SET;
    case PACK3('a', 'd', 'd'):
        return VERB_ADD;
    case PACK3('c', 'a', 's'):
        return VERB_CAS;
    case PACK3('g', 'a', 't'):
        return VERB_GAT;
    case PACK3('l', 'r', 'u'):
        return VERB_LRU;
    case PACK4('g', 'e', 't', 's'):
        return VERB_GETS;
    case PACK4('g', 'a', 't', 's'):
        return VERB_GATS;
    case PACK4('i', 'n', 'c', 'r'):
        return VERB_INCR;
    case PACK4('d', 'e', 'c', 'r'):
        return VERB_DECR;
    case PACK4('q', 'u', 'i', 't'):
        return VERB_QUIT;
    case PACK4('l', 'a', 'd', 'd'):
        return VERB_LADD;
    case PACK4('l', 'd', 'e', 'l'):
        return VERB_LDEL;
    case PACK4('l', 's', 'e', 't'):
        return VERB_LSET;
    case PACK4('l', 'h', 'a', 's'):
        return VERB_LHAS;
    case PACK4('l', 'g', 'e', 't'):
        return VERB_LGET;
    case PACK4('l', 'l', 'e', 'n'):
        return VERB_LLEN;
    default:
        return VERB_COUNT;
    }
}

static enum verb find_middle(uint64_t packed)
{
    switch (packed) {
    case PACK5('t', 'o', 'u', 'c', 'h'):
        return VERB_TOUCH;
    case PACK5('s', 't', 'a', 't', 's'):
        return VERB_STATS;
    case PACK5('l', 'a', 'd', 'd', 'q'):
        return VERB_LADDQ;
    case PACK5('l', 'd', 'e', 'l', 'q'):
        return VERB_LDELQ;
    case PACK5('l', 'a', 'd', 'd', 'x'):
        return VERB_LADDX;
    case PACK5('l', 'd', 'e', 'l', 'x'):
        return VERB_LDELX;
    case PACK5('l', 's', 'e', 't', 'q'):
        return VERB_LSETQ;
    case PACK5('l', 'g', 'e', 't', 's'):
        return VERB_LGETS;
    case PACK5('l', 'g', 'e', 't', 'b'):
        return VERB_LGETB;
    case PACK5('l', 'd', 'r', 'o', 'p'):
        return VERB_LDROP;
    case PACK5('l', 's', 't', 'a', 't'):
        return VERB_LSTAT;
    case PACK5('l', 'a', 'd', 'd', 'b'):
        return VERB_LADDB;
    case PACK5('l', 'd', 'e', 'l', 'b'):
        return VERB_LDELB;
    case PACK5('l', 'h', 'a', 's', 'b'):
        return VERB_LHASB;
    case PACK5('s', 'l', 'a', 'b', 's'):
        return VERB_SLABS;
    case PACK5('w', 'a', 't', 'c', 'h'):
        return VERB_WATCH;
    case PACK6('a', 'p', 'p', 'e', 'n', 'd'):
        return VERB_APPEND;
    case PACK6('d', 'e', 'l', 'e', 't', 'e'):
        return VERB_DELETE;
    case PACK6('l', 'r', 'a', 'n', 'g', 'e'):
        return VERB_LRANGE;
    case PACK7('r', 'e', 'p', 'l', 'a', 'c', 'e'):
        return VERB_REPLACE;
    case PACK7('p', 'r', 'e', 'p', 'e', 'n', 'd'):
        return VERB_PREPEND;
    case PACK7('v', 'e', 'r', 's', 'i', 'o', 'n'):
        return VERB_VERSION;
    case PACK7('l', 'c', 'r', 'e', 'a', 't', 'e'):
        return VERB_LCREATE;
    case PACK8('l', 'c', 'o', 'm', 'p', 'a', 'c', 't'):
        return VERB_LCOMPACT;
    case PACK8('l', 'c', 'o', 'n', 'v', 'e', 'r', 't'):
        return VERB_LCONVERT;
    case PACK8('s', 'h', 'u', 't', 'd', 'o', 'w', 'n'):
        return VERB_SHUTDOWN;
    case PACK8('e', 'x', 't', 's', 't', 'o', 'r', 'e'):
        return VERB_EXTSTORE;
    default:
        return VERB_COUNT;
    }
}

/* Rare words: one after the other. */
static RARE enum verb find_long(struct slice word)
{
    static const enum verb candidates[] = {VERB_FLUSH_ALL,     VERB_VERBOSITY,
                                           VERB_MISBEHAVE,     VERB_LRU_CRAWLER,
                                           VERB_REFRESH_CERTS, VERB_CACHE_MEMLIMIT};
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (slice_equal(verbs[candidates[i]].text, word)) {
            return candidates[i];
        }
    }
    return VERB_COUNT;
}

const struct verb_info *verb_info(enum verb verb)
{
    CHECK((unsigned)verb < VERB_COUNT);
    return &verbs[verb];
}

const struct verb_info *verb_take(struct slice *line)
{
    const char *end = line->p + line->len;
    const char *p = line->p;
    uint64_t packed = 0;
    while (p < end && *p != ' ') {
        packed = packed << 8 | (unsigned char)*p++;
    }
    struct slice word = slice_take(line, (size_t)(p - line->p));
    enum verb verb;
    if (word.len <= 4) {
        verb = find_short(packed);
    } else if (word.len <= 8) {
        verb = find_middle(packed);
    } else {
        verb = find_long(word);
    }
    /* A packed word does not say how many zero bytes it began with. */
    if (verb == VERB_COUNT || verbs[verb].text.len != word.len) {
        return NULL;
    }
    return &verbs[verb];
}

const struct verb_info *verb_find(struct slice word)
{
    const struct verb_info *info = verb_take(&word);
    return word.len == 0 ? info : NULL;
}
