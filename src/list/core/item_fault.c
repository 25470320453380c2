/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/item_fault.h"

#include <stdio.h>

const char *item_fault(const struct list_policy *policy, struct slice item, bool is_change,
                       char text[LIST_ERROR_MAX])
{
    if (item.len == 0) {
        return "item is empty";
    }
    if (item.len > policy->max_item_bytes) {
        snprintf(text, LIST_ERROR_MAX, "item is longer than %u bytes (max_item_bytes)",
                 policy->max_item_bytes);
        return text;
    }
    if (is_change && policy->delimiter >= 0 &&
        memchr(item.p, policy->delimiter, item.len) != NULL) {
        char byte = (char)policy->delimiter, shown[12];
        snprintf(text, LIST_ERROR_MAX,
                 "item holds the delimiter '%s': the setting delimiter can be another character, "
                 "or none",
                 slice_escape(slice_make(&byte, 1), shown, sizeof shown));
        return text;
    }
    return NULL;
}
