/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "txlog.h"

void ids_fini(struct ids *items)
{
    free(items->ids);
    free(items->untils);
    *items = (struct ids){0};
}

void ids_push(struct ids *items, uint16_t id)
{
    ids_push_timed(items, id, 0);
}

void ids_push_timed(struct ids *items, uint16_t id, uint32_t until_s)
{
    if (items->count == items->cap) {
        items->cap = items->cap == 0 ? 16 : items->cap * 2;
        items->ids = realloc(items->ids, items->cap * sizeof *items->ids);
        items->untils = realloc(items->untils, items->cap * sizeof *items->untils);
        CHECK(items->ids != NULL && items->untils != NULL);
    }
    items->untils[items->count] = until_s;
    items->ids[items->count++] = id;
}

uint32_t ids_until(const struct ids *items, uint16_t id)
{
    uint32_t at = ids_find(items, id, 0);
    return at < items->count ? items->untils[at] : 0;
}

void ids_copy_at(struct ids *to, const struct ids *from, int64_t now_s)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        if (from->untils[i] == 0 || (int64_t)from->untils[i] > now_s) {
            ids_push_timed(to, from->ids[i], from->untils[i]);
        }
    }
}

void ids_copy(struct ids *to, const struct ids *from)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        ids_push_timed(to, from->ids[i], from->untils[i]);
    }
}

bool ids_equal(const struct ids *a, const struct ids *b)
{
    return a->count == b->count &&
           (a->count == 0 || (memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0 &&
                              memcmp(a->untils, b->untils, a->count * sizeof *a->untils) == 0));
}

uint32_t ids_find(const struct ids *items, uint16_t id, uint32_t from)
{
    for (uint32_t i = from; i < items->count; i++) {
        if (items->ids[i] == id) {
            return i;
        }
    }
    for (uint32_t i = 0; i < from && i < items->count; i++) {
        if (items->ids[i] == id) {
            return i;
        }
    }
    return items->count;
}

