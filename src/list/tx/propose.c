/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to the decision: what precedes the first intent of an attempt, and rules 1 to 3 of tx.h, the
 * intents and what has to be so for a commit.
 */
#include "list/tx/tx_op.h"

#include "base/number.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/tx/refusal.h"

static bool creates(const struct tx_part *part)
{
    return part->list->policy->on_missing == ON_MISSING_CREATE;
}

/* Takes what was read of a list: may the transaction go on with it? */
static void check_part(struct op_tx *o, const struct tx_part *part)
{
    if (part->got == GOT_ERROR) {
        tx_fail_undone(o, o->error);
    } else if (part->is_missing && !creates(part)) {
        o->state = TX_MISSING;
    }
}

/* What is announced to that list; its slices live as long as the parts. */
static struct intent intent_of(const struct op_tx *o, const struct tx_part *part)
{
    struct intent intent = {.name = o->name,
                            .created_s = o->created_s,
                            .entries = slice_make(part->entries->data, part->entries->used)};
    intent.keys[intent.key_count++] = list_key(o->parts[o->primary].list);
    for (size_t i = 0; i < o->part_count; i++) {
        if (i != o->primary) {
            intent.keys[intent.key_count++] = list_key(o->parts[i].list);
        }
    }
    return intent;
}

/* ---- before the first intent of an attempt: are they lists, which one decides, and is there room
 * in their logs? ---- */

/* Looks at a list that has no room yet, and the pause between them. */
#define ROOM_LOOKS_MAX 200
#define ROOM_PAUSE_US 2000u

/* What stands under the names of lists that this worker does not know. */
static enum progress look_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        part->is_missing = false;
        part->ends = part->list->expires_us != 0;
        part->got = GOT_HEAD;
        part->state = INTENT_GONE;
        part->lost = false;
        head_unref(&part->head);
        if (!part->list->has_head || o->looks_at_all) {
            tx_send_read(e, part);
        }
    }
    CO_CALL(co, tx_await_step(e, o, event, "looking whether they are lists"));
    CO_END(co);
}

static bool is_smaller(const struct tx_part *a, const struct tx_part *b)
{
    struct slice x = list_key(a->list), y = list_key(b->list);
    int order = memcmp(x.p, y.p, u64_least(x.len, y.len));
    return order < 0 || (order == 0 && x.len < y.len);
}

/* The primary must outlive the transaction: a list that ends is none. Of the others the one with
 * the smallest key, so that transactions on the same lists meet there first. One from which the
 * newest items move is rather not: see plan.c. */
static void choose_primary(struct op_tx *o)
{
    bool found = false;
    for (int round = 0; round < 2 && !found; round++) {
        for (size_t i = 0; i < o->part_count; i++) {
            const struct tx_part *part = &o->parts[i], *best = &o->parts[o->primary];
            bool ends = part->ends || (part->is_missing && part->list->policy->ttl_s != 0);
            bool avoided = o->no_additions && i == 0 && round == 0;
            if (!ends && !avoided && (!found || is_smaller(part, best))) {
                o->primary = i;
                found = true;
            }
        }
    }
    if (!found && !o->looks_at_all) {
        o->looks_at_all = true; /* what is known may be old */
        o->state = TX_ELSEWHERE;
    } else if (!found) {
        tx_fail(o, TX_REFUSED,
                "%s: all of the lists have a time to live, and one is needed that stays: nothing "
                "done",
                list_verb_word(o->verb));
    }
}

static void check_sizes(struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
        struct intent intent = intent_of(o, &o->parts[i]);
        uint64_t bytes = intent_size(&intent);
        uint64_t most = list_log_hard_limit(o->parts[i].list) / 4;
        if (bytes > most) {
            tx_size_text(o->verb, bytes, most, o->error);
            o->state = TX_REFUSED;
        }
    }
}

/* Is there room for its intent, and none of this worker's compactions in the way? */
static bool has_room(const struct op_tx *o, const struct tx_part *part)
{
    const struct list *list = part->list;
    struct intent intent = intent_of(o, part);
    return list->publisher == NULL && !timer_is_set(&list->append_backoff) &&
           intent_size(&intent) <= list_log_room(list);
}

static bool all_have_room(struct engine *e, struct op_tx *o)
{
    bool room = true;
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        part->waits = !has_room(o, part);
        if (part->waits) {
            room = false;
            tx_send_read(e, part); /* what is known may be old: others have flipped since */
        }
    }
    return room;
}

/* Of a list that has no room yet. */
static void await_list(struct engine *e, struct op_tx *o, struct tx_part *part)
{
    check_part(o, part);
    list_consider_compaction(e, part->list, 0);
}

static void give_up_waiting(struct engine *e, struct op_tx *o)
{
    metric_inc(e->metrics, METRIC_list_log_full);
    tx_fail(o, TX_FAILED, LIST_LOG_FULL);
}

