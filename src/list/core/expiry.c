/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/expiry.h"

#include <stdio.h>
#include <stdlib.h>

#include "list/core/engine_state.h"
#include "list/core/write_run.h"

/* Looks at the clock: one for a missing item, one for a second that ends in between, and some for
 * items that were touched. */
#define LOOKS_MAX 6
/* Disagreements in a row that a second's end can be the reason of. */
#define TICKS_MAX 1

/* When the clock items expire. memcached reads a time as a signed 32-bit number; these are minutes
 * before the last second that it knows. Far apart: a touch of both by the same time must show. */
static const int64_t clock_ends_s[CLOCK_COUNT] = {INT32_MAX - 60, INT32_MAX - 3660};

enum { ASK_CLOCK, ASK_ITEM = CLOCK_COUNT, ASK_WRITE };

struct clock {
    enum be_status status;
    bool foreign;
    int64_t now_s; /* the server's clock, if it has not been touched */
    uint64_t cas, epoch;
    uint32_t flags;
};

struct expiry {
    TAILQ_ENTRY(expiry) link;
    struct list_request *write; /* held back; NULL: the clock alone is asked for */
    struct op *op;
    struct list *list; /* whose item it is: not always the operation's own */
    uint64_t tag;      /* of the event */
    struct life life;
    bool own;     /* it is its own expiry that it keeps */
    unsigned due; /* answers to come */
    unsigned looks, disagreements;
    struct clock clocks[CLOCK_COUNT];
    enum be_status item;
    int64_t ttl_s;
    uint64_t cas, epoch;
    enum be_status failed; /* what came instead of an answer, or BE_HIT */
    char text[LIST_ERROR_MAX];
    uint8_t key_len, placement_len;
    char key[KEY_BYTES_MAX];
};

bool clock_key_is(struct slice key)
{
    return key.len == sizeof CLOCK_KEY_PREFIX &&
           (unsigned)(key.p[key.len - 1] - '0') < CLOCK_COUNT &&
           slice_starts_with(key, SLICE_LIT(CLOCK_KEY_PREFIX));
}

int64_t clock_value_read(struct slice value, uint32_t flags)
{
    uint64_t end_s;
    if (flags != 0 || !slice_starts_with(value, SLICE_LIT(CLOCK_VALUE_PREFIX))) {
        return 0;
    }
    (void)slice_take(&value, sizeof CLOCK_VALUE_PREFIX - 1);
    return slice_to_u64(value, &end_s) && end_s <= INT32_MAX ? (int64_t)end_s : 0;
}

static void drop(struct engine *e, struct expiry *x)
{
    TAILQ_REMOVE(&e->expiries, x, link);
    if (x->write != NULL) {
        request_free(e, &x->write);
    }
    free(x);
}

const struct list_request *expiries_next(const struct engine *e, const struct list_request *last)
{
    const struct expiry *x = TAILQ_FIRST(&e->expiries);
    while (x != NULL && last != NULL && x->write != last) {
        x = TAILQ_NEXT(x, link);
    }
    x = x != NULL && last != NULL ? TAILQ_NEXT(x, link) : x;
    while (x != NULL && x->write == NULL) {
        x = TAILQ_NEXT(x, link);
    }
    return x == NULL ? NULL : x->write;
}

void expiries_fini(struct engine *e)
{
    while (!TAILQ_EMPTY(&e->expiries)) {
        drop(e, TAILQ_FIRST(&e->expiries));
    }
}

/* ---- asking ---- */

static struct list_request *request_of(struct engine *e, struct expiry *x, enum be_verb verb,
                                       uint64_t what)
{
    struct list_request *r = request_new(e, x->list, verb);
    r->op = x->op;
    r->expiry = x;
    r->tag = what;
    x->due++;
    return r;
}

/* To the server of the item, over the same connection: it goes by the bytes behind the key. */
static struct list_request *clock_request(struct engine *e, struct expiry *x, enum be_verb verb,
                                          unsigned clock, uint64_t what)
{
    enum { PREFIX_BYTES = sizeof CLOCK_KEY_PREFIX - 1 };
    _Static_assert(PREFIX_BYTES + 1 <= REQUEST_ROUTE_BYTES, "both keys have room");
    struct list_request *r = request_of(e, x, verb, what);
    memcpy(r->key, CLOCK_KEY_PREFIX, PREFIX_BYTES);
    r->key[PREFIX_BYTES] = (char)('0' + clock);
    request_set_key(r, PREFIX_BYTES + 1);
    r->placement_at = PREFIX_BYTES + 1;
    r->placement_len = x->placement_len;
    memcpy(r->key + r->placement_at, x->key, x->placement_len);
    return r;
}

