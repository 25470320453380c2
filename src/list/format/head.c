/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/head.h"

#include <stdlib.h>

#include "base/number.h"
#include "list/format/intent.h"
#include "list/format/sublist.h"

/* The format of lists, by its number. */
#define FORMAT 1
#define VERSION_TEXT "^1"

uint64_t head_later_format(const struct be_reply *reply)
{
    struct slice rest = reply->value;
    uint64_t format;
    if (!head_may_be(reply)) {
        return 0;
    }
    (void)slice_take(&rest, 1);
    bool later = number_take(&rest, &format) && format > FORMAT;
    bool ends = rest.len > 0 && (rest.p[0] == ' ' || rest.p[0] == '\n');
    return ends && later ? format : 0;
}

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

static bool parse_garbage(struct slice field, struct name_range *garbage)
{
    (void)slice_take(&field, 1);
    return name_range_take(&field, garbage) && field.len == 0;
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

/* Takes a second that an entry can name, or zero where that is allowed. */
static bool take_second(struct slice *field, bool zero, uint32_t *second_s)
{
    uint64_t second;
    if (!number_take(field, &second) || second > ENTRY_UNTIL_MAX_S || (second == 0 && !zero)) {
        return false;
    }
    *second_s = (uint32_t)second;
    return true;
}

static bool parse_times(struct slice field, struct run_times *times)
{
    (void)slice_take(&field, 1);
    bool ok = !times->timed && take_second(&field, false, &times->earliest_s) && field.len > 0 &&
              slice_take(&field, 1).p[0] == '.' && take_second(&field, true, &times->latest_s) &&
              field.len == 0 && (times->latest_s == 0 || times->latest_s >= times->earliest_s);
    times->timed = ok;
    return ok;
}

static bool parse_field(struct head *head, struct slice field)
{
    switch (field.p[0]) {
    case '-':
        return parse_garbage(field, &head->garbage[head->garbage_count++]);
    case '@':
        return parse_sublists_until(field, &head->marks);
    case '%':
        return parse_times(field, &head->marks.times);
    case '#':
        return head->marks.cap.max == 0 && cap_parse(field, &head->marks.cap);
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
    /* What is to be taken for missing has no content yet, and gets a cap with it. */
    bool bare = head->run_count == 0;
    return (!head->marks.absent || (bare && head->marks.cap.max == 0)) &&
           (head->marks.cap.max == 0 || bare);
}

/* Passes over short entries; true when one of them adds an item. Every read goes through whole
 * logs: what needs no look at its bytes is taken here. */
static bool pass_short(struct slice *log)
{
    struct entry_short s = ENTRY_SHORT_NONE;
    const char *p = log->len > 0 ? log->p : "", *end = p + log->len;
    bool adds = false;
    while (entry_is_short(p, (size_t)(end - p), &s)) {
        adds = adds || *p != ENTRY_DEL;
        p += s.bytes;
    }
    *log = slice_make(p, (size_t)(end - p));
    return adds;
}

/* Goes through the plain log once; false when it is malformed, or no plain log. */
static bool parse_plain_log(struct head *head, bool *needs_resolving)
{
    struct slice log = head->log, left;
    struct entry entry;
    enum entry_status status;
    struct run_times times = RUN_TIMES_NONE;
    head->announcements = SLICE_NONE;
    head->clears = false;
    *needs_resolving = false;
    for (;;) {
        if (pass_short(&log)) {
            times.latest_s = 0; /* as run_times_add does */
        }
        left = log;
        status = entry_next(&log, &entry);
        if (status != ENTRY_OK) {
            break;
        }
        struct announcement announcement;
        bool plain =
            entry.op != ENTRY_INTENT && entry.op != ENTRY_DECISION && entry.op != ENTRY_CONDITION;
        if (!plain ||
            (entry.op == ENTRY_ANNOUNCE && !announcement_parse(entry.bytes, &announcement))) {
            *needs_resolving = entry.op == ENTRY_INTENT || entry.op == ENTRY_DECISION;
            return false;
        }
        if (entry.op == ENTRY_ANNOUNCE && head->announcements.len == 0) {
            head->announcements = left;
        }
        head->clears = head->clears || entry.op == ENTRY_CLEAR;
        times = entry.op == ENTRY_CLEAR ? RUN_TIMES_NONE : times;
        run_times_add(&times, &entry);
    }
    head->log_timed = times.timed;
    head->log_latest_s = times.latest_s;
    return status == ENTRY_END;
}

static bool rolls_back(const struct be_reply *reply)
{
    return reply->caps != NULL && reply->caps->rolls_back;
}

/* Logs without intents are gone through once, as they are. */
static bool parse_log(struct head *head, struct slice key)
{
    bool needs_resolving;
    struct resolved resolved;
    if (parse_plain_log(head, &needs_resolving)) {
        return true;
    }
    bool capped = head->marks.cap.max != 0;
    if (!needs_resolving || !resolve_log(head->log, key, capped, head->rolls_back, &resolved)) {
        return false;
    }
    head->intents = resolved.intents;
    head->intent_count = resolved.intent_count;
    head->open_count = resolved.open_count;
    head->residue = resolved.residue;
    head->log_block = resolved.log;
    head->log = slice_make(resolved.log->data, resolved.log->used);
    return parse_plain_log(head, &needs_resolving);
}

static void head_free(struct head *head)
{
    block_unref(&head->block);
    block_unref(&head->log_block);
    block_unref(&head->residue);
    if (head->whole == NULL) {
        free(head->intents);
    }
    head_unref(&head->whole);
    free(head);
}

/* The fields of the header, and the log. False when it does not begin as a head does. */
static bool split(struct slice value, struct slice *header, struct slice *log)
{
    const char *line_end = value.len > 0 ? memchr(value.p, '\n', value.len) : NULL;
    if (line_end == NULL || !slice_starts_with(value, SLICE_LIT(VERSION_TEXT))) {
        return false;
    }
    *log = value;
    *header = slice_take(log, (size_t)(line_end - value.p));
    (void)slice_take(log, 1);
    (void)slice_take(header, sizeof VERSION_TEXT - 1);
    return true;
}

enum head_status head_read_state(const struct be_reply *reply, struct slice key,
                                 const struct name *name, enum intent_state *state)
{
    struct slice header, log, field;
    bool capped = false;
    if (!split(reply->value, &header, &log)) {
        return HEAD_FOREIGN;
    }
    while (next_field(&header, &field)) {
        capped = capped || field.p[0] == '#';
    }
    bool ok = resolve_state(log, key, capped, rolls_back(reply), name, state);
    return ok ? HEAD_OK : HEAD_FOREIGN;
}

/* A fold takes decisions along, and leaves only those behind an undecided intent: where none stands
 * in front, nothing was folded since the commit. What a fold has taken of a committed transaction
 * was done, and that note stands behind the commit. */
bool head_commit_came_late(const struct be_reply *reply, const struct name *name)
{
    struct slice header, rest;
    struct entry entry;
    bool after_intent = false, commit = false, done = false, covered = false;
    bool is_head = split(reply->value, &header, &rest);
    while (is_head && entry_next(&rest, &entry) == ENTRY_OK) {
        struct name other;
        enum decision decision;
        after_intent = after_intent || entry.op == ENTRY_INTENT;
        if (entry.op == ENTRY_DECISION && decision_parse(entry.bytes, &other, &decision) &&
            name_equal(&other, name)) {
            covered = covered || (decision == DECISION_COMMIT && !commit && after_intent);
            commit = commit || decision == DECISION_COMMIT;
            done = done || decision == DECISION_DONE;
        }
    }
    return commit && (!done || !covered);
}

enum head_status head_read(const struct be_reply *reply, struct slice key, struct head **out)
{
    struct slice value = reply->value, header, log;
    size_t fields = 0;
    if (!split(value, &header, &log)) {
        return HEAD_FOREIGN;
    }
    for (size_t i = 0; i < header.len; i++) {
        fields += header.p[i] == ' ';
    }
    struct head *head =
        calloc(1, sizeof *head + fields * (sizeof *head->runs + sizeof *head->garbage));
    CHECK(head != NULL);
    head->refs = 1;
    head->runs = (struct run *)(head + 1);
    head->garbage = (struct name_range *)(head->runs + fields);
    head->value = value;
    head->log = log;
    head->raw_log_bytes = head->log.len;
    head->cas = reply->cas;
    head->epoch = reply->epoch;
    head->ttl_s = reply->ttl_s;
    head->flags = reply->flags;
    head->rolls_back = rolls_back(reply);
    if (!parse_header(head, header) || !parse_log(head, key)) {
        head_free(head);
        return HEAD_FOREIGN;
    }
    head->block = block_ref(reply->block);
    if (head->log_block == NULL) {
        head->log_block = block_ref(head->block);
    }
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
        head_free(head);
    }
}

size_t head_spent_bytes(const struct head *head)
{
    size_t kept = head->log.len + (head->residue != NULL ? head->residue->used : 0);
    return head_front_bytes(head) - kept;
}

bool head_names_run(const struct head *head, const struct name *run)
{
    size_t i = 0;
    while (i < head->run_count && !name_equal(&head->runs[i].range.name, run)) {
        i++;
    }
    return i < head->run_count;
}

const struct head_intent *head_find_intent(const struct head *head, const struct name *name)
{
    for (size_t i = 0; i < head->intent_count; i++) {
        if (name_equal(&head->intents[i].name, name)) {
            return &head->intents[i];
        }
    }
    return NULL;
}

enum intent_state head_intent_state(const struct head *head, const struct name *name)
{
    const struct head_intent *intent = head_find_intent(head, name);
    return intent == NULL ? INTENT_GONE : intent->state;
}

bool head_intent_is_crossed(const struct head *head, const struct name *name)
{
    const struct head_intent *intent = head_find_intent(head, name);
    return intent != NULL && intent->crossed;
}

/* Another one that says the same. */
static struct head *copy_of(struct head *head)
{
    struct head *copy = malloc(sizeof *copy);
    CHECK(copy != NULL);
    *copy = *head;
    copy->refs = 1;
    copy->whole = head_ref(head); /* runs, garbage and intents are its */
    (void)block_ref(copy->block);
    if (copy->log_block != NULL) {
        (void)block_ref(copy->log_block);
    }
    if (copy->residue != NULL) {
        (void)block_ref(copy->residue);
    }
    return copy;
}

struct head *head_in_front(struct head *head, const struct name *name)
{
    const struct head_intent *intent = head_find_intent(head, name);
    bool needs_resolving;
    CHECK(intent != NULL);
    struct head *front = copy_of(head);
    front->log.len = intent->plain;
    bool whole = parse_plain_log(front, &needs_resolving);
    CHECK(whole);
    return front;
}

struct head *head_cut(struct head *head)
{
    size_t i = 0;
    while (head->intents[i].state != INTENT_OPEN) {
        i++;
        CHECK(i < head->intent_count);
    }
    struct head *front = head_in_front(head, &head->intents[i].name);
    front->is_cut = true;
    front->cut_at = head->intents[i].at;
    block_unref(&front->residue);
    while (i-- > 0) {
        residue_append(&front->residue, &head->intents[i]);
    }
    return front;
}

struct head *head_as_of(struct head *head, int64_t read_s)
{
    if (head->read_s == read_s) {
        return head_ref(head);
    }
    struct head *copy = copy_of(head);
    copy->read_s = read_s;
    return copy;
}

bool head_announces(const struct head *head, const struct name *name)
{
    return log_has_announcement(head->announcements, name) ||
           log_has_announcement(head_tail(head), name);
}

uint64_t head_run_bytes(const struct head *head)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < head->run_count; i++) {
        sum = u64_sum(sum, head->runs[i].bytes); /* any client may write a head */
    }
    return sum;
}

