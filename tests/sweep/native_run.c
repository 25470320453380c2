/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a case of each family goes.
 */
#include "native_case.h"

#include "proto/server/ascii_format.h"

#define BEYOND_GRACE_US ((GRACE_S + 1) * 1000000ULL)

static const unsigned nothing_arrives[SERVERS_MAX];

static void run_b(struct native_world *w, const struct native_case *c)
{
    case_ask(w, PROXY_B, &ops_b[c->b]);
    case_rest(w, PROXY_B);
}

static struct flight *next_of(const struct native_world *w, unsigned proxy)
{
    return TAILQ_FIRST(&w->proxies[proxy].base.flights);
}

/* Is A's next request about something that B has nothing to do with? Then it is the same whether it
 * comes before B or after. */
static bool next_is_same(const struct native_world *w)
{
    return !case_depends(w, next_of(w, PROXY_A), PROXY_B, 0, w->proxies[PROXY_B].base.steps);
}

/* To its end, or up to a step at which it crashes. */
static enum result go_on(struct native_world *w, unsigned steps)
{
    if (steps == TO_THE_END) {
        case_rest(w, PROXY_A);
        return DONE;
    }
    if (w->proxies[PROXY_A].base.steps >= steps || !case_steps(w, PROXY_A, steps)) {
        return NONE;
    }
    if (crash_is_same(&w->proxies[PROXY_A].base)) {
        return SAME;
    }
    case_crash(w, PROXY_A, nothing_arrives);
    return DONE;
}

/* A alone goes the same way in all cases: one of them is enough to check it. */
static bool take_steps(struct native_world *w, const struct native_case *c)
{
    w->known = trace_mode == TRACE_OFF && (c->family != FAMILY_crash || c->b != FIRST_B);
    case_ask(w, PROXY_A, &ops_a[c->a]);
    bool taken = case_steps(w, PROXY_A, c->p);
    w->known = false;
    return taken;
}

/* The same, and A has more to do. */
static bool take_first_steps(struct native_world *w, const struct native_case *c)
{
    return take_steps(w, c) && case_wait_sent(w, PROXY_A);
}

/* kind: 1 + 4 * (how many arrive at server 0) + (how many at server 1), for what is no beginning of
 * all that was sent: if it is, then the case with so many more steps is the same. */
static bool some_arrive(const struct native_world *w, unsigned kind, unsigned arrive[SERVERS_MAX])
{
    const struct flight *f;
    unsigned seen[SERVERS_MAX] = {0}, arrived = 0;
    bool gap = false, behind_gap = false;
    arrive[0] = (kind - 1) / 4;
    arrive[1] = (kind - 1) % 4;
    TAILQ_FOREACH(f, &w->proxies[PROXY_A].base.flights, link)
    {
        bool change = flight_is_change(f);
        bool arrives = seen[f->server]++ < arrive[f->server];
        arrived += arrives;
        gap = gap || (change && !arrives);
        behind_gap = behind_gap || (gap && change && arrives);
    }
    return behind_gap && arrived == arrive[0] + arrive[1];
}

static enum result run_crash(struct native_world *w, const struct native_case *c)
{
    unsigned arrive[SERVERS_MAX] = {0};
    if (!take_steps(w, c)) {
        return NONE;
    }
    if (c->kind > 0 ? !some_arrive(w, c->kind, arrive) : crash_is_same(&w->proxies[PROXY_A].base)) {
        return SAME_ROW;
    }
    case_crash(w, PROXY_A, arrive);
    run_b(w, c);
    return DONE;
}

static enum result run_beside(struct native_world *w, const struct native_case *c)
{
    if (!take_first_steps(w, c)) {
        return NONE;
    }
    run_b(w, c);
    return next_is_same(w) ? SAME : go_on(w, c->q);
}

static enum result run_around(struct native_world *w, const struct native_case *c)
{
    case_ask(w, PROXY_B, &ops_b[c->b]);
    if (!case_steps(w, PROXY_B, c->q) || !case_wait_sent(w, PROXY_B)) {
        return NONE;
    }
    case_ask(w, PROXY_A, &ops_a[c->a]);
    enum result result = go_on(w, c->p);
    if (result == DONE && !w->base.failed &&
        !case_depends(w, next_of(w, PROXY_B), PROXY_A, 0, w->proxies[PROXY_A].base.steps)) {
        result = SAME;
    }
    case_rest(w, PROXY_B);
    return result;
}

static enum result run_meet(struct native_world *w, const struct native_case *c)
{
    const struct native_proxy *a = &w->proxies[PROXY_A], *b = &w->proxies[PROXY_B];
    if (!take_first_steps(w, c)) {
        return NONE;
    }
    if (c->q == 0) {
        return SAME; /* one after the other */
    }
    case_ask(w, PROXY_B, &ops_b[c->b]);
    if (!case_steps(w, PROXY_B, c->q) || !case_wait_sent(w, PROXY_B)) {
        return NONE;
    }
    if (next_is_same(w)) {
        return SAME;
    }
    unsigned from = a->base.steps;
    case_rest(w, PROXY_A);
    if (!case_step_depends(w, &b->taken[b->base.steps - 1], PROXY_A, from, a->base.steps)) {
        return SAME;
    }
    case_rest(w, PROXY_B);
    return DONE;
}

/* kind: 0 what is on its way is executed after the pause, 1 the first of it was before, and only
 * its answer is read afterwards. */
