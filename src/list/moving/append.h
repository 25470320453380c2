/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An APPEND of the engine to the head of a list that moves. It must not lie behind a mark, so it
 * goes out as a CAS of the head that was looked at, with what is appended behind it.
 *
 * A head that expires is appended to on condition of its CAS number instead (an `ms` in mode A):
 * with a CAS, its end would move at each tick of a clock. Other heads are not: where memcached has
 * no memory for an `ms`, it removes the item that is there. On a server that does not make room the
 * append has no place: the engine writes such a head by a CAS, for which it asks for the time.
 */
#ifndef LIST_MOVING_APPEND_H
#define LIST_MOVING_APPEND_H

#include <stdbool.h>

#include "list/core/request.h"
#include "list/moving/places.h"

/* All zero: none is under way. */
struct moved_append {
    bool under_way;
    bool by_cas;
    struct slice added; /* of the engine's request, while that is a CAS */
    struct block *block;
};

/* May that BE_APPEND go to what was found for the list of that key? */
bool append_has_place(const struct list_request *request, const struct place *found,
                      struct slice key);
/* Changes a BE_APPEND of the engine for a head of which that answer to a BE_GET tells. */
void append_begin(struct moved_append *append, struct list_request *request,
                  const struct be_reply *head);
/* Makes the request again what it was; nothing where none is under way. */
void append_end(struct moved_append *append, struct list_request *request);
/* Lets go of what it keeps, where the request is another's now. */
void append_forget(struct moved_append *append);

#endif
