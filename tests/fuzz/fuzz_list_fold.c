/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of some runs and a log, made of the input's bytes: whatever is done to its layout, its
 * content stays the same sequence. It is streamed as a read does it, whole and in part; runs are
 * merged, the log is flipped into a run and folded in place; members are looked up. A view follows
 * the list from head to head.
 *
 *     byte 0      how many runs; odd ops in the oldest run, too
 *     byte 1      the second in which it is read, and the one before which items that are over go
 *     per run     how many entries; per entry a byte for op and sublist, a byte for the item, and
 *                 for one with a time a byte for that
 *     then        entries of the log in the same way, up to the end
 */
#include <stdlib.h>

#include "../world/reference.h"
#include "base/check.h"
#include "input.h"
#include "list/content/content.h"
#include "list/content/members.h"
#include "list/content/view.h"
#include "list/format/layout.h"

#define RUNS_MAX 7
#define SUBLISTS_PER_RUN 8
#define ITEMS 64
#define SECONDS 8u

struct made_run {
    struct run run;
    struct run_times times;
    struct block *values[SUBLISTS_PER_RUN];
    struct sublist *sublists[SUBLISTS_PER_RUN];
    uint32_t entries; /* in the sublist being filled */
    bool used[ITEMS];
};

struct made {
    struct made_run runs[RUNS_MAX + 1];
    size_t run_count;
    struct block *log;
    int64_t now_s, over_s;
};

static struct slice item_at(unsigned which)
{
    /* Lengths of 0 and up; some look like entries. */
    static const char text[] = "+1:a-3:=0:!0:~2:xy^1 0000000001\n+5:apple,pear\r\n END 0123456789"
                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return slice_make(text + which, which % 8 == 0 ? which / 8 : 1 + which % 8);
}

/* The first of those that are the same. */
static unsigned first_like(struct slice item)
{
    unsigned which = 0;
    while (!slice_equal(item_at(which), item)) {
        which++;
    }
    return which;
}

/* ---- making ---- */

static void begin_run(struct made_run *r, size_t number)
{
    *r = (struct made_run){.times = RUN_TIMES_NONE};
    memset(r->run.range.name.text, 'a' + (int)number, NAME_BYTES);
}

static void end_sublist(struct made_run *r)
{
    uint32_t n = r->run.range.count;
    if (r->entries == 0) {
        return;
    }
    sublist_finish(r->values[n], r->entries);
    r->run.bytes += r->values[n]->used;
    r->sublists[n] = sublist_decode(slice_make(r->values[n]->data, r->values[n]->used), ',');
    CHECK(r->sublists[n] != NULL);
    r->run.range.count++;
    r->entries = 0;
}

static void put_entry(struct made_run *r, const struct entry *entry)
{
    struct block **value = &r->values[r->run.range.count];
    if (r->entries == 0) {
        *value = sublist_begin(256);
    }
    entry_put(value, entry);
    r->entries++;
    r->run.items += entry->op != '-';
    run_times_add(&r->times, entry);
}

static struct entry make_entry(struct input *in, char op, struct slice item)
{
    struct entry entry = {op, 0, item};
    if (op == '@') {
        entry.until_s = 1 + input_below(in, SECONDS);
    }
    return entry;
}

static void make_run(struct made *m, struct input *in, bool any_op)
{
    static const char ops[] = {'+', '@', '-', '='};
    struct made_run *r = &m->runs[m->run_count];
    begin_run(r, m->run_count);
    for (unsigned left = input_below(in, 24); left > 0; left--) {
        uint8_t choice = input_byte(in);
        unsigned which = first_like(item_at(input_below(in, ITEMS)));
        if (r->used[which]) {
            continue;
        }
        r->used[which] = true;
        char op = any_op ? ops[choice & 3] : (choice & 3) == 1 ? '@' : '+';
        struct entry entry = make_entry(in, op, item_at(which));
        put_entry(r, &entry);
        if (choice >= 224 && r->run.range.count < SUBLISTS_PER_RUN - 1) {
            end_sublist(r);
        }
    }
    end_sublist(r);
    if (r->run.range.count > 0) {
        m->run_count++;
    }
}

