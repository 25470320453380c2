/* SPDX-License-Identifier: BSD-3-Clause */
#include "sweep.h"

#include <stdio.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof(array)[0]))

/* How much is gone through with a policy. */
enum depth {
    FLAT, /* crashes, B between two steps, faults */
    WIDE, /* all families, one position each */
    DEEP, /* pairs of positions */
};

static const enum depth depths[] = {DEEP, WIDE, FLAT, FLAT, WIDE, FLAT};

struct sweep {
    struct tally *tally;
    struct scene scene;
    struct crash_case base;
    uint64_t died;
    bool counting;
    uint64_t shown_max;
    enum depth depth;
};

static struct crash_world world;

/* What the cases are meant to make happen. */
static const enum list_metric shown_metrics[] = {
    METRIC_list_creates,   METRIC_list_appends, METRIC_list_folds,         METRIC_list_flips,
    METRIC_list_merges,    METRIC_list_heals,   METRIC_list_removes,       METRIC_list_sweeps,
    METRIC_list_conflicts, METRIC_list_giveups, METRIC_list_out_of_memory, METRIC_list_damaged,
    METRIC_list_busy,      METRIC_list_turns,
};

unsigned group_count(void)
{
    return policy_count * scene_count * ops_a_count;
}

struct group group_at(unsigned index)
{
    return (struct group){
        .policy = index / (scene_count * ops_a_count),
        .scene = index / ops_a_count % scene_count,
        .a = index % ops_a_count,
    };
}

void report_failure(struct tally *tally, uint64_t number, const char *what, uint64_t shown_max)
{
    struct crash_case c;
    char text[512];
    if (!case_of_number(&c, number)) {
        return;
    }
    tally->failed[c.family]++;
    if (tally->shown == shown_max) {
        tally->hidden++;
    } else {
        tally->shown++;
        case_describe(&c, text, sizeof text);
        printf("FAILED case %llu: %s: %s\n", (unsigned long long)number, text, what);
    }
}

static void add_metrics(struct tally *tally)
{
    for (size_t i = 0; i < sizeof shown_metrics / sizeof shown_metrics[0]; i++) {
        for (unsigned p = 0; p < PROXIES; p++) {
            enum list_metric metric = shown_metrics[i];
            tally->metrics[metric] += metric_get(&world.proxies[p].base.metrics, metric);
        }
    }
}

/* One that fails is the last of its row: it has come to no rest, so none tells where the row ends.
 */
static enum case_result run(struct sweep *s, const struct crash_case *c)
{
    uint64_t number = case_number(c);
    if (number == s->died) {
        s->counting = true;
        return CASE_DONE;
    }
    s->tally->current = number;
    enum case_result result = case_run(&world, &s->scene, c, false);
    if (result != CASE_DONE) {
        return result;
    }
    if (s->counting) {
        add_metrics(s->tally);
        if (world.base.failed) {
            report_failure(s->tally, number, world.base.violation, s->shown_max);
        } else {
            s->tally->passed[c->family]++;
        }
    }
    return world.base.failed ? CASE_NONE : CASE_DONE;
}

/* ---- which cases there are ---- */

/* No operation here takes as many steps. */
#define STEPS_LIMIT 250

/* Runs the case with *step = from, from + 1, ... as long as there is one. */
static void run_from(struct sweep *s, struct crash_case *c, unsigned *step, unsigned from)
{
    for (*step = from; *step < STEPS_LIMIT && run(s, c) != CASE_NONE; ++*step) {
    }
}

/* Runs the case to the end, then, if it is a case of its own and the policy is gone through deeply,
 * with *step = from, from + 1, ... False when there is none. */
