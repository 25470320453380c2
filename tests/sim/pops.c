/* SPDX-License-Identifier: BSD-3-Clause */
#include "pops.h"

#include "params.h"
#include "world.h"

static void draw(const struct params *p, uint64_t number, uint64_t salt, struct rng *rng)
{
    rng_init_seed(rng, (p->seed + salt) * 0x9e3779b97f4a7c15u + number);
}

enum list_verb pops_choose(const struct params *p, uint64_t number, enum list_verb verb)
{
    struct rng rng;
    draw(p, number, 1, &rng);
    uint64_t n = rng_below(&rng, 100);
    bool reads = list_verb_reads(verb) && !p->history && p->dialect != DIALECT_RING;
    if (reads && n < 25) {
        static const enum list_verb picks[] = {LIST_RANDOM, LIST_AFTER, LIST_BEFORE};
        return picks[rng_below(&rng, 3)];
    }
    /* Which items were over when an lpop decided is told by its answer. */
    bool answered = !p->timed || (p->fault_us == 0 && p->deadline_us >= 1000000);
    bool takes =
        answered && params_one_item(p) && !p->only_adds && !p->history && list_verb_changes(verb);
    return takes && n < (p->growth > 0 ? 4 : 10) ? LIST_POP : verb;
}

void pops_plan(const struct params *p, struct sim_call *call)
{
    struct list_call *c = &call->call;
    struct rng rng;
    if (c->verb != LIST_POP && !list_verb_has(c->verb, LIST_PICKS)) {
        return;
    }
    draw(p, call->number, 2, &rng);
    c->count = 1 + (int64_t)rng_below(&rng, rng_below(&rng, 4) == 0 ? p->items : 3);
    if (c->verb == LIST_POP && rng_below(&rng, 3) == 0) {
        c->count = -c->count;
    }
    if (list_verb_has(c->verb, LIST_PAGES)) {
        call->ids[0] = (uint16_t)rng_below(&rng, p->items);
        call->items[0] = item_text(call->ids[0]);
        c->item_count = 1;
    }
}

/* The log's room for the deletions of one request at the least: half of its hard limit, or of what
 * fits half of an item. */
static uint64_t room(const struct oracle *o)
{
    uint64_t hard = o->log_hard_limit, half = (o->item_size_max - 1024) / 2;
    return (hard < half ? hard : half) / 2;
}

/* The answer as it will be, which stays. */
static void look_at_answer(const struct oracle *o, struct sim_call *call, struct ids *out)
{
    struct chain whole = call->call.answer, copy;
    chain_init(&copy);
    for (size_t i = 0; i < whole.count; i++) {
        const struct chain_seg *seg = &whole.segs[whole.first + i];
        chain_copy(&copy, seg->p, seg->len);
    }
    call->call.answer = copy;
    if (!oracle_parse_answer(o, call, out)) {
        sim_violation("an lpop takes what is no item");
    }
    chain_fini(&call->call.answer);
    call->call.answer = whole;
}

/* The item at that end of the list which an lpop takes next, or -1. Items with a time that were
 * over when the proxy decided are passed over: some time between the question and now. */
static int64_t next_to_take(const struct ids *items, const struct sim_call *call,
                            const struct ids *answer, int64_t now_s)
{
    bool back = call->call.count < 0;
    for (uint32_t i = 0; i < items->count; i++) {
        uint32_t at = back ? items->count - 1 - i : i;
        int64_t until_s = items->untils[at];
        bool may_be_in = until_s == 0 || until_s > call->from_s;
        bool may_be_over = until_s != 0 && until_s <= now_s + call->lead_s;
        if (may_be_in && (!may_be_over || ids_has(answer, items->ids[at]))) {
            return at;
        }
    }
    return -1;
}

/* May it end for want of room at what stands behind the last item that it took? It ends at the next
 * one that was in the list when the proxy decided, though that may be over by now. */
static bool may_end(const struct oracle *o, const struct ids *items, const struct sim_call *call,
                    int64_t last, uint64_t used, int64_t now_s)
{
    int64_t step = call->call.count < 0 ? -1 : 1;
    for (int64_t at = step < 0 ? last - 1 : last; at >= 0 && at < items->count; at += step) {
        int64_t until_s = items->untils[at];
        bool may_be_in = until_s == 0 || until_s > call->from_s;
        if (may_be_in && used + entry_bytes(item_text(items->ids[at]).len) > room(o)) {
            return true;
        }
        if (until_s == 0 || until_s > now_s + call->lead_s) {
            return false; /* it surely was in the list */
        }
    }
    return false;
}

void pops_apply(struct oracle *o, struct ids *items, struct sim_call *call, uint64_t *used,
                int64_t now_s)
{
    uint64_t wanted = (uint64_t)(call->call.count < 0 ? -call->call.count : call->call.count);
    uint32_t surely = oracle_count_at(items, now_s + call->lead_s);
    struct ids answer = {0};
    int64_t at, last = 0;
    wanted = wanted < surely ? wanted : surely;
    ids_clear(&call->took);
    if (o->format == NULL) {
        look_at_answer(o, call, &answer);
    }
    for (uint64_t i = 0; i < call->call.number; i++) {
        at = next_to_take(items, call, &answer, now_s);
        if (at < 0) {
            break;
        }
        uint16_t id = items->ids[at];
        ids_push(&call->took, id);
        *used += entry_bytes(item_text(id).len);
        (void)ids_remove(items, id);
        last = at;
    }
    call->expected = call->took.count;
    bool fits = o->format != NULL || !may_end(o, items, call, last, *used, now_s);
    ids_fini(&answer);
    bool answer_full = call->took.count > 0 && o->answer_limit != 0;
    bool none = call->took.count == 0; /* such a call waits for the next request */
    if (call->took.count < wanted && (none || (fits && !answer_full))) {
        char text[320];
        call_describe(call, text, sizeof text);
        sim_violation("an lpop took %u items of %llu that it could have: %s", call->took.count,
                      (unsigned long long)wanted, text);
    }
}

bool pops_answered(const struct oracle *o, struct sim_call *call)
{
    return oracle_parse_answer(o, call, &call->answer) && call->call.number == call->answer.count &&
           ids_equal(&call->answer, &call->took);
}

static bool sample_matches(const struct sim_call *call, const struct ids *answer,
                           const struct ids *all)
{
    uint64_t wanted = (uint64_t)call->call.count;
    bool good = answer->count == (wanted < all->count ? wanted : all->count);
    for (uint32_t i = 0; i < answer->count && good; i++) {
        good = ids_has(all, answer->ids[i]);
        for (uint32_t j = 0; j < i; j++) {
            good = good && answer->ids[j] != answer->ids[i];
        }
    }
    return good;
}

bool pops_match(const struct sim_call *call, const struct ids *answer, const struct version *v)
{
    const struct ids *all = &v->items;
    const struct list_call *c = &call->call;
    if (c->number != answer->count) {
        return false;
    }
    if (c->verb == LIST_RANDOM) {
        return sample_matches(call, answer, all);
    }
    int64_t step = c->verb == LIST_AFTER ? 1 : -1, at = 0;
    while (at < all->count && all->ids[at] != call->ids[0]) {
        at++;
    }
    if (at == all->count) {
        return c->status == LIST_MISSING && answer->count == 0;
    }
    int64_t left = step > 0 ? all->count - 1 - at : at;
    bool good = c->status == LIST_OK && answer->count == (c->count < left ? c->count : left);
    for (uint32_t i = 0; i < answer->count && good; i++) {
        at += step;
        good = answer->ids[i] == all->ids[at];
    }
    return good;
}
