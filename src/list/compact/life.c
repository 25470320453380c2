/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Until when sublists live. A list that expires has sublists that do so, too, some
 * time behind its head: the header names a second D until which each of them lives at least, and
 * the head does not live longer. Sublists are written once, with their time. No touch changes it: a
 * touch that arrives late could shorten what another proxy has lengthened meanwhile. A list that is
 * to live beyond D has its runs written anew, under fresh names, by merges: from there on the head
 * names a later D.
 *
 * D is a second of the clock of the head's server. A sublist is sent the seconds that it is to live
 * from the moment in which that clock was read, so no other clock takes part; memcached counts up
 * to a month in this way. Longer times go as a moment, with a day more than is needed, for a server
 * whose clock is behind.
 */
#include <stdlib.h>

#include "list/compact/compact.h"
#include "list/core/engine_state.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct life life_then(const struct op_compact *c, int64_t ttl_s, bool fills)
{
    const struct list_policy *policy = c->op.list->policy;
    if (fills) {
        return life_filling(policy, c->head);
    }
    /* That of a missing list is its lease's. */
    return c->head->marks.absent ? life_kept(ttl_s) : life_renewed(policy, ttl_s);
}

/* The same of a head for which sublists are written: it is there from then on. */
static struct life life_with_run(const struct op_compact *c, int64_t ttl_s)
{
    return life_then(c, ttl_s, c->head->marks.absent);
}

/* Are the sublists that are about to be written to have an end? */
static bool wants_end(const struct engine *e, const struct op_compact *c, bool others)
{
    const struct list *list = c->op.list;
    if (others && !c->extends) {
        return c->head->marks.sublists_until_s != 0; /* else those of the others have none */
    }
    struct life life = life_with_run(c, c->head->ttl_s);
    return life_ends(&life) && list_wanted_until_s(e, list) != INT64_MAX;
}

/* The second until which they live: that of the others at least, and if the list is to be given
 * more time, a step more than this. 0: for ever. */
static int64_t choose_until(const struct engine *e, const struct op_compact *c, int64_t now_s,
                            int64_t ttl_s, bool others)
{
    const struct list *list = c->op.list;
    int64_t until_s = others ? c->head->marks.sublists_until_s : 0;
    int64_t wanted_s = list_wanted_until_s(e, list);
    struct life life = life_with_run(c, ttl_s);
    if (wanted_s == INT64_MAX) {
        return 0; /* an ltouch to live for ever has come while the clock was asked for */
    }
    if (!life_ends(&life)) {
        return until_s;
    }
    int64_t end_s = later(life_end_s(&life, now_s), wanted_s);
    int64_t needed_s = sublists_until_s(now_s, end_s);
    return needed_s == 0 ? 0 : later(until_s, needed_s);
}

static void take_clock(struct engine *e, struct op_compact *c, const struct op_event *event,
                       bool others)
{
    struct run_writer *w = &c->writer;
    if (event->status != BE_HIT && event->status != BE_MISS) {
        w->refused = true;
        op_error_text(event, c->error);
        return;
    }
    int64_t now_s = (int64_t)event->reply->number;
    writer_live(w, now_s, choose_until(e, c, now_s, event->reply->ttl_s, others));
}

enum progress life_step(struct engine *e, struct op_compact *c, const struct op_event *event,
                        bool others)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    c->writer.until_s = 0;
    c->writer.exptime = 0;
    if (wants_end(e, c, others)) {
        expiry_look(e, &c->op, TAG_CLOCK);
        CO_AWAIT(co, "reading the server's clock to write sublists");
        take_clock(e, c, event, others);
    }
    CO_END(co);
}

/* ---- what is known of the runs ---- */

void life_note(struct op_compact *c)
{
    const struct run_writer *w = &c->writer;
    if (w->run.range.count == 0 || c->inlined) {
        return;
    }
    c->lasting = realloc(c->lasting, (c->lasting_count + 1) * sizeof *c->lasting);
    CHECK(c->lasting != NULL);
    c->lasting[c->lasting_count++] = (struct lasting){w->run.range.name, w->until_s};
}

/* Until when the run's sublists live, as far as known; INT64_MAX: for ever. */
static int64_t until_of(const struct op_compact *c, const struct name *name)
{
    int64_t until_s = c->head->marks.sublists_until_s;
    if (name_equal(name, &c->writer.announcement.range.name)) {
        until_s = c->writer.until_s;
    }
    for (size_t i = 0; i < c->lasting_count; i++) {
        if (name_equal(name, &c->lasting[i].name)) {
            until_s = c->lasting[i].until_s;
        }
    }
    return until_s == 0 ? INT64_MAX : until_s;
}

bool life_settle(struct op_compact *c, struct layout *layout)
{
    int64_t least_s = INT64_MAX, old_s = c->head->marks.sublists_until_s;
    for (size_t i = 0; i < layout->run_count; i++) {
        int64_t until_s = until_of(c, &layout->runs[i].range.name);
        least_s = until_s < least_s ? until_s : least_s;
    }
    c->until_s = least_s == INT64_MAX ? 0 : least_s;
    c->new_until = c->until_s != 0 && c->until_s != old_s;
    layout->marks.sublists_until_s = c->until_s;
    struct life life = life_then(c, c->head->ttl_s, c->fills);
    return !c->new_until || life_ends(&life);
}

void life_choose(struct engine *e, struct op_compact *c)
{
    const struct head *head = c->head;
    enum plan_kind kind = c->plan.kind;
    size_t first = 0;
    c->extends = false;
    if ((c->goal != COMPACT_AUTO && c->goal != COMPACT_FULL) || head->marks.absent ||
        (kind != PLAN_NOTHING && kind != PLAN_MERGE && kind != PLAN_COLLECT) ||
        !list_is_short_lived(e, c->op.list, head)) {
        return;
    }
    /* What this compaction has written for that before stays as it is. */
    int64_t old_s = head->marks.sublists_until_s;
    while (first < head->run_count && old_s != 0 &&
           until_of(c, &head->runs[first].range.name) > old_s) {
        first++;
    }
    first = first < head->run_count ? first : 0;
    c->plan = plan_merge_from(head, c->op.list->policy, first);
    c->extends = true;
}
