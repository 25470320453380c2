/* SPDX-License-Identifier: BSD-3-Clause */
/* Which items a list takes. */
#ifndef LIST_CORE_ITEM_FAULT_H
#define LIST_CORE_ITEM_FAULT_H

#include "list/core/list_call.h"

/* Why the item is refused, as the text behind CLIENT_ERROR, or NULL. text is room for it.
 * is_change: it is to be added or taken off, not only looked for. */
const char *item_fault(const struct list_policy *policy, struct slice item, bool is_change,
                       char text[LIST_ERROR_MAX]);

#endif
