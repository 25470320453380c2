/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <stdlib.h>

#include "base/check.h"
#include "txlog.h"

#define NAME_LEN 13
#define COUNT_MAX 9999999
#define LENGTH_DIGITS 7

static void *grow(void *array, size_t count, size_t *cap, size_t size)
{
    if (count == *cap) {
        *cap = *cap * 2 + 4;
        array = realloc(array, *cap * size);
        CHECK(array != NULL);
    }
    return array;
}

void ref_items_fini(struct ref_items *items)
{
    free(items->items);
    free(items->until);
    *items = (struct ref_items){0};
}

static size_t find(const struct ref_items *items, struct slice item)
{
    size_t at = 0;
    while (at < items->count && !slice_equal(items->items[at], item)) {
        at++;
    }
    return at;
}

bool ref_items_has(const struct ref_items *items, struct slice item)
{
    return find(items, item) < items->count;
}

bool ref_items_equal(const struct ref_items *a, const struct ref_items *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        same = slice_equal(a->items[i], b->items[i]) && a->until[i] == b->until[i];
    }
    return same;
}

static void push(struct ref_items *items, struct slice item, uint64_t until)
{
    size_t cap = items->cap;
    items->items = grow(items->items, items->count, &items->cap, sizeof *items->items);
    items->until = grow(items->until, items->count, &cap, sizeof *items->until);
    items->until[items->count] = until;
    items->items[items->count++] = item;
}

void ref_items_copy(struct ref_items *to, const struct ref_items *from)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        push(to, from->items[i], from->until[i]);
    }
}

static void take_out(struct ref_items *items, size_t at)
{
    for (items->count--; at < items->count; at++) {
        items->items[at] = items->items[at + 1];
        items->until[at] = items->until[at + 1];
    }
}

void ref_drop_over(struct ref_items *items, uint64_t now_s)
{
    for (size_t i = items->count; i-- > 0;) {
        if (items->until[i] != 0 && items->until[i] <= now_s) {
            take_out(items, i);
        }
    }
}

void ref_apply(struct ref_items *items, char op, struct slice item)
{
    ref_apply_timed(items, op, 0, item);
}

void ref_apply_timed(struct ref_items *items, char op, uint64_t until, struct slice item)
{
    if (op == '!') {
        items->count = 0;
        return;
    }
    size_t at = find(items, item);
    if (at < items->count && (op != '+' || items->until[at] != 0)) {
        take_out(items, at);
    }
    if (op != '-' && !ref_items_has(items, item)) {
        push(items, item, until);
    }
}

/* Takes a decimal number of at most that many digits off the front. */
static bool take_number(struct slice *s, size_t digits_max, uint64_t *value)
{
    size_t digits = 0;
    *value = 0;
    while (s->len > 0 && s->p[0] >= '0' && s->p[0] <= '9') {
        if (++digits > digits_max || __builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(s->p[0] - '0'), value)) {
            return false;
        }
        (void)slice_take(s, 1);
    }
    return digits > 0;
}

static bool take_char(struct slice *s, char c)
{
    return s->len > 0 && slice_take(s, 1).p[0] == c;
}

bool ref_take_entry(struct slice *rest, char *op, struct slice *bytes)
{
    uint64_t until;
    return ref_take_timed(rest, op, &until, bytes);
}

bool ref_take_timed(struct slice *rest, char *op, uint64_t *until, struct slice *bytes)
{
    uint64_t len;
    *until = 0;
    if (rest->len == 0) {
        return false;
    }
    *op = slice_take(rest, 1).p[0];
    if (*op == '\0' || strchr("+-=!~@?&.", *op) == NULL ||
        !take_number(rest, LENGTH_DIGITS, &len) || !take_char(rest, ':') || len > rest->len) {
        return false;
    }
    *bytes = slice_take(rest, len);
    if (*op != '@') {
        return true;
    }
    return bytes->len > 0 && bytes->p[0] != '0' && take_number(bytes, 10, until) &&
           take_char(bytes, ':') && *until >> 32 == 0;
}

static bool is_of_transaction(char op)
{
    return op == '?' || op == '&' || op == '.';
}

bool ref_replay(struct ref_items *items, struct slice entries)
{
    char op;
    uint64_t until;
    struct slice bytes;
    while (entries.len > 0) {
        if (!ref_take_timed(&entries, &op, &until, &bytes) || is_of_transaction(op)) {
            return false;
        }
        if (op != '~') {
            ref_apply_timed(items, op, until, bytes);
        }
    }
    return true;
}

bool ref_clears(struct slice entries)
{
    char op;
    struct slice bytes;
    while (ref_take_entry(&entries, &op, &bytes)) {
        if (op == '!') {
            return true;
        }
    }
    return false;
}

/* ---- heads ---- */