bool ids_has(const struct ids *items, uint16_t id)
{
    return ids_find(items, id, 0) < items->count;
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
    if (items->max > 0 && items->count >= items->max) {
        if (items->refuses) {
            return false;
        }
        (void)ids_remove(items, items->ids[0]);
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
            memmove(&items->untils[i], &items->untils[i + 1],
                    (items->count - i) * sizeof *items->untils);
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

#define COPY_BEGIN "^1 >"
#define MARK_BEGIN "^> "

static bool is_copy(const struct item *item)
{
    return slice_starts_with(item_value(item), SLICE_LIT(COPY_BEGIN));
}

/* Is it the copy whose token the mark on its old server has? */
static bool is_named(const struct cluster *cluster, struct slice head, const struct item *copy)
{
    enum { TOKEN_BYTES = 13 };
    const struct item *mark = store_find(cluster_place(cluster, head, false), head, 0);
    struct slice a = item_value(copy), b = mark == NULL ? SLICE_NONE : item_value(mark);
    return slice_starts_with(b, SLICE_LIT(MARK_BEGIN)) &&
           memcmp(a.p + sizeof COPY_BEGIN - 1, b.p + sizeof MARK_BEGIN - 1, TOKEN_BYTES) == 0;
}

struct store *cluster_store(const struct cluster *cluster, struct slice placement)
{
    struct store *old = cluster_place(cluster, placement, false);
    if (!cluster->moving || placement.len == 0 || placement.p[placement.len - 1] != '#') {
        return old;
    }
    struct store *new = cluster_place(cluster, placement, true);
    const struct item *on_old = store_find(old, placement, 0);
    if (cluster_is_gone(cluster, placement)) {
        return new;
    }
    const struct item *on_new = store_find(new, placement, 0);
    if (on_old != NULL) {
        return slice_starts_with(item_value(on_old), SLICE_LIT(MARK_BEGIN)) ? new : old;
    }
    return on_new != NULL && !is_copy(on_new) ? new : old;
}

const struct item *cluster_head(const struct cluster *cluster, struct slice head_key, int64_t now_s)
{
    const struct item *item = store_find(cluster_store(cluster, head_key), head_key, now_s);
    return item != NULL && is_copy(item) && !is_named(cluster, head_key, item) ? NULL : item;
}

struct store *cluster_place(const struct cluster *cluster, struct slice placement, bool by_new)
{
    size_t at = cluster->count == 1 ? 0 : hash_bytes(placement.p, placement.len, 3);
    struct store *place = &cluster->stores[(at + by_new) % cluster->count];
    return by_new && place == cluster->leaving ? &cluster->stores[(at + 2) % cluster->count]
                                               : place;
}

bool cluster_is_gone(const struct cluster *cluster, struct slice placement)
{
    return cluster->left && cluster_place(cluster, placement, false) == cluster->leaving;
}

/* Replaying entries: an item's place is the step at which it was added. */
struct replay {
    uint32_t place[ITEMS_MAX];   /* step + 1, 0 = absent */
    uint32_t until[ITEMS_MAX];   /* of those that have a place */
    const struct ref_head *head; /* of runs: it says when their items are over; else NULL */
    uint16_t *steps;
    uint32_t step_count, step_cap;
    struct stored *out;
    uint64_t max; /* the list's cap, 0: none */
    bool refuses;
    uint64_t live;
    uint32_t oldest; /* no step before it counts */
};

static void forget_places(struct replay *r)
{
    for (uint32_t i = 0; i < r->step_count; i++) {
        r->place[r->steps[i]] = 0;
    }
}

static void replay_begin(struct replay *r, struct stored *out)
{
    forget_places(r);
    r->head = NULL;
    r->step_count = r->oldest = 0;
    r->live = r->max = 0;
    r->out = out;
}

static void drop_oldest(struct replay *r)
{
    while (r->place[r->steps[r->oldest]] != r->oldest + 1) {
        r->oldest++;
    }
    r->place[r->steps[r->oldest]] = 0;
    r->live--;
}

static void add_at_end(struct replay *r, uint16_t id, uint64_t until)
{
    if (r->step_count == r->step_cap) {
        r->step_cap = r->step_cap == 0 ? 256 : r->step_cap * 2;
        r->steps = realloc(r->steps, r->step_cap * sizeof *r->steps);
        CHECK(r->steps != NULL);
    }
    r->live++;
    r->steps[r->step_count++] = id;
    r->place[id] = r->step_count;
    r->until[id] = (uint32_t)until;
}

static bool replay_op(struct replay *r, char op, uint64_t until, struct slice bytes)
{
    uint16_t id = 0;
    if (op == '!') {
        forget_places(r);
        r->live = 0;
        r->out->cleared = true;
        return bytes.len == 0;
    }
    if (op == '~') {
        return true;
    }
    r->out->entries++;
    if (!item_of_name(bytes, &id) || (r->head != NULL && !ref_head_covers(r->head, op, until))) {
        return false;
    }
    r->out->adds += op != '-';
    if (r->place[id] != 0 && op == '+' && r->until[id] == 0) {
        return true;
    }
    if (r->max > 0 && op == '@') {
        return true; /* not done */
    }
    if (r->place[id] != 0) {
        r->place[id] = 0;
        r->live--;
    }
    if (op != '-' && r->max > 0 && r->live >= r->max) {
        if (r->refuses) {
            return true;
        }
        drop_oldest(r);
    }
    if (op != '-') {
        add_at_end(r, id, until);
    }
    return true;
}

static bool replay_entries(struct replay *r, struct slice rest)
{
    struct slice bytes;
    uint64_t until;
    char op;
    while (rest.len > 0) {
        if (!ref_take_timed(&rest, &op, &until, &bytes) || !replay_op(r, op, until, bytes)) {
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

/* Returns the sublist's item, or NULL when it is not there. */
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

static const struct item *find_head(const struct cluster *cluster, struct slice list_key,
                                    int64_t now_s)
{
    char key[KEY_BYTES_MAX + 1];
    int n = snprintf(key, sizeof key, "%.*s#", SLICE_ARGS(list_key));
    struct slice head = slice_make(key, (size_t)n);
    return cluster_head(cluster, head, now_s);
}

/* Heads are looked at again and again between two changes: what was read last is kept, with the
 * bytes that it points into. */
struct reading {
    char *bytes;
    size_t len, cap;
    struct ref_head head;
    bool good;
};

/* NULL where there is no item, or it is no head. Valid until the next call with that reading. */
static const struct ref_head *read_head(struct reading *r, const struct item *item)
{
    if (item == NULL) {
        return NULL;
    }
    struct slice value = item_value(item);
    if (r->bytes == NULL || !slice_equal(slice_make(r->bytes, r->len), value)) {
        if (value.len >= r->cap) {
            r->cap = value.len * 2 + 64;
            free(r->bytes);
            r->bytes = malloc(r->cap);
            CHECK(r->bytes != NULL);
        }
        memcpy(r->bytes, value.p, value.len);
        r->len = value.len;
        ref_head_fini(&r->head);
        r->good = ref_head_read(&r->head, slice_make(r->bytes, r->len));
    }
    return r->good ? &r->head : NULL;
}

const struct ref_head *model_read_head(const struct item *item)
{
    static struct reading reading;
    return read_head(&reading, item);
}

/* ---- transactions ---- */

struct asker {
    const struct cluster *cluster;
    int64_t now_s;
};

/* What its primary says, as it is stored now. */
static bool is_committed(void *arg, const struct txlog_intent *intent)
{
    const struct asker *asker = arg;
    static struct reading reading; /* while that of the list that asks is in use */
    const struct item *item = find_head(asker->cluster, intent->keys[0], asker->now_s);
    const struct ref_head *head = intent->is_primary ? NULL : read_head(&reading, item);
    struct txlog txlog = {0};
    const struct txlog_intent *found = NULL;
    if (head != NULL && txlog_read(&txlog, head->log, intent->keys[0], head->max > 0)) {
        found = txlog_find(&txlog, intent->name);
    }
    bool committed = found != NULL && found->state == TXLOG_COMMITTED;
    txlog_fini(&txlog);
    return committed;
}

static void count_intents(const struct ref_head *head, struct slice list_key, struct stored *out)
{
    struct txlog txlog;
    if (txlog_read(&txlog, head->log, list_key, head->max > 0)) {
        for (size_t i = 0; i < txlog.count; i++) {
            const struct txlog_intent *intent = &txlog.intents[i];
            out->intents++;
            out->unsettled += intent->state == TXLOG_OPEN;
            out->unfinished +=
                intent->is_primary && intent->state == TXLOG_COMMITTED && !intent->done;
        }
    }
    txlog_fini(&txlog);
    struct slice rest = head->log, bytes;
    for (char op; ref_take_entry(&rest, &op, &bytes);) {
        out->decisions += op == '&';
    }
}

static bool replay_log(struct replay *r, const struct cluster *cluster, struct slice list_key,
                       const struct ref_head *head, int64_t now_s)
{
    struct asker asker = {cluster, now_s};
    struct block *plain = txlog_resolve(head->log, list_key, head->max > 0, is_committed, &asker);
    bool good = plain != NULL && replay_entries(r, slice_make(plain->data, plain->used));
    count_intents(head, list_key, r->out);
    block_unref(&plain);
    return good;
}

/* ---- */

static bool replay_head(struct replay *r, const struct cluster *cluster, struct slice list_key,
                        const struct item *item, int64_t now_s)
{
    const struct ref_head *head = model_read_head(item);
    if (head == NULL) {
        return false;
    }
    r->max = head->max;
    r->refuses = head->refuses;
    r->out->garbage = (unsigned)head->garbage.count;
    read_absent(head, r->out);
    r->out->announcements = (unsigned)head->announcements.count;
    r->head = head;
    bool good = true;
    for (size_t i = 0; good && i < head->runs.count; i++) {
        good = replay_run(r, cluster, list_key, &head->runs.ranges[i], now_s);
    }
    r->head = NULL;
    return good && replay_log(r, cluster, list_key, head, now_s);
}

/* What a replay has come to. */
static void take_items(const struct replay *r, struct ids *items)
{
    items->count = 0;
    for (uint32_t i = 0; i < r->step_count; i++) {
        if (r->place[r->steps[i]] == i + 1) {
            ids_push_timed(items, r->steps[i], r->until[r->steps[i]]);
        }
    }
}

uint32_t model_cap(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                   bool *refuses)
{
    const struct item *item = find_head(cluster, list_key, now_s);
    const struct ref_head *head = model_read_head(item);
    *refuses = head != NULL && head->refuses;
    return item == NULL ? MODEL_NO_HEAD : head == NULL ? 0 : (uint32_t)head->max;
}

void model_lay_log(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                   struct ids *items)
{
    static struct replay replay; /* its memory is used again */
    const struct item *item = find_head(cluster, list_key, now_s);
    struct stored out = {0};
    const struct ref_head *head = model_read_head(item);
    CHECK(head != NULL);
    replay_begin(&replay, &out);
    for (uint32_t i = 0; i < items->count; i++) {
        add_at_end(&replay, items->ids[i], items->untils[i]);
    }
    CHECK(replay_log(&replay, cluster, list_key, head, now_s));
    take_items(&replay, items);
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
    replay_begin(&replay, out);
    out->malformed = !replay_head(&replay, cluster, list_key, head, now_s);
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
    const struct ref_head *head = model_read_head(item);
    if (head == NULL) {
        return NULL;
    }
    char name[KEY_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s#", SLICE_ARGS(list_key));
    struct store *own = cluster_store(cluster, slice_of(name));
    uint64_t until = 0;
    if (head->until.len > 0) {
        struct slice digits = slice_make(head->until.p + 1, head->until.len - 1);
        CHECK(slice_to_u64(head->until.p[0] == '@' ? digits : head->until, &until));
    }
    /* One that moves is given the seconds that it had left when it was read. */
    int64_t late_s = cluster->moving ? LOOK_AGE_MAX_S : 0;
    if (until != 0 && (item->expires_s == 0 || item->expires_s > (int64_t)until + late_s)) {
        wrong = "outlives the second that it names for its sublists";
    }
    if (until == 0 && all_end && head->runs.count > 0) {
        wrong = "names sublists without an end";
    }
    for (size_t i = 0; wrong == NULL && i < head->runs.count; i++) {
        const struct ref_range *run = &head->runs.ranges[i];
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
    return wrong;
}

/* The name in the key of a sublist of that list. */
static struct slice name_of_sublist(struct slice list_key, struct slice sublist)
{
    const char *dot = memrchr(sublist.p, '.', sublist.len);
    size_t front = list_key.len + 1;
    return dot == NULL ? SLICE_NONE
                       : slice_make(sublist.p + front, (size_t)(dot - sublist.p) - front);
}

static bool item_names(const struct item *item, struct slice name)
{
    const struct ref_head *head = model_read_head(item);
    return head != NULL && name.len > 0 &&
           (ref_find(&head->runs, name) != NULL || ref_find(&head->garbage, name) != NULL ||
            ref_find(&head->announcements, name) != NULL);
}

bool model_head_names(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                      struct slice sublist)
{
    const struct item *item = find_head(cluster, list_key, now_s);
    return item_names(item, name_of_sublist(list_key, sublist));
}

bool model_head_announces(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                          struct slice sublist)
{
    const struct item *item = find_head(cluster, list_key, now_s);
    const struct ref_head *head = model_read_head(item);
    return head != NULL &&
           ref_find(&head->announcements, name_of_sublist(list_key, sublist)) != NULL;
}

bool model_removed_head_names(const struct cluster *cluster, struct slice list_key,
                              struct slice sublist)
{
    struct slice name = name_of_sublist(list_key, sublist);
    for (size_t i = 0; i < cluster->count; i++) {
        const struct item *head = cluster->stores[i].removed_heads;
        for (; head != NULL; head = head->next) {
            struct slice key = slice_make(head->key, (size_t)head->key_len - 1);
            if (slice_equal(key, list_key) && item_names(head, name)) {
                return true;
            }
        }
    }
    return false;
}
