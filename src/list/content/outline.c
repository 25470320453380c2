/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/outline.h"

#include <stdlib.h>

#include "base/array.h"

/* Entries whose buckets are on their way from memory together. */
#define EXPECTED 16u

void outline_init(struct outline *o)
{
    *o = (struct outline){0};
    log_fold_init(&o->log);
    arena_init(&o->texts);
}

/* ---- void places ---- */

static bool is_dead(const struct outline_part *part, uint32_t position)
{
    return part->dead != NULL && (part->dead[position / 64] >> position % 64 & 1) != 0;
}

static struct outline_part *part_at(struct outline *o, struct view_place place)
{
    return &o->runs[place.run].parts[place.part];
}

static void set_dead(struct outline *o, struct view_place place)
{
    struct outline_run *run = &o->runs[place.run];
    struct outline_part *part = &run->parts[place.part];
    if (part->dead == NULL) {
        size_t words = part->count / 64 + 1;
        part->dead = calloc(words, sizeof *part->dead);
        CHECK(part->dead != NULL);
        run->dead_bytes += words * sizeof *part->dead;
    }
    if (!is_dead(part, place.position)) {
        part->dead[place.position / 64] |= 1ULL << place.position % 64;
        part->live--;
        run->live--;
    }
}

static void set_live(struct outline *o, struct view_place place)
{
    struct outline_part *part = part_at(o, place);
    part->dead[place.position / 64] &= ~(1ULL << place.position % 64);
    part->live++;
    o->runs[place.run].live++;
}

/* Takes back what the log hides. */
static void forget_places(struct outline *o)
{
    for (uint32_t i = 0; i < o->place_count; i++) {
        if (o->places[i].hidden) {
            set_live(o, o->places[i].place);
        }
    }
    o->place_count = 0;
    o->settled = false;
}

static void forget_log(struct outline *o)
{
    forget_places(o);
    log_fold_clear(&o->log);
}

static void drop_last_run(struct outline *o)
{
    struct outline_run *run = &o->runs[--o->run_count];
    for (size_t i = run->hide_count; i-- > 0;) {
        set_live(o, run->hides[i]);
    }
    for (uint32_t i = 0; i < run->part_count; i++) {
        free(run->parts[i].dead);
    }
    free(run->parts);
    free(run->hides);
}

void outline_clear(struct outline *o)
{
    outline_forget_questions(o);
    forget_log(o);
    while (o->run_count > 0) {
        drop_last_run(o);
    }
    free(o->runs);
    free(o->places);
    outline_init(o);
}

void outline_fini(struct outline *o)
{
    outline_clear(o);
}

size_t outline_memory_bytes(const struct outline *o)
{
    uint64_t bytes = fold_bytes(&o->log.fold) + o->place_cap * sizeof *o->places +
                     o->run_cap * sizeof *o->runs + o->log.log.len;
    for (uint32_t i = 0; i < o->run_count; i++) {
        const struct outline_run *run = &o->runs[i];
        bytes += run->part_cap * sizeof *run->parts + run->hide_cap * sizeof *run->hides +
                 run->dead_bytes;
    }
    return bytes;
}

/* ---- questions ---- */

static void ask(struct outline *o, uint32_t run, uint32_t part, struct outline_question question)
{
    struct outline_part *of = &o->runs[run].parts[part];
    question.next = of->asked;
    o->asked_parts += of->asked == 0;
    o->questions =
        array_room(o->questions, o->question_count, &o->question_cap, sizeof *o->questions);
    o->questions[o->question_count++] = question;
    of->asked = (uint32_t)o->question_count;
}

/* Asks all sublists of the first runs that may hold the item. */
static void ask_runs(struct outline *o, uint32_t run_count, struct slice item,
                     struct outline_question question)
{
    uint64_t hash = locator_hash(item);
    question.item = SLICE_NONE;
    for (uint32_t run = 0; run < run_count; run++) {
        struct locator_walk walk = locator_seek(o->locators[run], hash);
        uint32_t part, last = UINT32_MAX;
        while (locator_next(o->locators[run], &walk, &part)) {
            if (part == last || part >= o->runs[run].part_count) {
                continue;
            }
            if (question.item.p == NULL) {
                question.item = arena_copy(&o->texts, item);
            }
            ask(o, run, part, question);
            last = part;
        }
    }
}

size_t outline_question_bytes(const struct outline *o)
{
    return o->question_cap * sizeof *o->questions + o->texts.bytes;
}

