/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a recorded history of list operations linearizable: is there, for every list, an order of its
 * operations that keeps to real time and in which a plain sequential list gives the same answers?
 *
 *     struct history *h = history_create(&options);
 *     history_add(h, &op) ...                        or history_read(file, "name", &h, error)
 *     history_check(h, stdout, &result)              evidence goes to stdout
 *     history_destroy(&h)
 *
 * The file: text, one line per operation, in any order. Empty lines and lines that begin with '#'
 * are skipped. The first other line is the header:
 *
 *     history 1 on_missing=create                    or on_missing=refuse
 *
 * then, separated by single blanks:
 *
 *     INVOKED COMPLETED PROCESS VERB LIST [ITEM...] = OUTCOME [ANSWER...]
 *
 *     100 250 7 ladd fruit apple pear = ok
 *     120 260 8 lget fruit = ok apple
 *     300 - 7 ldel fruit apple = unknown
 *
 * INVOKED and COMPLETED are integers of one monotonic clock: the last moment before the request was
 * sent and the first after its answer was read. COMPLETED is '-' when there was no answer; with
 * "unknown" it is otherwise when the client gave up. Only operations of which one was completed
 * strictly before the other was invoked are ordered by time: those of one PROCESS (a number: the
 * client's connection) may overlap, and are concurrent then.
 *
 * VERB is ladd ldel lset laddx ldelx lcreate lget lhas llen lrange ldrop lcompact; behind the LIST
 * of lrange stand FROM and TO. The other spellings of a verb (lgets, lgetb, laddb, ...) are
 * recorded as these, an lrevrange as the lrange of the same items: positions -1 - TO and -1 - FROM,
 * the answer from behind. A read of several lists is one operation per list. In names, "%XX" is a
 * byte; blanks, control bytes, '%' and '=' must be written so.
 *
 *     OUTCOME       ANSWER
 *     ok            laddx, ldelx, llen: the number; lget, lhas, lrange: the items in order
 *     missing       the list does not exist: NOT_FOUND, an lget that leaves it out
 *     not_stored    NOT_STORED
 *     none          a read answered without items, by words that do not tell an empty list from a
 *                   missing one (END of lgetb, lhas, lrange)
 *     error         a definite error: nothing was done, nothing read
 *     damaged       the same: the list was reported as damaged
 *     unknown       may be done at any time from INVOKED on, or never
 *     maybe         may be done between INVOKED and COMPLETED, or never: what happens to a list
 *                   beside its clients, as an ldrop for a server's restart
 *
 * With on_missing=create an ldrop that is answered "missing" is a delete that found no item.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stdio.h>

#include "base/check.h"
#include "base/slice.h"

#define HISTORY_ERROR_MAX 256
#define HISTORY_NEVER INT64_MAX            /* completed: there was no answer */
#define HISTORY_HINT_NOTHING 1             /* hint: it changed nothing, at some time */
#define HISTORY_CONFIGURATIONS_MAX 2000000 /* default */

enum history_verb {
    HISTORY_LADD,
    HISTORY_LDEL,
    HISTORY_LSET,
    HISTORY_LADDX,
    HISTORY_LDELX,
    HISTORY_LCREATE,
    HISTORY_LGET,
    HISTORY_LHAS,
    HISTORY_LLEN,
    HISTORY_LRANGE,
    HISTORY_LDROP,
    HISTORY_LCOMPACT,
    HISTORY_VERBS
};

enum history_outcome {
    HISTORY_OK,
    HISTORY_MISSING,
    HISTORY_NOT_STORED,
    HISTORY_NONE,
    HISTORY_ERROR,
    HISTORY_DAMAGED,
    HISTORY_UNKNOWN,
    HISTORY_MAYBE,
    HISTORY_OUTCOMES
};

struct history_op {
    uint64_t number; /* names it in the evidence; 0: counted from 1 in the order of addition */
    uint32_t process;
    enum history_verb verb;
    enum history_outcome outcome;
    struct slice list;
    const struct slice *items;
    size_t item_count;
    int64_t from, to; /* lrange */
    int64_t invoked, completed;
    uint64_t count;             /* laddx, ldelx, llen */
    const struct slice *answer; /* lget, lhas, lrange */
    size_t answer_count;
    /* What is believed of a change: those with a smaller hint took effect before. The order is held
     * against all answers like any other and only tried first: a wrong hint costs time, never the
     * verdict. 0: it was never done, or nothing is known. Not kept in files. */
    uint64_t hint;
};

struct history_options {
    bool refuse;                 /* on_missing = refuse */
    uint64_t configurations_max; /* per list; 0: HISTORY_CONFIGURATIONS_MAX */
};

/* The exit codes of check-history, too. */
enum history_verdict { HISTORY_LINEARIZABLE, HISTORY_VIOLATED, HISTORY_UNDECIDED };

struct history_result {
    uint64_t operations, lists;
    uint64_t violated, undecided; /* lists */
    uint64_t configurations;      /* looked at */
};

struct history;

/* Returns an empty history, owned by the caller until history_destroy. */
struct history *history_create(const struct history_options *options);
void history_destroy(struct history **history);
/* Copies everything. Returns NULL, or what is wrong with the operation (a constant), which is not
 * added then. */
MUST_CHECK const char *history_add(struct history *history, const struct history_op *op);

/* Decides every list. VIOLATED when one is not linearizable, whatever the others are; UNDECIDED
 * when one took more than configurations_max. Writes evidence to report unless that is NULL, and
 * fills result unless NULL. May be called again, with more added. */
enum history_verdict history_check(struct history *history, FILE *report,
                                   struct history_result *result);

/* Reads a whole file. Returns false with "NAME:LINE: what is wrong" in error; else *history is the
 * caller's. configurations_max as in the options. */
MUST_CHECK bool history_read(FILE *file, const char *name, uint64_t configurations_max,
                             struct history **history, char error[HISTORY_ERROR_MAX]);
/* Write the header, and one operation as a line of the file. Errors show in ferror(file). */
void history_write_header(FILE *file, bool refuse);
void history_write(FILE *file, const struct history_op *op);

const char *history_verb_name(enum history_verb verb);
const char *history_outcome_name(enum history_outcome outcome);

#endif
