/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of the native layout: which cases there are.
 */
#include "native_case.h"

#include <stdio.h>

/* How much is gone through with a policy. */
enum depth {
    FLAT, /* crashes, B between two steps, faults */
    WIDE, /* all families, one position each */
    DEEP, /* pairs of positions */
};

static const enum depth depths[] = {DEEP, WIDE, FLAT, FLAT, WIDE, FLAT};

/* Of the group under way. */
static struct native_world world;
static struct scene scene;
static enum depth depth;

/* What the cases are meant to make happen. */
static const enum list_metric events[] = {
    METRIC_list_creates,   METRIC_list_appends, METRIC_list_folds,         METRIC_list_flips,
    METRIC_list_merges,    METRIC_list_heals,   METRIC_list_removes,       METRIC_list_sweeps,
    METRIC_list_conflicts, METRIC_list_giveups, METRIC_list_out_of_memory, METRIC_list_damaged,
    METRIC_list_busy,      METRIC_list_turns,
};

static enum result run(struct sweep *s, const struct native_case *c)
{
    struct case_id id = case_id_of(c);
    return sweep_try(s, &id, c->family);
}

/* ---- which cases there are ---- */

/* No operation here takes as many steps. */
#define STEPS_LIMIT 250

/* Runs the case with *step = from, from + 1, ... as long as there is one. */
static void run_from(struct sweep *s, struct native_case *c, unsigned *step, unsigned from)
{
    for (*step = from; *step < STEPS_LIMIT && run(s, c) != NONE; ++*step) {
    }
}

/* Runs the case to the end, then, if it is a case of its own and the policy is gone through deeply,
 * with *step = from, from + 1, ... False when there is none. */
static bool run_end_and_from(struct sweep *s, struct native_case *c, unsigned *step, unsigned from)
{
    *step = TO_THE_END;
    enum result result = run(s, c);
    if (result == DONE && depth == DEEP) {
        run_from(s, c, step, from);
    }
    return result != NONE;
}

static bool b_begins_with(unsigned b, enum list_verb verb)
{
    return ops_b[b].calls[0].verb == verb;
}

/* Does B add so much that its log is folded at once? */
static bool is_much(unsigned b)
{
    return b_begins_with(b, LIST_ADD) && ops_b[b].calls[0].count == CALL_ITEMS_MAX;
}

/* Those of B's operations that are run in every way. */
static bool is_main(unsigned b)
{
    return (b_begins_with(b, LIST_ADD) && !is_much(b)) || b_begins_with(b, LIST_ADDX) ||
           b_begins_with(b, LIST_SET) || b_begins_with(b, LIST_DROP) ||
           b_begins_with(b, LIST_COMPACT);
}

/* How a family goes through one of B's operations. */
enum way {
    LEFT_OUT,
    ONCE,
    PAIRS, /* with each position behind as well: where that is gone through deeply */
};

static enum way way_of(const struct native_case *c)
{
    bool wide = depth >= WIDE, scattered = c->kind > 0;
    unsigned b = c->b;
    switch (c->family) {
    case FAMILY_crash:
        return b >= FIRST_B && (!scattered || is_main(b)) ? ONCE : LEFT_OUT;
    case FAMILY_beside:
        return b < FIRST_B ? LEFT_OUT : is_main(b) || is_much(b) ? PAIRS : ONCE;
    case FAMILY_pause:
        return b < FIRST_B || !wide ? LEFT_OUT : b_begins_with(b, LIST_COMPACT) ? PAIRS : ONCE;
    case FAMILY_fault:
        return b == B_NOTHING ? PAIRS : wide && is_main(b) ? ONCE : LEFT_OUT;
    case FAMILY_late:
        return wide && (b == B_NOTHING || is_main(b)) ? PAIRS : LEFT_OUT;
    default:
        return LEFT_OUT;
    }
}

/* All operations of B behind the same steps of A; q from there on. False when A comes to rest
 * before. What is the same for one of B's operations because of these steps is so for all. */
