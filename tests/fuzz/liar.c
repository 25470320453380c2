/* SPDX-License-Identifier: BSD-3-Clause */
#include "liar.h"

#include <stdio.h>

#include "list/format/head.h"
#include "list/format/sublist.h"
#include "proto/server/ascii_parse.h"

#define VERBS (BE_DELETE + 1)
#define LONG_ITEM_BYTES 80
/* CAS numbers that the store never comes to. */
#define FIRST_LIE (UINT64_C(1) << 40)

void liar_init(struct liar *liar, struct input *in, struct audit *audit, uint64_t item_size_max)
{
    *liar = (struct liar){.in = in, .audit = audit, .epoch = 1, .lies = FIRST_LIE};
    store_init(&liar->store, item_size_max, "s");
}

void liar_fini(struct liar *liar)
{
    store_fini(&liar->store);
}

struct slice fuzz_item(uint8_t which)
{
    static const struct slice odd[] = {
        {"a", 1},        {"b", 1},    {"c", 1},     {"d", 1},
        {"+1:a", 4},     {"-", 1},    {"!0:", 3},   {"~3:abc", 6},
        {"\r\n", 2},     {"^1\n", 3}, {"\0", 1},    {"0123456789", 10},
        {"\xff\xfe", 2}, {" ", 1},    {"=2:ab", 5}, {"END\r\n", 5}};
    static char names[256][LONG_ITEM_BYTES + 1];
    char *name = names[which];
    if (which < sizeof odd / sizeof odd[0]) {
        return odd[which];
    }
    if (which == 255) {
        return SLICE_LIT("");
    }
    if (which == 254) {
        return SLICE_LIT("with,comma");
    }
    snprintf(name, sizeof names[0], "item-%0*u", which % 16 == 15 ? LONG_ITEM_BYTES - 6 : 0, which);
    return slice_of(name);
}

/* ---- heads and runs that are made up ---- */

static struct name name_of_letter(unsigned letter)
{
    struct name name;
    memset(name.text, 'a' + (int)letter, sizeof name.text);
    return name;
}

/* What a header would truly say of these sublists. */
static void measure(struct liar *liar, struct slice list_key, struct run *run, int64_t now_s)
{
    for (uint32_t i = 0; i < run->range.count && i < 4; i++) {
        char key[KEY_BYTES_MAX];
        struct slice name = slice_make(key, sublist_key(key, list_key, &run->range.name, i));
        const struct item *item = store_find(&liar->store, name, now_s);
        struct slice entries, bytes;
        uint64_t count;
        char op;
        if (item == NULL || !ref_sublist_header(item_value(item), &count, &entries)) {
            continue;
        }
        run->bytes += item->value->used;
        while (ref_take_entry(&entries, &op, &bytes)) {
            run->items += op != '-';
        }
    }
}

static void append_entries(struct block **b, struct input *in, int64_t now_s)
{
    static const char ops[] = {'+', '+', '+', '-', '-', '=', '!', '~'};
    static const int64_t ages_s[] = {0, -1000, 1000, 20};
    for (unsigned n = input_below(in, 10); n > 0; n--) {
        uint8_t choice = input_byte(in);
        char op = ops[choice & 7];
        if (op == '~') {
            struct announcement a = {.created_s = now_s - ages_s[choice >> 3 & 3]};
            a.range.name = name_of_letter(choice >> 5);
            a.range.count = input_below(in, 4);
            announcement_append(b, &a);
        } else {
            entry_append(b, (enum entry_op)op, op == '!' ? SLICE_NONE : fuzz_item(input_byte(in)));
        }
    }
}

