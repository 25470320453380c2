/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/name_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int compare(const void *a, const void *b)
{
    return memcmp(((const struct name *)a)->text, ((const struct name *)b)->text, NAME_BYTES);
}

void name_set_add(struct name_set *set, const struct name *name)
{
    set->names = array_room(set->names, set->count, &set->cap, sizeof *set->names);
    set->names[set->count++] = *name;
    set->is_sorted = false;
}

bool name_set_has(struct name_set *set, const struct name *name)
{
    if (set->count == 0) {
        return false;
    }
    if (!set->is_sorted) {
        qsort(set->names, set->count, sizeof *set->names, compare);
        set->is_sorted = true;
    }
    return bsearch(name, set->names, set->count, sizeof *set->names, compare) != NULL;
}

void name_set_fini(struct name_set *set)
{
    free(set->names);
    *set = (struct name_set){0};
}
