/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "search_impl.h"

/* --- setting up --- */

static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    /* What begins when another ends is concurrent with it. */
    if (x->completes != y->completes) {
        return x->completes ? 1 : -1;
    }
    return x->step < y->step ? -1 : x->step > y->step;
}

static bool asks_order(const struct step *step)
{
    return step->kind == STEP_RANGE || (step->kind == STEP_READ && step->item_count > 1) ||
           (step->kind == STEP_SEES && step->item_count > 1);
}

static void events_init(struct search *s)
{
    const struct problem *p = s->p;
    s->events = history_alloc((size_t)p->step_count * 2, sizeof *s->events);
    s->call_at = history_alloc(p->step_count, sizeof *s->call_at);
    s->complete_at = history_alloc(p->step_count, sizeof *s->complete_at);
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct step *step = &p->steps[i];
        CHECK(step->optional || step->completed != INT64_MAX);
        CHECK(step->completed >= step->invoked);
        s->events[s->event_count++] = (struct event){step->invoked, i, false};
        s->complete_at[i] = NO_EVENT;
        if (step->completed != INT64_MAX) {
            s->events[s->event_count++] = (struct event){step->completed, i, true};
        }
    }
    qsort(s->events, s->event_count, sizeof *s->events, compare_events);
    for (uint32_t e = 0; e < s->event_count; e++) {
        uint32_t i = s->events[e].step;
        *(s->events[e].completes ? &s->complete_at[i] : &s->call_at[i]) = e;
        if (s->events[e].completes && asks_order(&p->steps[i])) {
            s->last_order_event = e;
        }
    }
}

static bool alike(const struct step *a, const struct step *b)
{
    return a->kind == b->kind && a->item_count == b->item_count && a->count_min == b->count_min &&
           a->count_max == b->count_max &&
           (a->item_count == 0 ||
            memcmp(a->items, b->items, a->item_count * sizeof *a->items) == 0);
}

/* Numbers the steps that may take effect at any later time, and finds the twin of each: the one
 * before it of those alike. */
static uint32_t free_steps_init(struct search *s)
{
    const struct problem *p = s->p;
    uint32_t *list = history_alloc(p->step_count, sizeof *list), count = 0;
    for (uint32_t e = 0; e < s->event_count; e++) {
        uint32_t i = s->events[e].step;
        if (p->steps[i].completed != INT64_MAX) {
            continue;
        }
        for (uint32_t n = count; n-- > 0 && s->twin[i] == NO_STEP;) {
            s->twin[i] = alike(&p->steps[i], &p->steps[list[n]]) ? list[n] : NO_STEP;
        }
        s->free_bit[i] = count;
        list[count++] = i;
    }
    free(list);
    return count;
}

static void search_init(struct search *s, const struct problem *p,
                        const struct search_options *options)
{
    *s = (struct search){
        .p = p, .options = *options, .exists = p->initially_exists, .horizon = NO_EVENT};
    size_t n = p->step_count;
    events_init(s);
    s->ring_prev = history_alloc(n + 2, sizeof *s->ring_prev);
    s->ring_next = history_alloc(n + 2, sizeof *s->ring_next);
    s->under_way = history_alloc(n, sizeof *s->under_way);
    s->free_bit = history_alloc(n, sizeof *s->free_bit);
    s->twin = history_alloc(n, sizeof *s->twin);
    for (size_t i = 0; i < n; i++) {
        s->free_bit[i] = s->twin[i] = NO_STEP;
    }
    for (uint32_t head = RING_CHANGES(s); head <= RING_OTHERS(s); head++) {
        s->ring_prev[head] = s->ring_next[head] = head;
    }
    uint32_t words = (free_steps_init(s) + 63) / 64;
    s->used = history_alloc(words, sizeof *s->used);
    rng_init_seed(&s->rng, options->seed);
    memo_init(&s->seen, words);
    memo_init(&s->dead, words);
    ahead_init(s);
    sequence_init(&s->content, p->item_limit);
    for (uint32_t i = 0; i < p->initial_count; i++) {
        sequence_push(&s->content, p->initial[i]);
    }
}

