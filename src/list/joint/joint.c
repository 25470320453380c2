/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/joint/joint.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "list/core/engine_state.h"
#include "list/read/from_view.h"

/* Looks at lists that others change all the time. */
#define TRIES_MAX 32
/* First pause after such a look; doubles up to 2^5 times that: 3 ms. */
#define BACKOFF_US 100u
/* Looks at lists that were compacted away while they were read. */
#define ROUNDS_MAX 10
/* What takes less than this part of a worker's share of memory_limit_bytes waits for no turn. */
#define TURN_PART 64
/* What looking at a list takes, as measured, with what a short one holds and its answer; of one in
 * another layout, where two looks hold its items. */
#define LOOK_BYTES 4096u
#define LOOKS_BYTES 16384u
/* Looks whether another worker has made room. */
#define TURN_PAUSE_US 1000u

/* What those that have their turn are expected to take, of all workers. */
static _Atomic uint64_t reserved;

/* ---- what one of the lists holds ---- */

static void source_init(struct source *s, struct list *list, size_t first_arg)
{
    *s = (struct source){.list = list, .first_arg = first_arg};
    list->ops++;
}

/* Forgets what the last look brought. */
static void source_forget(struct engine *e, struct joint *j, struct source *s)
{
    if (s->has_items) {
        fold_fini(&s->items);
        memory_give(s->items_bytes);
        j->memory_bytes -= s->items_bytes;
        s->items_bytes = 0;
    }
    inner_drop(e, &s->look);
    inner_drop(e, &s->probe);
    inner_drop(e, &s->read);
    s->has_items = s->missing = false;
    s->brought = 0;
}

static void source_fini(struct engine *e, struct joint *j, struct source *s)
{
    source_forget(e, j, s);
    s->list->ops--;
}

/* A list without runs: its items, which stay in the head that the look holds. */
static void take_items(struct source *s)
{
    const struct head *head = s->look->head;
    s->kind = SOURCE_ITEMS;
    s->has_items = true;
    if (head == NULL) {
        s->items = s->look->items;
        fold_init(&s->look->items);
        return;
    }
    fold_init(&s->items);
    fold_set_cap(&s->items, head->marks.cap);
    bool whole = fold_apply_held(&s->items, head->log);
    CHECK(whole); /* head_read checked it */
}

