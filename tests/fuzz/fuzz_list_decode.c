/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a head, a sublist or a sequence of entries. What is read is what the slow reader of
 * reference.c reads; written again it says the same, and folded it leaves the same content, over
 * whatever lies below.
 *
 *     byte 0    what the rest is, and for heads what the clock says
 */
#include <stdlib.h>

#include "../world/reference.h"
#include "base/check.h"
#include "input.h"
#include "list/compact/plan.h"
#include "list/format/layout.h"
#include "list/format/log_fold.h"
#include "list/format/sublist.h"

#define LOG_LIMIT 256

static struct slice name_slice(const struct name *name)
{
    return slice_make(name->text, NAME_BYTES);
}

/* ---- entries ---- */

static void fuzz_entries(struct slice bytes)
{
    struct slice rest = bytes, ref_rest = bytes, ref_bytes;
    struct entry entry;
    enum entry_status status;
    struct block *again = block_new(bytes.len + 1);
    uint64_t until;
    char op;
    while ((status = entry_next(&rest, &entry)) == ENTRY_OK) {
        CHECK(ref_take_timed(&ref_rest, &op, &until, &ref_bytes));
        CHECK(entry.op == op && slice_equal(entry.bytes, ref_bytes) && rest.p == ref_rest.p);
        CHECK(entry.until_s == until);
        size_t used = again->used;
        entry_put(&again, &entry);
        CHECK(again->used - used == entry_size(&entry));
        CHECK(entry_size(&entry) <= entry_timed_bytes_max(entry.bytes.len));
    }
    CHECK((status == ENTRY_END) == (ref_rest.len == 0));
    CHECK(status == ENTRY_END || !ref_take_entry(&ref_rest, &op, &ref_bytes));

    struct slice written = slice_make(again->data, again->used);
    struct slice read = slice_make(bytes.p, bytes.len - rest.len);
    while (entry_next(&written, &entry) == ENTRY_OK) {
        CHECK(ref_take_timed(&read, &op, &until, &ref_bytes) && entry.until_s == until);
        CHECK(entry.op == op && slice_equal(entry.bytes, ref_bytes));
    }
    CHECK(written.len == 0 && read.len == 0);
    block_unref(&again);
}

/* ---- sublists ---- */

static void check_item(struct sublist *s, uint32_t i, struct slice item, char op, uint64_t until)
{
    CHECK(s->ops[i] == op && slice_equal(sublist_item(s, i), item));
    CHECK(sublist_until(s, i) == until && (until == 0 || s->earliest_s <= until));
    char found = sublist_find(s, item);
    CHECK(found == '+' || found == '-' || found == '=' || found == '@');
}

static void fuzz_sublist(struct slice value, int delimiter)
{
    struct sublist *s = sublist_decode(value, delimiter);
    CHECK((s != NULL) == ref_sublist_valid(value));
    if (s == NULL) {
        return;
    }
    struct slice entries, item;
    struct ref_items items = {0};
    uint64_t count, until;
    uint32_t i = 0;
    bool all_add = true, all_in = true;
    char op;
    CHECK(ref_sublist_header(value, &count, &entries) && s->count == count);
    while (ref_take_timed(&entries, &op, &until, &item)) {
        check_item(s, i++, item, op, until);
        all_add = all_add && op == '+';
        all_in = all_in && op != '-' && until == 0;
        ref_apply(&items, '+', item);
    }
    CHECK(i == count && s->all_add == all_add);
    CHECK(sublist_all_in(s, ENTRY_UNTIL_MAX_S) == (s->all_add || all_in));
    /* Each item once: then what is found is its op. */
    for (i = 0; items.count == count && i < s->count; i++) {
        CHECK(sublist_find(s, sublist_item(s, i)) == s->ops[i]);
        CHECK(s->text->data[s->starts[i + 1] - 1] == (char)(delimiter < 0 ? ',' : delimiter));
    }
    struct slice other = SLICE_LIT("no input is likely to hold this item");
    CHECK(sublist_find(s, other) == 0 || ref_items_has(&items, other));
    CHECK(sublist_memory_bytes(s) >= s->text->used);
    ref_items_fini(&items);
    sublist_unref(&s);
}

