/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/capped.h"
#include "list/change/exact_op.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"

struct cap exact_cap(const struct op_exact *x)
{
    return x->cas.head != NULL ? x->cas.head->marks.cap : list_policy_cap(x->cas.op.list->policy);
}

void exact_decide_capped(struct op_exact *x)
{
    struct fold content;
    fold_init(&content);
    fold_set_cap(&content, exact_cap(x));
    bool whole = x->cas.head == NULL || fold_apply_entries(&content, x->cas.head->log);
    CHECK(whole); /* head_read checked it */
    for (size_t n = 0; n < x->share_count; n++) {
        struct list_call *call = x->shares[n].call;
        if (call != NULL) {
            call->refused = !capped_decide(&content, call, &x->cas.entries);
        }
    }
    fold_fini(&content);
}

void exact_let_go(struct op_cas *cas, struct list_call *call)
{
    struct op_exact *x = (struct op_exact *)cas;
    size_t n = 0, at = 0;
    while (x->shares[n].call != call) {
        at += x->shares[n++].items;
    }
    for (size_t i = at; i < at + x->shares[n].items; i++) {
        x->items[i] = arena_copy(&x->kept, x->items[i]);
    }
    x->shares[n].call = NULL;
}

bool exact_awaits_cap(struct engine *e, struct op_exact *x)
{
    struct list *list = x->cas.op.list;
    struct list_call *call, *next;
    bool any = false;
    TAILQ_FOREACH(call, &x->cas.calls, link)
    {
        any = any || exact_adds(call) || call->verb == LIST_CREATE;
    }
    if (!any || x->cas.head == NULL || head_is_absent(x->cas.head) ||
        !list_cap_is_due(list, e->now.mono_us)) {
        return false;
    }
    bool known = list->cap_verdict == CAP_VERDICT_TOO_LONG &&
                 list->cap_verdict_cas == x->cas.head->cas &&
                 list->cap_verdict_epoch == x->cas.head->epoch;
    if (!known) {
        calls_await_cap(e, list, &x->cas.calls, x->cas.head);
        return true;
    }
    for (call = TAILQ_FIRST(&x->cas.calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (call->verb != LIST_DELX && call->verb != LIST_TOUCH) {
            TAILQ_REMOVE(&x->cas.calls, call, link);
            exact_let_go(&x->cas, call);
            call_finish(e, list, call, LIST_NOT_STORED);
        }
    }
    return TAILQ_EMPTY(&x->cas.calls);
}
