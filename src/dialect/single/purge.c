/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpurge of a list in one item: reads it, deletes plain items of some names, and takes these off by
 * a CAS of what was read. Each addition changes the item, so the CAS is refused when a name may
 * have been added again meanwhile: then the items are deleted again, of fewer names at a time.
 */
#include <stdlib.h>

#include "dialect/single/single.h"
#include "list/core/plain.h"

/* Names at a time; after conflicts fewer, down to so few. */
#define NAMES_MAX 4096
#define NAMES_LEAST 16

struct purge {
    struct plain_batch batch;
    struct fold kept; /* names that stay */
    size_t names_max;
    uint64_t done; /* names that are off the list */
    uint64_t off;  /* of the batch, in the write that is on its way */
    bool any;      /* the list held a name */
};

static struct purge **slot_of(const struct work *w)
{
    return w->own;
}

static struct purge *purge_of(const struct work *w)
{
    return *slot_of(w);
}

static void begin(struct work *w)
{
    struct purge *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    fold_init(&p->kept);
    p->names_max = NAMES_MAX;
    *slot_of(w) = p;
}

void single_work_fini(struct work *w)
{
    struct purge *p = purge_of(w);
    if (p != NULL) {
        plain_fini(&p->batch);
        fold_fini(&p->kept);
        free(p);
    }
}

/* Its time is over. */
void single_replace_call(struct work *w, const struct list_call *call, struct list_call *ghost)
{
    (void)call;
    (void)ghost;
    if (purge_of(w) != NULL) {
        purge_of(w)->batch.over = true;
    }
}

/* Fills the batch with names that were not tried yet. False: there are none. */
static bool choose(struct engine *e, struct work *w)
{
    struct purge *p = purge_of(w);
    plain_clear(&p->batch);
    p->any = p->any || w->items.count > 0;
    for (size_t i = 0; i < w->items.count && p->batch.count < p->names_max; i++) {
        if (fold_outcome(&p->kept, w->items.at[i]) == 0) {
            plain_add(e->config, &p->batch, w->items.at[i]);
        }
    }
    return p->batch.count > 0;
}

/* Writes the list without those that were deleted. False: all of them stay. */
static bool send_off(struct engine *e, struct work *w)
{
    struct purge *p = purge_of(w);
    p->off = 0;
    for (size_t i = 0; i < p->batch.count; i++) {
        const struct plain_item *item = &p->batch.items[i];
        if (item->state == PLAIN_DELETED) {
            items_change(&w->items, ENTRY_DEL, item->name);
            p->off++;
        } else {
            fold_apply(&p->kept, ENTRY_ADD, item->name);
        }
    }
    if (p->off > 0) {
        single_send(e, w);
    }
    return p->off > 0;
}

static void take_outcome(struct engine *e, struct work *w, const struct op_event *event)
{
    struct purge *p = purge_of(w);
    if (work_written(e, w, event)) {
        p->done += w->failed ? 0 : p->off;
        w->conflicts = 0;
    } else {
        p->names_max = p->names_max / 2 > NAMES_LEAST ? p->names_max / 2 : NAMES_LEAST;
        w->conflict = !p->batch.over;
    }
    w->goes_on = !p->batch.over;
}

static void end(struct engine *e, struct work *w)
{
    struct purge *p = purge_of(w);
    struct list_call *call = TAILQ_FIRST(&w->calls);
    call->number = p->done;
    if (w->failed && !w->moved) {
        char why[LIST_ERROR_MAX];
        memcpy(why, w->error, sizeof why);
        work_note_text(w, "lpurge: %llu names purged, the others stay in the list: %.160s",
                       (unsigned long long)p->done, why);
    } else if (p->batch.kept > 0 && !w->moved) {
        metric_add(e->metrics, METRIC_list_purge_failures, p->batch.kept);
        w->failed = true;
        plain_tell(&p->batch, p->done, w->error);
    }
    if (!w->failed && call->condition == LIST_IF_PRESENT && !p->any) {
        work_finish_first(e, w, LIST_NOT_STORED);
    }
    work_end(e, w);
}

static enum progress purge_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (!choose(e, w)) {
        CO_RETURN(co);
    }
    CO_CALL(co, plain_delete_step(e, &w->op, &purge_of(w)->batch, 0, purge_of(w)->batch.count, NULL,
                                  event));
    w->goes_on = !purge_of(w)->batch.over;
    if (!w->goes_on) {
        CO_RETURN(co);
    }
    if (send_off(e, w)) {
        CO_AWAIT(co, "taking names off the list");
        take_outcome(e, w, event);
    } else if (w->conflicts > 0) {
        /* The others are still at work, as far as is known. */
        w->conflicts--;
        w->conflict = true;
    }
    CO_END(co);
}

enum progress single_purge(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    begin(w);
    if (list_migrates(w->op.list)) {
        /* Additions to it write nothing where nothing changes. */
        work_note_text(w, "this list has not moved to the native layout yet: lconvert it first");
    }
    if (!w->failed) {
        CO_CALL(co, work_try(e, w, event, purge_once, WORK_TRIES_MAX, 0));
    }
    if (!w->failed && w->conflict) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: other writers were faster each time");
    }
    end(e, w);
    CO_END(co);
}
