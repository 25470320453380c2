/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/lists.h"

#include <stdlib.h>

#include "base/number.h"
#include "list/content/ends.h"
#include "list/content/outline.h"
#include "list/content/view.h"
#include "list/core/plugin.h"

#define BUCKETS_MIN ((size_t)256)
/* Memory of a sublist in a view, decoded and with its index, for each byte that is stored. */
#define VIEW_MEMORY_FACTOR 4u

void lists_init(struct lists *lists, const struct list_plugin *plugin, size_t limit,
                uint64_t view_limit_bytes)
{
    *lists = (struct lists){.plugin = plugin,
                            .bucket_count = BUCKETS_MIN,
                            .limit = limit,
                            .view_limit_bytes = view_limit_bytes};
    lists->buckets = calloc(lists->bucket_count, sizeof *lists->buckets);
    CHECK(lists->buckets != NULL);
    TAILQ_INIT(&lists->lru);
    TAILQ_INIT(&lists->ready);
    TAILQ_INIT(&lists->waiting);
    TAILQ_INIT(&lists->views);
    TAILQ_INIT(&lists->ends);
    TAILQ_INIT(&lists->outlines);
}

static void drop_ends(struct lists *lists, struct list *list)
{
    if (list->ends != NULL) {
        TAILQ_REMOVE(&lists->ends, list, ends_lru);
        lists->ends_count--;
        ends_fini(list->ends);
        free(list->ends);
        list->ends = NULL;
    }
}

void lists_fini(struct lists *lists)
{
    while (!TAILQ_EMPTY(&lists->lru)) {
        struct list *list = TAILQ_FIRST(&lists->lru);
        TAILQ_REMOVE(&lists->lru, list, lru);
        lists_drop_view(lists, list);
        drop_ends(lists, list);
        lists_drop_outline(lists, list);
        free(list);
    }
    free(lists->buckets);
    lists->buckets = NULL;
}

static struct list **bucket_of(const struct lists *lists, uint64_t hash)
{
    return &lists->buckets[hash & (lists->bucket_count - 1)];
}

uint64_t lists_expect(const struct lists *lists, struct slice key)
{
    if (lists->last != NULL && slice_equal(list_key(lists->last), key)) {
        return lists->last->hash;
    }
    uint64_t hash = hash_bytes(key.p, key.len, 0);
    __builtin_prefetch(bucket_of(lists, hash));
    return hash;
}

void lists_fetch(const struct lists *lists, uint64_t hash)
{
    enum { CACHE_LINE_BYTES = 64 };
    if (lists->last != NULL && lists->last->hash == hash) {
        return;
    }
    const struct list *list = *bucket_of(lists, hash);
    if (list == NULL) {
        return;
    }
    const char *at = (const char *)list + LIST_BUSY_FROM, *end = list->key;
    for (; at < end; at += CACHE_LINE_BYTES) {
        __builtin_prefetch(at);
    }
    __builtin_prefetch(end);
}

static struct list **find(const struct lists *lists, struct slice key, uint64_t hash)
{
    struct list **at = bucket_of(lists, hash);
    while (*at != NULL && !((*at)->hash == hash && slice_equal(list_key(*at), key))) {
        at = &(*at)->next;
    }
    return at;
}

static bool list_idle(const struct list *list)
{
    return TAILQ_EMPTY(&list->queue) && TAILQ_EMPTY(&list->active) && list->ops == 0 &&
           !list->is_ready && !list->is_waiting && !timer_is_set(&list->append_backoff);
}

static void forget_idle(struct lists *lists)
{
    /* So many looks per new list are enough to stay at the limit, or a hundredth above it. */
    enum { STEPS_MAX = 128 };
    struct list *list = TAILQ_LAST(&lists->lru, lists_lru);
    for (int steps = 0; steps < STEPS_MAX && list != NULL && lists->count >= lists->limit;
         steps++) {
        struct list *before = TAILQ_PREV(list, lists_lru, lru);
        if (list->is_used || !list_idle(list)) {
            list->is_used = false;
            TAILQ_REMOVE(&lists->lru, list, lru);
            TAILQ_INSERT_HEAD(&lists->lru, list, lru);
        } else {
            *find(lists, list_key(list), list->hash) = list->next;
            TAILQ_REMOVE(&lists->lru, list, lru);
            lists->count--;
            lists_drop_view(lists, list);
            drop_ends(lists, list);
            lists_drop_outline(lists, list);
            lists->last = list == lists->last ? NULL : lists->last;
            free(list);
        }
        list = before;
    }
}