static void write_clock(struct engine *e, struct expiry *x, unsigned clock)
{
    const struct clock *old = &x->clocks[clock];
    bool there = old->status == BE_HIT;
    char digits[24];
    struct block *value = block_new_exact(64);
    block_append(&value, CLOCK_VALUE_PREFIX, sizeof CLOCK_VALUE_PREFIX - 1);
    block_append(&value, digits, format_u64(digits, (uint64_t)clock_ends_s[clock]));
    struct list_request *r = clock_request(e, x, there ? BE_CAS : BE_ADD, clock, ASK_WRITE);
    if (there) {
        r->be.cas = old->cas;
        r->be.epoch = old->epoch;
    }
    r->be.exptime = (int32_t)clock_ends_s[clock];
    r->be.value = slice_make(value->data, value->used);
    r->be.block = value;
    request_send(e, r);
}

/* Do the list's servers tell the second in which an item expires? */
static bool tells_seconds(const struct expiry *x)
{
    return x->list->policy->pool_type == POOL_COUCHBASE;
}

static void ask_item(struct engine *e, struct expiry *x)
{
    struct list_request *r = request_of(e, x, BE_TIME, ASK_ITEM);
    request_set_key(r, x->key_len);
    r->placement_len = x->placement_len;
    memcpy(r->key, x->key, x->key_len);
    request_send(e, r);
}

static void ask(struct engine *e, struct expiry *x)
{
    x->looks++;
    x->failed = BE_HIT;
    if (tells_seconds(x)) {
        ask_item(e, x);
        return;
    }
    request_send(e, clock_request(e, x, BE_GET, 0, ASK_CLOCK));
    ask_item(e, x);
    request_send(e, clock_request(e, x, BE_GET, 1, ASK_CLOCK + 1));
}

struct life life_renewed(const struct list_policy *policy, int64_t ttl_s)
{
    struct life life = life_kept(ttl_s);
    life.least_s = policy->ttl_renew == TTL_RENEW_NEVER ? 0 : policy->ttl_s;
    return life;
}

struct life life_filling(const struct list_policy *policy, const struct head *head)
{
    struct life life = life_new(policy);
    return life_must_wait(&life, head) ? life_given(0) : life;
}

struct life life_of_call(const struct list_call *call, const struct head *head)
{
    if (call->has_exptime) {
        return life_given(call->exptime);
    }
    return head == NULL ? life_new(call->policy) : life_renewed(call->policy, head->ttl_s);
}

bool life_is_due(const struct list_policy *policy, int64_t ttl_s)
{
    return policy->ttl_renew != TTL_RENEW_NEVER && ttl_s >= 0 &&
           ttl_s * 8 < (int64_t)policy->ttl_s * 7;
}

static bool renews(const struct life *life)
{
    return life->kind == LIFE_KEPT && life->ttl_s >= 0 && life->ttl_s < (int64_t)life->least_s;
}

int64_t life_end_s(const struct life *life, int64_t now_s)
{
    if (!life_ends(life)) {
        return 0;
    }
    if (life->kind == LIFE_GIVEN && life->exptime > EXPTIME_RELATIVE_MAX_S) {
        return life->exptime;
    }
    if (life->kind != LIFE_KEPT) {
        return now_s + life->exptime;
    }
    int64_t renewed_s = now_s + life->least_s;
    if (life->until_s != 0 && renewed_s > life->until_s) {
        renewed_s = life->until_s;
    }
    int64_t end_s = now_s + life->ttl_s;
    return renewed_s > end_s ? renewed_s : end_s;
}