/* After a look: finds out of which kind it is. */
static void source_settle(struct engine *e, struct joint *j, struct source *s)
{
    const struct head *head = s->look->head;
    s->over_s = head != NULL ? head->read_s : 0;
    if (head != NULL && head->run_count > 0 && !head->clears) {
        s->kind = view_is_worth_it(e, head) ? SOURCE_VIEW : SOURCE_STREAM;
        return;
    }
    take_items(s);
    s->items_bytes = fold_bytes(&s->items);
    memory_take(s->items_bytes);
    j->memory_bytes += s->items_bytes;
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

/* ---- beginning and ending ---- */

/* The tag of a probe or a write is the number of its source. */

uint64_t joint_bytes(const struct joint *j)
{
    return j->memory_bytes + j->looks_bytes;
}

static void charge(struct joint *j)
{
    if (!j->over) {
        session_charge(j->call, joint_bytes(j));
    }
}

void joint_init(struct engine *e, struct joint *j, struct op *op, struct list_call *call,
                char error[LIST_ERROR_MAX])
{
    *j = (struct joint){.op = op, .call = call, .error = error};
    call->session->joint = call;
    j->sources = calloc(call->list_count, sizeof *j->sources);
    j->args = calloc(call->list_count, sizeof *j->args);
    CHECK(j->sources != NULL && j->args != NULL);
    j->memory_bytes = call->list_count * (sizeof *j->sources + sizeof *j->args);
    memory_take(j->memory_bytes);
    for (size_t i = 0; i < call->list_count; i++) {
        struct list *list = lists_get(&e->lists, call->lists[i].key, call->lists[i].policy);
        size_t at = 0;
        while (at < j->source_count && j->sources[at].list != list) {
            at++;
        }
        if (at == j->source_count) {
            source_init(&j->sources[j->source_count++], list, i);
            j->looks_bytes += list->is_native ? LOOK_BYTES : LOOKS_BYTES;
        }
        j->args[j->arg_count++] = at;
    }
    charge(j);
}

static void leave_queue(struct engine *e, struct joint *j)
{
    if (j->in_turns) {
        j->in_turns = false;
        TAILQ_REMOVE(&e->turns, j, turn);
        if (!e->is_dropped && !TAILQ_EMPTY(&e->turns)) {
            op_wake(e, TAILQ_FIRST(&e->turns)->op);
        }
    }
}

void joint_leave_turn(struct engine *e, struct joint *j)
{
    leave_queue(e, j);
    if (j->reserved) {
        j->reserved = false;
        (void)atomic_fetch_sub(&reserved, j->reserve_bytes);
    }
}

void joint_fini(struct engine *e, struct joint *j)
{
    joint_leave_turn(e, j);
    for (size_t i = 0; i < j->source_count; i++) {
        source_fini(e, j, &j->sources[i]);
    }
    free(j->sources);
    free(j->args);
    memory_give(j->memory_bytes);
    *j = (struct joint){0};
}

static void PRINTF_LIKE(3, 4) fail(struct joint *j, enum joint_state state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(j->error, LIST_ERROR_MAX, format, args);
    va_end(args);
    j->state = state;
}

/* ---- looking ---- */

static struct inner *look(struct engine *e, struct joint *j, struct source *s)
{
    struct inner *look = inner_new(e, j->op, s->list, LIST_LEN);
    inner_look(e, look, s->list);
    return look;
}

static void look_at(struct engine *e, struct joint *j, struct source *s)
{
    source_forget(e, j, s);
    s->look = look(e, j, s);
}

static bool is_looking(const struct joint *j)
{
    for (size_t i = 0; i < j->source_count; i++) {
        const struct source *s = &j->sources[i];
        if ((s->look != NULL && !s->look->done) || (s->probe != NULL && !s->probe->done)) {
            return true;
        }
    }
    return false;
}

static void take_look(struct joint *j, struct source *s)
{
    const struct list_call *call = &s->look->call;
    s->missing = call->status == LIST_MISSING;
    if (call->status != LIST_OK && !s->missing) {
        fail(j, JOINT_FAILED, "%s", call->error);
    }
}

static void take_looks(struct joint *j)
{
    for (size_t i = 0; i < j->source_count && j->state == JOINT_OK; i++) {
        take_look(j, &j->sources[i]);
    }
}

static size_t count_missing(const struct joint *j)
{
    size_t count = 0;
    for (size_t i = 0; i < j->source_count; i++) {
        count += j->sources[i].missing;
    }
    return count;
}

/* Is the list that is made one of those that are read? */
static bool is_replaced(const struct joint *j)
{
    size_t i = 0;
    while (i < j->source_count && j->sources[i].list != j->op->list) {
        i++;
    }
    return i < j->source_count && list_verb_has(j->call->verb, LIST_STORES);
}

/* Does a missing list decide the answer? Where missing is not the same as empty, one that is
 * missing is not known. */
static bool missing_decides(struct joint *j)
{
    enum joint_verb verb = joint_verb(j->call->verb);
    for (size_t i = 0; i < j->source_count && verb != JOINT_GET; i++) {
        const struct source *s = &j->sources[i];
        if (s->missing && s->list->policy->on_missing == ON_MISSING_REFUSE) {
            j->state = JOINT_MISSING;
            return true;
        }
    }
    /* A list that is to be replaced must be of the same instant, too. */
    j->empty = !is_replaced(j) && ((verb == JOINT_INTER && count_missing(j) > 0) ||
                                   (verb == JOINT_DIFF && joint_arg(j, 0)->missing));
    return j->empty;
}

/* ---- heads for missing lists ---- */

/* A list that is missing is an empty one, and an empty head says just that. */
static bool can_be_made(const struct source *s)
{
    return s->list->is_native && s->list->policy->on_missing == ON_MISSING_CREATE;
}

/* Chooses which of the missing lists gets no head: one that can get none, or the last one. */
static bool choose_alone(struct joint *j)
{
    size_t none = 0;
    j->alone = 0;
    for (size_t i = 0; i < j->source_count; i++) {
        const struct source *s = &j->sources[i];
        if (s->missing && (none == 0 || !can_be_made(s))) {
            j->alone = i;
        }
        none += s->missing && !can_be_made(s);
    }
    if (none > 1) {
        char key[128];
        fail(j, JOINT_FAILED,
             "%zu of the lists are missing, and nothing proves that they were at the same instant: "
             "ask for %s and the others one by one",
             none, slice_escape(list_key(j->sources[j->alone].list), key, sizeof key));
    }
    return none <= 1;
}

static void make_head(struct engine *e, struct joint *j, size_t at)
{
    struct list *list = j->sources[at].list;
    struct block *value = block_new_small();
    struct life life = life_new(list->policy);
    struct head_marks marks = {.cap = list_policy_cap(list->policy)};
    /* With its cap: others that remember the list append to this head without a look. */
    head_append_header(&value, &marks, NULL, 0, NULL, 0);
    emit_add_head_to(e, j->op, list, &life, value, at);
    block_unref(&value);
}

static void take_made(struct joint *j, const struct op_event *event)
{
    struct source *s = &j->sources[event->tag];
    if (event->status == BE_STORED) {
        s->made = true;
    } else if (event->status != BE_NOT_STORED) {
        op_error_text(event, j->error);
        j->state = JOINT_FAILED;
    }
}

/* Makes heads for all missing lists but one, and looks at these. */
static enum progress make_step(struct engine *e, struct joint *j, const struct op_event *event)
{
    struct co *co = &j->op->co;
    CO_BEGIN(co);
    if (!choose_alone(j)) {
        CO_RETURN(co);
    }
    for (size_t i = 0; i < j->source_count; i++) {
        if (j->sources[i].missing && i != j->alone) {
            make_head(e, j, i);
        }
    }
    j->making = true;
    while (j->op->due > 0) {
        CO_AWAIT(co, "making heads for missing lists");
        if (event != NULL) {
            take_made(j, event);
        }
    }
    j->making = false;
    for (size_t i = 0; i < j->source_count && j->state == JOINT_OK; i++) {
        if (j->sources[i].missing && i != j->alone) {
            look_at(e, j, &j->sources[i]);
        }
    }
    while (is_looking(j)) {
        CO_AWAIT(co, "reading heads that were made");
    }
    if (j->state == JOINT_OK) {
        take_looks(j);
    }
    CO_END(co);
}

/* Was the head made here, and is it as it was made? */
static bool is_to_go(const struct source *s)
{
    const struct head *head = s->made && s->look != NULL ? s->look->head : NULL;
    return head != NULL && head->raw_log_bytes == 0 && head->run_count == 0 &&
           head->garbage_count == 0;
}

bool joint_has_made(const struct joint *j)
{
    bool made = j->making;
    for (size_t i = 0; i < j->source_count; i++) {
        made = made || j->sources[i].made;
    }
    return made;
}

enum progress joint_tidy_step(struct engine *e, struct joint *j, const struct op_event *event)
{
    struct co *co = &j->op->co;
    CO_BEGIN(co);
    for (size_t i = 0; i < j->source_count; i++) {
        struct source *s = &j->sources[i];
        if (is_to_go(s)) {
            struct list_request *r = request_new(e, s->list, BE_CAS_DELETE);
            request_set_key(r, head_key(r->key, list_key(s->list)));
            r->be.cas = s->look->head->cas;
            r->be.epoch = s->look->head->epoch;
            op_send(e, j->op, r, NULL, i);
        }
    }
    while (j->op->due > 0) {
        CO_AWAIT(co, "removing heads that were made for missing lists");
        if (event != NULL && event->status == BE_STORED) {
            j->sources[event->tag].list->has_head = false;
        }
    }
    CO_END(co);
}

/* ---- probing ---- */

static void probe(struct engine *e, struct joint *j)
{
    for (size_t i = 0; i < j->source_count; i++) {
        struct source *s = &j->sources[i];
        if (!s->missing && s->look->head != NULL) {
            emit_size_of(e, j->op, s->list, i);
        } else if (!s->missing) {
            s->probe = look(e, j, s);
        }
    }
}

/* CAS numbers count per server, and begin again with it: they are compared over one connection. */
static bool is_same(const struct source *s, uint64_t cas, uint64_t epoch)
{
    return s->look->cas == cas && s->look->epoch == epoch;
}

static void take_probe(struct joint *j, const struct op_event *event)
{
    const struct source *s = &j->sources[event->tag];
    bool answered = event->status == BE_HIT || event->status == BE_MISS;
    if (!answered) {
        op_error_text(event, j->error);
        j->state = JOINT_FAILED;
    } else if (event->status == BE_MISS || !is_same(s, event->reply->cas, event->reply->epoch)) {
        j->changed = true;
    }
}

/* The same of lists in other layouts. */
static void take_second_looks(struct joint *j)
{
    for (size_t i = 0; i < j->source_count && j->state == JOINT_OK; i++) {
        const struct source *s = &j->sources[i];
        const struct inner *probe = s->probe;
        if (probe == NULL) {
            continue;
        }
        if (probe->call.status != LIST_OK && probe->call.status != LIST_MISSING) {
            fail(j, JOINT_FAILED, "%s", probe->call.error);
        }
        j->changed = j->changed || probe->head != NULL || !is_same(s, probe->cas, probe->epoch);
    }
}

static enum progress probe_step(struct engine *e, struct joint *j, const struct op_event *event)
{
    struct co *co = &j->op->co;
    CO_BEGIN(co);
    probe(e, j);
    while (j->op->due > 0 || is_looking(j)) {
        CO_AWAIT(co, "probing heads");
        if (event != NULL) {
            take_probe(j, event);
        }
    }
    take_second_looks(j);
    CO_END(co);
}

/* ---- all together ---- */

/* Ends with state, or with changed: no instant was found. */
static enum progress try_step(struct engine *e, struct joint *j, const struct op_event *event)
{
    struct co *co = &j->op->co;
    CO_BEGIN(co);
    j->changed = j->empty = false;
    for (size_t i = 0; i < j->source_count; i++) {
        look_at(e, j, &j->sources[i]);
    }
    while (is_looking(j)) {
        CO_AWAIT(co, "reading heads");
    }
    take_looks(j);
    if (j->state != JOINT_OK || j->over || missing_decides(j) || j->source_count == 1) {
        CO_RETURN(co);
    }
    j->alone = SIZE_MAX;
    if (count_missing(j) > 1) {
        CO_CALL(co, make_step(e, j, event));
    }
    if (j->state != JOINT_OK || j->over) {
        CO_RETURN(co);
    }
    if (count_missing(j) == 1) {
        for (size_t i = 0; i < j->source_count; i++) {
            j->alone = j->sources[i].missing ? i : j->alone;
        }
        look_at(e, j, &j->sources[j->alone]);
        while (is_looking(j)) {
            CO_AWAIT(co, "looking again whether a list is missing");
        }
        take_look(j, &j->sources[j->alone]);
    }
    j->changed = count_missing(j) > 1;
    if (j->state == JOINT_OK && !j->over && !j->changed) {
        CO_CALL(co, probe_step(e, j, event));
    }
    CO_END(co);
}

/* Items with a time of their own leave all lists in the same second: at the instant it was the
 * latest of those in which heads were read, and each head was still as it was read. Other reads may
 * share the head, and have a second of their own. */
static void agree_on_second(struct joint *j)
{
    int64_t latest_s = 0;
    for (size_t i = 0; i < j->source_count; i++) {
        const struct inner *look = j->sources[i].look;
        bool later = look != NULL && look->head != NULL && look->head->read_s > latest_s;
        latest_s = later ? look->head->read_s : latest_s;
    }
    for (size_t i = 0; i < j->source_count && j->state == JOINT_OK; i++) {
        struct inner *look = j->sources[i].look;
        if (look->head != NULL) {
            struct head *shared = look->head;
            look->head = head_as_of(shared, latest_s);
            head_unref(&shared);
        }
    }
}

void joint_take_read(struct joint *j, const struct source *s)
{
    const struct list_call *call = &s->read->call;
    if (call->status == LIST_EXISTS) {
        j->state = JOINT_AGAIN;
    } else if (call->status == LIST_SERVER_ERROR || call->status == LIST_CLIENT_ERROR) {
        fail(j, JOINT_FAILED, "%s", call->error);
    }
}

/* What is made of the lists takes so much, as measured, if they are large. */
static uint64_t expected_bytes(const struct joint *j)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->source_count; i++) {
        const struct inner *look = j->sources[i].look;
        if (look != NULL && look->head != NULL) {
            struct list_extent extent = session_extent(look->head);
            bytes = u64_sum(bytes, u64_sum(extent.bytes, extent.items * sizeof(struct slice)));
        }
    }
    return 3 * bytes;
}

