/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/head.h"

#include <stdlib.h>

#include "base/number.h"
#include "list/format/sublist.h"

#define VERSION_TEXT "^1"

/* Could a run be like that? Any client may write a head, so its counts are held against each other:
 * docs/list-format.md, "What counts can be". */
static bool run_possible(const struct run *run)
{
    uint64_t count = run->range.count;
    return count > 0 && run->bytes >= count * (SUBLIST_HEADER_BYTES + ENTRY_BYTES_LEAST) &&
           run->bytes <= count * SUBLIST_BYTES_MAX &&
           run->items <= (run->bytes - count * SUBLIST_HEADER_BYTES) / ENTRY_BYTES_LEAST;
}

static bool parse_run(struct slice field, struct run *run)
{
    return name_range_take(&field, &run->range) && field.len > 0 &&
           slice_take(&field, 1).p[0] == ':' && number_take(&field, &run->bytes) && field.len > 0 &&
           slice_take(&field, 1).p[0] == ':' && number_take(&field, &run->items) &&
           field.len == 0 && run_possible(run);
}

static bool parse_garbage(struct slice field, struct garbage *garbage)
{
    garbage->burn = slice_take(&field, 1).p[0] == '*';
    return name_range_take(&field, &garbage->range) && field.len == 0;
}

static bool parse_sublists_until(struct slice field, struct head_marks *marks)
{
    uint64_t second;
    (void)slice_take(&field, 1);
    bool ok = marks->sublists_until_s == 0 && number_take(&field, &second) && field.len == 0 &&
              second >= SUBLISTS_UNTIL_MIN_S && second <= SUBLISTS_UNTIL_MAX_S;
    marks->sublists_until_s = ok ? (int64_t)second : 0;
    return ok;
}

static bool parse_absent(struct slice field, struct head_marks *marks)
{
    uint64_t second;
    (void)slice_take(&field, 1);
    bool ok = !marks->absent && number_take(&field, &marks->lease) && field.len > 0 &&
              slice_take(&field, 1).p[0] == '.' && number_take(&field, &second) && field.len == 0 &&
              second <= LEASE_UNTIL_MAX_S && (second == 0) == (marks->lease == 0);
    marks->absent = ok;
    marks->lease_until_s = ok ? (int64_t)second : 0;
    return ok;
}

static bool parse_field(struct head *head, struct slice field)
{
    switch (field.p[0]) {
    case '-':
    case '*':
        return parse_garbage(field, &head->garbage[head->garbage_count++]);
    case '@':
        return parse_sublists_until(field, &head->marks);
    case '?':
        return parse_absent(field, &head->marks);
    default:
        return parse_run(field, &head->runs[head->run_count++]);
    }
}

/* Takes the next blank-led field from the header. */
static bool next_field(struct slice *rest, struct slice *field)
{
    if (rest->len < 2 || rest->p[0] != ' ') {
        return false;
    }
    (void)slice_take(rest, 1);
    const char *end = memchr(rest->p, ' ', rest->len);
    *field = slice_take(rest, end == NULL ? rest->len : (size_t)(end - rest->p));
    return field->len > 0;
}

static bool parse_header(struct head *head, struct slice rest)
{
    struct slice field;
    while (rest.len > 0) {
        if (!next_field(&rest, &field) || !parse_field(head, field)) {
            return false;
        }
    }
    /* What is to be taken for missing has no content yet. */
    return !head->marks.absent || head->run_count == 0;
}

/* Goes through the log once; false when it is malformed. */
static bool parse_log(struct head *head)
{
    struct slice log = head->log, left = log;
    struct entry entry;
    enum entry_status status;
    head->announcements = SLICE_NONE;
    while ((status = entry_next(&log, &entry)) == ENTRY_OK) {
        struct announcement announcement;
        if (entry.op == ENTRY_ANNOUNCE && !announcement_parse(entry.bytes, &announcement)) {
            return false;
        }
        if (entry.op == ENTRY_ANNOUNCE && head->announcements.len == 0) {
            head->announcements = left;
        }
        head->clears = head->clears || entry.op == ENTRY_CLEAR;
        left = log;
    }
    return status == ENTRY_END;
}

enum head_status head_read(const struct be_reply *reply, struct head **out)
{
    struct slice value = reply->value;
    const char *line_end = value.len > 0 ? memchr(value.p, '\n', value.len) : NULL;
    if (line_end == NULL || !slice_starts_with(value, SLICE_LIT(VERSION_TEXT))) {
        return HEAD_FOREIGN;
    }
    struct slice header = slice_make(value.p, (size_t)(line_end - value.p));
    (void)slice_take(&header, sizeof VERSION_TEXT - 1);
    size_t fields = 0;
    for (size_t i = 0; i < header.len; i++) {
        fields += header.p[i] == ' ';
    }
    struct head *head =
        calloc(1, sizeof *head + fields * (sizeof *head->runs + sizeof *head->garbage));
    CHECK(head != NULL);
    head->refs = 1;
    head->runs = (struct run *)(head + 1);
    head->garbage = (struct garbage *)(head->runs + fields);
    head->value = value;
    head->log = slice_make(line_end + 1, value.len - (size_t)(line_end + 1 - value.p));
    head->cas = reply->cas;
    head->epoch = reply->epoch;
    head->ttl_s = reply->ttl_s;
    head->flags = reply->flags;
    if (!parse_header(head, header) || !parse_log(head)) {
        free(head);
        return HEAD_FOREIGN;
    }
    head->block = block_ref(reply->block);
    *out = head;
    return HEAD_OK;
}