static bool run_each_b(struct sweep *s, struct native_case *c, unsigned from)
{
    bool any = false;
    for (c->b = 0; c->b < ops_b_count; c->b++) {
        enum way way = way_of(c);
        if (way == LEFT_OUT) {
            continue;
        }
        c->q = TO_THE_END;
        enum result result = run(s, c);
        if (result == SAME_ROW) {
            return true;
        }
        if (result == NONE && !sweep_has_failed(s)) {
            return false;
        }
        any = true;
        if (result == DONE && way == PAIRS && depth == DEEP) {
            run_from(s, c, &c->q, from);
        }
    }
    return any;
}

static void run_each_p(struct sweep *s, struct native_case c)
{
    bool counted_from_p = c.family == FAMILY_beside || c.family == FAMILY_pause;
    for (c.p = 0; c.p < STEPS_LIMIT && run_each_b(s, &c, counted_from_p ? c.p + 1 : 1); c.p++) {
    }
}

static void crash_cases(struct sweep *s, struct native_case c)
{
    for (unsigned warm = 0; warm < WARMS; warm++) {
        if (depth == FLAT && warm != WARM_NONE && warm != WARM_BOTH) {
            continue;
        }
        c.warm = (enum warm)warm;
        run_each_p(s, c);
    }
    /* What was sent to several servers arrives there in part. */
    c.warm = WARM_NONE;
    for (c.kind = 1; scene.policy->spread && c.kind < SCATTERS; c.kind++) {
        run_each_p(s, c);
    }
}

static void beside_cases(struct sweep *s, struct native_case c)
{
    run_each_p(s, c);
}

static void around_cases(struct sweep *s, struct native_case c)
{
    for (c.b = FIRST_B; depth >= WIDE && c.b < ops_b_count; c.b++) {
        bool wanted = is_main(c.b) || is_much(c.b);
        for (c.q = 1; wanted && run_end_and_from(s, &c, &c.p, 1); c.q++) {
        }
    }
}

static void meet_cases(struct sweep *s, struct native_case c)
{
    for (c.b = FIRST_B; depth >= WIDE && c.b < ops_b_count; c.b++) {
        bool wanted =
            is_much(c.b) || b_begins_with(c.b, LIST_DROP) || (depth == DEEP && is_main(c.b));
        /* Without a step of B it is no case, but tells whether A has come to rest. */
        for (c.p = 0, c.q = 0; wanted && run(s, &c) != NONE; c.p++, c.q = 0) {
            run_from(s, &c, &c.q, 1);
        }
    }
}

static void pause_cases(struct sweep *s, struct native_case c)
{
    for (c.kind = 0; c.kind < 2; c.kind++) {
        run_each_p(s, c);
    }
}

static void fault_cases(struct sweep *s, struct native_case c)
{
    for (c.kind = 0; c.kind < FAULTS; c.kind++) {
        run_each_p(s, c);
    }
}

/* What B does makes A give up: even that may fail. */
static void conflict_cases(struct sweep *s, struct native_case c)
{
    static const enum fault faults[] = {FAULT_LOST, FAULT_LOST_AFTER_1, FAULT_NOT_SENT};
    for (c.b = FIRST_B; depth == DEEP && c.b < ops_b_count; c.b++) {
        bool any = b_begins_with(c.b, LIST_DROP) || b_begins_with(c.b, LIST_COMPACT);
        for (c.p = 0; any && c.p < STEPS_LIMIT; c.p++) {
            enum result result = DONE;
            any = false;
            for (unsigned i = 0; result != SAME_ROW && i < COUNT(faults); i++) {
                c.kind = faults[i];
                c.q = 1;
                result = run(s, &c);
                any = any || result != NONE;
                if (result != NONE && result != SAME_ROW) {
                    run_from(s, &c, &c.q, 2);
                }
            }
        }
    }
}