static void make(struct made *m, struct input *in)
{
    static const char ops[] = {'+', '+', '@', '-', '-', '=', '@', '!'};
    uint8_t choice = input_byte(in), seconds = input_byte(in);
    *m = (struct made){.log = block_new(256), .now_s = seconds % (SECONDS + 2)};
    m->over_s = seconds / 16 % (m->now_s + 1);
    for (unsigned left = choice % RUNS_MAX; left > 0; left--) {
        make_run(m, in, m->run_count > 0 || choice >= 128);
    }
    while (input_more(in)) {
        char op = ops[input_byte(in) & 7];
        struct slice item = op == '!' ? SLICE_NONE : item_at(input_below(in, ITEMS));
        struct entry entry = make_entry(in, op, item);
        entry_put(&m->log, &entry);
    }
}

static void free_run(struct made_run *r)
{
    for (uint32_t i = 0; i < r->run.range.count; i++) {
        sublist_unref(&r->sublists[i]);
        block_unref(&r->values[i]);
    }
}

/* ---- as a head ---- */

static bool look_up(void *arg, struct slice name, uint64_t number, struct slice *value)
{
    const struct made *m = arg;
    for (size_t i = 0; i < m->run_count; i++) {
        const struct made_run *r = &m->runs[i];
        if (memcmp(r->run.range.name.text, name.p, NAME_BYTES) == 0) {
            *value = slice_make(r->values[number]->data, r->values[number]->used);
            return true;
        }
    }
    return false;
}

static struct head *make_head(const struct made *m)
{
    struct run runs[RUNS_MAX + 1];
    struct block *b = block_new(256);
    struct head *head = NULL;
    struct head_marks marks = {.times = RUN_TIMES_NONE};
    for (size_t i = 0; i < m->run_count; i++) {
        runs[i] = m->runs[i].run;
        marks.times = run_times_join(marks.times, m->runs[i].times);
    }
    head_append_header(&b, &marks, runs, m->run_count, NULL, 0);
    block_append(&b, m->log->data, m->log->used);
    struct be_reply reply = {
        .status = BE_HIT, .value = slice_make(b->data, b->used), .block = b, .ttl_s = -1};
    CHECK(head_read(&reply, SLICE_LIT("list"), &head) == HEAD_OK);
    head->read_s = m->now_s;
    block_unref(&b);
    return head;
}

static void read_slowly(const struct made *m, struct ref_items *items)
{
    struct head *head = make_head(m);
    struct ref_head ref;
    CHECK(ref_head_read(&ref, head->value));
    CHECK(ref_content(&ref, look_up, (void *)m, items) == REF_OK);
    /* What it found points into the head: the items live elsewhere, too. */
    for (size_t i = 0; i < items->count; i++) {
        items->items[i] = item_at(first_like(items->items[i]));
    }
    ref_head_fini(&ref);
    head_unref(&head);
}

/* What was over when the list was rewritten may have gone. */
static void check_content(const struct made *m, const struct ref_items *want)
{
    struct ref_items got = {0}, kept = {0};
    read_slowly(m, &got);
    ref_items_copy(&kept, want);
    ref_drop_over(&got, (uint64_t)m->over_s);
    ref_drop_over(&kept, (uint64_t)m->over_s);
    CHECK(ref_items_equal(&got, &kept));
    ref_items_fini(&got);
    ref_items_fini(&kept);
}

/* ---- reading ---- */

