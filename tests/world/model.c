/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

void ids_fini(struct ids *items)
{
    free(items->ids);
    *items = (struct ids){0};
}

void ids_push(struct ids *items, uint16_t id)
{
    if (items->count == items->cap) {
        items->cap = items->cap == 0 ? 16 : items->cap * 2;
        items->ids = realloc(items->ids, items->cap * sizeof *items->ids);
        CHECK(items->ids != NULL);
    }
    items->ids[items->count++] = id;
}

void ids_copy(struct ids *to, const struct ids *from)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        ids_push(to, from->ids[i]);
    }
}

bool ids_equal(const struct ids *a, const struct ids *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0);
}

bool ids_has(const struct ids *items, uint16_t id)
{
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->ids[i] == id) {
            return true;
        }
    }
    return false;
}

void ids_clear(struct ids *items)
{
    items->count = 0;
}

bool ids_add(struct ids *items, uint16_t id)
{
    if (ids_has(items, id)) {
        return false;
    }
    ids_push(items, id);
    return true;
}

bool ids_remove(struct ids *items, uint16_t id)
{
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->ids[i] == id) {
            items->count--;
            memmove(&items->ids[i], &items->ids[i + 1], (items->count - i) * sizeof *items->ids);
            return true;
        }
    }
    return false;
}

static bool for_dialects;

void item_names_for_dialects(void)
{
    for_dialects = true;
}

size_t item_name(char out[ITEM_NAME_MAX], uint16_t id)
{
    static const char *const prefixes[2][6] = {
        {"i", "+1:x", "~a", "-3:", "!0:", "item-with-a-longer-name"},
        {"i", "7 1 2", "@12:ab", "0", "x:#", "item_with_a_longer_name"}};
    int n = snprintf(out, ITEM_NAME_MAX, "%s.%u", prefixes[for_dialects][id % 6], (unsigned)id);
    return (size_t)n;
}

struct slice item_text(uint16_t id)
{
    static struct {
        uint8_t len;
        char text[ITEM_NAME_MAX];
    } names[ITEMS_MAX];
    if (names[id].len == 0) {
        names[id].len = (uint8_t)item_name(names[id].text, id);
    }
    return slice_make(names[id].text, names[id].len);
}

bool item_of_name(struct slice name, uint16_t *id)
{
    const char *dot = memrchr(name.p, '.', name.len);
    uint64_t number;
    if (dot == NULL ||
        !slice_to_u64(slice_make(dot + 1, name.len - (size_t)(dot + 1 - name.p)), &number) ||
        number >= ITEMS_MAX) {
        return false;
    }
    *id = (uint16_t)number;
    return slice_equal(name, item_text(*id));
}

struct store *cluster_store(const struct cluster *cluster, struct slice placement)
{
    return &cluster->stores[hash_bytes(placement.p, placement.len, 3) % cluster->count];
}

/* Replaying entries: an item's place is the step at which it was added. */
struct replay {
    uint32_t place[ITEMS_MAX]; /* step + 1, 0 = absent */
    uint16_t *steps;
    uint32_t step_count, step_cap;
    struct stored *out;
};

static void add_at_end(struct replay *r, uint16_t id)
{
    if (r->step_count == r->step_cap) {
        r->step_cap = r->step_cap == 0 ? 256 : r->step_cap * 2;
        r->steps = realloc(r->steps, r->step_cap * sizeof *r->steps);
        CHECK(r->steps != NULL);
    }
    r->steps[r->step_count++] = id;
    r->place[id] = r->step_count;
}

static bool replay_op(struct replay *r, char op, struct slice bytes)
{
    uint16_t id = 0;
    if (op == '!') {
        memset(r->place, 0, sizeof r->place);
        r->out->cleared = true;
        return bytes.len == 0;
    }
    if (op == '~') {
        r->out->announcements++;
        return true;
    }
    r->out->entries++;
    if (!item_of_name(bytes, &id)) {
        return false;
    }
    if (op == '-' || op == '=') {
        r->place[id] = 0;
    }
    r->out->adds += op != '-';
    if ((op == '+' || op == '=') && r->place[id] == 0) {
        add_at_end(r, id);
    }
    return op == '+' || op == '-' || op == '=';
}

/* Takes "DIGITS" and the character behind it. */
static bool take_number(struct slice *s, char behind, uint64_t *value)
{
    size_t n = 0;
    while (n < s->len && s->p[n] >= '0' && s->p[n] <= '9') {
        n++;
    }
    if (!slice_to_u64(slice_take(s, n), value)) {
        return false;
    }
    return behind == 0 ? s->len == 0 : s->len > 0 && slice_take(s, 1).p[0] == behind;
}

static bool replay_entries(struct replay *r, struct slice rest)
{
    while (rest.len > 0) {
        char op = slice_take(&rest, 1).p[0];
        uint64_t length;
        if (!take_number(&rest, ':', &length) || length > rest.len ||
            !replay_op(r, op, slice_take(&rest, length))) {
            return false;
        }
    }
    return true;
}

static void sublist_name(char out[KEY_BYTES_MAX + 1], struct slice list_key, struct slice run,
                         uint64_t number)
{
    snprintf(out, KEY_BYTES_MAX + 1, "%.*s#%.*s.%llu", SLICE_ARGS(list_key), SLICE_ARGS(run),
             (unsigned long long)number);
}

