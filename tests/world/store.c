/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <stdlib.h>

#include "base/check.h"
#include "journal.h"

/* What memcached takes besides the value. */
#define ITEM_OVERHEAD 64

void store_init(struct store *store, uint64_t item_size_max, const char *name)
{
    *store = (struct store){.incarnation = 1};
    TAILQ_INIT(&store->items);
    store->caps =
        (struct be_caps){.item_size_max = item_size_max, .cas_enabled = true, .server_name = name};
}

static struct item **find(struct store *store, struct slice key)
{
    struct item **at = &store->buckets[hash_bytes(key.p, key.len, 7) % STORE_BUCKETS];
    while (*at != NULL && !slice_equal(item_key(*at), key)) {
        at = &(*at)->next;
    }
    return at;
}

static struct item *take_at(struct store *store, struct item **at)
{
    struct item *item = *at;
    *at = item->next;
    TAILQ_REMOVE(&store->items, item, link);
    return item;
}

static void item_free(struct item *item)
{
    block_unref(&item->value);
    free(item);
}

static void remove_at(struct store *store, struct item **at)
{
    item_free(take_at(store, at));
}

void store_clear(struct store *store)
{
    while (!TAILQ_EMPTY(&store->items)) {
        remove_at(store, find(store, item_key(TAILQ_FIRST(&store->items))));
    }
}

void store_restart(struct store *store)
{
    store_clear(store);
    store->last_cas = 0;
    store->incarnation++;
}

void store_fini(struct store *store)
{
    store_restart(store);
    while (store->removed_heads != NULL) {
        struct item *head = store->removed_heads;
        store->removed_heads = head->next;
        item_free(head);
    }
    journal_fini(store);
}

/* A node of a cluster removes an item up to a second late. */
static bool is_over(const struct store *store, const struct item *item, int64_t now_s)
{
    int64_t late_s = store->vbuckets != NULL ? 1 : 0;
    return item->expires_s != 0 && item->expires_s + late_s <= store_clock(store, now_s);
}

static struct item **find_live(struct store *store, struct slice key, int64_t now_s)
{
    struct item **at = find(store, key);
    if (*at != NULL && is_over(store, *at, now_s)) {
        remove_at(store, at); /* the key may have been its own */
        while (*at != NULL) {
            at = &(*at)->next;
        }
    }
    return at;
}

struct item *store_find(struct store *store, struct slice key, int64_t now_s)
{
    return *find_live(store, key, now_s);
}

void store_each(struct store *store, void (*visit)(void *arg, const struct item *item), void *arg)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++) {
        for (const struct item *item = store->buckets[i]; item != NULL; item = item->next) {
            visit(arg, item);
        }
    }
}

void store_evict(struct store *store, struct slice key)
{
    struct item **at = find(store, key);
    if (*at != NULL) {
        remove_at(store, at);
    }
}

/* A moment that is over expires at once. clock_s: the server's. */
static int64_t expiry(int32_t exptime, int64_t clock_s)
{
    const int32_t relative_max = 60 * 60 * 24 * 30;
    if (exptime == 0) {
        return 0;
    }
    return exptime > relative_max ? exptime : clock_s + exptime;
}

uint64_t store_next_cas(struct store *store, struct slice key, int64_t now_s)
{
    return store->vbuckets == NULL ? ++store->last_cas
                                   : journal_next_cas(store, key, store_clock(store, now_s));
}

static struct item *insert(struct store *store, struct item **at, struct slice key)
{
    struct item *item = calloc(1, sizeof *item);
    CHECK(item != NULL);
    item->key_len = (uint8_t)key.len;
    memcpy(item->key, key.p, key.len);
    *at = item;
    TAILQ_INSERT_TAIL(&store->items, item, link);
    return item;
}

void store_put_back(struct store *store, const struct item *before)
{
    struct item **at = find(store, item_key(before));
    if (before->value == NULL) {
        if (*at != NULL) {
            remove_at(store, at);
        }
        return;
    }
    struct item *item = *at != NULL ? *at : insert(store, at, item_key(before));
    block_unref(&item->value);
    item->value = block_ref(before->value);
    item->cas = before->cas;
    item->expires_s = before->expires_s;
    item->flags = before->flags;
    item->end_count = before->end_count;
    memcpy(item->ends_s, before->ends_s, sizeof item->ends_s);
}

/* Takes over the caller's reference to value. */
static void put(struct store *store, const struct be_operation *r, struct block *value,
                int64_t now_s)
{
    struct slice key = r->key;
    struct item **at = find(store, key);
    if (*at == NULL) {
        (void)insert(store, at, key);
    } else {
        block_unref(&(*at)->value);
    }
    (*at)->value = value;
    (*at)->on_disk = false;
    (*at)->flags = r->flags;
    (*at)->expires_s = expiry(r->exptime, store_clock(store, now_s));
    (*at)->cas = store_next_cas(store, key, now_s);
}