static void search_fini(struct search *s)
{
    sequence_fini(&s->content);
    ahead_fini(s);
    memo_fini(&s->seen);
    memo_fini(&s->dead);
    free(s->used);
    free(s->twin);
    free(s->free_bit);
    free(s->under_way);
    free(s->ring_next);
    free(s->ring_prev);
    free(s->complete_at);
    free(s->call_at);
    free(s->events);
    free(s->trail);
    free(s->frames);
    free(s->choices);
}

/* --- choices --- */

/* Does whether it comes before or after another step matter, whatever the two are about? */
static bool concerns_all(const struct search *s, const struct step *step)
{
    bool existence = s->p->refuse && step->exists != EXISTS_EITHER;
    return step->kind != STEP_ADD && step->kind != STEP_DEL &&
           (step->kind != STEP_SEES || step->item_count > 1 || existence) &&
           (step->kind != STEP_HAS || existence);
}

static bool shares_mark(const struct search *s, const struct step *step)
{
    for (uint32_t n = 0; n < step->item_count; n++) {
        if (s->seen_mark[step->items[n]] == s->seen_stamp) {
            return true;
        }
    }
    return false;
}

/* Joins a step to the chain; false when that adds nothing to it. */
static bool join_chain(struct search *s, const struct step *step, bool *has_add)
{
    bool grows = step->kind == STEP_ADD && !*has_add;
    *has_add = *has_add || step->kind == STEP_ADD;
    for (uint32_t n = 0; n < step->item_count; n++) {
        grows = grows || s->seen_mark[step->items[n]] != s->seen_stamp;
        s->seen_mark[step->items[n]] = s->seen_stamp;
    }
    return grows;
}

/* Marks the items of all steps to which a chain leads from this one, each sharing an item with the
 * next, or the order of what they add: only changes of marked items can matter to it now. False
 * when everything may matter. */
static bool mark_chain(struct search *s, uint32_t from)
{
    bool order_counts = s->event <= s->last_order_event, has_add = false;
    s->seen_stamp++;
    if (concerns_all(s, &s->p->steps[from])) {
        return false;
    }
    bool grows = true;
    (void)join_chain(s, &s->p->steps[from], &has_add);
    while (grows) {
        grows = false;
        for (uint32_t ring = RING_CHANGES(s); ring <= RING_OTHERS(s); ring++) {
            FOR_RING(s, ring, i)
            {
                const struct step *step = &s->p->steps[i];
                if (concerns_all(s, step)) {
                    return false;
                }
                if (shares_mark(s, step) || (order_counts && has_add && step->kind == STEP_ADD)) {
                    grows = join_chain(s, step, &has_add) || grows;
                }
            }
        }
    }
    return true;
}

static void offer(struct search *s, enum choice_kind kind, uint32_t step)
{
    s->choices = history_grow(s->choices, s->choice_count, &s->choice_cap, sizeof *s->choices);
    s->choices[s->choice_count++] = (struct choice){kind, step};
}

/* What must come soon first; what may never come last, the newest of that first. */
static bool comes_first(const struct search *s, struct choice a, struct choice b)
{
    bool late_a = s->p->steps[a.step].optional, late_b = s->p->steps[b.step].optional;
    if (late_a != late_b) {
        return late_b;
    }
    return late_a ? s->call_at[a.step] > s->call_at[b.step]
                  : s->complete_at[a.step] < s->complete_at[b.step];
}

static void swap_choices(struct search *s, uint32_t a, uint32_t b)
{
    struct choice c = s->choices[a];
    s->choices[a] = s->choices[b];
    s->choices[b] = c;
}

/* Puts some of the choices elsewhere, the one that is due, at first - 1, less often. */
static void shuffle_choices(struct search *s, uint32_t first, bool has_due)
{
    for (uint32_t i = first; i + 1 < s->choice_count; i++) {
        if (rng_below(&s->rng, 3) == 0) {
            swap_choices(s, i, i + 1 + (uint32_t)rng_below(&s->rng, s->choice_count - i - 1));
        }
    }
    if (has_due && first < s->choice_count && rng_below(&s->rng, 16) == 0) {
        swap_choices(s, first - 1, first);
    }
}

static void sort_choices(const struct search *s, uint32_t first)
{
    for (uint32_t i = first + 1; i < s->choice_count; i++) {
        struct choice c = s->choices[i];
        uint32_t at = i;
        while (at > first && comes_first(s, c, s->choices[at - 1])) {
            s->choices[at] = s->choices[at - 1];
            at--;
        }
        s->choices[at] = c;
    }
}