static bool take_range(struct slice *s, struct ref_range *range)
{
    if (s->len < NAME_LEN) {
        return false;
    }
    range->name = slice_take(s, NAME_LEN);
    for (size_t i = 0; i < NAME_LEN; i++) {
        char c = range->name.p[i];
        if (memchr("abcdefghijklmnopqrstuvwxyz234567", c, 32) == NULL) {
            return false;
        }
    }
    return take_char(s, '.') && take_number(s, 20, &range->count) && range->count <= COUNT_MAX;
}

static void add_range(struct ref_ranges *ranges, struct ref_range range)
{
    ranges->ranges = grow(ranges->ranges, ranges->count, &ranges->cap, sizeof *ranges->ranges);
    ranges->ranges[ranges->count++] = range;
}

/* @SECOND, of those that memcached takes for absolute ones. */
static bool read_until(struct ref_head *head, struct slice field)
{
    uint64_t second;
    bool again = head->until.len > 0;
    head->until = field;
    return take_char(&field, '@') && take_number(&field, 20, &second) && field.len == 0 && !again &&
           second > 2592000 && second < UINT64_C(1) << 31;
}

/* ?TOKEN.UNTIL, both 0 or none. */
static bool read_absent(struct ref_head *head, struct slice field)
{
    uint64_t token, until;
    bool again = head->absent.len > 0;
    head->absent = field;
    return take_char(&field, '?') && take_number(&field, 20, &token) && take_char(&field, '.') &&
           take_number(&field, 20, &until) && field.len == 0 && !again && until <= 9999999999 &&
           (token == 0) == (until == 0);
}

/* %EARLIEST.LATEST, LATEST 0 or not less. */
static bool read_times(struct ref_head *head, struct slice field)
{
    bool again = head->timed;
    head->timed = true;
    return take_char(&field, '%') && take_number(&field, 20, &head->earliest) &&
           take_char(&field, '.') && take_number(&field, 20, &head->latest) && field.len == 0 &&
           !again && head->earliest > 0 && head->earliest >> 32 == 0 && head->latest >> 32 == 0 &&
           (head->latest == 0 || head->latest >= head->earliest);
}

/* #MAX.drop or #MAX.refuse. */
static bool read_cap(struct ref_head *head, struct slice field)
{
    bool again = head->max > 0;
    if (!take_char(&field, '#') || !take_number(&field, 20, &head->max) || again) {
        return false;
    }
    head->refuses = slice_equal(field, SLICE_LIT(".refuse"));
    return head->max > 0 && head->max <= 10000 &&
           (head->refuses || slice_equal(field, SLICE_LIT(".drop")));
}

static bool read_field(struct ref_head *head, struct slice field)
{
    struct ref_range range = {0};
    if (field.len > 0 && field.p[0] == '>') {
        return true; /* the copy that the list is, before a proxy has made a head of it */
    }
    if (field.len > 0 && field.p[0] == '#') {
        return read_cap(head, field);
    }
    if (field.len > 0 && field.p[0] == '@') {
        return read_until(head, field);
    }
    if (field.len > 0 && field.p[0] == '%') {
        return read_times(head, field);
    }
    if (field.len > 0 && field.p[0] == '?') {
        return read_absent(head, field);
    }
    if (field.len > 0 && field.p[0] == '-') {
        (void)slice_take(&field, 1);
        bool good = take_range(&field, &range) && field.len == 0;
        add_range(&head->garbage, range);
        return good;
    }
    bool good = take_range(&field, &range) && range.count > 0 && take_char(&field, ':') &&
                take_number(&field, 20, &range.bytes) && take_char(&field, ':') &&
                take_number(&field, 20, &range.items) && field.len == 0;
    add_range(&head->runs, range);
    /* Each sublist takes 14 bytes, and 3 for each of its entries, of which it has one at least. */
    uint64_t headers = 14 * (uint64_t)range.count;
    good = good && range.bytes >= headers && range.bytes <= (uint64_t)range.count << 20;
    uint64_t entries = good ? (range.bytes - headers) / 3 : 0;
    return good && entries >= range.count && range.items <= entries;
}

static bool read_log(struct ref_head *head)
{
    struct slice rest = head->log, bytes;
    char op;
    while (rest.len > 0) {
        struct ref_range range = {0};
        if (!ref_take_entry(&rest, &op, &bytes) || op == '.' || !txlog_entry_is_valid(op, bytes)) {
            return false;
        }
        if (op != '~') {
            continue;
        }
        if (!take_range(&bytes, &range) || !take_char(&bytes, '.') ||
            !take_number(&bytes, 20, &range.created) || range.created > INT64_MAX ||
            bytes.len > 0) {
            return false;
        }
        add_range(&head->announcements, range);
    }
    return true;
}