static struct block *copy_value(struct slice first, struct slice second)
{
    struct block *b = block_new(first.len + second.len + 1);
    memcpy(b->data, first.p == NULL ? "" : first.p, first.len);
    memcpy(b->data + first.len, second.p == NULL ? "" : second.p, second.len);
    b->used = first.len + second.len;
    return b;
}

bool store_takes(const struct store *store, size_t bytes)
{
    uint64_t max = store->small_max != 0 ? store->small_max : store->caps.item_size_max;
    return bytes + ITEM_OVERHEAD <= max;
}

static enum be_status write_value(struct store *store, const struct be_operation *r,
                                  struct item **at, int64_t now_s)
{
    if ((r->verb == BE_ADD && *at != NULL) || (r->verb == BE_REPLACE && *at == NULL)) {
        return BE_NOT_STORED;
    }
    if (!store_takes(store, r->value.len) || store->out_of_memory) {
        if (r->verb == BE_SET && *at != NULL && store->vbuckets == NULL) {
            remove_at(store, at); /* as the real one does */
        }
        return store_takes(store, r->value.len) ? BE_NO_MEMORY : BE_TOO_LARGE;
    }
    if (r->verb == BE_CAS && *at == NULL) {
        return BE_NOT_FOUND;
    }
    if (r->verb == BE_CAS && (*at)->cas != r->cas) {
        return BE_EXISTS;
    }
    put(store, r, copy_value(r->value, SLICE_NONE), now_s);
    return BE_STORED;
}

/* Flags and expiry stay as they are. Takes over the caller's reference. */
static void change_value(struct store *store, struct item *item, struct block *value, int64_t now_s)
{
    block_unref(&item->value);
    item->value = value;
    item->cas = store_next_cas(store, item_key(item), now_s);
}

/* By `ms` if it asks for the CAS number, which deletes what is there where it finds no room. */
static enum be_status extend(struct store *store, const struct be_operation *r, struct item **at,
                             int64_t now_s)
{
    struct item *item = *at;
    if (r->asks_cas && store->vbuckets == NULL && store->out_of_memory && !store->caps.evicts) {
        if (item != NULL) {
            remove_at(store, at);
        }
        return BE_NO_MEMORY;
    }
    if (item != NULL && store->vbuckets != NULL) {
        if (!store_takes(store, item->value->used + r->value.len)) {
            return BE_TOO_LARGE;
        }
        if (store->out_of_memory) {
            return BE_NO_MEMORY;
        }
    }
    if (item != NULL && r->with_cas && item->cas != r->cas) {
        return BE_EXISTS;
    }
    if (item == NULL || item->on_disk || store->out_of_memory ||
        !store_takes(store, item->value->used + r->value.len)) {
        return BE_NOT_STORED;
    }
    struct slice old = item_value(item);
    bool front = r->verb == BE_PREPEND;
    change_value(store, item, copy_value(front ? r->value : old, front ? old : r->value), now_s);
    return BE_STORED;
}

/* The number that the value begins with, up to its end or a blank: memcached leaves blanks where
 * digits were. */
static bool read_number(struct slice value, uint64_t *number)
{
    const char *blank = value.len == 0 ? NULL : memchr(value.p, ' ', value.len);
    size_t len = blank == NULL ? value.len : (size_t)(blank - value.p);
    return slice_to_u64(slice_make(value.p, len), number);
}

static enum be_status increment(struct store *store, const struct be_operation *r,
                                struct item *item, int64_t now_s, struct be_reply *reply)
{
    char digits[20];
    uint64_t number;
    if (item == NULL) {
        return BE_NOT_FOUND;
    }
    if (item->on_disk || !read_number(item_value(item), &number)) {
        reply->text = "s said CLIENT_ERROR cannot increment or decrement non-numeric value";
        return BE_REFUSED;
    }
    number += r->delta; /* wraps around, as the real one's */
    size_t len = format_u64(digits, number);
    size_t old_len = store->vbuckets == NULL ? item->value->used : 0; /* a node leaves no blanks */
    if (len > old_len && store->out_of_memory) {
        return BE_NO_MEMORY;
    }
    struct block *value = block_new_exact(len > old_len ? len : old_len);
    value->used = len > old_len ? len : old_len;
    memset(value->data, ' ', value->used);
    memcpy(value->data, digits, len);
    change_value(store, item, value, now_s);
    reply->number = number;
    return BE_STORED;
}

