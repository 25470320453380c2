/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which cases there are, and how one of each family goes.
 */
#include "transactions.h"

#include <stdio.h>

#include "sweep.h"

#define CONTENTS "0 1 -"
#define SERVERS 2

static const char *const transactions[] = {
    "ltx A+1 B+2",     "ltx B+0 A-0", "ltx A?0-0 B!0+0", "lmove A B 0",         "lpopto A B 1",
    "ltx A+3 B+3 C+3", "ltx A=2 B=3", "ltx C+1 B-1",     "ltx A!1+1 B?1-1 C+1", "ltx C!0 B?1 A+1",
};
static const char *const readers[] = {"lgetx AB", "lgetx ABC", "lget A", "lget B"};
static const char *const writers[] = {
    "ldel A 0",   "ladd A 12",       "ladd B 3",    "ldel B 1", "laddx B 0",
    "ldelx A 0",  "lset B 2",        "ldrop A",     "ldrop B",  "lcompact A",
    "lcompact B", "ltx A-1 B-2 C-3", "lmove B A 1",
};

enum { PROXY_T, PROXY_R, PROXY_W, PROXY_V };

enum family {
    FAMILY_crash, /* transaction, steps, arrival, reader, writer, who begins, steps of that one */
    FAMILY_lose,  /* transaction, steps, arrival, steps more, writer */
    FAMILY_meet,  /* two transactions, steps of each, which ends first */
    FAMILY_three, /* triple, steps of each, order of ends */
    FAMILY_four,  /* quadruple, steps of each */
    FAMILIES
};

static const char *const triples[][3] = {
    {"ltx A+1 B+1", "ltx B-1 C+1", "ltx C-1 A+2"},
    {"ltx A?0-0 B+0", "ltx A?0-0 C+0", "ltx B!0+3 C!0+3"},
    {"ltx A+1 B+1 C+1", "ltx A-1 B-1 C-1", "ltx C+1 B=2 A+3"},
    {"lmove A B 0", "lmove B C 0", "lmove A C 0"},
    {"lpopto A B 1", "lpopto B A 1", "ltx A+2 B+2"},
};
static const char *const quadruples[][4] = {
    {"ltx A+1 B+1", "ltx B-1 C+1", "ltx C-1 A+2", "ltx A-2 B-1 C+3"},
    {"lmove A B 0", "lmove B C 0", "lmove C A 0", "ltx A?0 B+2"},
};

static struct atomic_world world;
static uint64_t committed; /* of the last case: transactions that took effect */

/* ---- how a case goes ---- */

static unsigned changes_in_flight(const struct atomic_world *w, unsigned proxy)
{
    const struct flight *f;
    unsigned count = 0;
    TAILQ_FOREACH(f, &w->proxies[proxy].base.flights, link)
    {
        count += flight_is_change(f);
    }
    return count;
}

/* Takes so many steps of it; false when it comes to rest before. */
static bool begin(struct atomic_world *w, unsigned proxy, const char *text, unsigned steps)
{
    atomic_ask(w, proxy, text);
    return steps == 0 ? proxy_wait_sent(&w->base, &w->proxies[proxy].base)
                      : atomic_steps(w, proxy, steps);
}

/* Does it make a difference that this arrives of what the transaction has in flight? */
static bool is_arrival(const struct atomic_world *w, unsigned arrival)
{
    bool is_first = arrival == FIRST_ARRIVES || arrival == FIRST_IS_LATE;
    return arrival == NOTHING_ARRIVES || changes_in_flight(w, PROXY_T) > is_first;
}

static enum result run_crash(struct atomic_world *w, const unsigned *n)
{
    unsigned first = n[5] == 0 ? PROXY_R : PROXY_W, second = n[5] == 0 ? PROXY_W : PROXY_R;
    if (!begin(w, PROXY_T, transactions[n[0]], n[1])) {
        return NONE;
    }
    if (!is_arrival(w, n[2])) {
        return SAME_ROW;
    }
    atomic_crash(w, PROXY_T, (enum arrival)n[2]);
    const char *texts[] = {readers[n[3]], writers[n[4]]};
    if (n[6] > 0 && !begin(w, first, texts[first - PROXY_R], n[6])) {
        return NONE;
    }
    atomic_arrive_late(w);
    if (n[6] == 0) {
        atomic_ask(w, first, texts[first - PROXY_R]);
        atomic_rest(w, first);
    }
    atomic_ask(w, second, texts[second - PROXY_R]);
    atomic_rest(w, second);
    atomic_rest(w, first);
    return DONE;
}