static void enter(struct lists *lists, struct list *list)
{
    struct list **bucket = bucket_of(lists, list->hash);
    list->next = *bucket;
    *bucket = list;
}

static void grow(struct lists *lists)
{
    size_t old_count = lists->bucket_count;
    struct list **old = lists->buckets;
    lists->bucket_count *= 2;
    lists->buckets = calloc(lists->bucket_count, sizeof *lists->buckets);
    CHECK(lists->buckets != NULL);
    for (size_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct list *list = old[i];
            old[i] = list->next;
            enter(lists, list);
        }
    }
    free(old);
}

/* A list and, behind its key, the plugin's memory. */
static struct list *create(const struct lists *lists, struct slice key,
                           const struct list_policy *policy)
{
    struct list *list;
    bool native = policy->dialect == DIALECT_NATIVE;
    size_t more = native ? 0 : lists->plugin->list_bytes(policy);
    size_t bytes = sizeof *list + key.len, align = native ? 1 : _Alignof(max_align_t);
    bytes = (bytes + align - 1) / align * align;
    list = calloc(1, bytes + more);
    CHECK(list != NULL && key.len <= LIST_KEY_BYTES_MAX);
    list->policy = policy;
    list->is_native = native;
    list->key_len = (uint8_t)key.len;
    memcpy(list->key, key.p, key.len);
    TAILQ_INIT(&list->queue);
    TAILQ_INIT(&list->active);
    TAILQ_INIT(&list->transactions);
    if (!native) {
        list->plugin_state = (char *)list + bytes;
        lists->plugin->list_init(list);
    }
    return list;
}

struct list *lists_get(struct lists *lists, struct slice key, const struct list_policy *policy)
{
    return lists_get_expected(lists, key, hash_bytes(key.p, key.len, 0), policy);
}

struct list *lists_get_expected(struct lists *lists, struct slice key, uint64_t hash,
                                const struct list_policy *policy)
{
    struct list *list = lists->last;
    if (list == NULL || list->hash != hash || !slice_equal(list_key(list), key)) {
        list = *find(lists, key, hash);
    }
    if (list != NULL) {
        list->is_used = true;
        lists->last = list;
        return list;
    }
    forget_idle(lists);
    if (lists->count >= lists->bucket_count) {
        grow(lists);
    }
    list = create(lists, key, policy);
    list->hash = hash;
    enter(lists, list);
    TAILQ_INSERT_HEAD(&lists->lru, list, lru);
    lists->count++;
    lists->last = list;
    return list;
}

struct view *lists_get_view(struct lists *lists, struct list *list)
{
    if (list->view == NULL) {
        list->view = malloc(sizeof *list->view);
        CHECK(list->view != NULL);
        view_init(list->view);
        list->view_bytes = 0;
    } else {
        TAILQ_REMOVE(&lists->views, list, view_lru);
    }
    TAILQ_INSERT_HEAD(&lists->views, list, view_lru);
    return list->view;
}

void lists_drop_view(struct lists *lists, struct list *list)
{
    if (list->view != NULL) {
        TAILQ_REMOVE(&lists->views, list, view_lru);
        lists->view_bytes -= list->view_bytes;
        view_fini(list->view);
        free(list->view);
        list->view = NULL;
        list->view_lags = false;
    }
}