static void check_bytes(const struct chain *chain, const struct ref_items *want, size_t from,
                        size_t to)
{
    struct block *b = block_new(256);
    for (size_t i = from; i <= to && i < want->count; i++) {
        block_append(&b, ",", i > from);
        block_append(&b, want->items[i].p, want->items[i].len);
    }
    size_t at = 0;
    CHECK(chain->bytes == b->used);
    for (size_t i = 0; i < chain->count; i++) {
        const struct chain_seg *seg = &chain->segs[chain->first + i];
        CHECK(memcmp(seg->p, b->data + at, seg->len) == 0);
        at += seg->len;
    }
    block_unref(&b);
}

static struct output begin_output(struct chain *chain, size_t from, size_t to)
{
    chain_init(chain);
    return (struct output){
        .from = from, .to = to, .out = chain, .delimiter = ',', .limit_bytes = UINT64_MAX};
}

static void check_output(struct chain *chain, const struct output *output,
                         const struct ref_items *want)
{
    size_t end = output->to < want->count ? output->to + 1 : want->count;
    check_bytes(chain, want, output->from, output->to);
    CHECK(output->written == (output->from < end ? end - output->from : 0) && !output->too_large);
    chain_fini(chain);
}

/* One pass of a read, with positions from and to. */
static void check_pass(const struct made *m, struct content *c, const struct ref_items *want,
                       size_t from, size_t to)
{
    struct chain chain;
    size_t base_count;
    c->output = begin_output(&chain, from, to);
    (void)content_base_run(c, &base_count);
    bool more = true;
    for (uint32_t i = 0; more && base_count > 0 && i < m->runs[0].run.range.count; i++) {
        more = content_base_visit(c, m->runs[0].sublists[i]);
    }
    content_rest(c);
    check_output(&chain, &c->output, want);
}

static void check_reads(const struct made *m, const struct ref_items *all)
{
    static const struct list_policy policy = {.fold_memory_bytes = 1 << 20};
    struct ref_items now = {0};
    ref_items_copy(&now, all);
    ref_drop_over(&now, (uint64_t)m->now_s);
    const struct ref_items *want = &now;
    struct head *head = make_head(m);
    struct content c;
    uint64_t count;
    content_init(&c, head, &policy);
    for (size_t i = 1; i < m->run_count && c.run_count > 0; i++) {
        for (uint32_t n = 0; n < m->runs[i].run.range.count; n++) {
            CHECK(content_fold_visit(&c, m->runs[i].sublists[n]));
        }
    }
    content_fold_log(&c, head->log);
    CHECK(!content_known_count(&c, &count) || count == want->count);
    check_pass(m, &c, want, 0, SIZE_MAX);
    check_pass(m, &c, want, want->count / 3, want->count / 2);
    check_pass(m, &c, want, want->count, want->count + 1);
    content_fini(&c);
    head_unref(&head);
    ref_items_fini(&now);
}

/* Brings the view up to this list. */
static void follow(struct view *view, const struct made *m, uint64_t cas)
{
    struct head *head = make_head(m);
    view_advance(view, head->read_s);
    head->cas = cas;
    head->epoch = 1;
    for (size_t i = view_keep(view, head); i < m->run_count; i++) {
        for (uint32_t n = 0; n < m->runs[i].run.range.count; n++) {
            view_add_sublist(view, &m->runs[i].run, i, m->runs[i].sublists[n]);
        }
    }
    CHECK(view_has_runs(view, head));
    view_take_log(view, head);
    CHECK(view_memory_bytes(view) >= head->log.len);
    head_unref(&head);
}

static bool is_timed(const struct ref_items *items, struct slice item)
{
    bool timed = false;
    for (size_t i = 0; i < items->count; i++) {
        timed = timed || (items->until[i] != 0 && slice_equal(items->items[i], item));
    }
    return timed;
}

