/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every list verb, in one table: a row says what the engine does for it, and by which words clients
 * ask. Whatever depends on the verb alone is derived from here: the parser, the usage texts, the
 * answers, the counters, the engine's order of calls, the lanes of the dialects. Each user expands
 * the columns that it needs, so no folder depends on the names of another.
 *
 *     VERB(id, kind, traits)           what the engine does: LIST_id in list/core/list_verb.h
 *     WORD(id, word, takes, answer)    how clients ask for it: each verb has one word or more
 *
 * kind: how it travels.
 *     BLIND         a change that needs no look at the list: one APPEND with others
 *     EXACT         a change that depends on what the list holds: one CAS with others
 *     FILL          replaces the whole content, of any size, by one CAS of its own
 *     READ          changes nothing
 *     COMPACTION    has the list to itself
 *     CONVERSION    the same, in lists of dialects
 *
 * traits: what else the engine wants to know; several with |, or 0.
 *     LIST_MAKES        a list that is missing begins with it
 *     LIST_IN_TURNS     goes in turns with changes and looks of its session (change/interleaved.h)
 *     LIST_ALONE        an exact change that shares its CAS with no other
 *     LIST_LONG         waits for long_timeout_ms instead of deadline_ms
 *     LIST_COUNTS       the answer needs the number of items
 *     LIST_WHOLE        the answer is all items, in their order
 *     LIST_FROM_OLDEST  the answer is the items at positions from .. to, 0 the first of the list
 *     LIST_FROM_NEWEST  the same, 0 the newest item, the newest first
 *
 * takes: what follows the word.
 *     ITEMS      KEY ITEM...
 *     CONTENT    KEY [ITEM...]
 *     KEY        KEY
 *     KEYS       KEY...
 *     RANGE      KEY FROM TO
 *     EXPTIME    KEY EXPTIME
 *     PAIR       SRC DST
 *     LEASE      KEY SECONDS
 *     BLOCK      KEY BYTES [EXPTIME [TOKEN]] + data block: items, joined by the delimiter
 *     LINES      the same with an ITEM line for each item, as the answer LINES
 *     DATA       KEY BYTES [noreply] + data block: one item of any bytes
 *
 * answer: when it is done / when there is no list.
 *     STORED     STORED / NOT_STORED; STORED_QUIET leaves STORED out
 *     DELETED    DELETED / NOT_FOUND; DELETED_QUIET leaves DELETED out
 *     OK         OK / NOT_FOUND
 *     ADDED      a number / NOT_STORED
 *     REMOVED    a number / NOT_FOUND
 *     NUMBER     a number / 0
 *     TOUCHED    TOUCHED / NOT_FOUND
 *     SECONDS    a number, -1 for never / NOT_FOUND
 *     LEASE      a number; NOT_STORED; EXISTS
 * and these, END behind them:
 *     VALUE      VALUE and the items, joined / nothing
 *     VERSIONED  the same, with the version of the list
 *     SOME       as VALUE, nothing when none of what was asked for is there
 *     LINES      an ITEM line for each item
 *     STAT       STAT lines
 */
#ifndef PROTO_LIST_VERBS_H
#define PROTO_LIST_VERBS_H

/* clang-format off */
#define LIST_VERB_TABLE(VERB, WORD) \
    VERB(ADD, BLIND, LIST_MAKES | LIST_IN_TURNS) WORD(ADD, ladd, ITEMS, STORED) \
                                                 WORD(ADD, laddq, ITEMS, STORED_QUIET) \
                                                 WORD(ADD, laddb, DATA, STORED) \
    VERB(DEL, BLIND, LIST_IN_TURNS)              WORD(DEL, ldel, ITEMS, DELETED) \
                                                 WORD(DEL, ldelq, ITEMS, DELETED_QUIET) \
                                                 WORD(DEL, ldelb, DATA, DELETED) \
    VERB(SET, BLIND, LIST_MAKES)                 WORD(SET, lset, CONTENT, STORED) \
                                                 WORD(SET, lsetq, CONTENT, STORED_QUIET) \
    VERB(ADDX, EXACT, LIST_MAKES)                WORD(ADDX, laddx, ITEMS, ADDED) \
    VERB(DELX, EXACT, 0)                         WORD(DELX, ldelx, ITEMS, REMOVED) \
    VERB(CREATE, EXACT, LIST_MAKES | LIST_ALONE) WORD(CREATE, lcreate, CONTENT, STORED) \
    VERB(TOUCH, EXACT, LIST_ALONE | LIST_LONG)   WORD(TOUCH, ltouch, EXPTIME, TOUCHED) \
    VERB(LEASE, EXACT, 0)                        WORD(LEASE, llease, LEASE, LEASE) \
    VERB(PUT, FILL, LIST_MAKES | LIST_LONG)      WORD(PUT, lput, BLOCK, STORED) \
                                                 WORD(PUT, lputb, LINES, STORED) \
    VERB(COPY, FILL, LIST_MAKES | LIST_LONG)     WORD(COPY, lcopy, PAIR, REMOVED) \
    VERB(GET, READ, LIST_WHOLE)                  WORD(GET, lget, KEYS, VALUE) \
                                                 WORD(GET, lgets, KEYS, VERSIONED) \
                                                 WORD(GET, lgetb, KEYS, LINES) \
    VERB(HAS, READ, LIST_IN_TURNS)               WORD(HAS, lhas, ITEMS, SOME) \
                                                 WORD(HAS, lhasb, DATA, SOME) \
    VERB(LEN, READ, LIST_COUNTS)                 WORD(LEN, llen, KEY, NUMBER) \
    VERB(TTL, READ, LIST_COUNTS)                 WORD(TTL, lttl, KEY, SECONDS) \
    VERB(RANGE, READ, LIST_FROM_OLDEST)          WORD(RANGE, lrange, RANGE, SOME) \
    VERB(REVRANGE, READ, LIST_FROM_NEWEST)       WORD(REVRANGE, lrevrange, RANGE, SOME) \
    VERB(DROP, COMPACTION, 0)                    WORD(DROP, ldrop, KEY, DELETED) \
    VERB(COMPACT, COMPACTION, LIST_LONG)         WORD(COMPACT, lcompact, KEY, OK) \
    VERB(STAT, READ, LIST_COUNTS)                WORD(STAT, lstat, KEY, STAT) \
    VERB(CONVERT, CONVERSION, LIST_LONG)         WORD(CONVERT, lconvert, KEY, NUMBER)
/* clang-format on */

#endif