static enum result run_lose(struct atomic_world *w, const unsigned *n)
{
    if (!begin(w, PROXY_T, transactions[n[0]], n[1])) {
        return NONE;
    }
    if (n[2] != NOTHING_ARRIVES && changes_in_flight(w, PROXY_T) == 0) {
        return SAME_ROW;
    }
    atomic_lose(w, PROXY_T, (enum arrival)n[2]);
    if (n[3] > 0 && !atomic_steps(w, PROXY_T, n[3])) {
        return NONE;
    }
    atomic_ask(w, PROXY_R, "lgetx ABC");
    atomic_rest(w, PROXY_R);
    atomic_arrive_late(w);
    atomic_ask(w, PROXY_W, writers[n[4]]);
    atomic_rest(w, PROXY_W);
    atomic_rest(w, PROXY_T);
    return DONE;
}

/* Each takes some steps, then all go to their ends, in that order. */
static enum result run_crossing(struct atomic_world *w, const char *const *texts,
                                const unsigned *steps, const unsigned *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!begin(w, i, texts[i], steps[i])) {
            return NONE;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        atomic_rest(w, order[i]);
    }
    return DONE;
}

static enum result run_meet(struct atomic_world *w, const unsigned *n)
{
    const char *texts[] = {transactions[n[0]], transactions[n[1]]};
    const unsigned orders[2][2] = {{0, 1}, {1, 0}};
    return run_crossing(w, texts, n + 2, orders[n[4]], 2);
}

static enum result run_three(struct atomic_world *w, const unsigned *n)
{
    const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
    return run_crossing(w, triples[n[0]], n + 1, orders[n[4]], 3);
}

static enum result run_four(struct atomic_world *w, const unsigned *n)
{
    const unsigned order[] = {0, 1, 2, 3};
    return run_crossing(w, quadruples[n[0]], n + 1, order, 4);
}

typedef enum result family_run(struct atomic_world *w, const unsigned *numbers);
static family_run *const runs[FAMILIES] = {run_crash, run_lose, run_meet, run_three, run_four};
static const struct row rows[FAMILIES] = {
    {"crash", "one crashes; a reader and a writer, in every order"},
    {"lose", "one loses a connection"},
    {"meet", "two cross"},
    {"three", "three cross"},
    {"four", "four cross"},
};

/* ---- which there are ---- */

enum { STEPS_MOST = 60 };

/* Runs the case with that number = 0, 1, ... as long as there is one of its own. Returns how many.
 */
static unsigned run_steps(struct sweep *s, struct case_id *c, unsigned at, unsigned stride)
{
    unsigned count = 0;
    c->n[at] = 0;
    while (c->n[at] < STEPS_MOST && sweep_try(s, c, c->n[0]) == DONE) {
        c->n[at] += stride;
        count++;
    }
    return count;
}

/* Does the transaction take as many steps? */
static bool has_steps(const char *text, unsigned steps)
{
    atomic_begin(&world, SERVERS, CONTENTS, false);
    bool has = begin(&world, PROXY_T, text, steps);
    atomic_end(&world);
    return has;
}

static void crash_cases(struct sweep *s, unsigned t)
{
    struct case_id c = {{FAMILY_crash, t}};
    for (c.n[2] = 0; has_steps(transactions[t], c.n[2]); c.n[2]++) {
        for (c.n[3] = 0; c.n[3] < ARRIVALS; c.n[3]++) {
            bool any = true; /* or it arrives as in another case */
            for (c.n[5] = 0; any && c.n[5] < COUNT(writers); c.n[5]++) {
                c.n[4] = c.n[5] % 2; /* of the readers of several lists one */
                for (c.n[6] = 0; any && c.n[6] < 2; c.n[6]++) {
                    any = run_steps(s, &c, 7, 1) > 0;
                }
                for (c.n[4] = 2; any && c.n[4] < COUNT(readers); c.n[4]++) {
                    c.n[6] = c.n[7] = 0;
                    (void)sweep_try(s, &c, c.n[0]);
                }
            }
        }
    }
}

static void lose_cases(struct sweep *s, unsigned t)
{
    struct case_id c = {{FAMILY_lose, t}};
    for (c.n[2] = 0; has_steps(transactions[t], c.n[2]); c.n[2]++) {
        for (c.n[3] = 0; c.n[3] < ARRIVALS; c.n[3]++) {
            bool any = true;
            for (c.n[5] = 0; any && c.n[5] < COUNT(writers); c.n[5] += 3) {
                any = run_steps(s, &c, 4, 1) > 0;
            }
        }
    }
}