static void offer_all(struct search *s, uint32_t due)
{
    const struct step *due_step = &s->p->steps[due];
    if (due_step->kind == STEP_NEVER || !owed_allows_due(s, due)) {
        return;
    }
    uint32_t offered = s->choice_count;
    if (due_step->optional) {
        offer(s, CHOOSE_EXPIRE, due);
    }
    if (changes(due_step) && step_possible(s, due) &&
        (!due_step->optional || step_effective(s, due))) {
        offer(s, CHOOSE_EFFECT, due);
    }
    uint32_t first = s->choice_count;
    bool chained = mark_chain(s, due);
    FOR_RING(s, RING_CHANGES(s), i)
    {
        const struct step *step = &s->p->steps[i];
        bool twin_first = s->twin[i] != NO_STEP && s->under_way[s->twin[i]];
        if (i != due && !twin_first && (!chained || shares_mark(s, step)) && step_possible(s, i) &&
            (!step->optional || step_effective(s, i))) {
            offer(s, CHOOSE_EFFECT, i);
        }
    }
    sort_choices(s, first);
    if (s->options.seed != 0) {
        shuffle_choices(s, first, first > offered);
    }
}

/* --- the walk --- */

enum walk { WALK_END, WALK_DUE, WALK_DEAD };

/* Goes on to the next step that completes and has not taken effect. */
static enum walk walk_on(struct search *s)
{
    for (; s->event < s->event_count; s->event++) {
        const struct event *event = &s->events[s->event];
        uint32_t i = event->step;
        if (!event->completes) {
            step_call(s, i);
            step_settle(s, i);
            if (s->under_way[i] && !owed_allows(s, i)) {
                return WALK_DEAD;
            }
        } else if (s->under_way[i]) {
            return WALK_DUE;
        }
    }
    return WALK_END;
}

static struct hash128 configuration_key(const struct search *s, struct hash128 content)
{
    hash128_add(&content, hash128_of((uint64_t)5 << 61 | (uint64_t)s->event << 1 | s->exists));
    hash128_add(&content, s->under_way_hash);
    return content;
}

/* Is the configuration known, so that there is nothing new to be found from it? Else it is from now
 * on. */
static bool been_here(struct search *s)
{
    bool order_counts = s->event <= s->last_order_event;
    struct hash128 key = configuration_key(s, order_counts ? s->content.order : s->content.set);
    if (memo_has(&s->dead, configuration_key(s, s->content.set), s->used)) {
        return true;
    }
    if (memo_has(&s->seen, key, s->used)) {
        s->order_mattered = s->order_mattered || order_counts;
        return true;
    }
    memo_add(&s->seen, key, s->used);
    return false;
}

static void push_frame(struct search *s)
{
    s->frames = history_grow(s->frames, s->frame_count, &s->frame_cap, sizeof *s->frames);
    struct frame *f = &s->frames[s->frame_count++];
    *f = (struct frame){
        .trail_mark = s->trail_count,
        .event = s->event,
        .step = s->events[s->event].step,
        .first = s->choice_count,
        .order_mattered = s->order_mattered,
    };
    s->order_mattered = false;
    offer_all(s, f->step);
    f->count = s->choice_count - f->first;
}

static bool make_choice(struct search *s, struct choice choice)
{
    bool allowed = true;
    if (choice.kind == CHOOSE_EXPIRE) {
        step_expire(s, choice.step);
    } else {
        allowed = step_take(s, choice.step);
    }
    if (allowed) {
        steps_settle(s);
    }
    return allowed;
}

/* --- how far it got --- */

static void keep_order(const struct search *s, struct search_result *r)
{
    free(r->order);
    r->order = history_alloc(s->p->step_count, sizeof *r->order);
    r->order_count = 0;
    for (size_t t = 0; t < s->trail_count; t++) {
        if (s->trail[t].kind == TRAIL_EFFECT) {
            r->order[r->order_count++] = s->trail[t].step;
        }
    }
}

static void forget_states(struct search_result *r)
{
    while (r->state_count > 0) {
        free(r->states[--r->state_count].items);
    }
}

