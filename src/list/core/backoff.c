/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/backoff.h"

#include "base/number.h"
#include "list/core/engine_state.h"

/* Near: the first delay, at the line; it grows with the square of how far the log is over. */
#define APPEND_BACKOFF_US 300u
#define APPEND_BACKOFF_MAX_US 30000u
/* From here on a server is far: the delays above are shorter than a few of its round trips. */
#define FAR_US 4000u
/* A sample that is longer counts as this: a server that stalls is not far. */
#define TRIP_MAX_US 1000000u
/* A flip takes five round trips when others append until its second one. A
 * worker waits for so many round trips, and up to as many more by chance, before it concludes that
 * no other worker compacts. */
#define PATIENCE_TRIPS 8u
/* What a change needs to be appended and answered within its deadline. */
#define LAST_TRIPS 3u
/* In which one without a deadline is to be done. */
#define NO_DEADLINE_TRIPS 40u

void list_note_trip(struct list *list, uint64_t trip_us)
{
    uint64_t sample = u64_least(trip_us, TRIP_MAX_US);
    uint64_t known = list->trip_us;
    list->trip_us =
        (uint32_t)(sample < known || known == 0 ? sample : known + (sample - known) / 8);
}

bool list_is_far(const struct list *list)
{
    return list->trip_us >= FAR_US;
}

/* Far: the length of a log at which all fall silent, and one compacts. */
static uint64_t silence_line(const struct list *list)
{
    return u64_least(2 * list_log_limit(list), list_log_hard_limit(list) / 2);
}

bool list_is_crowded_far(const struct list *list)
{
    return list_is_far(list) && list_log_bytes(list) > silence_line(list);
}

void list_back_off_appends(struct engine *e, struct list *list, uint64_t delay_us)
{
    if (!timer_is_set(&list->append_backoff)) {
        list->append_backoff.owner = list;
        list->append_backoff.kind = TIMER_APPEND_BACKOFF;
        timer_set(&e->timers, &list->append_backoff, e->now.mono_us + delay_us);
        metric_inc(e->metrics, METRIC_list_holdbacks);
    }
}

bool list_awaits_compactor(const struct engine *e, const struct list *list,
                           const struct list_call *call)
{
    if (!list_is_crowded_far(list) || e->now.mono_us < list->crowded_us + list->trip_us) {
        return false;
    }
    uint64_t end_us = call->deadline_us;
    if (end_us == 0) {
        end_us = list->crowded_us + (uint64_t)NO_DEADLINE_TRIPS * list->trip_us;
    }
    return e->now.mono_us + (uint64_t)LAST_TRIPS * list->trip_us < end_us;
}

static void wish(struct engine *e, struct list *list, enum list_wish wish)
{
    if (e->now.mono_us >= list->compact_after_us) {
        lists_wish(&e->lists, list, wish, NULL);
    }
}

static void consider_far(struct engine *e, struct list *list, uint64_t log_bytes_before)
{
    uint64_t log = list_log_bytes(list), line = silence_line(list), now_us = e->now.mono_us;
    bool mine = log_bytes_before <= line && log > line;
    if (log <= line) {
        list->crowded_us = 0;
        return;
    }
    bool new = list->crowded_us == 0;
    bool waited = !new &&now_us >= list->patience_us;
    if (new || waited) {
        uint64_t patience_us = (uint64_t)PATIENCE_TRIPS * list->trip_us;
        list->patience_us = now_us + patience_us + rng_below(e->rng, patience_us);
    }
    list->crowded_us = new ? now_us : list->crowded_us;
    if (mine || waited) {
        wish(e, list, waited ? WISH_COMPACT_INSTEAD : WISH_COMPACT);
    }
}

void list_consider_cap(struct engine *e, struct list *list)
{
    /* Long beside the time of a rewriting, short beside that in which a new file reaches a fleet.
     */
    enum { CAP_PAUSE_US = 10000000 };
    if (UNLIKELY(!cap_equal(list->cap, list_policy_cap(list->policy))) &&
        e->now.mono_us >= list->cap_after_us && e->now.mono_us >= list->compact_after_us) {
        list->cap_after_us = e->now.mono_us + CAP_PAUSE_US;
        wish(e, list, WISH_COMPACT);
    }
}

void list_consider_compaction(struct engine *e, struct list *list, uint64_t log_bytes_before)
{
    uint64_t limit = list_log_limit(list);
    uint64_t log = list_log_bytes(list);
    if (list->head_full) {
        /* It names so much garbage that no log grows long enough to ask for a compaction. */
        list->head_full = false;
        wish(e, list, WISH_COMPACT);
        return;
    }
    if (list_is_far(list)) {
        consider_far(e, list, log_bytes_before);
        return;
    }
    /* The worker whose append carried the log over the line compacts. When the log is far over it,
     * that worker seems to be gone, and others do. */
    bool crossed = log_bytes_before < limit && log >= limit;
    bool far_over = log >= 2 * limit;
    if (!crossed && !far_over) {
        return;
    }
    wish(e, list, WISH_COMPACT);
    /* A compaction of this worker keeps appends back itself when it needs to. */
    bool nearly_full = log > list_log_hard_limit(list) / 2;
    if ((far_over || nearly_full) && list->compaction == NULL && list->wish == WISH_NONE) {
        /* Without this, two busy proxies starve every flip. */
        uint64_t over = log / limit;
        uint64_t delay_us = APPEND_BACKOFF_US * over * over;
        list_back_off_appends(e, list,
                              delay_us < APPEND_BACKOFF_MAX_US ? delay_us : APPEND_BACKOFF_MAX_US);
    }
}