/* Is it known without the server's clock what is to be sent? */
static bool known_at_once(const struct list *list, const struct life *life, int32_t *exptime)
{
    int64_t s = life->kind != LIFE_KEPT ? life->exptime : renews(life) ? life->least_s : 0;
    *exptime = (int32_t)s;
    bool ends = life->kind == LIFE_KEPT && life->ttl_s >= 0;
    if (life->strict || (ends && (!renews(life) || life->until_s != 0))) {
        return false;
    }
    /* The next change would take away what no read can tell. The question for it is refused. */
    if (list->no_times && s > 0) {
        return false;
    }
    return life->kind == LIFE_GIVEN || s <= EXPTIME_RELATIVE_MAX_S;
}

void expiry_send(struct engine *e, struct op *op, struct list *list, struct list_request *request,
                 const struct life *life, struct slice source, struct block *value, uint64_t tag)
{
    if (known_at_once(list, life, &request->be.exptime)) {
        op_send(e, op, request, value, tag);
        return;
    }
    struct expiry *x = calloc(1, sizeof *x);
    CHECK(x != NULL && source.len <= KEY_BYTES_MAX && request->placement_at == 0);
    x->write = request;
    x->op = op;
    x->list = list;
    x->tag = tag;
    x->life = *life;
    x->own = source.len == 0;
    x->key_len = x->own ? (uint8_t)request->be.key.len : (uint8_t)source.len;
    x->placement_len = x->own ? request->placement_len : x->key_len;
    memcpy(x->key, x->own ? request->key : source.p, x->key_len);
    op_prepare(op, request, value, tag);
    TAILQ_INSERT_TAIL(&e->expiries, x, link);
    ask(e, x);
}

void expiry_look(struct engine *e, struct op *op, uint64_t tag)
{
    struct expiry *x = calloc(1, sizeof *x);
    CHECK(x != NULL);
    x->op = op;
    x->list = op->list;
    x->tag = tag;
    x->own = true;
    x->key_len = x->placement_len = head_key(x->key, list_key(op->list));
    op->outstanding++;
    op->due++;
    TAILQ_INSERT_TAIL(&e->expiries, x, link);
    ask(e, x);
}

/* ---- sublists ---- */

/* The clocks of proxies and servers, as far as a proxy has not looked, agree within that. */
#define MARGIN_S 600

int64_t list_wanted_until_s(const struct engine *e, const struct list *list)
{
    return e->now.mono_us < list->wanted_by_us ? list->wanted_until_s : 0;
}

/* As long as that is to live, within these. So a list that is renewed all the time is written anew
 * once an hour at most, and its sublists do not stay for long without it. */
int64_t sublists_until_s(int64_t now_s, int64_t end_s)
{
    enum { STEP_MAX_S = 60 * 60 * 24 };
    int64_t step_s = end_s - now_s;
    step_s = step_s < SUBLISTS_STEP_MIN_S ? SUBLISTS_STEP_MIN_S
             : step_s > STEP_MAX_S        ? STEP_MAX_S
                                          : step_s;
    return end_s < SUBLISTS_UNTIL_MAX_S - SERVER_SKEW_S - step_s ? end_s + step_s : 0;
}

bool list_is_short_lived(const struct engine *e, const struct list *list, const struct head *head)
{
    int64_t until_s = head->marks.sublists_until_s, wanted_s = list_wanted_until_s(e, list);
    if (head->run_count == 0 || wanted_s != 0) {
        return head->run_count > 0 && until_s != 0 && wanted_s > until_s;
    }
    int64_t now_s = e->now.wall_s + (list->knows_clock ? list->clock_lead_s : e->clock_lead_s);
    struct life life = life_renewed(list->policy, head->ttl_s);
    int64_t left_s = life_is_due(list->policy, head->ttl_s) ? life.least_s : head->ttl_s;
    if (until_s == 0) {
        /* Those of a list that lives as long as memcached can tell live for ever. */
        return head->ttl_s >= 0 && sublists_until_s(now_s, now_s + left_s + MARGIN_S) != 0;
    }
    return left_s < 0 || now_s + left_s + MARGIN_S > until_s;
}

void list_wish_for_end(struct engine *e, struct list *list, const struct life *life)
{
    if (life_ends(life)) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
}

/* ---- deciding ---- */

