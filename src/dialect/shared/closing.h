/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Appending to a delimited text. Clients by hand may leave out the delimiter behind the last item:
 *
 *     user-1234,user-222          what they have written
 *     user-1234,user-222user-5,   what an append of "user-5," would make of it
 *
 * An APPEND does not show what it is made to, so it brings a delimiter of its own in front. Two
 * delimiters in a row mean nothing (text.h). With compatible = strict it brings none where the text
 * ended with one when this worker saw it last.
 */
#ifndef DIALECT_SHARED_CLOSING_H
#define DIALECT_SHARED_CLOSING_H

#include "dialect/shared/dialect.h"

/* Does the text need a delimiter before the next item? */
bool closing_is_open(const struct list *list, struct slice text);
/* Notes what was read of a part, or that an append to it was stored. */
void closing_note_read(struct list *list, const struct part *part);
void closing_note_appended(struct list *list, enum part_role role);
/* Makes what is sent to append that text to the part: the caller has a reference to it. */
struct block *closing_append_text(const struct list *list, enum part_role role, struct block *text);

#endif
