/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/members.h"

#include <stdlib.h>

#include "list/format/fold.h"

/* Up to so many items are searched for, each in the whole log; for more a fold of it is cheaper. */
#define SEARCH_MAX 8

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

/* The last word of the log on that item: *found, with op 0 when there is none behind the last '!'.
 * Returns whether a '!' was met. */
static bool find_last(struct slice log, struct slice item, struct entry *found)
{
    bool cleared = false;
    enum entry_status status;
    struct entry_short s = ENTRY_SHORT_NONE;
    const char *p = log.len > 0 ? log.p : "", *end = p + log.len;
    char last = item.len > 0 ? item.p[item.len - 1] : ':';
    do {
        while (entry_is_short(p, (size_t)(end - p), &s)) {
            const char *next = p + s.bytes;
            /* Items of one list often begin alike: the last byte tells most of them apart. */
            if (s.item_len == item.len && next[-1] == last &&
                memcmp(next - item.len, item.p, item.len) == 0) {
                *found = (struct entry){.op = *p};
            }
            p = next;
        }
        struct slice rest = slice_make(p, (size_t)(end - p));
        struct entry entry;
        status = entry_next(&rest, &entry);
        p = rest.p;
        if (status == ENTRY_OK && entry.op == ENTRY_CLEAR) {
            cleared = true;
            found->op = 0;
        } else if (status == ENTRY_OK && entry.op != ENTRY_ANNOUNCE &&
                   slice_equal(entry.bytes, item)) {
            *found = entry;
        }
    } while (status == ENTRY_OK);
    return cleared;
}

static bool search_all(struct members *m, struct slice log)
{
    bool cleared = false;
    for (size_t i = 0; i < m->count; i++) {
        struct entry found = {.op = 0};
        cleared = find_last(log, m->items[i], &found);
        if (found.op != 0) {
            decide(m, i, found.op, found.until_s);
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
    bool searches = m->count <= SEARCH_MAX && cap.max == 0;
    bool cleared = searches ? search_all(m, log) : fold_all(m, log, cap);
    if (cleared) {
        decide_rest(m, ENTRY_DEL);
    } else {
        count_unknown(m);
    }
}

enum visited members_feed_sublist(void *arg, struct sublist *sublist)
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
