/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every verb a client may send, in one table: the parser, the dispatcher, the docs check and
 * `stats` read it.
 */
#ifndef PROTO_CLIENT_VERB_H
#define PROTO_CLIENT_VERB_H

#include <stdint.h>

#include "base/slice.h"

/* The shape of a request's line: what follows the verb. */
enum verb_shape {
    SHAPE_KEYS,       /* KEY... */
    SHAPE_GAT,        /* EXPTIME KEY... */
    SHAPE_STORE,      /* KEY FLAGS EXPTIME BYTES [CAS] [noreply] + data block */
    SHAPE_DELETE,     /* KEY [0] [noreply] */
    SHAPE_ARITH,      /* KEY DELTA [noreply] */
    SHAPE_TOUCH,      /* KEY EXPTIME [noreply] */
    SHAPE_META,       /* KEY FLAG... */
    SHAPE_META_SET,   /* KEY BYTES FLAG... + data block */
    SHAPE_PLAIN,      /* anything: answered by the proxy itself, tokens are looked at there */
    SHAPE_LIST,       /* KEY ITEM... ; at least min_items */
    SHAPE_LIST_KEYS,  /* KEY... */
    SHAPE_LIST_RANGE, /* KEY FROM TO */
    SHAPE_LIST_DATA,  /* KEY BYTES [noreply] + data block: one item of any bytes */
    SHAPE_REFUSED,    /* memcached knows it, a proxy cannot mean it: CLIENT_ERROR */
};

/* VERB(id, text, shape, min_items) */
#define VERB_TABLE(VERB) \
    VERB(GET, "get", SHAPE_KEYS, 0) \
    VERB(GETS, "gets", SHAPE_KEYS, 0) \
    VERB(GAT, "gat", SHAPE_GAT, 0) \
    VERB(GATS, "gats", SHAPE_GAT, 0) \
    VERB(SET, "set", SHAPE_STORE, 0) \
    VERB(ADD, "add", SHAPE_STORE, 0) \
    VERB(REPLACE, "replace", SHAPE_STORE, 0) \
    VERB(APPEND, "append", SHAPE_STORE, 0) \
    VERB(PREPEND, "prepend", SHAPE_STORE, 0) \
    VERB(CAS, "cas", SHAPE_STORE, 0) \
    VERB(DELETE, "delete", SHAPE_DELETE, 0) \
    VERB(INCR, "incr", SHAPE_ARITH, 0) \
    VERB(DECR, "decr", SHAPE_ARITH, 0) \
    VERB(TOUCH, "touch", SHAPE_TOUCH, 0) \
    VERB(MG, "mg", SHAPE_META, 0) \
    VERB(MS, "ms", SHAPE_META_SET, 0) \
    VERB(MD, "md", SHAPE_META, 0) \
    VERB(MA, "ma", SHAPE_META, 0) \
    VERB(ME, "me", SHAPE_META, 0) \
    VERB(MN, "mn", SHAPE_PLAIN, 0) \
    VERB(VERSION, "version", SHAPE_PLAIN, 0) \
    VERB(VERBOSITY, "verbosity", SHAPE_PLAIN, 0) \
    VERB(STATS, "stats", SHAPE_PLAIN, 0) \
    VERB(FLUSH_ALL, "flush_all", SHAPE_PLAIN, 0) \
    VERB(QUIT, "quit", SHAPE_PLAIN, 0) \
    VERB(LADD, "ladd", SHAPE_LIST, 1) \
    VERB(LDEL, "ldel", SHAPE_LIST, 1) \
    VERB(LADDQ, "laddq", SHAPE_LIST, 1) \
    VERB(LDELQ, "ldelq", SHAPE_LIST, 1) \
    VERB(LADDX, "laddx", SHAPE_LIST, 1) \
    VERB(LDELX, "ldelx", SHAPE_LIST, 1) \
    VERB(LSET, "lset", SHAPE_LIST, 0) \
    VERB(LSETQ, "lsetq", SHAPE_LIST, 0) \
    VERB(LCREATE, "lcreate", SHAPE_LIST, 0) \
    VERB(LHAS, "lhas", SHAPE_LIST, 1) \
    VERB(LGET, "lget", SHAPE_LIST_KEYS, 0) \
    VERB(LGETS, "lgets", SHAPE_LIST_KEYS, 0) \
    VERB(LGETB, "lgetb", SHAPE_LIST_KEYS, 0) \
    VERB(LLEN, "llen", SHAPE_LIST, 0) \
    VERB(LRANGE, "lrange", SHAPE_LIST_RANGE, 0) \
    VERB(LDROP, "ldrop", SHAPE_LIST, 0) \
    VERB(LCOMPACT, "lcompact", SHAPE_LIST, 0) \
    VERB(LCONVERT, "lconvert", SHAPE_LIST, 0) \
    VERB(LSTAT, "lstat", SHAPE_LIST, 0) \
    VERB(LADDB, "laddb", SHAPE_LIST_DATA, 0) \
    VERB(LDELB, "ldelb", SHAPE_LIST_DATA, 0) \
    VERB(LHASB, "lhasb", SHAPE_LIST_DATA, 0) \
    VERB(SLABS, "slabs", SHAPE_REFUSED, 0) \
    VERB(LRU, "lru", SHAPE_REFUSED, 0) \
    VERB(LRU_CRAWLER, "lru_crawler", SHAPE_REFUSED, 0) \
    VERB(WATCH, "watch", SHAPE_REFUSED, 0) \
    VERB(CACHE_MEMLIMIT, "cache_memlimit", SHAPE_REFUSED, 0) \
    VERB(SHUTDOWN, "shutdown", SHAPE_REFUSED, 0) \
    VERB(REFRESH_CERTS, "refresh_certs", SHAPE_REFUSED, 0) \
    VERB(EXTSTORE, "extstore", SHAPE_REFUSED, 0) \
    VERB(MISBEHAVE, "misbehave", SHAPE_REFUSED, 0)

enum verb {
#define VERB_ENUM(id, text, shape, min_items) VERB_##id,
    VERB_TABLE(VERB_ENUM)
#undef VERB_ENUM
        VERB_COUNT
};

struct verb_info {
    struct slice text;
    enum verb verb;
    enum verb_shape shape;
    uint32_t min_items;
};

/* The table's row of a verb; never NULL. */
const struct verb_info *verb_info(enum verb verb);
/* Looks a word up (case-sensitive, as memcached does); NULL when it is no verb. */
const struct verb_info *verb_find(struct slice word);
/* Takes the word at the front of *line, up to a blank, and looks it up. */
const struct verb_info *verb_take(struct slice *line);

#endif