static struct block *make_head(struct liar *liar, struct slice list_key, int64_t now_s)
{
    struct input *in = liar->in;
    struct run runs[5];
    struct name_range garbage[3];
    uint8_t first = input_byte(in);
    size_t run_count = first % 6, garbage_count;
    struct head_marks marks = {.sublists_until_s = first >= 216 ? now_s + 1000 : 0,
                               .absent = first >= 234 && run_count == 0};
    marks.lease = marks.absent && first >= 246 ? first : 0;
    marks.lease_until_s = marks.lease != 0 ? now_s + 2 : 0;
    struct block *b = block_new(256);
    for (size_t i = 0; i < run_count; i++) {
        uint8_t choice = input_byte(in);
        runs[i] = (struct run){.range = {name_of_letter(choice & 7), 1 + (choice >> 3 & 3)}};
        if (choice >> 5 == 7) {
            runs[i].range.count = SUBLISTS_MAX;
        }
        if (choice >> 5 == 6) {
            runs[i].bytes = input_byte(in);
            runs[i].items = input_byte(in);
        } else {
            measure(liar, list_key, &runs[i], now_s);
        }
    }
    garbage_count = input_below(in, 4);
    for (size_t i = 0; i < garbage_count; i++) {
        uint8_t choice = input_byte(in);
        garbage[i] = (struct name_range){name_of_letter(choice & 7), choice >> 3 & 7};
    }
    head_append_header(&b, &marks, runs, run_count, garbage, garbage_count);
    append_entries(&b, in, now_s);
    return b;
}

/* ---- strangers ---- */

static void put(struct liar *liar, const char *key, size_t key_len, struct slice value,
                int32_t exptime, struct now now)
{
    struct be_operation r = {
        .verb = BE_SET, .key = slice_make(key, key_len), .exptime = exptime, .value = value};
    struct be_reply reply = {0};
    store_execute(&liar->store, &r, now.wall_s, &reply);
    block_unref(&reply.block);
}

static void append_to(struct liar *liar, const char *key, size_t key_len, struct slice value,
                      struct now now)
{
    struct be_operation r = {.verb = BE_APPEND, .key = slice_make(key, key_len), .value = value};
    struct be_reply reply = {0};
    store_execute(&liar->store, &r, now.wall_s, &reply);
    block_unref(&reply.block);
}

/* A run of up to four sublists, under a name of letters. */
static void plant_run(struct liar *liar, struct slice list_key, struct now now)
{
    struct input *in = liar->in;
    uint8_t choice = input_byte(in);
    struct name name = name_of_letter(choice & 7);
    unsigned sublists = 1 + (choice >> 3 & 3);
    uint8_t next = input_byte(in); /* items are taken in order, so that none comes twice */
    for (uint32_t i = 0; i < sublists; i++) {
        static const char ops[] = {'+', '+', '+', '-', '=', '+', '+', '+'};
        char key[KEY_BYTES_MAX];
        struct block *b = sublist_begin(128);
        uint32_t count = 1 + input_below(in, 6);
        uint8_t mix = input_byte(in);
        for (uint32_t n = 0; n < count; n++) {
            char op = mix < 128 ? '+' : ops[(mix >> n) & 7];
            entry_append(&b, (enum entry_op)op, fuzz_item(next));
            next = (uint8_t)(next + 1) % 250;
        }
        sublist_finish(b, count);
        put(liar, key, sublist_key(key, list_key, &name, i), slice_make(b->data, b->used), 0, now);
        block_unref(&b);
    }
}

struct nth {
    unsigned left;
    uint8_t key_len;
    char key[KEY_BYTES_MAX];
};

static void find_nth(void *arg, const struct item *item)
{
    struct nth *nth = arg;
    bool head = item->key[item->key_len - 1] == '#';
    if (!head && (nth->key_len == 0 || nth->left > 0)) {
        nth->left -= nth->key_len > 0;
        nth->key_len = item->key_len;
        memcpy(nth->key, item->key, item->key_len);
    }
}

/* Ways to change a head that is there. */
enum { DELETE, SWEEP, CUT_FRONT, CUT_END, CLEAR_LOG, DROP_OLDEST, DROP_NEWEST, ROTATE };