static enum progress room_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (o->tries = 0; tx_goes_on(o) && !all_have_room(e, o); o->tries++) {
        CO_CALL(co, tx_await_step(e, o, event, "looking whether the lists' logs have room"));
        for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
            if (o->parts[i].waits) {
                await_list(e, o, &o->parts[i]);
            }
        }
        if (o->state == TX_GOING && o->tries == ROOM_LOOKS_MAX) {
            give_up_waiting(e, o);
        } else if (tx_goes_on(o)) {
            CO_SLEEP(&o->op, co, "waiting for room in the lists' logs",
                     e->now.mono_us + ROOM_PAUSE_US);
        }
    }
    CO_END(co);
}

static void begin(struct engine *e, struct op_tx *o)
{
    o->begun = o->confirms = false;
    o->judged_s = 0;
    name_fresh(&o->name, e->rng);
    o->created_s = e->now.wall_s;
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        part->proposed = part->stored = part->published = false;
        part->tries = 0;
    }
}

enum progress tx_prepare_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    begin(e, o);
    CO_CALL(co, look_step(e, o, event));
    for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
        check_part(o, &o->parts[i]);
    }
    if (tx_goes_on(o)) {
        choose_primary(o);
    }
    if (tx_goes_on(o)) {
        check_sizes(o);
    }
    if (tx_goes_on(o)) {
        CO_CALL(co, room_step(e, o, event));
    }
    CO_END(co);
}

/* ---- proposing ---- */

/* Writes of one intent that are refused, before the server has no memory for it. */
#define WRITES_MAX 4
/* Reads of all lists behind which something new was to be settled. */
#define ROUNDS_MAX 8

/* ---- intents ---- */

static void send_intent(struct engine *e, struct op_tx *o, struct tx_part *part)
{
    struct intent intent = intent_of(o, part);
    struct block *value = block_new(intent_size(&intent) + 64);
    o->begun = part->proposed = true;
    part->makes = part->is_missing;
    if (part->makes) {
        struct head_marks marks = {.cap = list_policy_cap(part->list->policy)};
        head_append_header(&value, &marks, NULL, 0, NULL, 0);
        intent_append(&value, &intent);
        tx_send_new(e, part, value);
    } else {
        intent_append(&value, &intent);
        tx_send_write(e, part, value);
        tx_send_read(e, part);
    }
    block_unref(&value);
}

static void fail_unanswered(struct op_tx *o, const struct tx_part *part)
{
    char key[128];
    tx_fail(o, TX_FAILED, "nothing done: the server of list %s did not answer",
            slice_escape(list_key(part->list), key, sizeof key));
}

/* Takes the answers to an intent that was sent. */
static void take_intent(struct engine *e, struct op_tx *o, struct tx_part *part)
{
    if (part->wrote == BE_STORED) {
        part->stored = true;
        part->list->has_head = true;
        if (part->makes) {
            metric_inc(e->metrics, METRIC_list_creates);
            part->empty = true;
            part->list->cap = list_policy_cap(part->list->policy);
        }
        return;
    }
    bool refused = tx_was_refused(part);
    if (part->wrote == BE_LOST || (refused && !part->makes && tx_part_is_unknown(part))) {
        fail_unanswered(o, part); /* an intent that may be there is not sent again */
        return;
    }
    part->proposed = false;
    if (!refused) {
        tx_fail_undone(o, o->error);
    } else if (part->makes) {
        part->wrote = BE_HIT; /* that it could not be made says nothing about appends to it */
    } else if (part->tries >= WRITES_MAX && part->rewrites) {
        o->state = TX_AGAIN; /* others were faster each time */
    } else if (part->tries >= WRITES_MAX) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        tx_fail(o, TX_FAILED, "backend out of memory, nothing done");
    }
}

/* Is it to be written by CAS, behind a log that has grown too long since room was looked for? Then
 * the transaction begins again, and waits for room. */
static bool has_no_room_now(const struct op_tx *o, const struct tx_part *part)
{
    struct intent intent = intent_of(o, part);
    return tx_was_refused(part) && part->head != NULL &&
           !list_has_room(part->list, part->head, intent_size(&intent));
}

static bool send_intents(struct engine *e, struct op_tx *o, bool primary)
{
    bool sent = false;
    for (size_t i = 0; i < o->part_count && tx_goes_on(o); i++) {
        struct tx_part *part = &o->parts[i];
        if ((i == o->primary) != primary || part->stored) {
            continue;
        }
        if (has_no_room_now(o, part)) {
            o->state = TX_AGAIN;
        } else {
            part->tries++;
            send_intent(e, o, part);
            sent = true;
        }
    }
    return sent;
}

