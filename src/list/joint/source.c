/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/joint/source.h"

#include "list/core/engine_state.h"
#include "list/read/from_view.h"

void source_init(struct source *s, struct list *list)
{
    *s = (struct source){.list = list};
    list->ops++;
}

void source_forget(struct engine *e, struct source *s)
{
    inner_drop(e, &s->look);
    inner_drop(e, &s->probe);
    inner_drop(e, &s->read);
    if (s->has_items) {
        fold_fini(&s->items);
    }
    s->has_items = s->missing = false;
    s->brought = 0;
}

void source_fini(struct engine *e, struct source *s)
{
    source_forget(e, s);
    s->list->ops--;
}

void source_settle(struct engine *e, struct source *s)
{
    const struct head *head = s->look->head;
    s->over_s = head != NULL ? head->read_s : 0;
    if (head != NULL && head->run_count > 0 && !head->clears) {
        s->kind = view_is_worth_it(e, head) ? SOURCE_VIEW : SOURCE_STREAM;
        return;
    }
    s->kind = SOURCE_ITEMS;
    s->has_items = true;
    if (head == NULL) {
        s->items = s->look->items;
        fold_init(&s->look->items);
        return;
    }
    fold_init(&s->items);
    fold_set_cap(&s->items, head->marks.cap);
    bool whole = fold_apply_entries(&s->items, head->log);
    CHECK(whole); /* head_read checked it */
}

uint64_t source_size(const struct source *s)
{
    return s->kind == SOURCE_ITEMS ? s->items.table_used : session_extent(s->look->head).items;
}

void source_read(struct engine *e, struct source *s, struct op *op, enum list_verb verb,
                 enum list_form form, uint64_t from, struct gather *gather)
{
    struct call_queue calls;
    inner_drop(e, &s->read);
    struct inner *read = inner_new(e, op, s->list, verb);
    s->read = read;
    read->pinned = true;
    read->gather = gather;
    read->call.form = form;
    read->call.from = (int64_t)from;
    read->call.to = INT64_MAX;
    TAILQ_INIT(&calls);
    TAILQ_INSERT_TAIL(&calls, &read->call, link);
    TAILQ_INSERT_TAIL(&s->list->active, &read->call, active);
    view_start_reads(e, s->list, &calls, s->look->head);
}

struct view *source_view(struct source *s)
{
    struct view *view = s->list->view;
    if (s->kind != SOURCE_VIEW || view == NULL || s->list->viewing != NULL) {
        return NULL;
    }
    view_advance(view, s->look->head->read_s);
    if (!view_has_runs(view, s->look->head)) {
        return NULL;
    }
    view_take_log(view, s->look->head);
    return view;
}
