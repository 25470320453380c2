/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every list verb, in one table: a row says what the engine does for it, and by which words clients
 * ask. Whatever depends on the verb alone is derived from here: the parser, the usage texts, the
 * answers, the counters, the engine's order of calls, the lanes of the dialects. Each user expands
 * the columns that it needs, so no folder depends on the names of another.
 *
 *     KIND(id, changes)                a kind of them, and whether it may change something
 *     VERB(id, kind, traits)           what the engine does: LIST_id in list/core/list_verb.h
 *     WORD(id, word, takes, answer)    how clients ask for it: each verb has one word or more
 *
 * kind: how it travels.
 *     BLIND         a change that needs no look at the list: one APPEND with others
 *     EXACT         a change that depends on what the list holds: one CAS with others
 *     FILL          replaces the whole content, of any size, by one CAS of its own
 *     PURGE         deletes plain items, and takes their names off the list, in several steps
 *     TX            changes several lists at one instant, or none; it goes beside all else
 *     READ          changes nothing
 *     JOINT         the same, of several lists at one instant; it goes beside all else
 *     COMPACTION    has the list to itself
 *     CONVERSION    takes a list to another layout, or to another server
 *
 * traits: what else the engine wants to know; several with |, or 0.
 *     LIST_MAKES        a list that is missing begins with it
 *     LIST_IN_TURNS     goes in turns with changes and looks of its session (change/turns.h)
 *     LIST_ALONE        an exact change that shares its CAS with no other
 *     LIST_LONG         waits for long_timeout_ms instead of deadline_ms
 *     LIST_COUNTS       the answer needs the number of items
 *     LIST_WHOLE        the answer is all items, in their order
 *     LIST_FROM_OLDEST  the answer is the items at positions from .. to, 0 the first of the list
 *     LIST_FROM_NEWEST  the same, 0 the newest item, the newest first
 *     LIST_TAKES        the answer is the items that the change takes off
 *     LIST_SAMPLES      the answer is count items at random
 *     LIST_BEHIND       the answer is the count items behind items[0]
 *     LIST_AHEAD        the answer is the count items before it, the nearest first
 *     LIST_STORES       the content is what other lists amount to
 *
 * takes: what follows the word.
 *     ITEMS      KEY ITEM...
 *     CONTENT    KEY [ITEM...]
 *     KEY        KEY
 *     KEYS       KEY...
 *     RANGE      KEY FROM TO
 *     COUNT      KEY COUNT
 *     PAGE       KEY ITEM COUNT
 *     EXPTIME    KEY EXPTIME
 *     PAIR       SRC DST [EXPTIME] [new]
 *     LISTS      KEY...: one call for all of them
 *     TARGET     DST KEY...: the same, and the list that is made
 *     LEASE      KEY SECONDS
 *     TIMED      KEY SECONDS ITEM...
 *     TIMED_DATA KEY SECONDS BYTES [noreply] + data block: one item of any bytes
 *     KEY_ITEM   KEY [ITEM]
 *     BLOCK      KEY BYTES [EXPTIME [TOKEN]] [new] + data block: items, joined by the delimiter
 *     LINES      the same with an ITEM line for each item, as the answer LINES
 *     DATA       KEY BYTES [noreply] + data block: one item of any bytes
 *     CHANGES    BYTES [noreply] + data block: lines, each the change of a list or a condition
 *     MOVE       SRC DST ITEM...
 *     MOVE_ENDS  SRC DST COUNT
 *
 * answer: when it is done / when there is no list.
 *     STORED     STORED / NOT_STORED; STORED_QUIET leaves STORED out
 *     COMMITTED  STORED / NOT_FOUND
 *     DELETED    DELETED / NOT_FOUND; DELETED_QUIET leaves DELETED out
 *     OK         OK / NOT_FOUND
 *     ADDED      a number / NOT_STORED
 *     REMOVED    a number / NOT_FOUND
 *     NUMBER     a number / 0; of several lists a line each
 *     TOUCHED    TOUCHED / NOT_FOUND
 *     SECONDS    a number, -1 for never / NOT_FOUND
 *     LEASE      a number; NOT_STORED; EXISTS
 * and these, END behind them:
 *     VALUE      VALUE and the items, joined / nothing
 *     VERSIONED  the same, with the version of the list
 *     SOME       as VALUE, nothing when none of what was asked for is there
 *     MOVED      the same, under the key of the list that has the items now; NOT_FOUND alone when a
 *                list is missing, also where LIST_POPTO answers LINES
 *     EACH       as VALUE, for each list of the call
 *     LINES      an ITEM line for each item
 *     STAT       STAT lines
 *     PAGE       as SOME; when the list, or the item asked for, is not there: NOT_FOUND alone
 */
