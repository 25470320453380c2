/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/outline.h"

#include <stdlib.h>

#include "base/array.h"

/* Entries whose buckets are on their way from memory together. */
#define EXPECTED 16u

void outline_init(struct outline *o)
{
    *o = (struct outline){0};
    view_init(&o->view);
    arena_init(&o->texts);
}

void outline_clear(struct outline *o)
{
    outline_forget_questions(o);
    view_clear(&o->view);
}

void outline_fini(struct outline *o)
{
    outline_clear(o);
}

/* ---- questions ---- */

static void ask(struct outline *o, uint32_t run, uint32_t part, struct outline_question question)
{
    struct view_part *of = &o->view.runs[run].parts[part];
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
            if (part == last || part >= o->view.runs[run].part_count) {
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
    uint32_t newest = o->view.run_count - 1;
    if (q->asker == ASKED_BY_READ) {
        o->answers[q->asker_place] = (struct outline_found){true, place};
    } else if (q->asker == ASKED_BY_LOG) {
        o->view.places[q->asker_place] = (struct log_place){.place = place, .found = true};
    } else if (q->op == ENTRY_ADD) {
        /* It stays in its older place. */
        view_set_dead(&o->view, (struct view_place){newest, q->asker_part, q->asker_place});
    } else {
        view_set_dead(&o->view, place);
        view_run_hide(&o->view.runs[newest], place);
    }
}

void outline_answer(struct outline *o, size_t run, uint32_t number, struct sublist *s)
{
    struct view_part *part = &o->view.runs[run].parts[number];
    uint32_t at = part->asked;
    part->asked = 0;
    o->asked_parts -= at != 0;
    while (at != 0) {
        const struct outline_question *q = &o->questions[at - 1];
        uint32_t found = sublist_place(s, q->item); /* from 1 on; 0: nowhere */
        if (found > 0 && found <= part->count && !view_part_is_dead(part, found - 1)) {
            answer_one(o, q, (struct view_place){(uint32_t)run, number, found - 1});
        }
        at = q->next;
    }
}

void outline_forget_questions(struct outline *o)
{
    const struct view *v = &o->view;
    for (uint32_t run = 0; run < v->run_count && o->asked_parts > 0; run++) {
        for (uint32_t part = 0; part < v->runs[run].part_count; part++) {
            v->runs[run].parts[part].asked = 0;
        }
    }
    free(o->questions);
    o->questions = NULL;
    o->question_count = o->question_cap = 0;
    o->asked_parts = 0;
    arena_fini(&o->texts);
}

/* ---- runs ---- */

size_t outline_keep(struct outline *o, const struct head *head)
{
    outline_forget_questions(o);
    return view_keep(&o->view, head);
}

void outline_add_counts(struct outline *o, const struct locator *locator)
{
    for (uint32_t i = 0; i < locator->sublists; i++) {
        view_run_push_count(&o->view.runs[o->view.run_count - 1], locator->counts[i]);
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
    uint32_t older = o->view.run_count - 1;
    struct view_run *run = &o->view.runs[older];
    view_run_push_count(run, s->count);
    if (older == 0 && s->all_add) {
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (older > 0 && i + EXPECTED < s->count) {
            expect_entry(o, older, s, i + EXPECTED);
        }
        if (s->ops[i] == ENTRY_DEL) {
            view_set_dead(&o->view, (struct view_place){older, run->part_count - 1, i});
        }
        ask_runs(o, older, sublist_item(s, i),
                 (struct outline_question){.asker = ASKED_BY_RUN,
                                           .op = s->ops[i],
                                           .asker_part = run->part_count - 1,
                                           .asker_place = i});
    }
}

/* ---- the log ---- */

void outline_ask_log(struct outline *o)
{
    while (view_next_place(&o->view) != NULL) {
        uint32_t at = o->view.place_count - 1;
        ask_runs(o, o->view.run_count, o->view.log.fold.items[at].item,
                 (struct outline_question){.asker = ASKED_BY_LOG, .asker_place = at});
    }
}

void outline_settle(struct outline *o)
{
    CHECK(!outline_has_questions(o) && o->view.place_count == o->view.log.fold.count);
    view_settle(&o->view);
}

/* ---- reading ---- */

bool outline_ask_item(struct outline *o, struct slice item, uint32_t place, bool *has)
{
    char outcome = fold_outcome(&o->view.log.fold, item);
    if (outcome != 0) {
        *has = outcome == ENTRY_ADD || outcome == ENTRY_READD;
        return true;
    }
    size_t before = o->question_count;
    ask_runs(o, o->view.run_count, item,
             (struct outline_question){.asker = ASKED_BY_READ, .asker_place = place});
    *has = false;
    return o->question_count == before;
}

bool outline_write_part(const struct outline *o, size_t run, uint32_t number, struct sublist *s,
                        bool backwards, struct output *output)
{
    struct view_part shown = o->view.runs[run].parts[number];
    shown.sublist = s;
    if (s->count != shown.count) {
        return false;
    }
    if (backwards) {
        view_part_write_back(&shown, output);
    } else {
        view_part_write(&shown, output);
    }
    return true;
}