uint32_t head_runs_known(const struct head *head, const void *runs, uint32_t count,
                         size_t run_bytes, size_t name_at)
{
    uint32_t known = 0;
    while (known < count && known < head->run_count) {
        const char *run = (const char *)runs + known * run_bytes;
        if (!name_equal((const struct name *)(run + name_at), &head->runs[known].range.name)) {
            break;
        }
        known++;
    }
    return known;
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
    uint64_t taken_out = 0; /* at most: an item may be named twice */
    bool added_last = false;
    while (entry_next(&log, &entry) == ENTRY_OK) {
        if (entry.op != ENTRY_ANNOUNCE) {
            added_last = entry_is_in(entry.op, entry.until_s, head->read_s);
            taken_out += !added_last; /* also by a time that is over */
        }
    }
    /* What the newest run adds is in the list, but for what the log takes out, and for what is
     * over. */
    bool below = !head->clears && head->run_count > 0 && !head->marks.times.timed;
    return added_last || (below && head->runs[head->run_count - 1].items > taken_out);
}

struct run_times run_times_join(struct run_times a, struct run_times b)
{
    struct run_times sum = {.timed = a.timed || b.timed};
    if (sum.timed) {
        bool first = a.timed && (!b.timed || a.earliest_s <= b.earliest_s);
        sum.earliest_s = first ? a.earliest_s : b.earliest_s;
    }
    if (a.latest_s != 0 && b.latest_s != 0) {
        sum.latest_s = a.latest_s > b.latest_s ? a.latest_s : b.latest_s;
    }
    return sum;
}

