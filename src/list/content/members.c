/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/members.h"

#include <stdlib.h>

#include "list/format/fold.h"

/* Up to this many items are compared with each entry in turn; for more a fold of the log is
 * cheaper. */
#define COMPARE_MAX 8

void members_init(struct members *m, const struct slice *items, size_t count, int64_t now_s)
{
    *m = (struct members){.items = items, .count = count, .unknown = count, .now_s = now_s};
    m->verdict = m->few;
    if (count > MEMBERS_FEW) {
        m->verdict = calloc(count, 1);
        CHECK(m->verdict != NULL);
    }
}

void members_fini(struct members *m)
{
    if (m->verdict != m->few) {
        free(m->verdict);
    }
    *m = (struct members){0};
}

static void decide(struct members *m, size_t i, char op, uint32_t until_s)
{
    bool over = entry_is_over(op, until_s, m->now_s);
    m->verdict[i] = over ? MEMBERS_OVER : op == ENTRY_READD ? (char)ENTRY_ADD : op;
    m->until_s = until_s;
}

static void decide_rest(struct members *m, char verdict)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->verdict[i] == 0) {
            m->verdict[i] = verdict;
        }
    }
    m->unknown = 0;
}

static void count_unknown(struct members *m)
{
    m->unknown = 0;
    for (size_t i = 0; i < m->count; i++) {
        m->unknown += m->verdict[i] == 0;
    }
}

/* Items of one list often begin alike: the last byte tells most of them apart. */
static bool same_item(struct slice a, struct slice b)
{
    return a.len == b.len &&
           (a.len == 0 || (a.p[a.len - 1] == b.p[b.len - 1] && memcmp(a.p, b.p, a.len) == 0));
}

static bool compare_all(struct members *m, struct slice log)
{
    bool cleared = false;
    struct entry entry;
    while (entry_next(&log, &entry) == ENTRY_OK) {
        if (entry.op == ENTRY_ANNOUNCE) {
            continue;
        }
        if (entry.op == ENTRY_CLEAR) {
            memset(m->verdict, 0, m->count);
            cleared = true;
            continue;
        }
        for (size_t i = 0; i < m->count; i++) {
            if (same_item(m->items[i], entry.bytes)) {
                decide(m, i, entry.op, entry.until_s);
            }
        }
    }
    return cleared;
}

static bool fold_all(struct members *m, struct slice log, struct cap cap)
{
    struct fold fold;
    fold_init(&fold);
    fold_set_cap(&fold, cap);
    bool whole = fold_apply_entries(&fold, log);
    CHECK(whole); /* head_read checked it */
    for (size_t i = 0; i < m->count; i++) {
        const struct fold_item *known = fold_find(&fold, m->items[i]);
        if (known != NULL) {
            decide(m, i, known->outcome, known->until_s);
        }
    }
    bool cleared = fold.cleared;
    fold_fini(&fold);
    return cleared;
}

void members_feed_log(struct members *m, struct slice log, struct cap cap)
{
    bool compares = m->count <= COMPARE_MAX && cap.max == 0;
    bool cleared = compares ? compare_all(m, log) : fold_all(m, log, cap);
    if (cleared) {
        decide_rest(m, ENTRY_DEL);
    } else {
        count_unknown(m);
    }
}

bool members_feed_sublist(void *arg, struct sublist *sublist)
{
    struct members *m = arg;
    for (size_t i = 0; i < m->count && m->unknown > 0; i++) {
        if (m->verdict[i] == 0) {
            uint32_t place = sublist_place(sublist, m->items[i]);
            if (place != 0) {
                decide(m, i, sublist->ops[place - 1], sublist_until(sublist, place - 1));
                m->unknown--;
            }
        }
    }
    return m->unknown > 0;
}
