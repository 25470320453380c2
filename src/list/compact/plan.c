/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/compact/plan.h"

#include "list/format/absent.h"

/* Fewer runs than this are not worth a merge: each level of sizes holds up to three runs and is
 * rewritten once. */
#define MERGE_RUNS_MIN 4
/* More runs than this are merged whatever their sizes: headers stay short. */
#define RUNS_MAX 32

/* What a fold takes per entry besides the item's bytes, about: its place and its slots in the
 * table, both of which double when they are full. */
#define FOLD_ENTRY_BYTES 64u
/* A name of garbage in a header, as stored: a space, a sign, 13 letters, a dot, digits. */
#define GARBAGE_BYTES 20u

struct log_facts {
    bool has_ops;
    bool cleared;
    bool has_announcements;
    bool has_dead; /* announcements to be swept or taken off */
    bool is_spent; /* intents and decisions to be taken off */
    size_t dead_bytes;
    size_t op_bytes;     /* of the plain log */
    size_t folded_bytes; /* what the ops amount to */
};

struct plan_input {
    const struct head *head;
    const struct list_policy *policy;
    size_t log_limit_bytes;
    enum compact_goal goal;
    bool dropping;
    bool absent; /* the head says that the list is missing */
    int64_t now_s, over_s;
    struct log_facts facts;
};

static struct log_facts look_at_log(const struct head *head, const struct fold *fold, int64_t now_s,
                                    int64_t over_s, int64_t grace_s)
{
    struct log_facts facts = {.cleared = fold->cleared,
                              .is_spent = head_spent_bytes(head) > 0,
                              .op_bytes = head->log.len};
    struct slice rest = head->announcements;
    struct entry entry;
    for (size_t left = rest.len; entry_next(&rest, &entry) == ENTRY_OK; left = rest.len) {
        struct announcement announcement;
        if (entry.op == ENTRY_ANNOUNCE && announcement_parse(entry.bytes, &announcement)) {
            bool dead = announcement.range.count == 0 ||
                        announcement_is_dead(&announcement, now_s, grace_s);
            facts.has_announcements = true;
            facts.has_dead = facts.has_dead || dead;
            facts.dead_bytes += dead ? left - rest.len : 0;
            facts.op_bytes -= left - rest.len; /* its length may have been written with zeros */
        }
    }
    facts.has_ops = facts.op_bytes > 0;
    bool oldest = (head->run_count == 0 && !head->marks.absent) || fold->cleared;
    uint32_t at = 0;
    while (fold_next_entry(fold, oldest, over_s, &at, &entry)) {
        facts.folded_bytes += entry_size(&entry);
    }
    return facts;
}

bool plan_merge_window(const struct run *runs, size_t count, size_t *first, size_t *merge_count)
{
    if (count < MERGE_RUNS_MIN) {
        return false;
    }
    /* The widest window at the new end whose oldest run is not larger than all that is newer in it.
     */
    uint64_t newer = 0;
    size_t widest = count;
    for (size_t i = count; i-- > 0;) {
        if (count - i >= MERGE_RUNS_MIN && runs[i].bytes <= newer) {
            widest = i;
        }
        newer += runs[i].bytes;
    }
    if (widest == count && count > RUNS_MAX) {
        widest = count / 2;
    }
    *first = widest;
    *merge_count = count - widest;
    return widest < count;
}

uint64_t plan_fold_bytes(uint64_t bytes)
{
    return bytes + FOLD_ENTRY_BYTES * (bytes / ENTRY_BYTES_TYPICAL);
}

/* Memory that a run takes when it lies over an older one, in a merge or a read. */
static uint64_t overlay_bytes(const struct run *run)
{
    uint64_t bytes = run->bytes + FOLD_ENTRY_BYTES * run->items;
    return bytes > plan_fold_bytes(run->bytes) ? bytes : plan_fold_bytes(run->bytes);
}

/* What may lie over the oldest input, so that the merge fits fold_memory_bytes. */
static uint64_t overlay_limit(const struct list_policy *policy)
{
    return policy->fold_memory_bytes / 4 * 3;
}