/* ---- heads ---- */

static void check_ranges(const struct ref_ranges *ref, const struct head *head)
{
    CHECK(ref->count == head->garbage_count);
    for (size_t i = 0; i < ref->count; i++) {
        const struct name_range *g = &head->garbage[i];
        CHECK(slice_equal(name_slice(&g->name), ref->ranges[i].name));
        CHECK(g->count == ref->ranges[i].count);
    }
}

static void check_marks(const struct head_marks *marks, const struct ref_head *ref)
{
    uint64_t number;
    struct slice until = ref->until, absent = ref->absent;
    CHECK((until.len > 0) == (marks->sublists_until_s > 0) && (absent.len > 0) == marks->absent);
    if (until.len > 0) {
        (void)slice_take(&until, 1);
        CHECK(slice_to_u64(until, &number) && number == (uint64_t)marks->sublists_until_s);
    }
    if (absent.len > 0) {
        size_t dot = (size_t)((const char *)memchr(absent.p, '.', absent.len) - absent.p);
        CHECK(slice_to_u64(slice_make(absent.p + 1, dot - 1), &number) && number == marks->lease);
        (void)slice_take(&absent, dot + 1);
        CHECK(slice_to_u64(absent, &number) && number == (uint64_t)marks->lease_until_s);
    }
}

static void check_same_head(const struct head *head, const struct ref_head *ref)
{
    CHECK(head->run_count == ref->runs.count && slice_equal(head->log, ref->log));
    for (size_t i = 0; i < head->run_count; i++) {
        const struct ref_range *want = &ref->runs.ranges[i];
        const struct run *run = &head->runs[i];
        CHECK(slice_equal(name_slice(&run->range.name), want->name));
        CHECK(run->range.count == want->count && run->range.count > 0);
        CHECK(run->bytes == want->bytes && run->items == want->items);
    }
    check_ranges(&ref->garbage, head);
    check_marks(&head->marks, ref);
    CHECK(head_header_bytes(head) + head->log.len == head->value.len);
    for (size_t i = 0; i < ref->announcements.count; i++) {
        struct name name;
        memcpy(name.text, ref->announcements.ranges[i].name.p, NAME_BYTES);
        CHECK(log_has_withdrawal(head->announcements, &name) ==
              ref_head_withdraws(ref, name_slice(&name)));
        CHECK(log_has_withdrawal(head->announcements, &name) ||
              log_has_announcement(head->announcements, &name));
    }
}

/* A list that holds what the log speaks of, and something else, in an order of its own. */
static void make_base(struct ref_items *base, struct slice log)
{
    struct slice item;
    char op;
    ref_apply(base, '+', SLICE_LIT("at the front"));
    for (size_t n = 0; ref_take_entry(&log, &op, &item); n++) {
        if (op != '~' && n % 3 != 2) {
            ref_apply(base, n % 2 == 0 ? '+' : '=', item);
        }
    }
    ref_apply(base, '+', SLICE_LIT("at the end"));
}

/* Do both heads hold the same, if their runs hold base? */
static void check_same_content(const struct ref_head *a, const struct ref_head *b, int64_t over_s)
{
    struct ref_items first = {0}, second = {0};
    if (a->runs.count > 0) {
        make_base(&first, a->log);
    }
    if (b->runs.count > 0) {
        ref_items_copy(&second, &first);
    }
    CHECK(ref_replay(&first, a->log) && ref_replay(&second, b->log));
    if (over_s > 0) {
        ref_drop_over(&first, (uint64_t)over_s);
        ref_drop_over(&second, (uint64_t)over_s);
    }
    CHECK(ref_items_equal(&first, &second));
    ref_items_fini(&first);
    ref_items_fini(&second);
}

