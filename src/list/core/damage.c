/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/damage.h"

#include <inttypes.h>
#include <stdio.h>

#include "list/core/engine_state.h"

void list_report_damage(struct engine *e, struct list *list, const struct name_range *missing,
                        char error[LIST_ERROR_MAX])
{
    char key[KEY_BYTES_MAX], text[128];
    uint8_t len = sublist_key(key, list_key(list), &missing->name, missing->count);
    snprintf(error, LIST_ERROR_MAX, "list damaged: sublist %s missing",
             slice_escape(slice_make(key, len), text, sizeof text));
    metric_inc(e->metrics, METRIC_list_damaged);
    list->suspect = missing->name;
    char more[LOG_MORE_MAX];
    if (log_limit_pass(&e->damaged_log, e->now.wall_s, "events", more)) {
        log_error("%s%s", error, more);
    }
    if (list->policy->on_damaged == ON_DAMAGED_MISS) {
        lists_wish(&e->lists, list, WISH_CLEAR, missing);
    }
}

void list_report_foreign(struct engine *e, const struct list *list, const struct be_reply *reply,
                         char error[LIST_ERROR_MAX])
{
    uint64_t format = head_later_format(reply);
    char key[128], more[LOG_MORE_MAX];
    (void)slice_escape(list_key(list), key, sizeof key);
    if (format != 0) {
        snprintf(error, LIST_ERROR_MAX, "%s# is of format %" PRIu64 ": a later release wrote it",
                 key, format);
    } else {
        snprintf(error, LIST_ERROR_MAX, "%s# holds no list that this version can read", key);
    }
    metric_inc(e->metrics, METRIC_list_foreign);
    if (log_limit_pass(&e->foreign_log, e->now.wall_s, "events", more)) {
        log_warn("%s%s", error, more);
    }
}
