/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that are not the list's: the proxy checks what it read of a cell against the dialect's
 * grammar before it believes it, folds it or writes to it. An APPEND does not show the item that it
 * is made to, so a cell that this worker does not know is read before the first one. Reading and
 * appending are not atomic: another client may write something else in between.
 */
#ifndef DIALECT_SHARED_FOREIGN_H
#define DIALECT_SHARED_FOREIGN_H

#include "dialect/shared/work.h"

/* Is the cell, as it was read, missing or of the format? If not, sets w->failed and w->error, which
 * names the item and the reason, counts it, and forgets what is known of the list. */
MUST_CHECK bool foreign_refuse(struct engine *e, struct work *w, const struct cell *cell);
/* The same for a reply, without an error. */
bool foreign_allows(const struct list *list, enum cell_role role, uint32_t number,
                    const struct be_reply *reply);
/* The same for a reply to a BE_GET of that cell, which has no number, with BE_HIT or BE_MISS. */
MUST_CHECK bool foreign_refuse_reply(struct engine *e, struct work *w, enum cell_role role,
                                     const struct be_reply *reply);
/* The same for the cells of a look from position from up to, not including, to. An ldrop goes on,
 * as does a move to the native layout that has begun: they mark a cell that is not the list's as
 * foreign, and leave it out. */
MUST_CHECK bool foreign_refuse_cells(struct engine *e, struct work *w, size_t from, size_t to);

/* A look has failed, for other reasons: where something that it has read is not of the format, what
 * is known of the list is forgotten. */
void foreign_look_back(const struct work *w);

/* May the cell be appended to without a read? A cell is known once a look has read it or this
 * worker has made it, as long as the worker remembers the list (tracked_lists). */
bool foreign_knows(const struct list *list, const struct cell *cell);
void foreign_note_known(struct list *list, const struct cell *cell);

/* Do items of the list hold its delimiter? Clients by hand may have written such items; joined they
 * would read as several. */
bool foreign_delimiter_within(const struct work *w);
/* The same of one item. */
bool foreign_holds_delimiter(const struct list *list, struct slice item);
extern const char foreign_delimiter_text[];

#endif