/* Reads hold all runs but the oldest in memory: before these become too much, the oldest takes them
 * in. */
static bool overlay_is_large(const struct head *head, const struct list_policy *policy)
{
    uint64_t newer = 0;
    for (size_t i = 1; i < head->run_count; i++) {
        newer += overlay_bytes(&head->runs[i]);
    }
    return newer > overlay_limit(policy) / 2;
}

/* Takes off the newest inputs that do not fit the memory; two are left at least. */
static void fit_memory(const struct head *head, const struct list_policy *policy, struct plan *plan)
{
    uint64_t newer = 0;
    size_t count = plan->count < 2 ? plan->count : 1;
    while (count < plan->count) {
        newer += overlay_bytes(&head->runs[plan->first + count]);
        if (count >= 2 && newer > overlay_limit(policy)) {
            break;
        }
        count++;
    }
    plan->count = count;
}

struct plan plan_merge_from(const struct head *head, const struct list_policy *policy, size_t first)
{
    struct plan plan = {PLAN_MERGE, first, head->run_count - first};
    fit_memory(head, policy, &plan);
    return plan;
}

/* What is left when the content is as it should be. */
static struct plan plan_rest(const struct plan_input *in)
{
    const struct head *head = in->head;
    /* An automatic compaction takes dead announcements along when it folds; alone they only matter
     * when they fill the log. */
    bool dead = in->facts.has_dead &&
                (in->goal != COMPACT_AUTO || head_front_bytes(head) > in->log_limit_bytes);
    if (head->garbage_count > 0 || dead) {
        return (struct plan){.kind = PLAN_COLLECT};
    }
    /* Where lists come from another layout, a late head of theirs must find one. */
    bool create = in->policy->on_missing == ON_MISSING_CREATE;
    bool may_go = (create || in->dropping) && in->policy->migrate == MIGRATE_NO;
    /* Deletions alone hold nothing where an empty list is a missing one. */
    bool holds = head->run_count > 0 || in->facts.has_announcements ||
                 (create ? in->facts.folded_bytes > 0 : in->facts.has_ops);
    if (may_go && !holds && head->residue == NULL) {
        return (struct plan){.kind = PLAN_REMOVE};
    }
    return (struct plan){.kind = PLAN_NOTHING};
}

/* Each step that fails leaves an announcement, and what is swept of those becomes garbage. Before
 * they fill the head, so that it takes no announcement any more, they are tidied up. */
static bool is_littered(const struct plan_input *in)
{
    return in->facts.dead_bytes > in->log_limit_bytes / 4 ||
           in->head->garbage_count * GARBAGE_BYTES > in->log_limit_bytes;
}

/* A capped list is all in its log: it is folded, and has no runs. */
static struct plan plan_capped(const struct plan_input *in)
{
    const struct log_facts *facts = &in->facts;
    bool wins = facts->op_bytes != facts->folded_bytes || facts->cleared || facts->is_spent;
    bool folds = in->goal == COMPACT_AUTO ? head_front_bytes(in->head) >= in->log_limit_bytes &&
                                                (wins || facts->has_dead)
                                          : wins;
    bool can_fold = facts->has_ops || facts->is_spent;
    return (struct plan){.kind = can_fold && folds ? PLAN_FOLD : PLAN_NOTHING};
}

static struct plan plan_auto(const struct plan_input *in)
{
    const struct head *head = in->head;
    const struct log_facts *facts = &in->facts;
    struct plan plan = {.kind = PLAN_NOTHING};
    size_t limit = in->log_limit_bytes;
    /* A small list never leaves its head; a list with runs is folded in place only when that wins
     * much. */
    bool alone = head->run_count == 0 || facts->cleared;
    bool fold = facts->folded_bytes <= (alone ? limit / 4 * 3 : limit / 4);
    /* What is folded already is above the limit only for young announcements: they go by
     * themselves. */
    bool wins = facts->op_bytes != facts->folded_bytes || facts->cleared || facts->has_dead ||
                facts->is_spent;
    bool can_fold = facts->has_ops || facts->is_spent;
    if (head_front_bytes(head) > limit && can_fold && (wins || !fold)) {
        plan.kind = fold ? PLAN_FOLD : PLAN_FLIP;
    } else if (overlay_is_large(head, in->policy)) {
        plan = (struct plan){PLAN_MERGE, 0, head->run_count};
    } else if (plan_merge_window(head->runs, head->run_count, &plan.first, &plan.count)) {
        plan.kind = PLAN_MERGE;
    }
    return plan;
}