/* May the first one of this worker go on beside those of others? One always may. */
static bool may_reserve(const struct engine *e, struct joint *j)
{
    uint64_t others = atomic_load_explicit(&reserved, memory_order_relaxed);
    do {
        if (others != 0 && others + j->reserve_bytes > e->config->memory_limit_bytes / 2) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&reserved, &others, others + j->reserve_bytes));
    j->reserved = true;
    return true;
}

/* Waits until others leave room for reserve_bytes. */
static enum progress turn_step(struct engine *e, struct joint *j)
{
    struct co *co = &j->op->co;
    CO_BEGIN(co);
    if (j->reserved || j->state != JOINT_OK || j->over ||
        j->reserve_bytes <= e->config->memory_limit_bytes / e->config->threads / TURN_PART) {
        CO_RETURN(co);
    }
    j->in_turns = true;
    TAILQ_INSERT_TAIL(&e->turns, j, turn);
    while (!j->over && TAILQ_FIRST(&e->turns) != j) {
        CO_AWAIT(co, "waiting for others who read several lists");
    }
    while (!j->over && !may_reserve(e, j)) {
        CO_SLEEP(j->op, co, "waiting for another worker that reads several lists",
                 e->now.mono_us + TURN_PAUSE_US);
    }
    leave_queue(e, j);
    CO_END(co);
}