/* The log without its announcements, or without its first or last entry, or with the first one at
 * the end. */
static void append_rest_of_log(struct block **b, struct slice log, unsigned how)
{
    struct slice bytes, first = SLICE_NONE;
    char op;
    for (size_t n = 0; log.len > 0; n++) {
        const char *start = log.p;
        CHECK(ref_take_entry(&log, &op, &bytes));
        struct slice entry = slice_make(start, (size_t)(log.p - start));
        first = n == 0 ? entry : first;
        bool left_out = how == SWEEP ? op == '~'
                        : how == CUT_END
                            ? log.len == 0
                            : how == CLEAR_LOG || (n == 0 && (how == CUT_FRONT || how == ROTATE));
        block_append(b, entry.p, left_out ? 0 : entry.len);
    }
    if (how == ROTATE && first.len > 0) {
        block_append(b, first.p, first.len);
    }
}

static void append_range(struct block **b, const struct ref_range *range, const char *mark)
{
    char text[64];
    int n = snprintf(text, sizeof text, " %s%.*s.%llu", mark, SLICE_ARGS(range->name),
                     (unsigned long long)range->count);
    block_append(b, text, (size_t)n);
}

/* Another proxy writes a head that follows from the one that is there. */
static void rewrite_head(struct liar *liar, struct slice key, unsigned how, struct now now)
{
    const struct item *item = store_find(&liar->store, key, now.wall_s);
    struct ref_head head = {0};
    if (item == NULL || !ref_head_read(&head, item_value(item))) {
        ref_head_fini(&head);
        return;
    }
    struct block *b = block_new(item->value->used + 256);
    size_t header = head.value.len - head.log.len - 1, cut = head.runs.count;
    if (cut > 0 && (how == DROP_OLDEST || how == DROP_NEWEST)) {
        cut = how == DROP_OLDEST ? 0 : cut - 1;
    }
    block_append(&b, head.value.p, cut == head.runs.count ? header : 2);
    for (size_t i = 0; cut < head.runs.count && i < head.runs.count; i++) {
        const struct ref_range *run = &head.runs.ranges[i];
        char text[64];
        int n = snprintf(text, sizeof text, ":%llu:%llu", (unsigned long long)run->bytes,
                         (unsigned long long)run->items);
        if (i == cut) {
            append_range(&b, run, "-");
        } else {
            append_range(&b, run, "");
            block_append(&b, text, (size_t)n);
        }
    }
    for (size_t i = 0; how == SWEEP && i < head.announcements.count; i++) {
        append_range(&b, &head.announcements.ranges[i], "*");
    }
    block_append(&b, "\n", 1);
    append_rest_of_log(&b, head.log, how);
    ref_head_fini(&head);
    put(liar, key.p, key.len, slice_make(b->data, b->used), 0, now);
    block_unref(&b);
}

enum { WRITE_HEAD, MAKE_HEAD, APPEND_BYTES, APPEND_ENTRIES, CHANGE_HEAD, EVICT, OVERWRITE, PLANT };

void liar_stranger(struct liar *liar, struct slice list_key, struct now now)
{
    struct input *in = liar->in;
    char head[KEY_BYTES_MAX];
    size_t head_len = head_key(head, list_key);
    uint8_t choice = input_byte(in);
    unsigned what = choice & 7;
    if (what == WRITE_HEAD) {
        put(liar, head, head_len, input_bytes(in), 0, now);
    } else if (what == MAKE_HEAD) {
        static const int32_t exptimes[] = {0, 10, 60 * 60 * 24 * 30, INT32_MAX};
        struct block *b = make_head(liar, list_key, now.wall_s);
        put(liar, head, head_len, slice_make(b->data, b->used), exptimes[choice >> 3 & 3], now);
        block_unref(&b);
    } else if (what == APPEND_BYTES) {
        append_to(liar, head, head_len, input_bytes(in), now);
    } else if (what == APPEND_ENTRIES) {
        struct block *b = block_new(256);
        append_entries(&b, in, now.wall_s);
        append_to(liar, head, head_len, slice_make(b->data, b->used), now);
        block_unref(&b);
    } else if (what == CHANGE_HEAD && (choice >> 3 & 7) == DELETE) {
        store_evict(&liar->store, slice_make(head, head_len));
    } else if (what == CHANGE_HEAD) {
        rewrite_head(liar, slice_make(head, head_len), choice >> 3 & 7, now);
    } else if (what == PLANT) {
        plant_run(liar, list_key, now);
    } else {
        struct nth nth = {.left = choice >> 3};
        store_each(&liar->store, find_nth, &nth);
        if (nth.key_len > 0 && what == EVICT) {
            store_evict(&liar->store, slice_make(nth.key, nth.key_len));
        } else if (nth.key_len > 0) {
            put(liar, nth.key, nth.key_len, input_bytes(in), 0, now);
        }
    }
}

