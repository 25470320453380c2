/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operation makes of a head that it has read, and what the worker learns by it. */
#include <stdio.h>

#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/core/finish.h"
#include "list/format/absent.h"

/* A head that says the list is missing is of use as long as a client fills it; changes look before
 * they append. */
static enum head_result head_result_of(struct engine *e, struct list *list, const struct head *head)
{
    const struct list_policy *policy = list->policy;
    list->has_head = true;
    if (!head->marks.absent) {
        return GOT_HEAD;
    }
    bool refuse = policy->on_missing == ON_MISSING_REFUSE;
    list->is_absent = refuse && head_is_absent(head);
    list->has_head = !list->is_absent;
    list->expires_us = list->is_absent ? 0 : list->expires_us;
    if (e->now.mono_us >= list->compact_after_us &&
        (list->has_head || absent_is_idle(head, e->now.wall_s, policy->announcement_grace_s))) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
    return list->has_head ? GOT_HEAD : GOT_ABSENT;
}

/* A list of which all items have been over for a while: its head is removed. */
static void wish_for_removal(struct engine *e, struct list *list, const struct head *head)
{
    if (head_is_timed(head) && e->now.mono_us >= list->compact_after_us && list->merge == NULL &&
        head_is_over(head, head->read_s - CLOCK_SKEW_S)) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
}

/* A list that may outlive its sublists: a client has touched its head in the server, or it has been
 * renewed nearly as far as they live. Or they do not end, though it does. */
static void wish_for_life(struct engine *e, struct list *list, const struct head *head)
{
    if (e->now.mono_us >= list->compact_after_us && list->merge == NULL &&
        list_is_short_lived(e, list, head)) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
}

enum head_result op_take_head_of(struct engine *e, struct list *list, const struct op_event *event,
                                 struct head **head, char error[LIST_ERROR_MAX])
{
    CHECK(*head == NULL);
    if (event->reply != NULL && event->reply->caps != NULL) {
        list->item_size_max = event->reply->caps->item_size_max;
        list->head_server = event->reply->caps->server_name;
        list->no_times = event->reply->no_times;
    }
    bool seen = event->status == BE_HIT || event->status == BE_MISS;
    if (seen && (event->head == NULL || event->head->cas != list->recent.cas ||
                 event->head->epoch != list->recent.epoch)) {
        list->recent.epoch = 0; /* a later answer must not be older than this one */
    }
    list->has_head = list->has_head && !seen;
    list->is_absent = list->is_absent && !seen;
    if (seen && event->reply != NULL) {
        list->moves = event->request != NULL && event->request->may_move;
    }
    if (event->status == BE_MISS) {
        list_note_seen(list, 0, event->appended_bytes);
        return GOT_NOTHING;
    }
    if (event->status != BE_HIT) {
        snprintf(error, LIST_ERROR_MAX, "%s",
                 event->text != NULL ? event->text : "backend refused to read the list");
        return GOT_ERROR;
    }
    if (event->head == NULL) {
        list_report_foreign(e, list, event->reply, error);
        return GOT_ERROR;
    }
    *head = head_ref(event->head);
    (*head)->read_s = e->now.wall_s;
    list_note_head(list, *head, event->appended_bytes);
    list->expires_us = mono_us_in(e, (*head)->ttl_s);
    return head_result_of(e, list, *head);
}

enum head_result op_take_head(struct engine *e, struct op *op, const struct op_event *event,
                              struct head **head, char error[LIST_ERROR_MAX])
{
    enum head_result got = op_take_head_of(e, op->list, event, head, error);
    if (*head == NULL) {
        return got;
    }
    CHECK((*head)->open_count == 0 || ((*head)->is_cut && op->takes_cut));
    if (got == GOT_HEAD && (*head)->run_count > 0) {
        wish_for_life(e, op->list, *head);
    }
    if (got == GOT_HEAD) {
        wish_for_removal(e, op->list, *head);
    }
    finish_consider(e, op->list, *head);
    return got;
}