bool ref_head_read(struct ref_head *head, struct slice value)
{
    *head = (struct ref_head){.value = value};
    struct slice rest = value;
    if (!take_char(&rest, '^') || !take_char(&rest, '1')) {
        return false;
    }
    for (;;) {
        if (rest.len == 0) {
            return false;
        }
        char c = slice_take(&rest, 1).p[0];
        if (c == '\n') {
            head->log = rest;
            bool capped = head->max > 0, absent = head->absent.len > 0;
            return (head->runs.count == 0 || (!absent && !capped)) && !(absent && capped) &&
                   read_log(head);
        }
        size_t len = 0;
        while (len < rest.len && rest.p[len] != ' ' && rest.p[len] != '\n') {
            len++;
        }
        if (c != ' ' || !read_field(head, slice_take(&rest, len))) {
            return false;
        }
    }
}

void ref_head_fini(struct ref_head *head)
{
    free(head->runs.ranges);
    free(head->garbage.ranges);
    free(head->announcements.ranges);
    *head = (struct ref_head){0};
}

const struct ref_range *ref_find(const struct ref_ranges *ranges, struct slice name)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (slice_equal(ranges->ranges[i].name, name)) {
            return &ranges->ranges[i];
        }
    }
    return NULL;
}

static bool speaks_of(const struct ref_head *head, struct slice name, bool withdrawn)
{
    for (size_t i = 0; i < head->announcements.count; i++) {
        const struct ref_range *range = &head->announcements.ranges[i];
        if (slice_equal(range->name, name) && (range->count == 0) == withdrawn) {
            return true;
        }
    }
    return false;
}

bool ref_head_withdraws(const struct ref_head *head, struct slice name)
{
    return speaks_of(head, name, true);
}

bool ref_head_announces(const struct ref_head *head, struct slice name)
{
    return speaks_of(head, name, false) && !speaks_of(head, name, true);
}

bool ref_head_covers(const struct ref_head *head, char op, uint64_t until)
{
    if (op == '@') {
        return head->timed && until >= head->earliest &&
               (head->latest == 0 || until <= head->latest);
    }
    return op == '-' || !head->timed || head->latest == 0;
}

/* ---- sublists ---- */

bool ref_sublist_header(struct slice value, uint64_t *count, struct slice *entries)
{
    if (value.len < 14 || memcmp(value.p, "^1 ", 3) != 0 || value.p[13] != '\n') {
        return false;
    }
    struct slice digits = slice_make(value.p + 3, 10);
    *entries = slice_make(value.p + 14, value.len - 14);
    return take_number(&digits, 10, count) && digits.len == 0;
}

bool ref_sublist_valid(struct slice value)
{
    uint64_t count, seen = 0;
    struct slice entries, bytes;
    char op;
    if (!ref_sublist_header(value, &count, &entries)) {
        return false;
    }
    for (; entries.len > 0; seen++) {
        if (!ref_take_entry(&entries, &op, &bytes) || op == '!' || op == '~' ||
            is_of_transaction(op)) {
            return false;
        }
    }
    return seen == count;
}

/* Replays one run. seen: the items that it has named so far. */
static enum ref_result replay_run(const struct ref_head *head, const struct ref_range *run,
                                  ref_lookup *lookup, void *arg, struct ref_items *items,
                                  struct ref_items *seen)
{
    uint64_t stored_bytes = 0, adding = 0, count;
    enum ref_result result = REF_OK;
    seen->count = 0;
    for (uint64_t i = 0; i < run->count; i++) {
        struct slice value, entries, bytes;
        uint64_t until;
        char op;
        if (!lookup(arg, run->name, i, &value) || !ref_sublist_valid(value) ||
            !ref_sublist_header(value, &count, &entries)) {
            return REF_MISSING;
        }
        stored_bytes += value.len;
        while (ref_take_timed(&entries, &op, &until, &bytes)) {
            bool regular = !ref_items_has(seen, bytes) && ref_head_covers(head, op, until);
            result = regular ? result : REF_IRREGULAR;
            push(seen, bytes, 0);
            adding += op != '-';
            ref_apply_timed(items, op, until, bytes);
        }
    }
    return stored_bytes == run->bytes && adding == run->items ? result : REF_IRREGULAR;
}

enum ref_result ref_content(const struct ref_head *head, ref_lookup *lookup, void *arg,
                            struct ref_items *items)
{
    struct ref_items seen = {0};
    enum ref_result worst = REF_OK;
    items->count = 0;
    for (size_t i = 0; i < head->runs.count && !ref_clears(head->log); i++) {
        enum ref_result result = replay_run(head, &head->runs.ranges[i], lookup, arg, items, &seen);
        if (result == REF_MISSING) {
            worst = REF_MISSING;
            break;
        }
        worst = result == REF_OK ? worst : result;
    }
    ref_items_fini(&seen);
    CHECK(ref_replay(items, head->log));
    return worst;
}