/* A read that was sent with an ADD or a CAS may be carried out in front of it (expiry.h). And where
 * another writer was faster to put something there, it has to be seen before anything is appended
 * to it: it may be no list. */
static bool needs_look(const struct tx_part *part)
{
    return part->makes || (part->stored && part->rewrites);
}

static void take_intents(struct engine *e, struct op_tx *o, bool primary)
{
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        if ((i == o->primary) == primary && !part->stored) {
            take_intent(e, o, part);
        }
        if (needs_look(part) && tx_goes_on(o)) {
            part->makes = part->rewrites = false;
            tx_send_read(e, part);
        }
    }
}

/* Those that were refused: may the intent be sent once more? */
static void check_refused(struct op_tx *o, bool primary)
{
    for (size_t i = 0; i < o->part_count && tx_goes_on(o); i++) {
        if ((i == o->primary) == primary && !o->parts[i].stored) {
            check_part(o, &o->parts[i]);
        }
    }
}

/* Puts the intents into the logs of the primary, or of all others, and reads these behind them. */
static enum progress intents_step(struct engine *e, struct op_tx *o, bool primary,
                                  const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    while (tx_goes_on(o) && send_intents(e, o, primary)) {
        CO_CALL(co, tx_await_step(e, o, event, "announcing a transaction"));
        take_intents(e, o, primary);
        CO_CALL(co, tx_await_step(e, o, event, "reading a list that was made"));
        check_refused(o, primary);
    }
    CO_END(co);
}

/* ---- is what was planned still so? ----
 *
 * In front of the intent: conditions, of an ltx or of what an lmove or lpopto has read when it was
 * planned; and caps that refuse additions.
 */

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

/* Is what was planned still so, by the head in front of the intent? Ends with state. */
static enum progress judge_step(struct engine *e, struct op_tx *o, struct tx_part *part,
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

/* ---- what stands in front and behind ---- */

/* Is anything added behind the intent? An lpopto may be about that: plan.c. */
static bool has_additions(const struct op_tx *o, const struct tx_part *part)
{
    const struct head_intent *own = head_find_intent(part->head, &o->name);
    struct slice rest = head_raw_log(part->head);
    struct entry entry;
    (void)slice_take(&rest, own->at);
    bool adds = entry_next(&rest, &entry) != ENTRY_OK; /* itself */
    while (!adds && entry_next(&rest, &entry) == ENTRY_OK) {
        adds = entry_is_in(entry.op, entry.until_s, ENTRY_NEVER_OVER);
    }
    const struct head_intent *end = part->head->intents + part->head->intent_count;
    for (const struct head_intent *i = own + 1; i < end; i++) {
        adds = adds || i->state != INTENT_ABORTED;
    }
    return adds;
}

/* Is the intent there, undecided, with nothing that conflicts behind it? */
static void check_own(struct op_tx *o, struct tx_part *part)
{
    check_part(o, part);
    part->empty = part->head != NULL ? !head_has_items(part->head) : part->empty;
    if (o->state == TX_GOING &&
        (part->state != INTENT_OPEN || head_intent_is_crossed(part->head, &o->name))) {
        o->state = TX_AGAIN;
    }
    if (o->state == TX_GOING && o->no_additions && part == &o->parts[0] && has_additions(o, part)) {
        o->state = TX_AGAIN;
    }
}

/* Is every intent in front of the own one in the way, since whatever it adds matters? Of an lpopto
 * even those at the other end: an item that is added again moves behind what they add. */
static bool waits_for_all(const struct op_tx *o, const struct tx_part *part)
{
    return part->head->marks.cap.max != 0 || (o->verb == LIST_POPTO && part == &o->parts[0]);
}

/* The intents in front of the part's own one that have to be decided first, up to so many. Returns
 * how many. */
static size_t find_front(const struct op_tx *o, const struct tx_part *part,
                         const struct head_intent **front, size_t max)
{
    const struct head_intent *own = head_find_intent(part->head, &o->name);
    const struct head_intent *other = part->head->intents;
    struct intent_items items;
    size_t count = 0;
    while (other < own && other->state != INTENT_OPEN) {
        other++;
    }
    if (other == own) {
        return 0;
    }
    intent_items_init(&items, own->entries);
    for (; other < own && count < max; other++) {
        if (other->state == INTENT_OPEN &&
            (waits_for_all(o, part) || intent_items_meet(&items, other->entries))) {
            front[count++] = other;
        }
    }
    intent_items_fini(&items);
    return count;
}

static bool has_front(const struct op_tx *o, const struct tx_part *part)
{
    const struct head_intent *first;
    return find_front(o, part, &first, 1) > 0;
}

/* Those beyond SETTLE_MAX have their turn in the next round. */
static void begin_settling(struct engine *e, struct op_tx *o, const struct tx_part *part)
{
    const struct head_intent *front[SETTLE_MAX];
    size_t count = find_front(o, part, front, SETTLE_MAX);
    settle_init(&o->settle, &o->op, part->list);
    for (size_t i = 0; i < count; i++) {
        (void)settle_add(e, &o->settle, front[i]);
    }
}

/* Settles what stands in front of the part's intent. Its head is to be read again then. */
static enum progress settle_part_step(struct engine *e, struct op_tx *o, struct tx_part *part,
                                      const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    begin_settling(e, o, part);
    CO_CALL(co, settle_step(e, &o->settle, event));
    if (o->settle.state == SETTLE_FAILED) {
        tx_fail_undone(o, o->settle.error);
    }
    settle_fini(&o->settle);
    CO_END(co);
}

static enum progress primary_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    CO_CALL(co, intents_step(e, o, true, event));
    for (o->tries = 0; tx_goes_on(o); o->tries++) {
        check_own(o, tx_primary(o));
        if (o->state == TX_GOING && tx_primary(o)->ends) {
            o->state = TX_ELSEWHERE;
        }
        if (!tx_goes_on(o) || !has_front(o, tx_primary(o))) {
            break;
        }
        CO_CALL(co, settle_part_step(e, o, tx_primary(o), event));
        tx_send_read(e, tx_primary(o));
        CO_CALL(co, tx_await_step(e, o, event, "reading the primary behind other transactions"));
        o->state = tx_goes_on(o) && o->tries == ROUNDS_MAX ? TX_AGAIN : o->state;
    }
    if (tx_goes_on(o)) {
        CO_CALL(co, judge_step(e, o, tx_primary(o), event));
    }
    CO_END(co);
}