static void check_view(struct view *view, const struct ref_items *all, int64_t now_s)
{
    struct ref_items now = {0};
    const struct ref_items *want = &now;
    ref_items_copy(&now, all);
    ref_drop_over(&now, (uint64_t)now_s);
    size_t starts[] = {0, want->count / 3, want->count};
    size_t ends[] = {SIZE_MAX, want->count / 2, want->count + 1};
    CHECK(view_count(view) == want->count);
    for (unsigned i = 0; i < ITEMS; i++) {
        struct view_item found = view_find(view, item_at(i));
        CHECK(found.in == ref_items_has(want, item_at(i)));
        CHECK(found.timed == is_timed(all, item_at(i)));
    }
    for (size_t i = 0; i < 3; i++) {
        struct chain chain;
        struct output output = begin_output(&chain, starts[i], ends[i]);
        view_write(view, &output);
        check_output(&chain, &output, want);
    }
    ref_items_fini(&now);
}

/* A list as it was when it had so many runs and so much of its log. */
static void check_view_at(struct view *view, const struct made *m, size_t runs, size_t log_bytes,
                          uint64_t cas)
{
    struct made then = *m;
    struct ref_items want = {0};
    then.run_count = runs;
    then.log = block_new(log_bytes + 1);
    block_append(&then.log, m->log->data, log_bytes);
    read_slowly(&then, &want);
    for (unsigned n = 0; n < 3; n++) {
        then.now_s = (m->now_s + n * (int64_t)cas) % (SECONDS + 2); /* also backwards */
        follow(view, &then, cas);
        check_view(view, &want, then.now_s);
    }
    ref_items_fini(&want);
    block_unref(&then.log);
}

/* Grows run by run and entry by entry; then the list is an older one again. */
static void check_views(const struct made *m)
{
    struct view view;
    struct slice rest = slice_make(m->log->data, m->log->used), bytes;
    uint64_t cas = 0;
    char op;
    view_init(&view);
    for (size_t runs = 0; runs <= m->run_count; runs++) {
        check_view_at(&view, m, runs, runs % 2 == 0 ? 0 : m->log->used, ++cas);
    }
    for (unsigned n = 0; rest.len > 0; n++) {
        CHECK(ref_take_entry(&rest, &op, &bytes));
        if (n % 3 == 0 || rest.len == 0) {
            check_view_at(&view, m, m->run_count, m->log->used - rest.len, ++cas);
        }
    }
    check_view_at(&view, m, m->run_count / 2, m->log->used, ++cas);
    view_fini(&view);
}

static void check_members(const struct made *m, const struct ref_items *want)
{
    struct slice items[ITEMS];
    struct members members;
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i] = item_at(i);
    }
    members_init(&members, items, ITEMS, m->now_s);
    members_feed_log(&members, slice_make(m->log->data, m->log->used), (struct cap){0});
    bool more = members.unknown > 0;
    for (size_t i = m->run_count; more && i-- > 0;) {
        for (uint32_t n = 0; more && n < m->runs[i].run.range.count; n++) {
            more = members_feed_sublist(&members, m->runs[i].sublists[n]);
        }
    }
    struct ref_items now = {0};
    ref_items_copy(&now, want);
    ref_drop_over(&now, (uint64_t)m->now_s);
    for (unsigned i = 0; i < ITEMS; i++) {
        CHECK(members_has(&members, i) == ref_items_has(&now, items[i]));
        CHECK(members_is_timed(&members, i) == is_timed(want, items[i]));
    }
    ref_items_fini(&now);
    members_fini(&members);
}

/* ---- rewriting ---- */

static void write_rest(struct made_run *r, const struct fold *fold, bool oldest, int64_t over_s)
{
    uint32_t at = 0;
    struct entry entry;
    while (fold_next_entry(fold, oldest, over_s, &at, &entry)) {
        put_entry(r, &entry);
    }
    end_sublist(r);
}