void lists_count_view(struct lists *lists, struct list *list)
{
    lists->view_bytes -= list->view_bytes;
    list->view_bytes = sizeof *list->view + view_memory_bytes(list->view);
    lists->view_bytes += list->view_bytes;
    struct list *last = TAILQ_LAST(&lists->views, lists_views);
    while (lists->view_bytes > lists->view_limit_bytes && last != NULL) {
        struct list *before = TAILQ_PREV(last, lists_views, view_lru);
        if (last->viewing == NULL) {
            lists_drop_view(lists, last);
        }
        last = before;
    }
}

struct ends *lists_get_ends(struct lists *lists, struct list *list)
{
    if (list->ends == NULL) {
        list->ends = malloc(sizeof *list->ends);
        CHECK(list->ends != NULL);
        ends_init(list->ends);
        lists->ends_count++;
    } else {
        TAILQ_REMOVE(&lists->ends, list, ends_lru);
    }
    TAILQ_INSERT_HEAD(&lists->ends, list, ends_lru);
    struct list *last = TAILQ_LAST(&lists->ends, lists_ends);
    while (lists->ends_count > LISTS_ENDS_MAX && last != NULL) {
        struct list *before = TAILQ_PREV(last, lists_ends, ends_lru);
        if (last->ops == 0) {
            drop_ends(lists, last);
        }
        last = before;
    }
    return list->ends;
}

bool lists_view_fits(const struct lists *lists, uint64_t run_bytes, uint64_t log_bytes)
{
    uint64_t limit = lists->view_limit_bytes / 2 / VIEW_MEMORY_FACTOR;
    return log_bytes <= limit && run_bytes <= limit - log_bytes;
}

struct outline *lists_get_outline(struct lists *lists, struct list *list)
{
    if (list->outline == NULL) {
        list->outline = malloc(sizeof *list->outline);
        CHECK(list->outline != NULL);
        outline_init(list->outline);
        list->outline_bytes = 0;
    } else {
        TAILQ_REMOVE(&lists->outlines, list, outline_lru);
    }
    TAILQ_INSERT_HEAD(&lists->outlines, list, outline_lru);
    return list->outline;
}

void lists_drop_outline(struct lists *lists, struct list *list)
{
    if (list->outline != NULL) {
        TAILQ_REMOVE(&lists->outlines, list, outline_lru);
        lists->outline_bytes -= list->outline_bytes;
        outline_fini(list->outline);
        free(list->outline);
        list->outline = NULL;
    }
}

void lists_count_outline(struct lists *lists, struct list *list)
{
    lists->outline_bytes -= list->outline_bytes;
    list->outline_bytes = sizeof *list->outline + view_memory_bytes(&list->outline->view);
    lists->outline_bytes += list->outline_bytes;
    struct list *last = TAILQ_LAST(&lists->outlines, lists_outlines);
    while (lists->outline_bytes > lists->outline_limit_bytes && last != NULL) {
        struct list *before = TAILQ_PREV(last, lists_outlines, outline_lru);
        if (last->indexing == NULL) {
            lists_drop_outline(lists, last);
        }
        last = before;
    }
}

struct list *lists_find(const struct lists *lists, struct slice key)
{
    return *find(lists, key, hash_bytes(key.p, key.len, 0));
}

void lists_mark_ready(struct lists *lists, struct list *list)
{
    if (!list->is_ready) {
        list->is_ready = true;
        TAILQ_INSERT_TAIL(&lists->ready, list, ready);
    }
}

struct list *lists_take_ready(struct lists *lists)
{
    struct list *list = TAILQ_FIRST(&lists->ready);
    if (list != NULL) {
        TAILQ_REMOVE(&lists->ready, list, ready);
        list->is_ready = false;
    }
    return list;
}

void lists_wish(struct lists *lists, struct list *list, enum list_wish wish,
                const struct name_range *about)
{
    if (list->compaction != NULL || list->wish != WISH_NONE) {
        return;
    }
    list->wish = wish;
    if (about != NULL) {
        list->wish_about = *about;
    }
    lists_mark_ready(lists, list);
}

void lists_wait(struct lists *lists, struct list *list)
{
    if (!list->is_waiting) {
        list->is_waiting = true;
        TAILQ_INSERT_TAIL(&lists->waiting, list, waiting);
    }
}

