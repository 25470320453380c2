/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists that are kept in layouts other than the engine's own: what the engine asks of them. The
 * folder that knows those layouts (src/dialect) fills one such table in, and the engine's creator
 * hands it over, so that the engine names none of them.
 */
#ifndef LIST_CORE_PLUGIN_H
#define LIST_CORE_PLUGIN_H

#include "list/core/list_call.h"

struct engine;

struct list_plugin {
    /* Why the call is refused, as the text behind CLIENT_ERROR, or NULL. text is room for it. */
    const char *(*refusal)(const struct list_call *call, char text[LIST_ERROR_MAX]);
    /* Why such a list is not read together with others, at one instant, or NULL: a look (inner.h)
     * at it shows all of it, and one CAS number. */
    const char *(*joint_refusal)(const struct list_policy *policy, struct slice key);
    /* The bytes that the plugin keeps with such a list (list->plugin_state), and what fills them in
     * for a new list; they are zeroed before, and freed with the list. */
    size_t (*list_bytes)(const struct list_policy *policy);
    void (*list_init)(struct list *list);
    /* Starts what can be started on such a list. */
    void (*schedule)(struct engine *e, struct list *list);
};

#endif