#ifndef PROTO_LIST_VERBS_H
#define PROTO_LIST_VERBS_H

/* clang-format off */
#define LIST_KIND_TABLE(KIND) \
    KIND(BLIND, true) \
    KIND(EXACT, true) \
    KIND(FILL, true) \
    KIND(PURGE, true) \
    KIND(TX, true) \
    KIND(READ, false) \
    KIND(JOINT, false) \
    KIND(COMPACTION, true) \
    KIND(CONVERSION, true)

#define LIST_VERB_TABLE(VERB, WORD) \
    VERB(ADD, BLIND, LIST_MAKES | LIST_IN_TURNS) WORD(ADD, ladd, ITEMS, STORED) \
                                                 WORD(ADD, laddq, ITEMS, STORED_QUIET) \
                                                 WORD(ADD, laddb, DATA, STORED) \
    VERB(ADDT, BLIND, LIST_MAKES)                WORD(ADDT, laddt, TIMED, STORED) \
                                                 WORD(ADDT, laddtb, TIMED_DATA, STORED) \
    VERB(DEL, BLIND, LIST_IN_TURNS)              WORD(DEL, ldel, ITEMS, DELETED) \
                                                 WORD(DEL, ldelq, ITEMS, DELETED_QUIET) \
                                                 WORD(DEL, ldelb, DATA, DELETED) \
    VERB(SET, BLIND, LIST_MAKES)                 WORD(SET, lset, CONTENT, STORED) \
                                                 WORD(SET, lsetq, CONTENT, STORED_QUIET) \
    VERB(ADDX, EXACT, LIST_MAKES)                WORD(ADDX, laddx, ITEMS, ADDED) \
    VERB(DELX, EXACT, 0)                         WORD(DELX, ldelx, ITEMS, REMOVED) \
    VERB(CREATE, EXACT, LIST_MAKES | LIST_ALONE) WORD(CREATE, lcreate, CONTENT, STORED) \
    VERB(TOUCH, EXACT, LIST_ALONE | LIST_LONG)   WORD(TOUCH, ltouch, EXPTIME, TOUCHED) \
    VERB(POP, EXACT, LIST_TAKES)                 WORD(POP, lpop, COUNT, SOME) \
                                                 WORD(POP, lpopb, COUNT, LINES) \
    VERB(LEASE, EXACT, 0)                        WORD(LEASE, llease, LEASE, LEASE) \
    VERB(TX, TX, LIST_MAKES)                     WORD(TX, ltx, CHANGES, COMMITTED) \
    VERB(MOVE, TX, LIST_MAKES)                   WORD(MOVE, lmove, MOVE, REMOVED) \
    VERB(POPTO, TX, LIST_MAKES | LIST_TAKES)     WORD(POPTO, lpopto, MOVE_ENDS, MOVED) \
                                                 WORD(POPTO, lpoptob, MOVE_ENDS, LINES) \
    VERB(PUT, FILL, LIST_MAKES | LIST_LONG)      WORD(PUT, lput, BLOCK, STORED) \
                                                 WORD(PUT, lputb, LINES, STORED) \
    VERB(COPY, FILL, LIST_MAKES | LIST_LONG)     WORD(COPY, lcopy, PAIR, REMOVED) \
    VERB(PURGE, PURGE, LIST_LONG)                WORD(PURGE, lpurge, KEY, REMOVED) \
    VERB(GET, READ, LIST_WHOLE)                  WORD(GET, lget, KEYS, VALUE) \
                                                 WORD(GET, lgets, KEYS, VERSIONED) \
                                                 WORD(GET, lgetb, KEYS, LINES) \
    VERB(HAS, READ, LIST_IN_TURNS)               WORD(HAS, lhas, ITEMS, SOME) \
                                                 WORD(HAS, lhasb, DATA, SOME) \
    VERB(LEN, READ, LIST_COUNTS)                 WORD(LEN, llen, KEYS, NUMBER) \
    VERB(TTL, READ, LIST_COUNTS)                 WORD(TTL, lttl, KEY_ITEM, SECONDS) \
                                                 WORD(TTL, lttlb, DATA, SECONDS) \
    VERB(RANGE, READ, LIST_FROM_OLDEST)          WORD(RANGE, lrange, RANGE, SOME) \
    VERB(REVRANGE, READ, LIST_FROM_NEWEST)       WORD(REVRANGE, lrevrange, RANGE, SOME) \
    VERB(INTERSTORE, FILL, LIST_MAKES | LIST_LONG | LIST_STORES) \
                                                 WORD(INTERSTORE, linterstore, TARGET, REMOVED) \
    VERB(UNIONSTORE, FILL, LIST_MAKES | LIST_LONG | LIST_STORES) \
                                                 WORD(UNIONSTORE, lunionstore, TARGET, REMOVED) \
    VERB(DIFFSTORE, FILL, LIST_MAKES | LIST_LONG | LIST_STORES) \
                                                 WORD(DIFFSTORE, ldiffstore, TARGET, REMOVED) \
    VERB(GETX, JOINT, LIST_WHOLE)                WORD(GETX, lgetx, LISTS, EACH) \
    VERB(INTER, JOINT, LIST_WHOLE)               WORD(INTER, linter, LISTS, VALUE) \
    VERB(UNION, JOINT, LIST_WHOLE)               WORD(UNION, lunion, LISTS, VALUE) \
    VERB(DIFF, JOINT, LIST_WHOLE)                WORD(DIFF, ldiff, LISTS, VALUE) \
    VERB(INTERLEN, JOINT, 0)                     WORD(INTERLEN, linterlen, LISTS, REMOVED) \
    VERB(UNIONLEN, JOINT, 0)                     WORD(UNIONLEN, lunionlen, LISTS, REMOVED) \
    VERB(DIFFLEN, JOINT, 0)                      WORD(DIFFLEN, ldifflen, LISTS, REMOVED) \
    VERB(AFTER, READ, LIST_BEHIND)               WORD(AFTER, lafter, PAGE, PAGE) \
    VERB(BEFORE, READ, LIST_AHEAD)               WORD(BEFORE, lbefore, PAGE, PAGE) \
    VERB(RANDOM, READ, LIST_SAMPLES)             WORD(RANDOM, lrandom, COUNT, SOME) \
                                                 WORD(RANDOM, lrandomb, COUNT, LINES) \
    VERB(DROP, COMPACTION, 0)                    WORD(DROP, ldrop, KEY, DELETED) \
    VERB(COMPACT, COMPACTION, LIST_LONG)         WORD(COMPACT, lcompact, KEY, OK) \
    VERB(STAT, READ, LIST_COUNTS)                WORD(STAT, lstat, KEY, STAT) \
    VERB(CONVERT, CONVERSION, LIST_LONG)         WORD(CONVERT, lconvert, KEY, NUMBER) \
    VERB(MIGRATE, CONVERSION, LIST_LONG)         WORD(MIGRATE, lmigrate, KEY, OK)
/* clang-format on */

#endif