static void meet_cases(struct sweep *s, unsigned t)
{
    struct case_id c = {{FAMILY_meet, t}};
    for (c.n[2] = 0; c.n[2] < COUNT(transactions); c.n[2]++) {
        for (c.n[3] = 0; has_steps(transactions[t], c.n[3]); c.n[3]++) {
            for (c.n[5] = 0; c.n[5] < 2; c.n[5]++) {
                (void)run_steps(s, &c, 4, 1);
            }
        }
    }
}

static void three_cases(struct sweep *s, unsigned t)
{
    struct case_id c = {{FAMILY_three, t}};
    for (c.n[2] = 0; has_steps(triples[t][0], c.n[2]); c.n[2]++) {
        for (c.n[5] = 0; c.n[5] < 3; c.n[5]++) {
            for (c.n[3] = 0; c.n[3] < STEPS_MOST; c.n[3]++) {
                if (run_steps(s, &c, 4, 1) == 0) {
                    break;
                }
            }
        }
    }
}

static void four_cases(struct sweep *s, unsigned t)
{
    struct case_id c = {{FAMILY_four, t}};
    for (c.n[2] = 0; has_steps(quadruples[t][0], c.n[2]); c.n[2] += 2) {
        for (c.n[3] = 0; c.n[3] < STEPS_MOST; c.n[3] += 2) {
            unsigned any = 0;
            for (c.n[4] = 0; c.n[4] < STEPS_MOST; c.n[4] += 2) {
                unsigned count = run_steps(s, &c, 5, 2);
                if (count == 0) {
                    break;
                }
                any += count;
            }
            if (any == 0) {
                break;
            }
        }
    }
}

typedef void family_cases(struct sweep *s, unsigned index);
static const struct {
    unsigned count;
    family_cases *cases;
} groups[] = {
    {COUNT(transactions), crash_cases}, {COUNT(transactions), lose_cases},
    {COUNT(transactions), meet_cases},  {COUNT(triples), three_cases},
    {COUNT(quadruples), four_cases},
};

/* ---- the table ---- */

static unsigned group_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < COUNT(groups); i++) {
        count += groups[i].count;
    }
    return count;
}

static void run_group(struct sweep *sweep, unsigned group)
{
    unsigned i = 0;
    while (group >= groups[i].count) {
        group -= groups[i++].count;
    }
    groups[i].cases(sweep, group);
}

static uint64_t count_committed(const struct atomic_world *w)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < w->count; i++) {
        const struct asked *a = &w->calls[i];
        count += list_verb_kind(a->call.verb) == LIST_KIND_TX && a->end == CALL_DONE &&
                 a->call.status == LIST_OK;
    }
    return count;
}

static enum result play(const struct case_id *c, bool trace, char wrong[WRONG_MAX])
{
    atomic_begin(&world, SERVERS, CONTENTS, trace);
    enum result result = runs[c->n[0]](&world, c->n + 1);
    if (result == DONE && !world.base.failed) {
        atomic_finish(&world);
    }
    if (world.base.failed) {
        result = DONE;
        snprintf(wrong, WRONG_MAX, "%s", world.base.violation);
    }
    committed = count_committed(&world);
    atomic_end(&world);
    return result;
}

static bool describe(const struct case_id *c, char *out, size_t cap)
{
    static const unsigned firsts[FAMILIES] = {COUNT(transactions), COUNT(transactions),
                                              COUNT(transactions), COUNT(triples),
                                              COUNT(quadruples)};
    if (c->n[0] >= FAMILIES || c->n[1] >= firsts[c->n[0]]) {
        return false;
    }
    const char *const *texts = c->n[0] == FAMILY_three  ? triples[c->n[1]]
                               : c->n[0] == FAMILY_four ? quadruples[c->n[1]]
                                                        : &transactions[c->n[1]];
    snprintf(out, cap, "%s, %s", rows[c->n[0]].text, texts[0]);
    return true;
}

static const char *event_name(unsigned event)
{
    (void)event;
    return "transactions committed";
}

static void count_events(uint64_t events[EVENTS_MAX])
{
    events[0] += committed;
}

static void print_bounds(void)
{
    printf("%u calls, beside %u readers and %u writers; %u triples, %u quadruples\n",
           COUNT(transactions), COUNT(readers), COUNT(writers), COUNT(triples), COUNT(quadruples));
}

const struct table transactions_table = {
    .name = "transactions",
    .rows = rows,
    .row_count = FAMILIES,
    .event_name = event_name,
    .event_count = 1,
    .group_count = group_count,
    .run_group = run_group,
    .play = play,
    .count_events = count_events,
    .describe = describe,
    .print_bounds = print_bounds,
};
