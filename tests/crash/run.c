/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a case of each family goes.
 */
#include "case.h"

#include "proto/server/backend_format.h"

#define BEYOND_GRACE_US ((GRACE_S + 1) * 1000000ULL)

static const unsigned nothing_arrives[SERVERS];

static void run_b(struct world *w, const struct crash_case *c)
{
    world_ask(w, PROXY_B, &ops_b[c->b]);
    world_rest(w, PROXY_B);
}

static const struct flight *next_of(const struct world *w, unsigned proxy)
{
    return TAILQ_FIRST(&w->proxies[proxy].flights);
}

/* Has A's last step changed nothing, and answered no call? Then a crash behind it is the crash
 * before it. */
static bool crash_is_same(const struct world *w)
{
    const struct proxy *a = &w->proxies[PROXY_A];
    return a->steps > 0 && !a->taken[a->steps - 1].changed && !a->taken[a->steps - 1].news;
}

/* Is A's next request about something that B has nothing to do with? Then it is the same whether it
 * comes before B or after. */
static bool next_is_same(const struct world *w)
{
    return !world_depends(w, next_of(w, PROXY_A), PROXY_B, 0, w->proxies[PROXY_B].steps);
}

/* To its end, or up to a step at which it crashes. */
static enum case_result go_on(struct world *w, unsigned steps)
{
    if (steps == TO_THE_END) {
        world_rest(w, PROXY_A);
        return CASE_DONE;
    }
    if (w->proxies[PROXY_A].steps >= steps || !world_steps(w, PROXY_A, steps)) {
        return CASE_NONE;
    }
    if (crash_is_same(w)) {
        return CASE_SAME;
    }
    world_crash(w, PROXY_A, nothing_arrives);
    return CASE_DONE;
}

/* A alone goes the same way in all cases: one of them is enough to check it. */
static bool take_steps(struct world *w, const struct crash_case *c)
{
    w->known = !w->trace && (c->family != FAMILY_crash || c->b != FIRST_B);
    world_ask(w, PROXY_A, &ops_a[c->a]);
    bool taken = world_steps(w, PROXY_A, c->p);
    w->known = false;
    return taken;
}

/* The same, and A has more to do. */
static bool take_first_steps(struct world *w, const struct crash_case *c)
{
    return take_steps(w, c) && world_wait_sent(w, PROXY_A);
}

/* kind: 1 + 4 * (how many arrive at server 0) + (how many at server 1), for what is no beginning of
 * all that was sent: if it is, then the case with so many more steps is the same. */
static bool some_arrive(const struct world *w, unsigned kind, unsigned arrive[SERVERS])
{
    const struct flight *f;
    unsigned seen[SERVERS] = {0}, arrived = 0;
    bool gap = false, behind_gap = false;
    arrive[0] = (kind - 1) / 4;
    arrive[1] = (kind - 1) % 4;
    TAILQ_FOREACH(f, &w->proxies[PROXY_A].flights, link)
    {
        bool change = f->request->verb >= BE_ADD;
        bool arrives = seen[f->server]++ < arrive[f->server];
        arrived += arrives;
        gap = gap || (change && !arrives);
        behind_gap = behind_gap || (gap && change && arrives);
    }
    return behind_gap && arrived == arrive[0] + arrive[1];
}

static enum case_result run_crash(struct world *w, const struct crash_case *c)
{
    unsigned arrive[SERVERS] = {0};
    if (!take_steps(w, c)) {
        return CASE_NONE;
    }
    if (c->kind > 0 ? !some_arrive(w, c->kind, arrive) : crash_is_same(w)) {
        return CASE_SAME;
    }
    world_crash(w, PROXY_A, arrive);
    run_b(w, c);
    return CASE_DONE;
}

static enum case_result run_beside(struct world *w, const struct crash_case *c)
{
    if (!take_first_steps(w, c)) {
        return CASE_NONE;
    }
    run_b(w, c);
    return next_is_same(w) ? CASE_SAME : go_on(w, c->q);
}

static enum case_result run_around(struct world *w, const struct crash_case *c)
{
    world_ask(w, PROXY_B, &ops_b[c->b]);
    if (!world_steps(w, PROXY_B, c->q) || !world_wait_sent(w, PROXY_B)) {
        return CASE_NONE;
    }
    world_ask(w, PROXY_A, &ops_a[c->a]);
    enum case_result result = go_on(w, c->p);
    if (result == CASE_DONE && !w->failed &&
        !world_depends(w, next_of(w, PROXY_B), PROXY_A, 0, w->proxies[PROXY_A].steps)) {
        result = CASE_SAME;
    }
    world_rest(w, PROXY_B);
    return result;
}

static enum case_result run_meet(struct world *w, const struct crash_case *c)
{
    const struct proxy *a = &w->proxies[PROXY_A], *b = &w->proxies[PROXY_B];
    if (!take_first_steps(w, c)) {
        return CASE_NONE;
    }
    if (c->q == 0) {
        return CASE_SAME; /* one after the other */
    }
    world_ask(w, PROXY_B, &ops_b[c->b]);
    if (!world_steps(w, PROXY_B, c->q) || !world_wait_sent(w, PROXY_B)) {
        return CASE_NONE;
    }
    if (next_is_same(w)) {
        return CASE_SAME;
    }
    unsigned from = a->steps;
    world_rest(w, PROXY_A);
    if (!world_step_depends(w, &b->taken[b->steps - 1], PROXY_A, from, a->steps)) {
        return CASE_SAME;
    }
    world_rest(w, PROXY_B);
    return CASE_DONE;
}