static void answer_one(struct outline *o, const struct outline_question *q, struct view_place place)
{
    struct view_place asker = {o->run_count - 1, q->asker_part, q->asker_place};
    if (q->asker == ASKED_BY_READ) {
        o->answers[q->asker_place] = (struct outline_found){true, place};
    } else if (q->asker == ASKED_BY_LOG) {
        struct log_place *log = &o->places[q->asker_place];
        log->found = true;
        log->place = place;
    } else if (q->op == ENTRY_ADD) {
        set_dead(o, asker); /* it stays in its older place */
    } else {
        struct outline_run *run = &o->runs[asker.run];
        set_dead(o, place);
        run->hides = array_room(run->hides, run->hide_count, &run->hide_cap, sizeof *run->hides);
        run->hides[run->hide_count++] = place;
    }
}

void outline_answer(struct outline *o, size_t run, uint32_t number, struct sublist *s)
{
    struct outline_part *part = &o->runs[run].parts[number];
    uint32_t at = part->asked;
    part->asked = 0;
    o->asked_parts -= at != 0;
    while (at != 0) {
        const struct outline_question *q = &o->questions[at - 1];
        uint32_t found = sublist_place(s, q->item); /* from 1 on; 0: nowhere */
        if (found > 0 && found <= part->count && !is_dead(part, found - 1)) {
            answer_one(o, q, (struct view_place){(uint32_t)run, number, found - 1});
        }
        at = q->next;
    }
}

void outline_forget_questions(struct outline *o)
{
    for (uint32_t run = 0; run < o->run_count && o->asked_parts > 0; run++) {
        for (uint32_t part = 0; part < o->runs[run].part_count; part++) {
            o->runs[run].parts[part].asked = 0;
        }
    }
    free(o->questions);
    o->questions = NULL;
    o->question_count = o->question_cap = 0;
    o->asked_parts = 0;
    arena_fini(&o->texts);
}

/* ---- runs ---- */

static uint32_t common_runs(const struct outline *o, const struct head *head)
{
    return head_runs_known(head, o->runs, o->run_count, sizeof(struct outline_run),
                           offsetof(struct outline_run, name));
}

bool outline_has_runs(const struct outline *o, const struct head *head)
{
    return o->run_count == head->run_count && common_runs(o, head) == o->run_count;
}

uint32_t outline_keep(struct outline *o, const struct head *head)
{
    uint32_t count = common_runs(o, head);
    outline_forget_questions(o);
    if (count < o->run_count) {
        forget_log(o);
    }
    while (o->run_count > count) {
        drop_last_run(o);
    }
    return count;
}

void outline_begin_run(struct outline *o, const struct name *name)
{
    forget_log(o);
    o->runs = array_room(o->runs, o->run_count, &o->run_cap, sizeof *o->runs);
    o->runs[o->run_count++] = (struct outline_run){.name = *name};
}

static void push_part(struct outline_run *run, uint32_t count)
{
    run->parts = array_room(run->parts, run->part_count, &run->part_cap, sizeof *run->parts);
    run->parts[run->part_count++] = (struct outline_part){.count = count, .live = count};
    run->live += count;
}

void outline_add_counts(struct outline *o, const struct locator *locator)
{
    for (uint32_t i = 0; i < locator->sublists; i++) {
        push_part(&o->runs[o->run_count - 1], locator->counts[i]);
    }
}

static void expect_entry(const struct outline *o, uint32_t older, const struct sublist *s,
                         uint32_t i)
{
    uint64_t hash = locator_hash(sublist_item(s, i));
    for (uint32_t run = 0; run < older; run++) {
        locator_expect(o->locators[run], hash);
    }
}

void outline_add_sublist(struct outline *o, struct sublist *s)
{
    uint32_t older = o->run_count - 1;
    struct outline_run *run = &o->runs[older];
    push_part(run, s->count);
    if (older == 0 && s->all_add) {
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (older > 0 && i + EXPECTED < s->count) {
            expect_entry(o, older, s, i + EXPECTED);
        }
        if (s->ops[i] == ENTRY_DEL) {
            set_dead(o, (struct view_place){older, run->part_count - 1, i});
        }
        ask_runs(o, older, sublist_item(s, i),
                 (struct outline_question){.asker = ASKED_BY_RUN,
                                           .op = s->ops[i],
                                           .asker_part = run->part_count - 1,
                                           .asker_place = i});
    }
}