/* Has the only run items that are to go? What a merge leaves of it has none. */
static bool run_is_over(const struct plan_input *in)
{
    const struct run_times *times = &in->head->marks.times;
    return times->timed && (int64_t)times->earliest_s <= in->over_s;
}

static struct plan plan_full(const struct plan_input *in)
{
    const struct head *head = in->head;
    const struct log_facts *facts = &in->facts;
    struct plan plan = {.kind = PLAN_NOTHING};
    bool alone = head->run_count == 0 || facts->cleared;
    if (!facts->has_ops && facts->is_spent) {
        plan.kind = PLAN_FOLD;
    } else if (facts->has_ops && alone && facts->folded_bytes <= in->log_limit_bytes) {
        bool folded = facts->op_bytes == facts->folded_bytes && !facts->cleared && !facts->is_spent;
        plan.kind = folded ? PLAN_NOTHING : PLAN_FOLD;
    } else if (facts->has_ops) {
        plan.kind = PLAN_FLIP;
    } else if (head->run_count > 1 ||
               (head->run_count == 1 && (head->runs[0].items == 0 || run_is_over(in)))) {
        /* A single run without items has lost what lay below it to a merge that left nothing. */
        plan = (struct plan){PLAN_MERGE, 0, head->run_count};
    }
    return plan;
}

/* Where the run stands in the head; run_count when it is not named, or not any more: a '!' in the
 * log takes it away. */
static size_t find_run(const struct plan_input *in, const struct name *run)
{
    size_t i = 0;
    while (i < in->head->run_count && !name_equal(&in->head->runs[i].range.name, run)) {
        i++;
    }
    return in->facts.cleared ? in->head->run_count : i;
}

static struct plan plan_heal(const struct plan_input *in, const struct name *run)
{
    size_t at = run != NULL ? find_run(in, run) : in->head->run_count;
    return at < in->head->run_count ? (struct plan){PLAN_MERGE, at, 1}
                                    : (struct plan){.kind = PLAN_NOTHING};
}

/* Where an empty list is not a missing one, content and head go in one step, and behind it what the
 * head named: a head that stayed to name it would take changes that no reader sees. Only what a
 * primary keeps of its transactions has to stay in a head. */
static struct plan plan_clear(const struct plan_input *in, const struct name *run)
{
    const struct head *head = in->head;
    bool refuse = in->policy->on_missing == ON_MISSING_REFUSE;
    bool names_nothing =
        head->run_count == 0 && head->garbage_count == 0 && !in->facts.has_announcements;
    if (run != NULL && find_run(in, run) == head->run_count) {
        return (struct plan){.kind = PLAN_NOTHING}; /* what was damaged has gone by other ways */
    }
    if (head->residue == NULL && (refuse || (run == NULL && names_nothing))) {
        return (struct plan){.kind = PLAN_REMOVE};
    }
    bool holds = in->facts.has_ops || head->run_count > 0 || refuse;
    return (struct plan){.kind = holds ? PLAN_CLEAR : PLAN_NOTHING};
}

/* An ldrop, or what it or another one leaves behind: what others do with the missing list in the
 * meantime is left to them. */