/* Returns the sublist's item, or NULL when it is not there or burnt. */
static const struct item *find_sublist(const struct cluster *cluster, struct slice list_key,
                                       const char *name, int64_t now_s)
{
    struct slice key = slice_of(name);
    struct slice placement = cluster->spread ? key : slice_make(name, list_key.len + 1);
    const struct item *item = store_find(cluster_store(cluster, placement), key, now_s);
    return item == NULL || item->value->used == 0 ? NULL : item;
}

struct run_field {
    struct slice name;
    uint64_t count, bytes, items;
};

static bool parse_run_field(struct slice field, struct run_field *run)
{
    const char *dot = memchr(field.p, '.', field.len);
    if (dot == NULL) {
        return false;
    }
    run->name = slice_take(&field, (size_t)(dot - field.p));
    (void)slice_take(&field, 1);
    return take_number(&field, ':', &run->count) && take_number(&field, ':', &run->bytes) &&
           take_number(&field, 0, &run->items);
}

static bool replay_run(struct replay *r, const struct cluster *cluster, struct slice list_key,
                       struct slice field, int64_t now_s)
{
    struct run_field run;
    if (!parse_run_field(field, &run) || run.count == 0) {
        return false;
    }
    uint64_t bytes = 0;
    unsigned adds_before = r->out->adds;
    r->out->runs++;
    for (uint64_t i = 0; i < run.count; i++) {
        char name[KEY_BYTES_MAX + 1];
        sublist_name(name, list_key, run.name, i);
        const struct item *item = find_sublist(cluster, list_key, name, now_s);
        if (item == NULL) {
            r->out->sublist_missing = true;
            memcpy(r->out->missing, name, sizeof name);
            continue;
        }
        struct slice value = item_value(item);
        bytes += value.len;
        uint64_t count;
        unsigned before = r->out->entries;
        if (!slice_starts_with(value, SLICE_LIT("^1 "))) {
            return false;
        }
        (void)slice_take(&value, 3);
        if (!take_number(&value, '\n', &count) || !replay_entries(r, value) ||
            r->out->entries - before != count) {
            return false;
        }
    }
    return r->out->sublist_missing ||
           (bytes == run.bytes && r->out->adds - adds_before == run.items);
}

/* Splits a head: the header's fields and the log. */
static bool split_head(struct slice value, struct slice *header, struct slice *log)
{
    const char *end = value.len > 0 ? memchr(value.p, '\n', value.len) : NULL;
    if (end == NULL || !slice_starts_with(value, SLICE_LIT("^1"))) {
        return false;
    }
    *header = slice_make(value.p + 2, (size_t)(end - value.p) - 2);
    *log = slice_make(end + 1, value.len - (size_t)(end + 1 - value.p));
    return true;
}

static bool take_field(struct slice *header, struct slice *field)
{
    if (header->len < 2 || header->p[0] != ' ') {
        return false;
    }
    (void)slice_take(header, 1);
    const char *end = memchr(header->p, ' ', header->len);
    *field = slice_take(header, end == NULL ? header->len : (size_t)(end - header->p));
    return field->len > 0;
}

static bool replay_head(struct replay *r, const struct cluster *cluster, struct slice list_key,
                        struct slice value, int64_t now_s)
{
    struct slice header, log, field;
    if (!split_head(value, &header, &log)) {
        return false;
    }
    while (header.len > 0) {
        if (!take_field(&header, &field)) {
            return false;
        }
        if (field.p[0] == '-' || field.p[0] == '*') {
            r->out->garbage++;
        } else if (!replay_run(r, cluster, list_key, field, now_s)) {
            return false;
        }
    }
    return replay_entries(r, log);
}

static const struct item *find_head(const struct cluster *cluster, struct slice list_key,
                                    int64_t now_s)
{
    char key[KEY_BYTES_MAX + 1];
    int n = snprintf(key, sizeof key, "%.*s#", SLICE_ARGS(list_key));
    struct slice head = slice_make(key, (size_t)n);
    return store_find(cluster_store(cluster, head), head, now_s);
}

void model_decode(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                  struct ids *items, struct stored *out)
{
    static struct replay replay; /* its memory is used again */
    const struct item *head = find_head(cluster, list_key, now_s);
    *out = (struct stored){.exists = head != NULL};
    items->count = 0;
    if (head == NULL) {
        return;
    }
    memset(replay.place, 0, sizeof replay.place);
    replay.step_count = 0;
    replay.out = out;
    out->malformed = !replay_head(&replay, cluster, list_key, item_value(head), now_s);
    for (uint32_t i = 0; i < replay.step_count; i++) {
        if (replay.place[replay.steps[i]] == i + 1) {
            ids_push(items, replay.steps[i]);
        }
    }
}

bool model_head_names(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                      struct slice sublist)
{
    const struct item *head = find_head(cluster, list_key, now_s);
    const char *dot = memrchr(sublist.p, '.', sublist.len);
    if (head == NULL || dot == NULL) {
        return false;
    }
    struct slice name =
        slice_make(sublist.p + list_key.len + 1, (size_t)(dot - sublist.p) - list_key.len - 1);
    struct slice value = item_value(head);
    return memmem(value.p, value.len, name.p, name.len) != NULL;
}