void run_times_add(struct run_times *times, const struct entry *entry)
{
    if (entry->op == ENTRY_TIMED) {
        *times = run_times_join(*times, (struct run_times){true, entry->until_s, entry->until_s});
    } else if (entry->op == ENTRY_ADD || entry->op == ENTRY_READD) {
        times->latest_s = 0;
    }
}

bool head_is_over(const struct head *head, int64_t now_s)
{
    const struct run_times *runs = &head->marks.times;
    bool runs_over = head->run_count == 0 || head->clears ||
                     (runs->timed && runs->latest_s != 0 && runs->latest_s <= now_s);
    return head_is_timed(head) && runs_over && head->log_latest_s != 0 &&
           head->log_latest_s <= now_s;
}

static void append_marks(struct block **b, const struct head_marks *marks)
{
    char field[3 + 2 * 20];
    if (marks->sublists_until_s != 0) {
        memcpy(field, " @", 2);
        block_append(b, field, 2 + format_u64(field + 2, (uint64_t)marks->sublists_until_s));
    }
    if (marks->times.timed) {
        memcpy(field, " %", 2);
        size_t n = 2 + format_u64(field + 2, marks->times.earliest_s);
        field[n++] = '.';
        n += format_u64(field + n, marks->times.latest_s);
        block_append(b, field, n);
    }
    if (marks->cap.max != 0) {
        block_append(b, field, cap_format(field, marks->cap));
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
                        size_t run_count, const struct name_range *garbage, size_t garbage_count)
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
        field[1] = '-';
        block_append(b, field, 2 + name_range_format(field + 2, &garbage[i]));
    }
    block_append(b, "\n", 1);
}