/* As compact/merge.c does it: runs first to last become one. */
static void check_merge(const struct made *m, const struct ref_items *want, size_t first,
                        size_t last)
{
    struct made after = {.log = m->log, .now_s = m->now_s, .over_s = m->over_s};
    struct made_run merged;
    struct fold fold;
    bool oldest = first == 0;
    fold_init(&fold);
    begin_run(&merged, RUNS_MAX);
    for (size_t i = first + 1; i <= last; i++) {
        for (uint32_t n = 0; n < m->runs[i].run.range.count; n++) {
            const struct sublist *s = m->runs[i].sublists[n];
            for (uint32_t k = 0; k < s->count; k++) {
                struct entry entry = sublist_entry(s, k);
                fold_apply_entry(&fold, &entry);
            }
        }
    }
    for (uint32_t n = 0; n < m->runs[first].run.range.count; n++) {
        const struct sublist *s = m->runs[first].sublists[n];
        for (uint32_t k = 0; k < s->count; k++) {
            struct entry entry = sublist_entry(s, k);
            char op = fold_over(&fold, entry.op, entry.bytes);
            bool over = entry_is_over(op, entry.until_s, m->over_s);
            entry.op = over ? (char)ENTRY_DEL : oldest && op != ENTRY_TIMED ? (char)ENTRY_ADD : op;
            if (op != 0 && !(oldest && (over || op == ENTRY_DEL))) {
                put_entry(&merged, &entry);
            }
        }
    }
    write_rest(&merged, &fold, oldest, m->over_s);
    fold_fini(&fold);
    for (size_t i = 0; i < m->run_count; i++) {
        if (i == first && merged.run.range.count > 0) {
            after.runs[after.run_count++] = merged;
        }
        if (i < first || i > last) {
            after.runs[after.run_count++] = m->runs[i];
        }
    }
    check_content(&after, want);
    free_run(&merged);
}

/* As compact/flip.c does it: the log becomes the newest run. */
static void check_flip(const struct made *m, const struct ref_items *want)
{
    struct made after = {.log = block_new(1), .now_s = m->now_s, .over_s = m->over_s};
    struct fold fold;
    fold_init(&fold);
    CHECK(fold_apply_entries(&fold, slice_make(m->log->data, m->log->used)));
    for (size_t i = 0; i < m->run_count && !fold.cleared; i++) {
        after.runs[after.run_count++] = m->runs[i];
    }
    struct made_run *flipped = &after.runs[after.run_count];
    begin_run(flipped, RUNS_MAX);
    write_rest(flipped, &fold, after.run_count == 0, m->over_s);
    fold_fini(&fold);
    bool any = flipped->run.range.count > 0;
    after.run_count += any;
    check_content(&after, want);
    if (any) {
        free_run(flipped);
    }
    block_unref(&after.log);
}

static void check_fold(const struct made *m, const struct ref_items *want)
{
    struct head *head = make_head(m);
    struct made after = *m;
    struct layout layout;
    struct carry carry = {.now_s = m->over_s + CLOCK_SKEW_S, .grace_s = 300};
    layout_init(&layout, head);
    struct log_fold log;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    (void)layout_fold_log(&layout, head, &log.fold, &carry);
    log_fold_fini(&log);
    after.run_count = layout.run_count;
    after.log = layout.log;
    CHECK(after.run_count == m->run_count || after.run_count == 0);
    check_content(&after, want);
    check_reads(&after, want);
    layout_fini(&layout);
    head_unref(&head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    struct made m;
    struct ref_items want = {0};
    make(&m, &in);
    read_slowly(&m, &want);
    check_reads(&m, &want);
    check_members(&m, &want);
    check_views(&m);
    check_flip(&m, &want);
    check_fold(&m, &want);
    for (size_t first = 0; first < m.run_count; first++) {
        for (size_t last = first; last < m.run_count; last++) {
            check_merge(&m, &want, first, last);
        }
    }
    for (size_t i = 0; i < m.run_count; i++) {
        free_run(&m.runs[i]);
    }
    block_unref(&m.log);
    ref_items_fini(&want);
    return 0;
}
