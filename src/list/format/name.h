/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of runs, and the backend keys made of them.
 *
 *     KEY#             the head
 *     KEY#NAME.0 ...   the sublists of run NAME
 */
#ifndef LIST_FORMAT_NAME_H
#define LIST_FORMAT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/slice.h"
#include "proto/server/backend.h"

/* 64 fresh bits in base 32 (a-z, 2-7): no name is ever drawn twice, by any proxy (storage rule 1).
 */
#define NAME_BYTES 13

struct name {
    char text[NAME_BYTES];
};

/* A range of sublists: NAME.0 to NAME.(count-1). */
struct name_range {
    struct name name;
    uint32_t count;
};

void name_fresh(struct name *name, struct rng *rng);
bool name_equal(const struct name *a, const struct name *b);

/* Writes the backend key of the list's head; returns its length. */
uint8_t head_key(char out[KEY_BYTES_MAX], struct slice list_key);
/* Writes the backend key of a sublist; returns its length. */
uint8_t sublist_key(char out[KEY_BYTES_MAX], struct slice list_key, const struct name *name,
                    uint32_t number);

/* Is it the key of a list's item, KEY# or KEY#NAME.NUMBER? Then *list_key points to KEY in it, and
 * *head says which of the two. */
bool list_item_key(struct slice key, struct slice *list_key, bool *head);

/* Sublist numbers above this are refused: seven digits keep the longest key within KEY_BYTES_MAX.
 */
#define SUBLISTS_MAX 9999999u
_Static_assert(LIST_KEY_BYTES_MAX + 1 + NAME_BYTES + 1 + 7 <= COLLECTION_KEY_BYTES_MAX,
               "KEY#NAME.NUMBER is no key for a server");

/* Writes NAME.COUNT; returns the length, at most NAME_BYTES + 11. */
size_t name_range_format(char *out, const struct name_range *range);
/* Takes NAME from the front of *text. False when it is malformed. */
bool name_take(struct slice *text, struct name *name);
/* Takes NAME.COUNT from the front of *text. False when it is malformed. */
bool name_range_take(struct slice *text, struct name_range *range);
/* Takes decimal digits from the front of *text. False when there are none or too many. */
bool number_take(struct slice *text, uint64_t *value);

#endif