/* ---- rules 2 and 3 ---- */

static void check_others(struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count && o->state == TX_GOING; i++) {
        if (i != o->primary) {
            check_own(o, &o->parts[i]);
        }
    }
}

static bool others_have_front(const struct op_tx *o)
{
    bool front = false;
    for (size_t i = 0; i < o->part_count; i++) {
        front = front || (i != o->primary && has_front(o, &o->parts[i]));
    }
    return front;
}

static void read_others(struct engine *e, struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count; i++) {
        if (i != o->primary) {
            tx_send_read(e, &o->parts[i]);
        }
    }
}

/* With one other list, the read behind its intent has it all. With more, the first lists may have
 * changed while the intents of the last ones were on their way. */
static enum progress validate_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    o->all_read = o->part_count <= 2;
    for (o->tries = 0; tx_goes_on(o); o->tries++) {
        check_others(o);
        if (!tx_goes_on(o) || (o->all_read && !others_have_front(o))) {
            break;
        }
        for (o->at = 0; o->at < o->part_count && tx_goes_on(o); o->at++) {
            if (o->at != o->primary && has_front(o, &o->parts[o->at])) {
                CO_CALL(co, settle_part_step(e, o, &o->parts[o->at], event));
            }
        }
        if (tx_goes_on(o)) {
            read_others(e, o);
            o->all_read = true;
            CO_CALL(co, tx_await_step(e, o, event, "reading the lists of a transaction again"));
        }
        o->state = tx_goes_on(o) && o->tries == ROUNDS_MAX ? TX_AGAIN : o->state;
    }
    for (o->at = 0; o->at < o->part_count && tx_goes_on(o); o->at++) {
        if (o->at != o->primary) {
            CO_CALL(co, judge_step(e, o, &o->parts[o->at], event));
        }
    }
    CO_END(co);
}

/* A list that is missing counts before a condition that does not hold, whether the worker knew that
 * it is missing or has not looked yet. */
static enum progress missing_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (size_t i = 0; i < o->part_count; i++) {
        const struct list_policy *policy = o->parts[i].list->policy;
        if (!o->parts[i].proposed && policy->on_missing == ON_MISSING_REFUSE) {
            tx_send_read(e, &o->parts[i]);
        }
    }
    CO_CALL(co, tx_await_step(e, o, event, "looking whether other lists are missing"));
    for (size_t i = 0; i < o->part_count && o->state == TX_NOT_STORED; i++) {
        check_part(o, &o->parts[i]);
    }
    CO_END(co);
}

enum progress tx_propose_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    CO_CALL(co, primary_step(e, o, event));
    if (o->state == TX_NOT_STORED && !o->over) {
        CO_CALL(co, missing_step(e, o, event));
    }
    if (tx_goes_on(o)) {
        CO_CALL(co, intents_step(e, o, false, event));
    }
    if (tx_goes_on(o)) {
        CO_CALL(co, validate_step(e, o, event));
    }
    if (tx_goes_on(o) && o->judged_s != 0 && o->judged_s != e->now.wall_s) {
        o->state = TX_AGAIN;
    }
    CO_END(co);
}