/* kind: 0 what is on its way is executed after the pause, 1 the first of it was before, and only
 * its answer is read afterwards. */
static enum case_result run_pause(struct world *w, const struct crash_case *c)
{
    if (!take_first_steps(w, c)) {
        return CASE_NONE;
    }
    if (c->kind == 1) {
        world_execute(w, PROXY_A);
    }
    world_pass(w, BEYOND_GRACE_US);
    run_b(w, c);
    return c->kind == 0 && next_is_same(w) ? CASE_SAME : go_on(w, c->q);
}

/* Is the n-th request to that server, counted from 1, one that may change something? */
static bool is_change(const struct world *w, unsigned server, unsigned n)
{
    const struct flight *f;
    TAILQ_FOREACH(f, &w->proxies[PROXY_A].flights, link)
    {
        if (f->server == server && --n == 0) {
            return f->request->verb >= BE_ADD;
        }
    }
    return false;
}

static bool needs_memory(const struct flight *f)
{
    enum be_verb verb = f->request->verb;
    return backend_has_body(verb);
}

static enum case_result fail(struct world *w, enum fault fault)
{
    const struct flight *next = next_of(w, PROXY_A);
    if (fault <= FAULT_LOST_AFTER_3) {
        unsigned executed = fault - FAULT_LOST;
        if (executed > 0 && !is_change(w, next->server, executed)) {
            return CASE_SAME;
        }
        world_lose(w, PROXY_A, executed, false);
    } else if (fault == FAULT_NOT_SENT) {
        world_refuse(w, PROXY_A, BE_DOWN);
    } else if (fault == FAULT_DOWN) {
        w->proxies[PROXY_A].down = true;
    } else if (fault == FAULT_REFUSED) {
        world_refuse(w, PROXY_A, BE_REFUSED);
    } else if (!needs_memory(next)) {
        return CASE_SAME;
    } else if (fault == FAULT_NO_MEMORY) {
        world_step_without_memory(w, PROXY_A);
    } else {
        world_all_out_of_memory(w, true);
    }
    return CASE_DONE;
}

/* q: after so many steps behind the fault A crashes. */
static enum case_result run_fault(struct world *w, const struct crash_case *c)
{
    w->proxies[PROXY_A].may_fail = true;
    if (!take_first_steps(w, c)) {
        return CASE_NONE;
    }
    run_b(w, c);
    enum case_result result = fail(w, (enum fault)c->kind);
    if (result == CASE_DONE) {
        unsigned steps = w->proxies[PROXY_A].steps + c->q;
        result = go_on(w, c->q == TO_THE_END ? TO_THE_END : steps);
        w->proxies[PROXY_A].down = false;
        world_all_out_of_memory(w, false);
    }
    return result;
}

/* q: after so many more steps of A the fault comes. */
static enum case_result run_conflict(struct world *w, const struct crash_case *c)
{
    w->proxies[PROXY_A].may_fail = true;
    if (!take_first_steps(w, c)) {
        return CASE_NONE;
    }
    run_b(w, c);
    if (next_is_same(w)) {
        return CASE_SAME;
    }
    if (!world_steps(w, PROXY_A, c->p + c->q) || !world_wait_sent(w, PROXY_A)) {
        return CASE_NONE;
    }
    enum case_result result = fail(w, (enum fault)c->kind);
    world_rest(w, PROXY_A);
    return result;
}

/* Does A's last step have to do with what is late? */
static bool late_depends(const struct world *w)
{
    const struct proxy *a = &w->proxies[PROXY_A];
    const struct flight *f;
    TAILQ_FOREACH(f, &w->late, link)
    {
        if (world_depends(w, f, PROXY_A, a->steps - 1, a->steps)) {
            return true;
        }
    }
    return false;
}

/* kind: how many requests arrive late. q: after so many more steps of A, counted from 1. */
static enum case_result run_late(struct world *w, const struct crash_case *c)
{
    w->proxies[PROXY_A].may_fail = true;
    if (!take_first_steps(w, c)) {
        return CASE_NONE;
    }
    if (!is_change(w, next_of(w, PROXY_A)->server, c->kind)) {
        return CASE_SAME;
    }
    world_lose(w, PROXY_A, c->kind, true);
    if (c->q != TO_THE_END) {
        unsigned steps = w->proxies[PROXY_A].steps + c->q - 1;
        if (!world_steps(w, PROXY_A, steps)) {
            return CASE_NONE;
        }
        if (c->q > 1 && !late_depends(w)) {
            return CASE_SAME;
        }
        world_arrive_late(w);
    }
    world_rest(w, PROXY_A);
    run_b(w, c);
    world_arrive_late(w);
    return CASE_DONE;
}

enum case_result case_run(struct world *w, const struct scene *scene, const struct crash_case *c,
                          bool trace)
{
    typedef enum case_result run(struct world * w, const struct crash_case *c);
    static run *const runs[] = {
#define FAMILY_RUN(name, text) run_##name,
        FAMILY_TABLE(FAMILY_RUN)
#undef FAMILY_RUN
    };
    world_init(w, scene, c->warm == WARM_A || c->warm == WARM_BOTH,
               c->warm == WARM_B || c->warm == WARM_BOTH, trace);
    enum case_result result = runs[c->family](w, c);
    if (result == CASE_DONE && !w->failed) {
        world_finish(w);
    }
    world_fini(w);
    return w->failed ? CASE_DONE : result;
}