static bool run_end_and_from(struct sweep *s, struct crash_case *c, unsigned *step, unsigned from)
{
    *step = TO_THE_END;
    enum case_result result = run(s, c);
    if (result == CASE_DONE && s->depth == DEEP) {
        run_from(s, c, step, from);
    }
    return result != CASE_NONE;
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

static enum way way_of(const struct sweep *s, const struct crash_case *c)
{
    bool wide = s->depth >= WIDE, scattered = c->kind > 0;
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
static bool run_each_b(struct sweep *s, struct crash_case *c, unsigned from)
{
    bool any = false;
    for (c->b = 0; c->b < ops_b_count; c->b++) {
        enum way way = way_of(s, c);
        if (way == LEFT_OUT) {
            continue;
        }
        c->q = TO_THE_END;
        enum case_result result = run(s, c);
        if (result == CASE_SAME_ROW) {
            return true;
        }
        if (result == CASE_NONE && !world.base.failed) {
            return false;
        }
        any = true;
        if (result == CASE_DONE && way == PAIRS && s->depth == DEEP) {
            run_from(s, c, &c->q, from);
        }
    }
    return any;
}

static void run_each_p(struct sweep *s, struct crash_case c)
{
    bool counted_from_p = c.family == FAMILY_beside || c.family == FAMILY_pause;
    for (c.p = 0; c.p < STEPS_LIMIT && run_each_b(s, &c, counted_from_p ? c.p + 1 : 1); c.p++) {
    }
}

static void crash_cases(struct sweep *s, struct crash_case c)
{
    for (unsigned warm = 0; warm < WARMS; warm++) {
        if (s->depth == FLAT && warm != WARM_NONE && warm != WARM_BOTH) {
            continue;
        }
        c.warm = (enum warm)warm;
        run_each_p(s, c);
    }
    /* What was sent to several servers arrives there in part. */
    c.warm = WARM_NONE;
    for (c.kind = 1; s->scene.policy->spread && c.kind < SCATTERS; c.kind++) {
        run_each_p(s, c);
    }
}

static void beside_cases(struct sweep *s, struct crash_case c)
{
    run_each_p(s, c);
}

static void around_cases(struct sweep *s, struct crash_case c)
{
    for (c.b = FIRST_B; s->depth >= WIDE && c.b < ops_b_count; c.b++) {
        bool wanted = is_main(c.b) || is_much(c.b);
        for (c.q = 1; wanted && run_end_and_from(s, &c, &c.p, 1); c.q++) {
        }
    }
}

static void meet_cases(struct sweep *s, struct crash_case c)
{
    for (c.b = FIRST_B; s->depth >= WIDE && c.b < ops_b_count; c.b++) {
        bool wanted =
            is_much(c.b) || b_begins_with(c.b, LIST_DROP) || (s->depth == DEEP && is_main(c.b));
        /* Without a step of B it is no case, but tells whether A has come to rest. */
        for (c.p = 0, c.q = 0; wanted && run(s, &c) != CASE_NONE; c.p++, c.q = 0) {
            run_from(s, &c, &c.q, 1);
        }
    }
}

static void pause_cases(struct sweep *s, struct crash_case c)
{
    for (c.kind = 0; c.kind < 2; c.kind++) {
        run_each_p(s, c);
    }
}

static void fault_cases(struct sweep *s, struct crash_case c)
{
    for (c.kind = 0; c.kind < FAULTS; c.kind++) {
        run_each_p(s, c);
    }
}

/* What B does makes A give up: even that may fail. */
static void conflict_cases(struct sweep *s, struct crash_case c)
{
    static const enum fault faults[] = {FAULT_LOST, FAULT_LOST_AFTER_1, FAULT_NOT_SENT};
    for (c.b = FIRST_B; s->depth == DEEP && c.b < ops_b_count; c.b++) {
        bool any = b_begins_with(c.b, LIST_DROP) || b_begins_with(c.b, LIST_COMPACT);
        for (c.p = 0; any && c.p < STEPS_LIMIT; c.p++) {
            enum case_result result = CASE_DONE;
            any = false;
            for (unsigned i = 0; result != CASE_SAME_ROW && i < COUNT(faults); i++) {
                c.kind = faults[i];
                c.q = 1;
                result = run(s, &c);
                any = any || result != CASE_NONE;
                if (result != CASE_NONE && result != CASE_SAME_ROW) {
                    run_from(s, &c, &c.q, 2);
                }
            }
        }
    }
}

static void late_cases(struct sweep *s, struct crash_case c)
{
    for (c.kind = 1; c.kind <= LATE_MAX; c.kind++) {
        run_each_p(s, c);
    }
}

void group_run(struct group group, struct tally *tally, uint64_t died, uint64_t shown_max)
{
    typedef void cases(struct sweep * s, struct crash_case c);
    static cases *const cases_of[] = {
#define FAMILY_CASES(name, text) name##_cases,
        FAMILY_TABLE(FAMILY_CASES)
#undef FAMILY_CASES
    };
    bool evicts = scenes[group.scene].evicted != NULL;
    struct sweep s = {
        .tally = tally,
        .died = died,
        .counting = died == 0,
        .shown_max = shown_max,
        .depth = depths[group.policy],
    };
    if (policies[group.policy].miss_damaged && !evicts) {
        return;
    }
    scene_init(&s.scene, &policies[group.policy], &scenes[group.scene]);
    memset(&world.seen, 0, sizeof world.seen);
    for (unsigned family = 0; family < FAMILIES; family++) {
        /* What was evicted is healed by who has it in the cache. */
        struct crash_case c = {
            .family = (enum family)family,
            .policy = group.policy,
            .scene = group.scene,
            .a = group.a,
            .warm = evicts ? WARM_A : WARM_NONE,
        };
        cases_of[family](&s, c);
    }
    scene_fini(&s.scene);
}

void tally_add(struct tally *sum, const struct tally *other)
{
    for (unsigned i = 0; i < FAMILIES; i++) {
        sum->passed[i] += other->passed[i];
        sum->failed[i] += other->failed[i];
    }
    for (unsigned i = 0; i < METRIC_MAX; i++) {
        sum->metrics[i] += other->metrics[i];
    }
    sum->shown += other->shown;
    sum->hidden += other->hidden;
}

unsigned metrics_print(const struct tally *tally)
{
    unsigned none = 0;
    for (size_t i = 0; i < sizeof shown_metrics / sizeof shown_metrics[0]; i++) {
        uint64_t sum = tally->metrics[shown_metrics[i]];
        printf("%s%s %llu", i == 0 ? "" : ", ",
               metric_name(&list_metrics, shown_metrics[i]) + strlen("list_"),
               (unsigned long long)sum);
        none += sum == 0;
    }
    printf("\n");
    return none;
}

void bounds_print(void)
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
        printf("  %-17s %s%s\n", policies[i].name, texts[depths[i]],
               policies[i].miss_damaged ? "; damaged lists only" : "");
    }
    printf("Left out: crashes behind steps that changed and answered nothing, orders of steps that "
           "have nothing to do with each other.\n");
}