static enum result run_pause(struct native_world *w, const struct native_case *c)
{
    if (!take_first_steps(w, c)) {
        return NONE;
    }
    if (c->kind == 1) {
        proxy_execute(&w->base, &w->proxies[PROXY_A].base, next_of(w, PROXY_A));
    }
    case_pass(w, BEYOND_GRACE_US);
    run_b(w, c);
    return c->kind == 0 && next_is_same(w) ? SAME : go_on(w, c->q);
}

/* Is the n-th request to that server, counted from 1, one that may change something? */
static bool is_change(const struct native_world *w, unsigned server, unsigned n)
{
    const struct flight *f;
    TAILQ_FOREACH(f, &w->proxies[PROXY_A].base.flights, link)
    {
        if (f->server == server && --n == 0) {
            return flight_is_change(f);
        }
    }
    return false;
}

/* Would A's next request end as by another fault, or without any? */
static bool fault_is_same(const struct native_world *w, enum fault fault)
{
    const struct flight *next = next_of(w, PROXY_A);
    if (fault <= FAULT_LOST_AFTER_3) {
        return fault > FAULT_LOST && !is_change(w, next->server, fault - FAULT_LOST);
    }
    bool of_memory = fault == FAULT_NO_MEMORY || fault == FAULT_OUT_OF_MEMORY;
    return of_memory && !be_has_value(next->request.be.verb);
}

static void fail(struct native_world *w, enum fault fault)
{
    if (fault <= FAULT_LOST_AFTER_3) {
        case_lose(w, PROXY_A, fault - FAULT_LOST, false);
    } else if (fault == FAULT_NOT_SENT) {
        case_refuse(w, PROXY_A, BE_DOWN);
    } else if (fault == FAULT_DOWN) {
        w->proxies[PROXY_A].base.down = true;
    } else if (fault == FAULT_REFUSED) {
        case_refuse(w, PROXY_A, BE_REFUSED);
    } else if (fault == FAULT_NO_MEMORY) {
        case_step_without_memory(w, PROXY_A);
    } else {
        case_all_out_of_memory(w, true);
    }
}

/* q: after so many steps behind the fault A crashes. */
static enum result run_fault(struct native_world *w, const struct native_case *c)
{
    w->proxies[PROXY_A].may_fail = true;
    if (!take_first_steps(w, c)) {
        return NONE;
    }
    if (fault_is_same(w, (enum fault)c->kind)) {
        return SAME_ROW;
    }
    run_b(w, c);
    fail(w, (enum fault)c->kind);
    unsigned steps = w->proxies[PROXY_A].base.steps + c->q;
    enum result result = go_on(w, c->q == TO_THE_END ? TO_THE_END : steps);
    w->proxies[PROXY_A].base.down = false;
    case_all_out_of_memory(w, false);
    return result;
}

/* q: after so many more steps of A the fault comes. */
static enum result run_conflict(struct native_world *w, const struct native_case *c)
{
    w->proxies[PROXY_A].may_fail = true;
    if (!take_first_steps(w, c)) {
        return NONE;
    }
    run_b(w, c);
    if (next_is_same(w)) {
        return SAME_ROW;
    }
    if (!case_steps(w, PROXY_A, c->p + c->q) || !case_wait_sent(w, PROXY_A)) {
        return NONE;
    }
    if (fault_is_same(w, (enum fault)c->kind)) {
        return SAME;
    }
    fail(w, (enum fault)c->kind);
    case_rest(w, PROXY_A);
    return DONE;
}

/* Does A's last step have to do with what is late? */
static bool late_depends(const struct native_world *w)
{
    const struct native_proxy *a = &w->proxies[PROXY_A];
    const struct flight *f;
    TAILQ_FOREACH(f, &w->base.late, link)
    {
        if (case_depends(w, f, PROXY_A, a->base.steps - 1, a->base.steps)) {
            return true;
        }
    }
    return false;
}

/* kind: how many requests arrive late. q: after so many more steps of A, counted from 1. */
static enum result run_late(struct native_world *w, const struct native_case *c)
{
    w->proxies[PROXY_A].may_fail = true;
    if (!take_first_steps(w, c)) {
        return NONE;
    }
    if (!is_change(w, next_of(w, PROXY_A)->server, c->kind)) {
        return SAME_ROW;
    }
    case_lose(w, PROXY_A, c->kind, true);
    if (c->q != TO_THE_END) {
        unsigned steps = w->proxies[PROXY_A].base.steps + c->q - 1;
        if (!case_steps(w, PROXY_A, steps)) {
            return NONE;
        }
        if (c->q > 1 && !late_depends(w)) {
            return SAME;
        }
        case_arrive_late(w);
    }
    case_rest(w, PROXY_A);
    run_b(w, c);
    case_arrive_late(w);
    return DONE;
}

enum result case_run(struct native_world *w, const struct scene *scene, const struct native_case *c,
                     bool trace)
{
    typedef enum result run(struct native_world * w, const struct native_case *c);
    static run *const runs[] = {
#define FAMILY_RUN(name, text) run_##name,
        FAMILY_TABLE(FAMILY_RUN)
#undef FAMILY_RUN
    };
    case_init(w, scene, c->warm == WARM_A || c->warm == WARM_BOTH,
              c->warm == WARM_B || c->warm == WARM_BOTH, trace);
    enum result result = runs[c->family](w, c);
    if (result == DONE && !w->base.failed) {
        case_finish(w);
    }
    case_fini(w);
    return w->base.failed ? DONE : result;
}