void lists_stop_waiting(struct lists *lists, struct list *list)
{
    if (list->is_waiting) {
        list->is_waiting = false;
        TAILQ_REMOVE(&lists->waiting, list, waiting);
    }
    if (!TAILQ_EMPTY(&lists->waiting)) {
        lists_mark_ready(lists, TAILQ_FIRST(&lists->waiting));
    }
}

/* Another worker's appends may fail to come between two looks, but hardly so often in a row. */
#define LOOKS_SHARED 32

void list_note_seen(struct list *list, uint64_t size_bytes, uint64_t appended_bytes)
{
    uint64_t own_bytes = appended_bytes - (list->appended_total - list->appended_bytes);
    uint64_t expected = list->size_bytes + own_bytes;
    if (size_bytes > expected) {
        list->looks_shared = LOOKS_SHARED;
    } else if (size_bytes == expected && list->looks_shared > 0) {
        list->looks_shared--;
    }
    list->size_known = true;
    list->size_bytes = size_bytes;
    list->appended_bytes = list->appended_total - appended_bytes;
}

void list_note_size(struct list *list, uint64_t size_bytes)
{
    list_note_seen(list, size_bytes, list->appended_total);
}

void list_note_head(struct list *list, const struct head *head, uint64_t appended_bytes)
{
    list_note_seen(list, head->value.len, appended_bytes);
    list->header_bytes = head_header_bytes(head);
    list->extent = session_extent(head);
    list->has_no_runs = head->run_count == 0;
    list->cap = head->marks.cap;
}

uint64_t list_log_bytes(const struct list *list)
{
    uint64_t size = (list->size_known ? list->size_bytes : 0) + list->appended_bytes;
    return size > list->header_bytes ? size - list->header_bytes : 0;
}

/* What a head may hold: less than the server takes of a value. */
static uint64_t list_value_max(const struct list *list)
{
    uint64_t item_size_max = list->item_size_max;
    /* memcached takes no -I below 1k, whatever a server says of itself. */
    enum { ITEM_SIZE_LEAST = 1024 };
    if (item_size_max == 0) {
        return UINT64_MAX;
    }
    uint64_t max = item_size_max < ITEM_SIZE_LEAST ? ITEM_SIZE_LEAST : item_size_max;
    return max > 2 * CONFIG_ITEM_REST_BYTES ? max - CONFIG_ITEM_REST_BYTES : max / 2;
}

uint64_t list_log_hard_limit(const struct list *list)
{
    /* The other half is for the header, for announcements, and for what several proxies append at
     * the same moment. */
    return u64_least(list->policy->log_hard_limit_bytes, list_value_max(list) / 2);
}

uint64_t list_log_room(const struct list *list)
{
    uint64_t limit = list_log_hard_limit(list), log = list_log_bytes(list);
    return log < limit ? limit - log : 0;
}

uint64_t list_log_limit(const struct list *list)
{
    uint64_t most = list_log_hard_limit(list) / 2;
    uint64_t limit = u64_least(list->policy->log_limit_bytes, most);
    if (list->cap.max == 0 || list->folded_bytes == 0) {
        return limit;
    }
    /* A capped list has all of its content in the log: each read fetches that, and each fold writes
     * it. So a short one is folded earlier, and a long one not for each change. */
    enum { CAPPED_LOG_MIN = 1024 };
    uint64_t four = 4 * list->folded_bytes, two = 2 * list->folded_bytes;
    limit = u64_least(limit, four < CAPPED_LOG_MIN ? CAPPED_LOG_MIN : four);
    return u64_least(most, limit < two ? two : limit);
}

uint64_t list_sublist_limit(const struct list *list)
{
    return u64_least(list->policy->sublist_limit_bytes, list_value_max(list));
}

bool list_has_room(struct list *list, const struct head *head, size_t bytes)
{
    bool log_fits = head->raw_log_bytes + bytes <= list_log_hard_limit(list);
    bool fits = head->value.len + bytes <= list_value_max(list);
    list->head_full = log_fits && !fits;
    return log_fits && fits;
}
