/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/plan.h"

#include "list/fold.h"

/* Fewer runs than this are not worth a merge: each level of sizes holds up to three runs and is rewritten once. */
#define MERGE_RUNS_MIN 4
/* More runs than this are merged whatever their sizes: headers stay short. */
#define RUNS_MAX 32

struct log_facts {
    bool has_ops;
    bool cleared;
    bool has_dead;        /* announcements to be swept or taken off */
    size_t op_bytes;
    size_t folded_bytes;  /* what the ops amount to */
};

static struct log_facts look_at_log(const struct head *head, int64_t now_s, int64_t grace_s)
{
    struct log_facts facts = {0};
    struct slice rest = head->log;
    struct entry entry;
    struct fold fold;
    fold_init(&fold);
    while (entry_next(&rest, &entry) == ENTRY_OK) {
        struct announcement announcement;
        if (entry.op != ENTRY_ANNOUNCE) {
            facts.has_ops = true;
            facts.op_bytes += entry_bytes(entry.bytes.len);
            fold_apply(&fold, (enum entry_op)entry.op, entry.bytes);
        } else if (announcement_parse(entry.bytes, &announcement)) {
            facts.has_dead = facts.has_dead || announcement.range.count == 0 ||
                             now_s - announcement.created_s > grace_s;
        }
    }
    facts.cleared = fold.cleared;
    bool oldest = head->run_count == 0 || fold.cleared;
    uint32_t at = 0;
    char op;
    struct slice item;
    while (fold_next(&fold, oldest, &at, &op, &item)) {
        facts.folded_bytes += entry_bytes(item.len);
    }
    fold_fini(&fold);
    return facts;
}

bool plan_merge_window(const struct run *runs, size_t count, size_t *first, size_t *merge_count)
{
    if (count < MERGE_RUNS_MIN) {
        return false;
    }
    /* The widest window at the new end whose oldest run is not larger than all that is newer in it. */
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

/* What is left when the content is as it should be. */
static struct plan plan_rest(const struct head *head, const struct list_policy *policy, enum compact_goal goal,
                             const struct log_facts *facts)
{
    /* An automatic compaction takes dead announcements along when it folds; alone they only matter when they fill the log. */
    bool dead = facts->has_dead && (goal != COMPACT_AUTO || head->log.len > policy->log_limit_bytes);
    if (head->garbage_count > 0 || dead) {
        return (struct plan){.kind = PLAN_PURGE};
    }
    bool may_go = policy->on_missing == ON_MISSING_CREATE || goal == COMPACT_DROP || goal == COMPACT_CLEAR;
    if (may_go && head->run_count == 0 && head->log.len == 0) {
        return (struct plan){.kind = PLAN_REMOVE};
    }
    return (struct plan){.kind = PLAN_NOTHING};
}

static struct plan plan_auto(const struct head *head, const struct list_policy *policy, const struct log_facts *facts)
{
    struct plan plan = {.kind = PLAN_NOTHING};
    size_t limit = policy->log_limit_bytes;
    /* A small list never leaves its head; a list with runs is folded in place only when that wins much. */
    bool alone = head->run_count == 0 || facts->cleared;
    bool fold = facts->folded_bytes <= (alone ? limit / 4 * 3 : limit / 4);
    /* What is folded already is above the limit only for young announcements: they go by themselves. */
    bool wins = facts->op_bytes != facts->folded_bytes || facts->cleared || facts->has_dead;
    if (head->log.len > limit && facts->has_ops && (wins || !fold)) {
        plan.kind = fold ? PLAN_FOLD : PLAN_FLIP;
    } else if (plan_merge_window(head->runs, head->run_count, &plan.first, &plan.count)) {
        plan.kind = PLAN_MERGE;
    }
    return plan;
}

static struct plan plan_full(const struct head *head, const struct list_policy *policy, const struct log_facts *facts)
{
    struct plan plan = {.kind = PLAN_NOTHING};
    if (facts->has_ops && (head->run_count == 0 || facts->cleared) &&
        facts->folded_bytes <= policy->log_limit_bytes) {
        bool folded = facts->op_bytes == facts->folded_bytes && !facts->cleared;
        plan.kind = folded ? PLAN_NOTHING : PLAN_FOLD;
    } else if (facts->has_ops) {
        plan.kind = PLAN_FLIP;
    } else if (head->run_count > 1) {
        plan = (struct plan){PLAN_MERGE, 0, head->run_count};
    }
    return plan;
}

static struct plan plan_heal(const struct head *head, const struct name *heal)
{
    for (size_t i = 0; heal != NULL && i < head->run_count; i++) {
        if (name_equal(&head->runs[i].range.name, heal)) {
            return (struct plan){PLAN_MERGE, i, 1};
        }
    }
    return (struct plan){.kind = PLAN_NOTHING};
}

struct plan plan_choose(const struct head *head, const struct list_policy *policy, enum compact_goal goal,
                        const struct name *heal, int64_t now_s)
{
    /* A list that is dropped waits for nobody: young announcements are swept as well. */
    bool dropping = goal == COMPACT_DROP || goal == COMPACT_CLEAR;
    struct log_facts facts = look_at_log(head, now_s, dropping ? INT64_MIN : policy->announcement_grace_s);
    struct plan plan = {.kind = PLAN_NOTHING};
    if (goal == COMPACT_AUTO) {
        plan = plan_auto(head, policy, &facts);
    } else if (goal == COMPACT_FULL) {
        plan = plan_full(head, policy, &facts);
    } else if (goal == COMPACT_HEAL) {
        plan = plan_heal(head, heal);
    } else if (goal == COMPACT_CLEAR || policy->on_missing == ON_MISSING_REFUSE) {
        plan.kind = facts.has_ops || head->run_count > 0 ? PLAN_CLEAR : PLAN_NOTHING;
    } else if (facts.cleared && (head->run_count > 0 || facts.op_bytes != facts.folded_bytes)) {
        plan.kind = PLAN_FOLD;
    }
    return plan.kind != PLAN_NOTHING ? plan : plan_rest(head, policy, goal, &facts);
}
