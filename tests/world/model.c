/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "reference.h"

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
    if (op != '-' && r->place[id] == 0) {
        add_at_end(r, id);
    }
    return true;
}

static bool replay_entries(struct replay *r, struct slice rest)
{
    struct slice bytes;
    char op;
    while (rest.len > 0) {
        if (!ref_take_entry(&rest, &op, &bytes) || !replay_op(r, op, bytes)) {
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

static bool replay_run(struct replay *r, const struct cluster *cluster, struct slice list_key,
                       const struct ref_range *run, int64_t now_s)
{
    uint64_t bytes = 0, count;
    unsigned adds_before = r->out->adds;
    r->out->runs++;
    for (uint64_t i = 0; i < run->count; i++) {
        char name[KEY_BYTES_MAX + 1];
        struct slice entries;
        sublist_name(name, list_key, run->name, i);
        const struct item *item = find_sublist(cluster, list_key, name, now_s);
        if (item == NULL) {
            r->out->sublist_missing = true;
            memcpy(r->out->missing, name, sizeof name);
            continue;
        }
        unsigned before = r->out->entries;
        bytes += item->value->used;
        if (!ref_sublist_header(item_value(item), &count, &entries) ||
            !replay_entries(r, entries) || r->out->entries - before != count) {
            return false;
        }
    }
    return r->out->sublist_missing ||
           (bytes == run->bytes && r->out->adds - adds_before == run->items);
}

static void read_absent(const struct ref_head *head, struct stored *out)
{
    struct slice field = head->absent;
    uint64_t until_s = 0;
    out->absent = field.len > 0;
    if (out->absent) {
        const char *dot = memchr(field.p, '.', field.len);
        CHECK(dot != NULL);
        size_t digits = (size_t)(dot - field.p) - 1;
        CHECK(slice_to_u64(slice_make(field.p + 1, digits), &out->token) &&
              slice_to_u64(slice_make(dot + 1, field.len - digits - 2), &until_s));
    }
    out->until_s = (int64_t)until_s;
}

static bool replay_head(struct replay *r, const struct cluster *cluster, struct slice list_key,
                        struct slice value, int64_t now_s)
{
    struct ref_head head;
    bool good = ref_head_read(&head, value);
    r->out->garbage = (unsigned)head.garbage.count;
    read_absent(&head, r->out);
    r->out->announcements = (unsigned)head.announcements.count;
    for (size_t i = 0; good && i < head.runs.count; i++) {
        good = replay_run(r, cluster, list_key, &head.runs.ranges[i], now_s);
    }
    good = good && replay_entries(r, head.log);
    ref_head_fini(&head);
    return good;
}

static const struct item *find_head(const struct cluster *cluster, struct slice list_key,
                                    int64_t now_s)
{
    char key[KEY_BYTES_MAX + 1];
    int n = snprintf(key, sizeof key, "%.*s#", SLICE_ARGS(list_key));
    struct slice head = slice_make(key, (size_t)n);
    return store_find(cluster_store(cluster, head), head, now_s);
}

/* What a replay has come to. */
static void take_items(const struct replay *r, struct ids *items)
{
    items->count = 0;
    for (uint32_t i = 0; i < r->step_count; i++) {
        if (r->place[r->steps[i]] == i + 1) {
            ids_push(items, r->steps[i]);
        }
    }
}

void model_lay_log(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                   struct ids *items)
{
    static struct replay replay; /* its memory is used again */
    const struct item *item = find_head(cluster, list_key, now_s);
    struct stored out = {0};
    struct ref_head head;
    CHECK(item != NULL && ref_head_read(&head, item_value(item)));
    memset(replay.place, 0, sizeof replay.place);
    replay.step_count = 0;
    replay.out = &out;
    for (uint32_t i = 0; i < items->count; i++) {
        add_at_end(&replay, items->ids[i]);
    }
    CHECK(replay_entries(&replay, head.log));
    take_items(&replay, items);
    ref_head_fini(&head);
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
    take_items(&replay, items);
}

/* The second of another server's clock at the same time, as near as seconds go. */
static int64_t second_of(const struct store *from, const struct store *to, int64_t at_s)
{
    return at_s - from->lead_s + to->lead_s;
}

const char *model_lives(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                        bool all_end)
{
    enum { GRACE_S = 1 };
    const char *wrong = NULL;
    const struct item *item = find_head(cluster, list_key, now_s);
    struct ref_head head = {0};
    if (item == NULL || !ref_head_read(&head, item_value(item))) {
        ref_head_fini(&head);
        return NULL;
    }
    char name[KEY_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s#", SLICE_ARGS(list_key));
    struct store *own = cluster_store(cluster, slice_of(name));
    uint64_t until = 0;
    if (head.until.len > 0) {
        struct slice digits = slice_make(head.until.p + 1, head.until.len - 1);
        CHECK(slice_to_u64(head.until.p[0] == '@' ? digits : head.until, &until));
    }
    if (until != 0 && (item->expires_s == 0 || item->expires_s > (int64_t)until)) {
        wrong = "outlives the second that it names for its sublists";
    }
    if (until == 0 && all_end && head.runs.count > 0) {
        wrong = "names sublists without an end";
    }
    for (size_t i = 0; wrong == NULL && i < head.runs.count; i++) {
        const struct ref_range *run = &head.runs.ranges[i];
        for (uint64_t n = 0; wrong == NULL && n < run->count; n++) {
            sublist_name(name, list_key, run->name, n);
            struct slice key = slice_of(name);
            struct slice placement = cluster->spread ? key : slice_make(name, list_key.len + 1);
            struct store *store = cluster_store(cluster, placement);
            const struct item *sublist = store_find(store, key, now_s);
            if (sublist != NULL && sublist->expires_s != 0 &&
                (until == 0 ||
                 sublist->expires_s + GRACE_S < second_of(own, store, (int64_t)until))) {
                wrong = "names a sublist that does not live as long as it says";
            }
        }
    }
    ref_head_fini(&head);
    return wrong;
}

bool model_head_names(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                      struct slice sublist)
{
    const struct item *item = find_head(cluster, list_key, now_s);
    const char *dot = memrchr(sublist.p, '.', sublist.len);
    if (item == NULL || dot == NULL) {
        return false;
    }
    struct slice name =
        slice_make(sublist.p + list_key.len + 1, (size_t)(dot - sublist.p) - list_key.len - 1);
    struct ref_head head;
    bool named = ref_head_read(&head, item_value(item)) &&
                 (ref_find(&head.runs, name) != NULL || ref_find(&head.garbage, name) != NULL ||
                  ref_find(&head.announcements, name) != NULL);
    ref_head_fini(&head);
    return named;
}
