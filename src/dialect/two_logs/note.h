/* SPDX-License-Identifier: BSD-3-Clause */
/* What a log says of the other one, or of itself: the two entries of an item that no list has. */
#ifndef DIALECT_TWO_LOGS_NOTE_H
#define DIALECT_TWO_LOGS_NOTE_H

#include "dialect/shared/text.h"

struct note {
    uint64_t bytes; /* of the other log, that were taken; 0: a log begins, and hash is its number */
    uint64_t hash;
    bool is_place;     /* nothing was taken yet: a copy of that log is to come here */
    size_t start, end; /* where it stands in its log */
};

/* Reads "@BYTES:HASH", or "@BYTES::HASH" of a place. False: it is something else. */
bool note_parse(struct slice item, struct note *note);
/* May a call add or delete this item? Not if it has the form of a note. */
bool note_allows(struct slice item);
/* Finds the last note about the other log. Of its two entries the second one is what counts. */
bool note_last(struct slice text, struct signs signs, struct note *last);
/* Is it about that log, of which more may have come since? */
bool note_is_about(const struct note *note, struct slice text, struct signs signs);
/* Appends a note: this text was taken; or, for an empty one, a log of this number begins. */
void note_append(struct block **b, struct slice text, uint64_t number, struct signs signs);
/* Appends a note: a copy of this text is to come here. */
void note_append_place(struct block **b, struct slice text, struct signs signs);

#endif
