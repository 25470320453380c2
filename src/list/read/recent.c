/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/recent.h"

#include "list/content/view.h"
#include "list/read/from_view.h"

void recent_note_change(struct engine *e, const struct list_request *request)
{
    /* A list's head is KEY#; what else is written is in no list before a head says so. */
    struct slice key = request->be.key;
    if (key.p[key.len - 1] == '#') {
        own_changes_add(e->own_changes, hash_bytes(key.p, key.len - 1, 0));
    }
}

static bool shows(const struct list *list, uint64_t cas, uint64_t epoch)
{
    return list->view != NULL && list->viewing == NULL && epoch != 0 && list->view->cas == cas &&
           list->view->epoch == epoch;
}

void recent_note(struct list *list, const struct head *head, uint64_t asked_us, unsigned changes)
{
    /* When no read has waited for the head, the view still shows items that are over since. */
    if (head != NULL && shows(list, head->cas, head->epoch) && list->view->now_s == head->read_s) {
        list->recent = (struct recent){head->cas, head->epoch, asked_us, changes};
    }
}

bool recent_may_answer(const struct engine *e, const struct list *list,
                       const struct list_call *call)
{
    const struct recent *recent = &list->recent;
    return call->inner == NULL && !call->wants_version && call->verb != LIST_STAT &&
           call->verb != LIST_TTL && shows(list, recent->cas, recent->epoch) &&
           e->now.mono_us - recent->asked_us <= list->policy->max_stale_ms * UINT64_C(1000) &&
           recent_changes(e, list) == recent->changes;
}

void recent_answer(struct engine *e, struct list *list, struct call_queue *calls)
{
    struct view *view = lists_get_view(&e->lists, list);
    struct list_call *call;
    TAILQ_FOREACH(call, calls, link)
    {
        metric_inc(e->metrics, METRIC_list_recent_reads);
    }
    /* All that is left of the head, and all that these answers take of it. */
    struct head shown = {.cas = view->cas, .epoch = view->epoch, .read_s = view->now_s};
    view_answer_shown(e, list, calls, &shown);
}
