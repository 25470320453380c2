/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is what was planned still so, in front of the intent? Conditions, of an ltx or of what an lmove
 * or lpopto has read when it was planned; and caps that refuse additions.
 */
#include "list/tx/tx_op.h"

static void judge_answers(struct op_tx *o, const struct tx_part *part)
{
    for (size_t i = 0; i < part->asked_count && o->state == TX_GOING; i++) {
        if (members_has(&o->question.members, i) != part->wanted[i]) {
            o->state = o->verb == LIST_TX ? TX_NOT_STORED : TX_AGAIN;
        }
    }
}

/* Are the items at the end those that were planned to be moved? */
static void judge_range(struct op_tx *o)
{
    bool all = o->found_count < tx_wanted_count(o);
    bool same = all ? o->gather.count == o->found_count : o->gather.count >= o->moved_count;
    for (size_t i = 0; same && i < o->moved_count; i++) {
        same = slice_equal(o->gather.items[i], o->moved[i]);
    }
    o->state = same ? o->state : TX_AGAIN;
}

/* Items with a time of their own leave all lists in the same second: what is judged in one must
 * hold when the transaction commits. */
static void note_second(struct op_tx *o, const struct head *front)
{
    if (head_is_timed(front)) {
        bool same = o->judged_s == 0 || o->judged_s == front->read_s;
        o->judged_s = same ? front->read_s : INT64_MAX;
    }
}

/* Does a list that refuses additions beyond its cap refuse one? */
static void judge_cap(struct op_tx *o, const struct tx_part *part)
{
    struct head *front = head_in_front(part->head, &o->name);
    struct slice entries = slice_make(part->entries->data, part->entries->used);
    struct entry entry;
    struct fold content;
    fold_init(&content);
    fold_set_cap(&content, front->marks.cap);
    bool whole = fold_apply_entries(&content, front->log);
    CHECK(whole); /* head_read checked it */
    while (entry_next(&entries, &entry) == ENTRY_OK) {
        bool adds = entry.op == ENTRY_ADD || entry.op == ENTRY_READD;
        if (entry.op != ENTRY_CONDITION) {
            fold_apply(&content, (enum entry_op)entry.op, entry.bytes);
        }
        char outcome = adds ? fold_outcome(&content, entry.bytes) : ENTRY_ADD;
        if (outcome != ENTRY_ADD && outcome != ENTRY_READD) {
            o->state = TX_NOT_STORED;
        }
    }
    if (o->state == TX_NOT_STORED && o->verb == LIST_POPTO) {
        tx_fail(o, TX_REFUSED, "lpopto: DST is full (max_items), nothing done");
    }
    fold_fini(&content);
    head_unref(&front);
}

enum progress tx_judge_step(struct engine *e, struct op_tx *o, struct tx_part *part,
                            const struct op_event *event)
{
    struct co *co = &o->op.co;
    struct head *front;
    (void)event;
    CO_BEGIN(co);
    if (part->head->marks.cap.refuses) {
        judge_cap(o, part);
    }
    if (part->asked_count == 0 || o->state != TX_GOING) {
        CO_RETURN(co);
    }
    front = head_in_front(part->head, &o->name);
    note_second(o, front);
    if (o->verb == LIST_POPTO) {
        tx_ask_range(e, o, front);
    } else {
        question_items(e, &o->question, &o->op, part->list, front, part->asked, part->asked_count);
    }
    head_unref(&front);
    CO_CALL(co, tx_ask_step(o, "looking what is in front of an intent"));
    if (o->state == TX_GOING && o->verb == LIST_POPTO) {
        judge_range(o);
    } else if (o->state == TX_GOING) {
        judge_answers(o, part);
    }
    tx_forget_question(e, o);
    CO_END(co);
}
