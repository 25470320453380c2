/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every verb that a client may send: memcached's in the table below, those of lists in
 * proto/list_verbs.h. The parser, the dispatcher, the docs check and `stats` read both.
 */
#ifndef PROTO_CLIENT_VERB_H
#define PROTO_CLIENT_VERB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "proto/list_verbs.h"

/* The shape of a request's line: what follows the verb. */
enum verb_shape {
    SHAPE_KEYS,     /* KEY... */
    SHAPE_GAT,      /* EXPTIME KEY... */
    SHAPE_STORE,    /* KEY FLAGS EXPTIME BYTES [CAS] [noreply] + data block */
    SHAPE_DELETE,   /* KEY [0] [noreply] */
    SHAPE_ARITH,    /* KEY DELTA [noreply] */
    SHAPE_TOUCH,    /* KEY EXPTIME [noreply] */
    SHAPE_META,     /* KEY FLAG... */
    SHAPE_META_SET, /* KEY BYTES FLAG... + data block */
    SHAPE_PLAIN,    /* anything: answered by the proxy itself, tokens are looked at there */
    SHAPE_REFUSED,  /* memcached knows it, a proxy cannot mean it: CLIENT_ERROR */
    /* Of lists: see the column "takes". They stand last: see shape_is_list(). */
    SHAPE_LIST_ITEMS,
    SHAPE_LIST_CONTENT,
    SHAPE_LIST_TIMED,
    SHAPE_LIST_KEY,
    SHAPE_LIST_KEY_ITEM,
    SHAPE_LIST_KEYS,
    SHAPE_LIST_LISTS,
    SHAPE_LIST_TARGET,
    SHAPE_LIST_RANGE,
    SHAPE_LIST_EXPTIME,
    SHAPE_LIST_LEASE,
    SHAPE_LIST_PAIR,
    SHAPE_LIST_DATA,
    SHAPE_LIST_TIMED_DATA,
    SHAPE_LIST_BLOCK,
    SHAPE_LIST_LINES,
    SHAPE_LIST_COUNT,
    SHAPE_LIST_PAGE,
    SHAPE_LIST_CHANGES,
    SHAPE_LIST_MOVE,
    SHAPE_LIST_MOVE_ENDS,
};

/* Is it the shape of a list verb? */
static inline bool shape_is_list(enum verb_shape shape)
{
    return shape >= SHAPE_LIST_ITEMS;
}

/* Do items follow the key on the line? */
static inline bool shape_has_items(enum verb_shape shape)
{
    return shape == SHAPE_LIST_ITEMS || shape == SHAPE_LIST_CONTENT || shape == SHAPE_LIST_TIMED ||
           shape == SHAPE_LIST_KEY_ITEM || shape == SHAPE_LIST_MOVE;
}

/* Is the data block one item? */
static inline bool shape_has_item_block(enum verb_shape shape)
{
    return shape == SHAPE_LIST_DATA || shape == SHAPE_LIST_TIMED_DATA;
}

/* Do items go from one list to another? */
static inline bool shape_moves(enum verb_shape shape)
{
    return shape == SHAPE_LIST_MOVE || shape == SHAPE_LIST_MOVE_ENDS;
}

/* Is one request about several lists at one instant? */
static inline bool shape_has_lists(enum verb_shape shape)
{
    return shape == SHAPE_LIST_LISTS || shape == SHAPE_LIST_TARGET;
}

/* Does a data block hold all items of the list? */
static inline bool shape_has_block(enum verb_shape shape)
{
    return shape == SHAPE_LIST_BLOCK || shape == SHAPE_LIST_LINES;
}

/* VERB(id, text, shape) */
#define VERB_TABLE(VERB) \
    VERB(GET, "get", SHAPE_KEYS) \
    VERB(GETS, "gets", SHAPE_KEYS) \
    VERB(GAT, "gat", SHAPE_GAT) \
    VERB(GATS, "gats", SHAPE_GAT) \
    VERB(SET, "set", SHAPE_STORE) \
    VERB(ADD, "add", SHAPE_STORE) \
    VERB(REPLACE, "replace", SHAPE_STORE) \
    VERB(APPEND, "append", SHAPE_STORE) \
    VERB(PREPEND, "prepend", SHAPE_STORE) \
    VERB(CAS, "cas", SHAPE_STORE) \
    VERB(DELETE, "delete", SHAPE_DELETE) \
    VERB(INCR, "incr", SHAPE_ARITH) \
    VERB(DECR, "decr", SHAPE_ARITH) \
    VERB(TOUCH, "touch", SHAPE_TOUCH) \
    VERB(MG, "mg", SHAPE_META) \
    VERB(MS, "ms", SHAPE_META_SET) \
    VERB(MD, "md", SHAPE_META) \
    VERB(MA, "ma", SHAPE_META) \
    VERB(ME, "me", SHAPE_META) \
    VERB(MN, "mn", SHAPE_PLAIN) \
    VERB(VERSION, "version", SHAPE_PLAIN) \
    VERB(VERBOSITY, "verbosity", SHAPE_PLAIN) \
    VERB(STATS, "stats", SHAPE_PLAIN) \
    VERB(FLUSH_ALL, "flush_all", SHAPE_PLAIN) \
    VERB(QUIT, "quit", SHAPE_PLAIN) \
    VERB(SLABS, "slabs", SHAPE_REFUSED) \
    VERB(LRU, "lru", SHAPE_REFUSED) \
    VERB(LRU_CRAWLER, "lru_crawler", SHAPE_REFUSED) \
    VERB(WATCH, "watch", SHAPE_REFUSED) \
    VERB(CACHE_MEMLIMIT, "cache_memlimit", SHAPE_REFUSED) \
    VERB(SHUTDOWN, "shutdown", SHAPE_REFUSED) \
    VERB(REFRESH_CERTS, "refresh_certs", SHAPE_REFUSED) \
    VERB(EXTSTORE, "extstore", SHAPE_REFUSED) \
    VERB(MISBEHAVE, "misbehave", SHAPE_REFUSED)

enum verb {
#define VERB_ROW(id, text, shape) VERB_##id,
#define LIST_VERB(id, kind, traits)
#define LIST_WORD(verb, word, takes, answer) VERB_##word,
    VERB_TABLE(VERB_ROW) LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef VERB_ROW
#undef LIST_VERB
#undef LIST_WORD
        VERB_COUNT
};

struct verb_set {
    uint64_t bits[(VERB_COUNT + 63) / 64];
};

static inline bool verb_set_has(const struct verb_set *set, enum verb verb)
{
    return (set->bits[verb / 64] >> (verb % 64) & 1) != 0;
}
bool verb_set_is_empty(const struct verb_set *set);

struct verb_info {
    struct slice text;
    enum verb verb;
    enum verb_shape shape;
    bool changes_lists;
};

/* The table's row of a verb; never NULL. */
const struct verb_info *verb_info(enum verb verb);
/* Looks a word up (case-sensitive, as memcached does); NULL when it is no verb. */
const struct verb_info *verb_find(struct slice word);
/* Takes the word at the front of *line, up to a blank, and looks it up. */
const struct verb_info *verb_take(struct slice *line);

#endif