static void late_cases(struct sweep *s, struct native_case c)
{
    for (c.kind = 1; c.kind <= LATE_MAX; c.kind++) {
        run_each_p(s, c);
    }
}

/* ---- the table ---- */

static unsigned group_count(void)
{
    return policy_count * scene_count * ops_a_count;
}

static void begin(const struct case_id *id)
{
    struct native_case c;
    CHECK(case_of_id(&c, id));
    depth = depths[c.policy];
    scene_init(&scene, &policies[c.policy], &scenes[c.scene]);
    memset(&world.seen, 0, sizeof world.seen);
}

static void end(void)
{
    scene_fini(&scene);
}

/* One scene with one operation of A. */
static void run_group(struct sweep *s, unsigned group)
{
    typedef void cases(struct sweep * s, struct native_case c);
    static cases *const cases_of[] = {
#define FAMILY_CASES(name, text) name##_cases,
        FAMILY_TABLE(FAMILY_CASES)
#undef FAMILY_CASES
    };
    struct native_case c = {
        .policy = group / (scene_count * ops_a_count),
        .scene = group / ops_a_count % scene_count,
        .a = group % ops_a_count,
    };
    bool evicts = scenes[c.scene].evicted != NULL;
    if (policies[c.policy].miss_damaged && !evicts) {
        return;
    }
    /* What was evicted is healed by who has it in the cache. */
    c.warm = evicts ? WARM_A : WARM_NONE;
    struct case_id id = case_id_of(&c);
    begin(&id);
    for (unsigned family = 0; family < FAMILIES; family++) {
        c.family = (enum family)family;
        cases_of[family](s, c);
    }
    end();
}

static enum result play(const struct case_id *id, bool trace, char wrong[WRONG_MAX])
{
    struct native_case c;
    CHECK(case_of_id(&c, id));
    enum result result = case_run(&world, &scene, &c, trace);
    if (world.base.failed) {
        snprintf(wrong, WRONG_MAX, "%s", world.base.violation);
    }
    return result;
}

static bool describe(const struct case_id *id, char *out, size_t cap)
{
    struct native_case c;
    bool good = case_of_id(&c, id);
    if (good) {
        case_describe(&c, out, cap);
    }
    return good;
}

static const char *event_name(unsigned event)
{
    return metric_name(&list_metrics, events[event]);
}

static void count_events(uint64_t counts[EVENTS_MAX])
{
    for (unsigned i = 0; i < COUNT(events); i++) {
        for (unsigned p = 0; p < PROXIES; p++) {
            counts[i] += metric_get(&world.proxies[p].base.metrics, events[i]);
        }
    }
}

static void print_bounds(void)
{
    printf("%u policies x %u scenes x %u operations of A x %u of B\n", policy_count, scene_count,
           ops_a_count, ops_b_count - FIRST_B);
    for (unsigned i = 0; i < policy_count; i++) {
        static const char *const texts[] = {
            [FLAT] = "crash, beside, fault; one position",
            [WIDE] = "all, one position; meet: pairs, with two operations of B",
            [DEEP] =
                ("all, pairs; beside, around, meet: pairs with six operations of B; fault, late: "
                 "five operations of B"),
        };
        printf("  %-22s %s%s\n", policies[i].name, texts[depths[i]],
               policies[i].miss_damaged ? "; damaged lists only" : "");
    }
    printf("  Left out: crashes behind steps that changed and answered nothing, orders of steps "
           "that have nothing to do with each other.\n");
}

static const struct row rows[] = {
#define FAMILY_ROW(name, text) {#name, text},
    FAMILY_TABLE(FAMILY_ROW)
#undef FAMILY_ROW
};

const struct table native_table = {
    .name = "native",
    .rows = rows,
    .row_count = FAMILIES,
    .event_name = event_name,
    .event_count = COUNT(events),
    .group_count = group_count,
    .run_group = run_group,
    .begin = begin,
    .end = end,
    .play = play,
    .count_events = count_events,
    .describe = describe,
    .print_bounds = print_bounds,
};