/* clock_s: the server's. */
static enum be_status read_value(const struct store *store, const struct item *item,
                                 const struct be_operation *r, int64_t clock_s,
                                 struct be_reply *reply)
{
    if (store->no_times && r->verb == BE_TIME) {
        reply->text = "backend tells no times to live";
        return BE_REFUSED;
    }
    reply->no_times = store->no_times && r->verb == BE_GET;
    if (item == NULL) {
        return BE_MISS;
    }
    reply->size_bytes = item->value->used;
    reply->cas = item->cas;
    reply->ttl_s = -1;
    if ((r->verb == BE_GET || r->verb == BE_TIME) && item->expires_s != 0 && !store->no_times) {
        reply->ttl_s = item->expires_s - clock_s;
        reply->expires_s = store->vbuckets == NULL ? 0 : (uint32_t)item->expires_s;
    }
    if (r->verb == BE_GET) {
        reply->flags = item->flags;
        reply->block = block_ref(item->value);
        reply->value = item_value(item);
    }
    return BE_HIT;
}

static enum be_status remove_value(struct store *store, const struct be_operation *r,
                                   struct item **at)
{
    if (*at == NULL) {
        return BE_NOT_FOUND;
    }
    if (r->verb == BE_CAS_DELETE && (*at)->cas != r->cas) {
        return BE_EXISTS;
    }
    if (r->verb != BE_CAS_DELETE) {
        remove_at(store, at);
        return BE_DELETED;
    }
    struct item *item = take_at(store, at);
    if (item->key[item->key_len - 1] == '#') {
        item->next = store->removed_heads;
        store->removed_heads = item;
    } else {
        item_free(item);
    }
    return BE_STORED;
}

static void execute(struct store *store, const struct be_operation *r, int64_t now_s,
                    struct be_reply *reply)
{
    struct item **at = find_live(store, r->key, now_s);
    reply->caps = &store->caps;
    switch (r->verb) {
    case BE_GET:
    case BE_SIZE:
    case BE_PROBE:
    case BE_TIME:
        reply->status = read_value(store, *at, r, store_clock(store, now_s), reply);
        return;
    case BE_ADD:
    case BE_REPLACE:
    case BE_SET:
    case BE_CAS:
        reply->status = write_value(store, r, at, now_s);
        return;
    case BE_APPEND:
    case BE_PREPEND:
        reply->status = extend(store, r, at, now_s);
        return;
    case BE_INCR:
        reply->status = increment(store, r, *at, now_s, reply);
        return;
    case BE_CAS_DELETE:
    case BE_DELETE:
        reply->status = remove_value(store, r, at);
        return;
    case BE_FETCH:
    case BE_DECR:
    case BE_TOUCH:
    case BE_GAT:
    case BE_LINE:
    case BE_LINE_READ:
    case BE_LINE_GET:
    case BE_STATS:
    case BE_MAP:
    case BE_COLLECTION:
        break; /* the engine sends none of these */
    }
    CHECK(false);
}

void store_execute(struct store *store, const struct be_operation *r, int64_t now_s,
                   struct be_reply *reply)
{
    if (store->vbuckets == NULL || !be_changes(r->verb)) {
        execute(store, r, now_s, reply);
        return;
    }
    struct slice key = r->key;
    struct undo *undo = journal_begin(store, key, *find_live(store, key, now_s));
    execute(store, r, now_s, reply);
    bool changed = reply->status == BE_STORED || reply->status == BE_DELETED;
    journal_end(store, undo, changed, r->durable);
}

const char *be_verb_name(enum be_verb verb)
{
    static const char *const names[] = {
        [BE_GET] = "get",      [BE_SIZE] = "size",     [BE_PROBE] = "probe",
        [BE_TIME] = "time",    [BE_ADD] = "add",       [BE_REPLACE] = "replace",
        [BE_SET] = "set",      [BE_APPEND] = "append", [BE_PREPEND] = "prepend",
        [BE_INCR] = "incr",    [BE_CAS] = "cas",       [BE_CAS_DELETE] = "cas-delete",
        [BE_DELETE] = "delete"};
    return names[verb];
}

const char *be_status_name(enum be_status status)
{
    static const char *const names[] = {[BE_HIT] = "HIT",
                                        [BE_MISS] = "MISS",
                                        [BE_STORED] = "STORED",
                                        [BE_NOT_STORED] = "NOT_STORED",
                                        [BE_EXISTS] = "EXISTS",
                                        [BE_NOT_FOUND] = "NOT_FOUND",
                                        [BE_DELETED] = "DELETED",
                                        [BE_ANSWERED] = "ANSWERED",
                                        [BE_NO_MEMORY] = "NO_MEMORY",
                                        [BE_TOO_LARGE] = "TOO_LARGE",
                                        [BE_REFUSED] = "REFUSED",
                                        [BE_DOWN] = "DOWN",
                                        [BE_LOST] = "LOST"};
    return names[status];
}