/* A "!" in the log fills what was absent. */
static bool reads_as_missing(const struct ref_head *head)
{
    return head->absent.len > 0 && !ref_clears(head->log);
}

/* What the old head names is named by the new one: as a run, or to be deleted. */
static void check_nothing_forgotten(const struct ref_head *before, const struct ref_head *after,
                                    int64_t now_s, int64_t grace_s)
{
    /* Without runs there is nothing that would live until then. */
    CHECK((before->until.len > 0 && after->runs.count > 0) == (after->until.len > 0));
    CHECK(reads_as_missing(before) == reads_as_missing(after));
    CHECK((before->timed && after->runs.count > 0) == after->timed);
    CHECK(!after->timed ||
          (before->earliest == after->earliest && before->latest == after->latest));
    for (size_t i = 0; i < before->runs.count; i++) {
        struct slice name = before->runs.ranges[i].name;
        CHECK(ref_find(&after->runs, name) != NULL || ref_find(&after->garbage, name) != NULL);
    }
    for (size_t i = 0; i < before->garbage.count; i++) {
        CHECK(ref_find(&after->garbage, before->garbage.ranges[i].name) != NULL);
    }
    for (size_t i = 0; i < before->announcements.count; i++) {
        const struct ref_range *a = &before->announcements.ranges[i];
        int64_t age_s = now_s - (int64_t)a->created;
        bool dead = age_s > grace_s || (grace_s != GRACE_NONE && -age_s > grace_s);
        if (!ref_head_withdraws(before, a->name) && !dead) {
            CHECK(ref_head_announces(after, a->name));
        } else if (!ref_head_withdraws(before, a->name)) {
            CHECK(ref_find(&after->garbage, a->name) != NULL);
        }
    }
}

static struct head *read_copy(struct slice value, struct block **block)
{
    struct head *head = NULL;
    *block = block_new_exact(value.len);
    block_append(block, value.p, value.len);
    struct be_reply reply = {.status = BE_HIT,
                             .value = slice_make((*block)->data, value.len),
                             .block = *block,
                             .ttl_s = -1};
    enum head_status status = head_read(&reply, SLICE_LIT("list"), &head);
    CHECK((status == HEAD_OK) == (head != NULL));
    return head;
}

/* Writes the head anew, folded or with its log as it is, and reads what was written. */
static struct block *rewrite(const struct head *head, const struct carry *carry)
{
    struct layout layout;
    layout_init(&layout, head);
    size_t garbage = layout.garbage_count, runs = layout.run_count;
    struct log_fold log;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    size_t swept = carry->keep_ops ? layout_carry(&layout, head->log, carry)
                                   : layout_fold_log(&layout, head, &log.fold, carry);
    log_fold_fini(&log);
    CHECK(layout.garbage_count + layout.run_count == garbage + runs + swept);
    struct block *value = layout_value(&layout);
    layout_fini(&layout);
    return value;
}

static void check_rewritten(const struct head *head, const struct ref_head *ref,
                            const struct carry *carry)
{
    struct block *value = rewrite(head, carry), *block;
    struct ref_head after;
    CHECK(ref_head_read(&after, slice_make(value->data, value->used)));
    check_same_content(ref, &after, carry->now_s - CLOCK_SKEW_S);
    check_nothing_forgotten(ref, &after, carry->now_s, carry->grace_s);

    struct head *again = read_copy(after.value, &block);
    CHECK(again != NULL);
    check_same_head(again, &after);
    struct block *twice = rewrite(again, carry);
    CHECK(slice_equal(slice_make(twice->data, twice->used), after.value));

    block_unref(&twice);
    head_unref(&again);
    block_unref(&block);
    ref_head_fini(&after);
    block_unref(&value);
}

