/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a slot of a ring holds, as pure functions. The setting `slot` is its template, of up to
 * three fields with text between them, which has no digit and no %:
 *
 *     %v    the item, once
 *     %n    the entry's number, in decimal: it stands first or last
 *     %t    the time of the entry: seconds since 1970, ten digits
 *
 *     %n %v %t        17 ann 1700000299        what readers are shown: ann 1700000299
 *     %v %t           1299 1700000299                                  1299 1700000299
 */
#ifndef DIALECT_RING_SLOT_H
#define DIALECT_RING_SLOT_H

#include "base/block.h"
#include "base/slice.h"

/* A time in seconds has so many digits from 2001 to 2286: a count of milliseconds, or another
 * number, is not taken for one. */
#define SLOT_TIME_DIGITS 10

struct slot_entry {
    uint64_t number; /* 0 where the template has none */
    uint64_t time_s; /* the same */
    struct slice item;
    struct slice shown; /* all but the number */
};
/* Does the template have that field, 'n' or 't'? */
bool slot_has(const char *template, char field);
/* Reads what a slot holds. The entry's slices are of value. False: it is not of the template. */
bool slot_read(const char *template, struct slice value, struct slot_entry *entry);
/* The same of an entry as readers are shown it, without a number. */
bool slot_read_shown(const char *template, struct slice shown, struct slot_entry *entry);
/* Appends the entry's number, time and item, as the template says. */
void slot_write(const char *template, const struct slot_entry *entry, struct block **out);

#endif