struct head *head_ref(struct head *head)
{
    head->refs++;
    return head;
}

void head_unref(struct head **slot)
{
    struct head *head = *slot;
    *slot = NULL;
    if (head != NULL && --head->refs == 0) {
        block_unref(&head->block);
        free(head);
    }
}

size_t head_header_bytes(const struct head *head)
{
    return head->value.len - head->log.len;
}

uint64_t head_run_bytes(const struct head *head)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < head->run_count; i++) {
        sum = u64_sum(sum, head->runs[i].bytes); /* any client may write a head */
    }
    return sum;
}

uint64_t head_sublists(const struct head *head)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < head->run_count; i++) {
        sum += head->runs[i].range.count;
    }
    return sum;
}

bool head_has_items(const struct head *head)
{
    struct slice log = head->log;
    struct entry entry;
    uint64_t deletions = 0;
    bool added_last = false;
    while (entry_next(&log, &entry) == ENTRY_OK) {
        deletions += entry.op == ENTRY_DEL;
        added_last = entry.op == ENTRY_ANNOUNCE ? added_last
                                                : entry.op == ENTRY_ADD || entry.op == ENTRY_READD;
    }
    /* What the newest run adds is in the list, but for what the log takes out. */
    bool below = !head->clears && head->run_count > 0;
    return added_last || (below && head->runs[head->run_count - 1].items > deletions);
}

static void append_marks(struct block **b, const struct head_marks *marks)
{
    char field[3 + 2 * 20];
    if (marks->sublists_until_s != 0) {
        memcpy(field, " @", 2);
        block_append(b, field, 2 + format_u64(field + 2, (uint64_t)marks->sublists_until_s));
    }
    if (marks->absent) {
        memcpy(field, " ?", 2);
        size_t n = 2 + format_u64(field + 2, marks->lease);
        field[n++] = '.';
        n += format_u64(field + n, (uint64_t)marks->lease_until_s);
        block_append(b, field, n);
    }
}

void head_append_header(struct block **b, const struct head_marks *marks, const struct run *runs,
                        size_t run_count, const struct garbage *garbage, size_t garbage_count)
{
    char field[2 + NAME_BYTES + 1 + 3 * 21];
    block_append(b, VERSION_TEXT, sizeof VERSION_TEXT - 1);
    if (marks != NULL) {
        append_marks(b, marks);
    }
    for (size_t i = 0; i < run_count; i++) {
        field[0] = ' ';
        size_t n = 1 + name_range_format(field + 1, &runs[i].range);
        field[n++] = ':';
        n += format_u64(field + n, runs[i].bytes);
        field[n++] = ':';
        n += format_u64(field + n, runs[i].items);
        block_append(b, field, n);
    }
    for (size_t i = 0; i < garbage_count; i++) {
        field[0] = ' ';
        field[1] = garbage[i].burn ? '*' : '-';
        block_append(b, field, 2 + name_range_format(field + 2, &garbage[i].range));
    }
    block_append(b, "\n", 1);
}

uint64_t version_of_hash(uint64_t hash)
{
    uint64_t version = (hash ^ hash >> VERSION_BITS) & ((UINT64_C(1) << VERSION_BITS) - 1);
    return version != 0 ? version : 1;
}

uint64_t head_version(uint64_t cas, struct slice value)
{
    char number[21];
    size_t n = format_u64(number, cas);
    number[n++] = '.'; /* or the number's end could be taken for the value's beginning */
    return version_of_hash(hash_stable(value, hash_stable(slice_make(number, n), 0)));
}

bool announcement_parse(struct slice bytes, struct announcement *out)
{
    uint64_t created;
    if (!name_range_take(&bytes, &out->range) || bytes.len < 2 ||
        slice_take(&bytes, 1).p[0] != '.' || !number_take(&bytes, &created) ||
        created > INT64_MAX || bytes.len != 0) {
        return false;
    }
    out->created_s = (int64_t)created;
    return true;
}

void announcement_append(struct block **b, const struct announcement *announcement)
{
    char text[NAME_BYTES + 2 + 2 * 21];
    size_t n = name_range_format(text, &announcement->range);
    text[n++] = '.';
    n += format_u64(text + n, (uint64_t)announcement->created_s);
    entry_append(b, ENTRY_ANNOUNCE, slice_make(text, n));
}

bool announcement_is_dead(const struct announcement *announcement, int64_t now_s, int64_t grace_s)
{
    int64_t age_s = now_s - announcement->created_s;
    return age_s > grace_s || (grace_s != GRACE_NONE && -age_s > grace_s);
}

static bool find_announcement(struct slice log, const struct name *name, bool withdrawn)
{
    struct entry entry;
    while (entry_next(&log, &entry) == ENTRY_OK) {
        struct announcement announcement;
        if (entry.op == ENTRY_ANNOUNCE && announcement_parse(entry.bytes, &announcement) &&
            name_equal(&announcement.range.name, name) &&
            (announcement.range.count == 0) == withdrawn) {
            return true;
        }
    }
    return false;
}

bool log_has_announcement(struct slice log, const struct name *name)
{
    return find_announcement(log, name, false);
}

bool log_has_withdrawal(struct slice log, const struct name *name)
{
    return find_announcement(log, name, true);
}