/* ---- the log ---- */

void outline_take_log(struct outline *o, const struct head *head)
{
    if (!log_fold_take(&o->log, head)) {
        forget_places(o);
    }
    o->settled = false;
}

void outline_ask_log(struct outline *o)
{
    const struct fold *fold = &o->log.fold;
    if (o->place_cap < fold->count) {
        o->place_cap = fold->room;
        o->places = realloc(o->places, o->place_cap * sizeof *o->places);
        CHECK(o->places != NULL);
    }
    while (o->place_count < fold->count) {
        uint32_t at = o->place_count++;
        o->places[at] = (struct log_place){.found = false};
        ask_runs(o, o->run_count, fold->items[at].item,
                 (struct outline_question){.asker = ASKED_BY_LOG, .asker_place = at});
    }
}

void outline_settle(struct outline *o)
{
    CHECK(!outline_has_questions(o) && o->place_count == o->log.fold.count);
    if (o->settled) {
        return;
    }
    o->settled = true;
    o->rest = 0;
    for (uint32_t i = 0; i < o->log.fold.count; i++) {
        struct fold_item *item = &o->log.fold.items[i];
        struct log_place *log = &o->places[i];
        bool in = item->outcome == ENTRY_ADD || item->outcome == ENTRY_READD;
        item->placed = item->outcome == ENTRY_ADD && log->found;
        o->rest += in && !item->placed;
        /* An item that was deleted and added again stands twice in the fold; its place is hidden
         * once. */
        if (log->found && item->outcome != ENTRY_ADD && !log->hidden &&
            !is_dead(part_at(o, log->place), log->place.position)) {
            set_dead(o, log->place);
            log->hidden = true;
        }
    }
}

/* ---- reading ---- */

bool outline_ask_item(struct outline *o, struct slice item, uint32_t place, bool *has)
{
    char outcome = fold_outcome(&o->log.fold, item);
    if (outcome != 0) {
        *has = outcome == ENTRY_ADD || outcome == ENTRY_READD;
        return true;
    }
    size_t before = o->question_count;
    ask_runs(o, o->run_count, item,
             (struct outline_question){.asker = ASKED_BY_READ, .asker_place = place});
    *has = false;
    return o->question_count == before;
}

uint64_t outline_run_items(const struct outline *o)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < o->run_count; i++) {
        count += o->runs[i].live;
    }
    return count;
}

uint64_t outline_count(const struct outline *o)
{
    CHECK(o->settled);
    return outline_run_items(o) + o->rest;
}

uint64_t outline_position(const struct outline *o, struct view_place place)
{
    const struct outline_run *run = &o->runs[place.run];
    uint64_t position = 0;
    for (uint32_t i = 0; i < place.run; i++) {
        position += o->runs[i].live;
    }
    for (uint32_t i = 0; i < place.part; i++) {
        position += run->parts[i].live;
    }
    for (uint32_t i = 0; i < place.position; i++) {
        position += !is_dead(&run->parts[place.part], i);
    }
    return position;
}

bool outline_log_position(const struct outline *o, struct slice item, uint64_t *position)
{
    const struct fold *fold = &o->log.fold;
    const struct fold_item *known = fold_find(fold, item);
    if (known != NULL && known->placed) {
        *position = outline_position(o, o->places[known - fold->items].place);
        return true;
    }
    uint32_t at = 0;
    char op;
    struct slice next;
    *position = outline_run_items(o);
    while (fold_next(fold, true, &at, &op, &next)) {
        if (slice_equal(next, item)) {
            return true;
        }
        (*position)++;
    }
    return false;
}

void outline_write_part(const struct outline *o, size_t run, uint32_t number, struct sublist *s,
                        bool backwards, struct output *output)
{
    const struct outline_part *part = &o->runs[run].parts[number];
    struct view_part shown = {.sublist = s, .live = part->live, .dead = part->dead};
    if (backwards) {
        view_part_write_back(&shown, output);
    } else {
        view_part_write(&shown, output);
    }
}

void outline_write_rest(const struct outline *o, bool backwards, struct output *output)
{
    const struct fold *fold = &o->log.fold;
    uint32_t at = backwards ? fold->count : 0;
    char op;
    struct slice item;
    while (!output_satisfied(output) &&
           (backwards ? fold_previous(fold, ENTRY_NEVER_OVER, &at, &item)
                      : fold_next(fold, true, &at, &op, &item))) {
        output_item(output, item);
    }
}