/* ---- answers ---- */

static void refuse(struct liar *liar, enum be_status status, const char *text,
                   struct be_reply *reply)
{
    block_unref(&reply->block);
    snprintf(liar->text, sizeof liar->text, "%s", text);
    *reply = (struct be_reply){.status = status, .text = liar->text, .caps = &liar->store.caps};
}

static void execute(struct liar *liar, const struct list_request *r, struct now now,
                    struct be_reply *reply)
{
    bool guarded = r->be.verb == BE_CAS || r->be.verb == BE_CAS_DELETE;
    if (guarded && r->be.epoch != liar->epoch) {
        *reply = (struct be_reply){.status = BE_EXISTS, .caps = &liar->store.caps};
        return;
    }
    store_execute(&liar->store, &r->be, now.wall_s, reply);
    reply->epoch = liar->epoch;
}

void liar_answer(struct liar *liar, const struct list_request *r, struct now now,
                 struct be_reply *reply)
{
    *reply = (struct be_reply){0};
    execute(liar, r, now, reply);
}

/* A hit with that value, for a verb that has hits. */
static void hit(struct liar *liar, const struct list_request *r, struct slice value, uint8_t ttl,
                struct be_reply *reply)
{
    *reply = (struct be_reply){
        .status = BE_HIT, .epoch = liar->epoch, .caps = &liar->store.caps, .size_bytes = value.len};
    if (r->be.verb == BE_GET || r->be.verb == BE_TIME) {
        reply->cas = ++liar->lies;
        reply->ttl_s = ttl == 0 ? -1 : (int64_t)ttl * ttl * ttl * ttl;
    }
    if (r->be.verb == BE_GET) {
        reply->block = block_new_exact(value.len + 1);
        block_append(&reply->block, value.len == 0 ? "" : value.p, value.len);
        reply->value = slice_make(reply->block->data, value.len);
    }
}

static void change_status(struct liar *liar, const struct list_request *r, struct be_reply *reply)
{
    static const enum be_status reads[] = {BE_MISS, BE_NO_MEMORY, BE_TOO_LARGE, BE_REFUSED};
    static const enum be_status stores[] = {BE_STORED, BE_NOT_STORED, BE_NO_MEMORY, BE_TOO_LARGE};
    static const enum be_status compares[] = {BE_STORED, BE_EXISTS, BE_NOT_FOUND, BE_NOT_STORED};
    static const enum be_status deletes[] = {BE_DELETED, BE_NOT_FOUND, BE_REFUSED, BE_NO_MEMORY};
    static const enum be_status counts[] = {BE_STORED, BE_NOT_FOUND, BE_REFUSED, BE_NO_MEMORY};
    static const enum be_status *const choices[VERBS] = {
        [BE_GET] = reads,          [BE_SIZE] = reads,    [BE_PROBE] = reads,
        [BE_TIME] = reads,         [BE_ADD] = stores,    [BE_REPLACE] = stores,
        [BE_SET] = stores,         [BE_APPEND] = stores, [BE_PREPEND] = stores,
        [BE_INCR] = counts,        [BE_CAS] = compares,  [BE_DELETE] = deletes,
        [BE_CAS_DELETE] = compares};
    enum be_status status = choices[r->be.verb][input_below(liar->in, 4)];
    refuse(liar, status, "backend s: SERVER_ERROR as it likes", reply);
    if (status != BE_REFUSED) {
        reply->text = NULL;
    }
    reply->epoch = liar->epoch;
    if (r->be.verb == BE_INCR && status == BE_STORED) {
        reply->number = ++liar->lies;
    }
}