/* The operation gets its answer, and nothing was written. */
static void give_up(struct engine *e, struct expiry *x, enum be_status status, const char *text)
{
    struct op *op = x->op;
    char kept[LIST_ERROR_MAX];
    struct be_reply reply = {.status = status};
    struct op_event event = {.tag = x->tag, .reply = &reply, .status = status};
    if (text != NULL) {
        snprintf(kept, sizeof kept, "%s", text);
        reply.text = event.text = kept;
        metric_inc(e->metrics, METRIC_list_clock_errors);
    }
    drop(e, x);
    op_deliver(e, op, &event);
}

static void tell(struct engine *e, struct expiry *x, int64_t now_s)
{
    struct op *op = x->op;
    struct be_reply reply = {
        .status = x->item, .number = (uint64_t)now_s, .ttl_s = x->item == BE_HIT ? x->ttl_s : -1};
    struct op_event event = {.tag = x->tag, .reply = &reply, .status = x->item};
    drop(e, x);
    op_deliver(e, op, &event);
}

static void write_at(struct engine *e, struct expiry *x, int64_t end_s)
{
    struct list_request *r = x->write;
    /* No item has an absolute time beyond that. One of less than 30 days may have, in 2038. */
    r->be.exptime = end_s > INT32_MAX ? INT32_MAX : (int32_t)end_s;
    x->write = NULL;
    drop(e, x);
    request_send(e, r);
}

/* Has the item changed since it was read, so that the write is in vain? */
static bool item_changed(const struct expiry *x)
{
    return x->write != NULL && x->write->be.verb == BE_CAS && x->own &&
           (x->cas != x->write->be.cas || x->epoch != x->write->be.epoch);
}

/* The second in which the item is to expire; 0: never. */
static int64_t end_of(const struct expiry *x, int64_t now_s)
{
    struct life life = x->life;
    life.ttl_s = x->ttl_s;
    return life_end_s(&life, now_s);
}

/* Would it live longer than it may? */
static bool goes_beyond(const struct expiry *x, int64_t end_s)
{
    return x->life.strict && x->life.until_s != 0 && (end_s == 0 || end_s > x->life.until_s);
}

/* The clock is known. */
static void go_on(struct engine *e, struct expiry *x, int64_t now_s)
{
    x->list->knows_clock = true;
    x->list->clock_lead_s = e->clock_lead_s = now_s - e->now.wall_s;
    if (x->write == NULL) {
        tell(e, x, now_s);
    } else if (goes_beyond(x, end_of(x, now_s))) {
        give_up(e, x, BE_EXISTS, NULL);
    } else {
        write_at(e, x, end_of(x, now_s));
    }
}

static bool clocks_agree(const struct expiry *x)
{
    const struct clock *c = x->clocks;
    bool all = c[0].status == BE_HIT && c[1].status == BE_HIT;
    return all && c[0].now_s == c[1].now_s && c[0].epoch == c[1].epoch && x->epoch == c[0].epoch;
}

/* Writes the clock items that are not there; all of them when they were touched. Then once more. */
static void look_again(struct engine *e, struct expiry *x)
{
    bool missing = x->clocks[0].status == BE_MISS || x->clocks[1].status == BE_MISS;
    x->disagreements += !missing;
    bool touched = x->disagreements > TICKS_MAX;
    for (unsigned i = 0; i < CLOCK_COUNT; i++) {
        if (x->clocks[i].status == BE_MISS || touched) {
            write_clock(e, x, i);
        }
    }
    x->disagreements = touched ? 0 : x->disagreements;
    ask(e, x);
}

/* A machine without a clock of its own may begin in 1970. There memcached would take a moment for a
 * time from now on, and heads have no "@SECOND" that means one. */
static bool names_moments(int64_t now_s)
{
    return now_s > EXPTIME_RELATIVE_MAX_S;
}

