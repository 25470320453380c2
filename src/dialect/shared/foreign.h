/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeping off values that are not the list's: whatever was read of a part is proved to be of the
 * dialect's format before it is believed, folded or written to. An append sees nothing of the item
 * that it is made to; so a part that this worker has not met is read before the first one. Between
 * the two somebody may put something else there: looking and appending is not atomic.
 */
#ifndef DIALECT_SHARED_FOREIGN_H
#define DIALECT_SHARED_FOREIGN_H

#include "dialect/shared/work.h"

/* Is the part, as it was read, of the format, or not there? Else w->failed and w->error, which
 * names the item and the reason; it is counted, and the list is not known any more. */
MUST_CHECK bool foreign_refuse(struct engine *e, struct work *w, const struct part *part);
/* The same of a reply, without saying it. */
bool foreign_allows(const struct list *list, enum part_role role, uint32_t number,
                    const struct be_reply *reply);
/* The same of a reply to a BE_GET of that part with BE_HIT or BE_MISS. */
MUST_CHECK bool foreign_refuse_reply(struct engine *e, struct work *w, enum part_role role,
                                     uint32_t number, const struct be_reply *reply);
/* The same of parts that belong to a look, by position: from <= i < to. An ldrop goes on, as does a
 * move to the native layout that has begun: there what is not the list's is marked as foreign, and
 * does not count. */
MUST_CHECK bool foreign_refuse_parts(struct engine *e, struct work *w, size_t from, size_t to);

/* May be appended to without a look? Parts become known by a look, or because this worker has
 * made them; as long as the list is remembered (tracked_lists). */
bool foreign_knows(const struct list *list, const struct part *part);
void foreign_note_known(struct list *list, const struct part *part);

/* Do items of the list hold its delimiter, as clients by hand may have written them? Joined they
 * would read as others. */
bool foreign_delimiter_within(const struct work *w);
extern const char foreign_delimiter_text[];

#endif
