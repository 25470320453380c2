/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spare.h"

#include <stdlib.h>

#include "base/memory.h"

void spare_init(struct spare_list *list, size_t size, size_t bytes_max)
{
    *list = (struct spare_list){.size = size, .max = (uint32_t)(bytes_max / size)};
}

void *spare_new(struct spare_list *list)
{
    void *object = calloc(1, list->size);
    CHECK(object != NULL);
    memory_take(list->size);
    list->made++;
    return object;
}

void spare_free(struct spare_list *list, void *object)
{
    memory_give(list->size);
    list->made--;
    free(object);
}

void spare_fini(struct spare_list *list)
{
    while (list->first != NULL) {
        spare_free(list, spare_take(list));
    }
}