static void check_plans(const struct head *head, const struct ref_head *ref, int64_t now_s)
{
    static const struct list_policy policies[] = {
        {.fold_memory_bytes = 8192, .announcement_grace_s = 300},
        {.fold_memory_bytes = 1 << 20, .announcement_grace_s = 1, .on_missing = ON_MISSING_REFUSE}};
    struct log_fold log;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    for (size_t p = 0; p < 2; p++) {
        for (unsigned goal = COMPACT_AUTO; goal <= COMPACT_HEAL; goal++) {
            const struct name *run = head->run_count > 0 ? &head->runs[0].range.name : NULL;
            struct plan plan =
                plan_choose(head, &log.fold, &policies[p], LOG_LIMIT, (enum compact_goal)goal,
                            goal >= COMPACT_CLEAR ? run : NULL, now_s, now_s - CLOCK_SKEW_S, false);
            CHECK(plan.kind != PLAN_MERGE ||
                  (plan.count >= 1 && plan.first + plan.count <= head->run_count));
            bool names_nothing =
                ref->runs.count == 0 && ref->garbage.count == 0 && ref->announcements.count == 0;
            bool drops = policies[p].on_missing == ON_MISSING_REFUSE &&
                         (goal == COMPACT_DROP || goal == COMPACT_CLEAR);
            CHECK(plan.kind != PLAN_REMOVE || names_nothing || drops);
        }
    }
    log_fold_fini(&log);
}

/* A head with intents: the slow reader knows none. Written anew it says the same, once all are
 * decided. */
static void fuzz_resolved(struct head *head, int64_t now_s)
{
    for (size_t i = 0; i < head->intent_count; i++) {
        struct head *front = head_in_front(head, &head->intents[i].name);
        CHECK(slice_starts_with(head->log, front->log));
        head_unref(&front);
    }
    struct carry carry = {.now_s = now_s, .grace_s = INT64_MAX, .keep_ops = true};
    if (head->open_count > 0) {
        return;
    }
    struct block *value = rewrite(head, &carry), *block, *twice;
    struct head *again = read_copy(slice_make(value->data, value->used), &block);
    CHECK(again != NULL && again->open_count == 0 && head_spent_bytes(again) == 0);
    twice = rewrite(again, &carry);
    CHECK(slice_equal(slice_make(twice->data, twice->used), again->value));
    block_unref(&twice);
    head_unref(&again);
    block_unref(&block);
    block_unref(&value);
}

static void fuzz_head(struct slice value, int64_t now_s)
{
    struct block *block;
    struct ref_head ref;
    struct head *head = read_copy(value, &block);
    if (head != NULL && head->log_block != head->block) {
        fuzz_resolved(head, now_s);
        head_unref(&head);
        block_unref(&block);
        return;
    }
    bool valid = ref_head_read(&ref, value);
    CHECK(valid == (head != NULL));
    if (valid) {
        static const int64_t graces[] = {INT64_MAX, 300, GRACE_NONE};
        check_same_head(head, &ref);
        check_plans(head, &ref, now_s);
        for (size_t i = 0; i < 6; i++) {
            struct carry carry = {.now_s = now_s, .grace_s = graces[i / 2], .keep_ops = i % 2 == 0};
            check_rewritten(head, &ref, &carry);
        }
    }
    ref_head_fini(&ref);
    head_unref(&head);
    block_unref(&block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t clocks[] = {0, 1700000000, 1700000301, INT32_MAX};
    struct input in = input_make(data, size);
    uint8_t what = input_byte(&in);
    /* In a block of their own, so that the sanitizer sees the first byte read beyond them. */
    char *copy = malloc(in.rest.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, in.rest.p, in.rest.len);
    struct slice bytes = slice_make(copy + 1, in.rest.len);
    if (what % 4 == 0) {
        fuzz_entries(bytes);
    } else if (what % 4 == 1) {
        fuzz_sublist(bytes, what >= 128 ? -1 : what >> 2);
    } else {
        fuzz_head(bytes, clocks[what >> 2 & 3]);
    }
    free(copy);
    return 0;
}
