/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact changes: laddx and ldelx (how many items were new, were removed) and lcreate. Waiting ones
 * travel together. Order of writes: read the head (and sublists, as far as membership needs them),
 * decide, then ONE CAS of the same head with entries added, or an ADD when there was none. When
 * another writer was faster: all over again, with growing back-off.
 */
#ifndef LIST_CHANGE_EXACT_H
#define LIST_CHANGE_EXACT_H

#include "list/change/cas.h"

/* Makes the operation and takes the list's place for it; fill it with exact_add, then op_run. An
 * lcreate goes alone. */
struct op_cas *exact_create(struct engine *e, struct list *list);
void exact_add(struct op_cas *exact, struct list_call *call);

#endif
