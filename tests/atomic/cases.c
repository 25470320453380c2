/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which cases there are, and how one of each family goes.
 */
#include "atomic.h"

#include <stdio.h>

#define CONTENTS "0 1 -"
#define SERVERS 2
#define COUNT(array) ((unsigned)(sizeof(array) / sizeof(array)[0]))

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

enum result { DONE, SAME, NONE };

static struct atomic_world world;

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
        return SAME;
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
        return SAME;
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
static const struct {
    const char *name;
    family_run *run;
} families[FAMILIES] = {
    {"crash", run_crash}, {"lose", run_lose}, {"meet", run_meet},
    {"three", run_three}, {"four", run_four},
};

static enum result run_in_world(struct atomic_world *w, const struct atomic_case *c, bool trace)
{
    atomic_begin(w, SERVERS, CONTENTS, trace);
    enum result result = families[c->numbers[0]].run(w, c->numbers + 1);
    if (result == DONE && !w->base.failed) {
        atomic_finish(w);
    }
    return w->base.failed ? DONE : result;
}

static void print_case(const struct atomic_case *c)
{
    for (unsigned i = 0; i < NUMBERS_MAX; i++) {
        printf("%s%u", i == 0 ? "" : ",", c->numbers[i]);
    }
}

bool case_run_one(const struct atomic_case *c)
{
    if (c->numbers[0] >= FAMILIES) {
        return false;
    }
    enum result result = run_in_world(&world, c, true);
    printf("%s %s\n", families[c->numbers[0]].name,
           result != DONE      ? "no case of its own"
           : world.base.failed ? world.base.violation
                               : "passed");
    bool good = result == DONE && !world.base.failed;
    atomic_end(&world);
    return good;
}

static uint64_t committed(const struct atomic_world *w)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < w->count; i++) {
        const struct asked *a = &w->calls[i];
        count += list_verb_kind(a->call.verb) == LIST_KIND_TX && a->end == CALL_DONE &&
                 a->call.status == LIST_OK;
    }
    return count;
}

static enum result run(struct sweep *s, const struct atomic_case *c)
{
    enum { SHOWN_MAX = 20 };
    enum result result = run_in_world(&world, c, false);
    if (result == DONE && world.base.failed) {
        if (s->failed++ < SHOWN_MAX) {
            printf("FAILED case ");
            print_case(c);
            printf(": %s\n", world.base.violation);
        }
    }
    s->passed += result == DONE && !world.base.failed;
    s->left_out += result == SAME;
    s->committed += committed(&world);
    atomic_end(&world);
    return result;
}

/* ---- which there are ---- */

enum { STEPS_MOST = 60 };

/* Runs the case with that number = 0, 1, ... as long as there is one of its own. Returns how many.
 */
static unsigned run_steps(struct sweep *s, struct atomic_case *c, unsigned at, unsigned stride)
{
    unsigned count = 0;
    c->numbers[at] = 0;
    while (c->numbers[at] < STEPS_MOST && run(s, c) == DONE) {
        c->numbers[at] += stride;
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
    struct atomic_case c = {{FAMILY_crash, t}};
    for (c.numbers[2] = 0; has_steps(transactions[t], c.numbers[2]); c.numbers[2]++) {
        for (c.numbers[3] = 0; c.numbers[3] < ARRIVALS; c.numbers[3]++) {
            bool any = true; /* or it arrives as in another case */
            for (c.numbers[5] = 0; any && c.numbers[5] < COUNT(writers); c.numbers[5]++) {
                c.numbers[4] = c.numbers[5] % 2; /* of the readers of several lists one */
                for (c.numbers[6] = 0; any && c.numbers[6] < 2; c.numbers[6]++) {
                    any = run_steps(s, &c, 7, 1) > 0;
                }
                for (c.numbers[4] = 2; any && c.numbers[4] < COUNT(readers); c.numbers[4]++) {
                    c.numbers[6] = c.numbers[7] = 0;
                    (void)run(s, &c);
                }
            }
        }
    }
}

static void lose_cases(struct sweep *s, unsigned t)
{
    struct atomic_case c = {{FAMILY_lose, t}};
    for (c.numbers[2] = 0; has_steps(transactions[t], c.numbers[2]); c.numbers[2]++) {
        for (c.numbers[3] = 0; c.numbers[3] < ARRIVALS; c.numbers[3]++) {
            bool any = true;
            for (c.numbers[5] = 0; any && c.numbers[5] < COUNT(writers); c.numbers[5] += 3) {
                any = run_steps(s, &c, 4, 1) > 0;
            }
        }
    }
}

static void meet_cases(struct sweep *s, unsigned t)
{
    struct atomic_case c = {{FAMILY_meet, t}};
    for (c.numbers[2] = 0; c.numbers[2] < COUNT(transactions); c.numbers[2]++) {
        for (c.numbers[3] = 0; has_steps(transactions[t], c.numbers[3]); c.numbers[3]++) {
            for (c.numbers[5] = 0; c.numbers[5] < 2; c.numbers[5]++) {
                (void)run_steps(s, &c, 4, 1);
            }
        }
    }
}

static void three_cases(struct sweep *s, unsigned t)
{
    struct atomic_case c = {{FAMILY_three, t}};
    for (c.numbers[2] = 0; has_steps(triples[t][0], c.numbers[2]); c.numbers[2]++) {
        for (c.numbers[5] = 0; c.numbers[5] < 3; c.numbers[5]++) {
            for (c.numbers[3] = 0; c.numbers[3] < STEPS_MOST; c.numbers[3]++) {
                if (run_steps(s, &c, 4, 1) == 0) {
                    break;
                }
            }
        }
    }
}

static void four_cases(struct sweep *s, unsigned t)
{
    struct atomic_case c = {{FAMILY_four, t}};
    for (c.numbers[2] = 0; has_steps(quadruples[t][0], c.numbers[2]); c.numbers[2] += 2) {
        for (c.numbers[3] = 0; c.numbers[3] < STEPS_MOST; c.numbers[3] += 2) {
            unsigned any = 0;
            for (c.numbers[4] = 0; c.numbers[4] < STEPS_MOST; c.numbers[4] += 2) {
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

unsigned group_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < COUNT(groups); i++) {
        count += groups[i].count;
    }
    return count;
}

void group_run(struct sweep *sweep, unsigned group)
{
    for (unsigned i = 0; i < COUNT(groups); i++) {
        if (group < groups[i].count) {
            groups[i].cases(sweep, group);
            return;
        }
        group -= groups[i].count;
    }
}