/* The answer names the key, if it has a line, since what names none is never read. */
static void append_answer(struct block **b, struct slice bytes, const struct list_request *r)
{
    const char *end = bytes.len == 0 ? NULL : memmem(bytes.p, bytes.len, "\r\n", 2);
    struct slice line = slice_take(&bytes, end == NULL ? bytes.len : (size_t)(end - bytes.p));
    block_append(b, line.len == 0 ? "" : line.p, line.len);
    if (slice_starts_with(line, SLICE_LIT("VA ")) || slice_starts_with(line, SLICE_LIT("HD"))) {
        block_append(b, " k", 2);
        block_append(b, r->key, r->be.key.len);
    }
    block_append(b, bytes.len == 0 ? "" : bytes.p, bytes.len);
}

/* As the pool reads what arrives. */
static void read_wire(struct liar *liar, const struct list_request *r, struct be_reply *reply)
{
    struct slice bytes = input_bytes(liar->in);
    struct block *b = block_new_exact(bytes.len + KEY_BYTES_MAX + 3);
    struct be_operation op = {.verb = r->be.verb, .key = r->be.key};
    size_t size;
    append_answer(&b, bytes, r);
    *reply = (struct be_reply){.epoch = liar->epoch, .caps = &liar->store.caps, .block = b};
    bool changes = r->be.verb >= BE_ADD;
    if (ascii_parse(&op, slice_make(b->data, b->used), ASCII_VALUE_MAX, reply, &size) !=
            ASCII_PARSE_OK ||
        ascii_reply_read(&op, reply) != 0) {
        refuse(liar, BE_LOST, "backend s: unexpected answer, outcome unknown", reply);
    } else if (reply->status == BE_REFUSED) {
        bool unknown = changes && slice_starts_with(reply->line, SLICE_LIT("SERVER_ERROR"));
        refuse(liar, unknown ? BE_LOST : BE_REFUSED, "backend s: an error", reply);
    }
}

void liar_lie(struct liar *liar, enum lie lie, const struct list_request *r, struct now now,
              struct be_reply *reply)
{
    *reply = (struct be_reply){0};
    if (lie == LIE_LOST_DONE || lie == LIE_STATUS_DONE) {
        execute(liar, r, now, reply);
    }
    if (lie == LIE_DOWN) {
        refuse(liar, BE_DOWN, "backend s down, nothing done", reply);
    } else if (lie == LIE_LOST || lie == LIE_LOST_DONE) {
        refuse(liar, BE_LOST, "connection to s lost, outcome unknown", reply);
    } else if (lie == LIE_STATUS || lie == LIE_STATUS_DONE) {
        change_status(liar, r, reply);
    } else if (lie == LIE_WIRE) {
        read_wire(liar, r, reply);
    } else if (r->be.verb >= BE_ADD) {
        change_status(liar, r, reply);
    } else if (lie == LIE_VALUE) {
        struct slice value = input_bytes(liar->in);
        hit(liar, r, value, (uint8_t)value.len, reply);
    } else {
        const char *end = memchr(r->key, '#', r->be.key.len);
        struct block *b = make_head(liar, slice_make(r->key, (size_t)(end - r->key)), now.wall_s);
        hit(liar, r, slice_make(b->data, b->used), input_byte(liar->in), reply);
        block_unref(&b);
    }
}