static struct plan plan_absent(const struct plan_input *in, bool drops)
{
    const struct head *head = in->head;
    const struct log_facts *facts = &in->facts;
    size_t limit = in->log_limit_bytes;
    bool names_nothing = head->garbage_count == 0 && !facts->has_announcements;
    bool wins = facts->op_bytes != facts->folded_bytes || facts->is_spent;
    struct plan plan = {.kind = PLAN_NOTHING};
    bool may_go = head->residue == NULL && in->policy->migrate == MIGRATE_NO;
    if (may_go && (drops || (names_nothing && absent_may_go(head, in->now_s)))) {
        plan.kind = PLAN_REMOVE;
    } else if (drops && (facts->has_ops || facts->has_announcements || head->marks.lease != 0)) {
        plan.kind = PLAN_CLEAR;
    } else if (head->garbage_count > 0 || facts->has_dead) {
        plan.kind = PLAN_COLLECT;
    } else if (head_front_bytes(head) > limit && wins) {
        plan.kind = PLAN_FOLD;
    }
    return plan;
}

static struct plan choose(const struct head *head, const struct fold *log,
                          const struct list_policy *policy, size_t log_limit_bytes,
                          enum compact_goal goal, const struct name *run, int64_t now_s,
                          int64_t over_s, bool collect_failed)
{
    struct plan_input in = {.head = head,
                            .policy = policy,
                            .log_limit_bytes = log_limit_bytes,
                            .goal = goal,
                            .now_s = now_s,
                            .over_s = over_s};
    struct plan plan = {.kind = PLAN_NOTHING};
    bool refuse = policy->on_missing == ON_MISSING_REFUSE;
    in.absent = refuse && head_is_absent(head);
    bool drops = goal == COMPACT_DROP || (goal == COMPACT_CLEAR && run == NULL);
    /* A drop does not wait for other proxies: young announcements are swept as well. Where it
     * leaves a missing list, what is there behind it is another list. */
    in.dropping = drops || (!refuse && (goal == COMPACT_CLEAR || goal == COMPACT_TIDY));
    in.facts = look_at_log(head, log, now_s, over_s,
                           in.dropping ? GRACE_NONE : policy->announcement_grace_s);
    bool tidies = goal == COMPACT_AUTO || goal == COMPACT_FULL;
    bool cleared_below =
        in.facts.cleared && (head->run_count > 0 || in.facts.op_bytes != in.facts.folded_bytes);
    if (!in.dropping && !collect_failed && is_littered(&in)) {
        plan.kind = PLAN_COLLECT_FIRST;
    } else if (in.absent) {
        return plan_absent(&in, drops);
    } else if (head->marks.absent) {
        plan.kind = PLAN_FOLD; /* it does not say so any more */
    } else if (tidies && head_is_over(head, over_s)) {
        plan.kind = PLAN_FOLD; /* nothing is left of it */
    } else if (tidies && head->marks.cap.max != 0) {
        plan = plan_capped(&in);
    } else if (goal == COMPACT_AUTO) {
        plan = plan_auto(&in);
    } else if (goal == COMPACT_FULL) {
        plan = plan_full(&in);
    } else if (goal == COMPACT_HEAL) {
        plan = plan_heal(&in, run);
    } else if (goal == COMPACT_CLEAR || (goal == COMPACT_DROP && refuse)) {
        plan = plan_clear(&in, run);
    } else if (cleared_below) {
        plan.kind = PLAN_FOLD;
    }
    if (plan.kind == PLAN_MERGE) {
        fit_memory(head, policy, &plan);
    }
    return plan.kind != PLAN_NOTHING ? plan : plan_rest(&in);
}

struct plan plan_choose(const struct head *head, const struct fold *log,
                        const struct list_policy *policy, size_t log_limit_bytes,
                        enum compact_goal goal, const struct name *run, int64_t now_s,
                        int64_t over_s, bool collect_failed)
{
    struct plan plan =
        choose(head, log, policy, log_limit_bytes, goal, run, now_s, over_s, collect_failed);
    /* What stands behind a cut stays. */
    bool takes_all = plan.kind == PLAN_REMOVE || plan.kind == PLAN_CLEAR;
    return head->is_cut && takes_all ? (struct plan){.kind = PLAN_NOTHING} : plan;
}