static void decide(struct engine *e, struct expiry *x)
{
    char text[LIST_ERROR_MAX];
    const struct clock *c = x->clocks;
    bool agree = clocks_agree(x);
    bool is_late = x->life.before_s != 0 && e->now.wall_s >= x->life.before_s;
    if (x->op->finished || is_late) {
        give_up(e, x, BE_EXISTS, NULL); /* no call waits for it any more */
    } else if (x->failed != BE_HIT && x->failed != BE_NO_MEMORY) {
        give_up(e, x, x->failed, x->text);
    } else if (x->item == BE_MISS && x->write != NULL && x->life.kind == LIFE_KEPT) {
        give_up(e, x, BE_NOT_FOUND, NULL);
    } else if (item_changed(x)) {
        give_up(e, x, BE_EXISTS, NULL);
    } else if (x->ttl_s < 0 && x->write != NULL && x->life.kind == LIFE_KEPT) {
        if (goes_beyond(x, 0)) {
            give_up(e, x, BE_EXISTS, NULL);
        } else {
            write_at(e, x, 0);
        }
    } else if (c[0].foreign || c[1].foreign) {
        snprintf(text, sizeof text, "%s%d is not the server's clock: remove it. Nothing done",
                 CLOCK_KEY_PREFIX, c[0].foreign ? 0 : 1);
        give_up(e, x, BE_REFUSED, text);
    } else if (agree && names_moments(c[0].now_s)) {
        go_on(e, x, c[0].now_s);
    } else if (x->failed == BE_NO_MEMORY) {
        give_up(e, x, BE_NO_MEMORY, "backend out of memory, nothing done");
    } else if (!agree && x->looks < LOOKS_MAX) {
        look_again(e, x);
    } else {
        give_up(e, x, BE_REFUSED, "the server's clock cannot be read, nothing done");
    }
}

/* ---- answers ---- */

static void take_clock(struct clock *clock, const struct be_reply *reply)
{
    *clock = (struct clock){.status = reply->status, .epoch = reply->epoch, .cas = reply->cas};
    if (reply->status == BE_HIT) {
        int64_t end_s = clock_value_read(reply->value, reply->flags);
        clock->foreign = end_s == 0;
        /* One that does not expire was touched: what it seems to show is no clock's time. */
        clock->now_s = end_s - reply->ttl_s;
    }
}

/* What came was no answer to the question. */
static void take_failure(struct expiry *x, bool asked, const struct be_reply *reply)
{
    const char *text = reply->text != NULL ? reply->text : "backend refused";
    x->failed = reply->status;
    if (reply->status == BE_DOWN) {
        snprintf(x->text, sizeof x->text, "%s", text);
    } else if (reply->status == BE_LOST) {
        /* Of what was only asked, or of a clock item, nothing needs to be known. */
        x->failed = BE_DOWN;
        snprintf(x->text, sizeof x->text, "backend lost when asked for its clock, nothing done");
    } else if (asked || reply->status == BE_REFUSED) {
        x->failed = BE_REFUSED;
        snprintf(x->text, sizeof x->text, "%.180s when asked for its clock, nothing done", text);
    } else {
        x->failed = BE_NO_MEMORY;
    }
}

/* The answer to BE_TIME. What a proxy's clock shows is added to a time to live that is counted from
 * it: so the item's second comes out as it was told. */
static void take_item(const struct engine *e, struct expiry *x, const struct be_reply *reply)
{
    x->item = reply->status;
    x->ttl_s = reply->ttl_s;
    x->cas = reply->cas;
    x->epoch = reply->epoch;
    if (!tells_seconds(x)) {
        return;
    }
    if (reply->status == BE_HIT && reply->expires_s != 0) {
        int64_t left_s = reply->expires_s - e->now.wall_s;
        x->ttl_s = left_s > 0 ? left_s : 0;
    }
    for (unsigned i = 0; i < CLOCK_COUNT; i++) {
        x->clocks[i] =
            (struct clock){.status = BE_HIT, .now_s = e->now.wall_s, .epoch = reply->epoch};
    }
}

static void take_reply(struct engine *e, struct expiry *x, uint64_t what,
                       const struct be_reply *reply)
{
    bool written = what == ASK_WRITE;
    bool answered = reply->status == BE_HIT || reply->status == BE_MISS;
    if (written) {
        answered = reply->status == BE_STORED || write_was_refused(reply->status);
    } else if (answered && what == ASK_ITEM) {
        take_item(e, x, reply);
    } else if (answered) {
        take_clock(&x->clocks[what - ASK_CLOCK], reply);
    }
    if (!answered) {
        take_failure(x, !written, reply);
    }
}

void expiry_reply(struct engine *e, const struct list_request *request,
                  const struct be_reply *reply)
{
    struct expiry *x = request->expiry;
    if (!x->op->finished) { /* else its list may be forgotten by now */
        take_reply(e, x, request->tag, reply);
    }
    if (--x->due == 0) {
        decide(e, x);
    }
}