struct block *head_with_entries(const struct head *head, struct slice entries)
{
    struct block *value = block_new_exact(head->value.len + entries.len);
    block_append(&value, head->value.p, head->value.len);
    block_append(&value, entries.p, entries.len);
    return value;
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

struct name mark_append(struct block **b, struct rng *rng, int64_t now_s)
{
    struct announcement mark = {.created_s = now_s};
    name_fresh(&mark.range.name, rng);
    announcement_append(b, &mark);
    return mark.range.name;
}

bool announcement_is_dead(const struct announcement *announcement, int64_t now_s, int64_t grace_s)
{
    int64_t age_s = now_s - announcement->created_s;
    return age_s > grace_s || (grace_s != GRACE_NONE && -age_s > grace_s);
}

/* Takes what stands before it, and itself, off the log. */
static bool find_announcement(struct slice *log, const struct name *name, bool withdrawn)
{
    struct entry entry;
    while ((void)pass_short(log), entry_next(log, &entry) == ENTRY_OK) {
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
    return find_announcement(&log, name, false);
}

bool log_has_withdrawal(struct slice log, const struct name *name)
{
    return find_announcement(&log, name, true);
}

void log_withdrawals(struct slice log, struct name_set *set)
{
    struct entry entry;
    while ((void)pass_short(&log), entry_next(&log, &entry) == ENTRY_OK) {
        struct announcement announcement;
        if (entry.op == ENTRY_ANNOUNCE && announcement_parse(entry.bytes, &announcement) &&
            announcement.range.count == 0) {
            name_set_add(set, &announcement.range.name);
        }
    }
}

bool log_since_mark(struct slice log, const struct name *mark, struct slice *since)
{
    bool found = find_announcement(&log, mark, true);
    *since = found ? log : SLICE_NONE;
    return found;
}