static void keep_state(const struct search *s, struct search_result *r)
{
    for (uint32_t i = 0; i < r->state_count; i++) {
        if (r->states[i].exists == s->exists &&
            sequence_equals(&s->content, r->states[i].items, r->states[i].count)) {
            return;
        }
    }
    if (r->state_count == SEARCH_STATES_MAX) {
        return;
    }
    struct search_state *state = &r->states[r->state_count++];
    *state = (struct search_state){.exists = s->exists};
    state->items = history_alloc(s->content.count, sizeof *state->items);
    for (uint32_t node = s->content.next[0]; node != 0; node = s->content.next[node]) {
        state->items[state->count++] = node - 1;
    }
}

/* All choices of the frame have failed; the search is back in its configuration. */
static void note_failure(const struct search *s, const struct frame *f, struct search_result *r)
{
    int64_t at = s->events[f->event].time;
    if (at < r->stuck_at || (at == r->stuck_at && f->step != r->stuck)) {
        return;
    }
    if (at > r->stuck_at) {
        forget_states(r);
        r->stuck = f->step;
        r->stuck_at = at;
        keep_order(s, r);
    }
    keep_state(s, r);
}

/* --- the search --- */

/* Takes back what failed, up to a choice that is left, and makes that. False when none is. */
static bool next_choice(struct search *s, struct search_result *r)
{
    while (s->frame_count > 0) {
        struct frame *f = &s->frames[s->frame_count - 1];
        steps_undo(s, f->trail_mark);
        s->event = f->event;
        if (f->next == f->count) {
            note_failure(s, f, r);
            if (!s->order_mattered) {
                memo_add(&s->dead, configuration_key(s, s->content.set), s->used);
            }
            s->order_mattered = s->order_mattered || f->order_mattered;
            s->choice_count = f->first;
            s->frame_count--;
        } else if (make_choice(s, s->choices[f->first + f->next++])) {
            return true;
        }
    }
    return false;
}

static enum search_verdict search_through(struct search *s, struct search_result *r)
{
    for (;;) {
        enum walk walk = walk_on(s);
        if (walk == WALK_END) {
            return SEARCH_FOUND;
        }
        if (walk == WALK_DUE && !been_here(s)) {
            if (++r->configurations > s->options.configurations_max) {
                return SEARCH_LIMIT;
            }
            push_frame(s);
        }
        if (!next_choice(s, r)) {
            return SEARCH_NONE;
        }
    }
}

void search_run(const struct problem *p, const struct search_options *options,
                struct search_result *result)
{
    struct search s;
    *result = (struct search_result){.stuck = NO_STEP, .stuck_at = INT64_MIN};
    search_init(&s, p, options);
    result->verdict = search_through(&s, result);
    if (result->verdict == SEARCH_FOUND) {
        forget_states(result);
        keep_order(&s, result);
        keep_state(&s, result);
    }
    search_fini(&s);
}

void search_result_fini(struct search_result *r)
{
    forget_states(r);
    free(r->order);
    r->order = NULL;
}

/* --- an order that is believed --- */

/* The change under way with the smallest hint, or NO_STEP. */
static uint32_t next_by_hint(const struct search *s)
{
    uint32_t next = NO_STEP;
    FOR_RING(s, RING_CHANGES(s), i)
    {
        uint64_t hint = s->p->steps[i].hint;
        if (hint > HISTORY_HINT_NOTHING && (next == NO_STEP || hint < s->p->steps[next].hint)) {
            next = i;
        }
    }
    return next;
}

/* What is due waits for the changes before it, and takes its turn among them. */
static bool replay_due(struct search *s)
{
    uint32_t due = s->events[s->event].step;
    if (s->p->steps[due].optional && s->p->steps[due].hint == 0) {
        step_expire(s, due);
        return true;
    }
    uint32_t next = next_by_hint(s);
    return next != NO_STEP && step_possible(s, next) &&
           make_choice(s, (struct choice){CHOOSE_EFFECT, next});
}

bool search_replay(const struct problem *p)
{
    struct search s;
    /* Nothing is chosen, so nothing need be ruled out. */
    struct search_options options = {.plainly = true};
    search_init(&s, p, &options);
    s.replays = true;
    enum walk walk = walk_on(&s);
    while (walk == WALK_DUE && replay_due(&s)) {
        walk = walk_on(&s);
    }
    search_fini(&s);
    return walk == WALK_END;
}