/* Where the lists that were found are large, it goes behind those that wait: no two may keep what
 * the other one waits for. */
static void ask_for_more(struct engine *e, struct joint *j)
{
    uint64_t bytes = u64_sum(j->looks_bytes, expected_bytes(j));
    if (bytes / 2 > j->reserve_bytes) {
        joint_leave_turn(e, j);
        j->reserve_bytes = bytes;
    }
}

enum progress joint_instant_step(struct engine *e, struct joint *j, const struct op_event *event)
{
    struct co *co = &j->op->co;
    CO_BEGIN(co);
    j->state = JOINT_OK;
    j->tries = 0;
    if (++j->rounds > ROUNDS_MAX) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail(j, JOINT_FAILED, "busy: the lists' runs change faster than they can be read");
        CO_RETURN(co);
    }
    j->reserve_bytes = j->reserved ? j->reserve_bytes : j->looks_bytes;
    CO_CALL(co, turn_step(e, j));
    if (j->over) {
        CO_RETURN(co);
    }
    do {
        if (j->tries > 0) {
            CO_SLEEP(j->op, co, "backing off before reading heads again",
                     op_backoff_end_us(e, BACKOFF_US, (unsigned)u64_least(j->tries, 5)));
        }
        CO_CALL(co, try_step(e, j, event));
        j->tries++;
    } while (j->state == JOINT_OK && !j->over && j->changed && j->tries < TRIES_MAX);
    if (j->state == JOINT_OK && j->changed) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail(j, JOINT_FAILED,
             "busy, nothing done: the lists change faster than they can be read together");
    }
    agree_on_second(j);
    for (size_t i = 0; i < j->source_count && j->state == JOINT_OK && !j->empty; i++) {
        source_settle(e, j, &j->sources[i]);
    }
    charge(j);
    ask_for_more(e, j);
    CO_CALL(co, turn_step(e, j));
    CO_END(co);
}
