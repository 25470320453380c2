/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs: each writes a request, and finish() sends it or leaves it queued. */
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct mclistd_result *other(struct mclistd *l, enum mclistd_kind kind,
                                          const char *error)
{
    l->other = (struct mclistd_result){.kind = kind, .error = error};
    return &l->other;
}

/* NULL: there is no memory. The last results go now, and not before: the requests may have named
 * their items. */
static const struct mclistd_result *run_all(struct mclistd *l, size_t *count)
{
    mclistd_free_answers(l);
    l->answers = calloc(l->call_count + 1, sizeof(*l->answers));
    l->results = calloc(l->call_count + 1, sizeof(*l->results));
    bool can = l->answers != NULL && l->results != NULL;
    if (can) {
        l->answer_count = l->call_count;
        if (l->call_count > 0) {
            mclistd_run_calls(l);
        }
    }
    *count = l->answer_count;
    l->call_count = 0;
    l->requests.used = 0;
    return can ? l->results : NULL;
}

void mclistd_pipeline(struct mclistd *l)
{
    l->pipelining = true;
}

const struct mclistd_result *mclistd_run(struct mclistd *l, size_t *count)
{
    l->pipelining = false;
    return run_all(l, count);
}

static void put(struct mclistd *l, const void *bytes, size_t count)
{
    if (!mclistd_append(&l->requests, bytes, count)) {
        l->no_memory = true;
    }
}

__attribute__((format(printf, 2, 3))) static void print(struct mclistd *l, const char *format, ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    put(l, text, (size_t)bytes);
}

static bool is_word(struct mclistd_item item)
{
    for (size_t i = 0; i < item.bytes; i++) {
        if ((unsigned char)item.data[i] <= ' ' || item.data[i] == 127) {
            return false;
        }
    }
    return item.bytes > 0;
}

static struct mclistd_item text(const char *bytes)
{
    return (struct mclistd_item){bytes, strlen(bytes)};
}

static struct mclistd_item item_at(struct mclistd_list list, size_t at)
{
    return list.texts != NULL ? text(list.texts[at]) : list.items[at];
}

/* A key, or an item that stands beside others. */
static void word(struct mclistd *l, struct mclistd_item item)
{
    l->bad = l->bad || !is_word(item);
    put(l, " ", 1);
    put(l, item.data, item.bytes);
}

static void words(struct mclistd *l, struct mclistd_list list)
{
    for (size_t i = 0; i < list.count; i++) {
        word(l, item_at(list, i));
    }
}

static void data(struct mclistd *l, struct mclistd_item item)
{
    print(l, " %zu\r\n", item.bytes);
    put(l, item.data, item.bytes);
    put(l, "\r\n", 2);
}

static void begin(struct mclistd *l, const char *verb)
{
    l->bad = l->no_memory = false;
    put(l, verb, strlen(verb));
}

/* Ends the request that was begun where the last call ends: sends it, or leaves it queued. */
static const struct mclistd_result *finish(struct mclistd *l, enum shape shape)
{
    size_t start = l->call_count > 0 ? l->calls[l->call_count - 1].end : 0, count;
    bool can = !l->no_memory && mclistd_make_room((void **)&l->calls, &l->call_room,
                                                  l->call_count + 1, sizeof(*l->calls));
    if (l->bad || !can) {
        l->requests.used = start;
        return l->bad ? other(l, MCLISTD_BAD, "no key, nor an item that can stand beside others")
                      : other(l, MCLISTD_LOST, "nothing was sent: no memory");
    }
    l->calls[l->call_count++] = (struct call){shape, l->requests.used};
    if (l->pipelining) {
        return other(l, MCLISTD_QUEUED, "");
    }
    const struct mclistd_result *result = run_all(l, &count);
    return result != NULL ? result : other(l, MCLISTD_LOST, "nothing was sent: no memory");
}

static const struct mclistd_result *line(struct mclistd *l, enum shape shape)
{
    put(l, "\r\n", 2);
    return finish(l, shape);
}

static const struct mclistd_result *ask(struct mclistd *l, enum shape shape, const char *verb,
                                        const char *key)
{
    begin(l, verb);
    word(l, text(key));
    return line(l, shape);
}

static const struct mclistd_result *ask_number(struct mclistd *l, enum shape shape,
                                               const char *verb, const char *key, long long number)
{
    begin(l, verb);
    word(l, text(key));
    print(l, " %lld", number);
    return line(l, shape);
}

static const struct mclistd_result *ask_range(struct mclistd *l, const char *verb, const char *key,
                                              long long from, long long to)
{
    begin(l, verb);
    word(l, text(key));
    print(l, " %lld %lld", from, to);
    return line(l, ITEMS);
}

/* second: a key or an item. */
static const struct mclistd_result *ask_count(struct mclistd *l, const char *verb, const char *key,
                                              struct mclistd_item second, long long count)
{
    begin(l, verb);
    word(l, text(key));
    word(l, second);
    print(l, " %lld", count);
    return line(l, ITEMS);
}

/* first and second: keys in front of the list, or NULL. */
static const struct mclistd_result *ask_some(struct mclistd *l, enum shape shape, const char *verb,
                                             const char *first, const char *second,
                                             struct mclistd_list list)
{
    begin(l, verb);
    if (first != NULL) {
        word(l, text(first));
    }
    if (second != NULL) {
        word(l, text(second));
    }
    words(l, list);
    l->bad = l->bad || list.count == 0;
    return line(l, shape);
}

/* A line of ladd and the like; one item may have any bytes. */
static void change(struct mclistd *l, const char *verb, const char *key, const char *seconds,
                   struct mclistd_list items)
{
    bool is_whole = strcmp(verb, "lset") == 0, alone = items.count == 1 && !is_whole;
    put(l, verb, strlen(verb));
    put(l, "b", alone);
    word(l, text(key));
    put(l, seconds, strlen(seconds));
    l->bad = l->bad || (items.count == 0 && !is_whole);
    if (alone) {
        data(l, item_at(items, 0));
    } else {
        words(l, items);
        put(l, "\r\n", 2);
    }
}

static const struct mclistd_result *ask_change(struct mclistd *l, const char *verb, const char *key,
                                               const char *seconds, struct mclistd_list items)
{
    begin(l, "");
    change(l, verb, key, seconds, items);
    return finish(l, DONE);
}

static void put_options(struct mclistd *l, const struct mclistd_put *options)
{
    if (options != NULL && options->has_exptime) {
        print(l, " %lld", options->exptime);
    }
    if (options != NULL && options->has_token) {
        print(l, " %lld", options->token);
    }
    if (options != NULL && options->new_only) {
        print(l, " new");
    }
}

/* --- changes --- */

const struct mclistd_result *mclistd_ladd(struct mclistd *l, const char *key,
                                          struct mclistd_list items)
{
    return ask_change(l, "ladd", key, "", items);
}

const struct mclistd_result *mclistd_laddt(struct mclistd *l, const char *key, long long seconds,
                                           struct mclistd_list items)
{
    char text_of[32];
    snprintf(text_of, sizeof(text_of), " %lld", seconds);
    return ask_change(l, "laddt", key, text_of, items);
}

const struct mclistd_result *mclistd_ldel(struct mclistd *l, const char *key,
                                          struct mclistd_list items)
{
    return ask_change(l, "ldel", key, "", items);
}

const struct mclistd_result *mclistd_lset(struct mclistd *l, const char *key,
                                          struct mclistd_list items)
{
    return ask_change(l, "lset", key, "", items);
}

const struct mclistd_result *mclistd_lcreate(struct mclistd *l, const char *key,
                                             struct mclistd_list items)
{
    begin(l, "lcreate");
    word(l, text(key));
    words(l, items);
    return line(l, DONE);
}

const struct mclistd_result *mclistd_laddx(struct mclistd *l, const char *key,
                                           struct mclistd_list items)
{
    return ask_some(l, NUMBER, "laddx", key, NULL, items);
}

const struct mclistd_result *mclistd_ldelx(struct mclistd *l, const char *key,
                                           struct mclistd_list items)
{
    return ask_some(l, NUMBER, "ldelx", key, NULL, items);
}

const struct mclistd_result *mclistd_lput(struct mclistd *l, const char *key,
                                          struct mclistd_list items,
                                          const struct mclistd_put *options)
{
    size_t bytes = 0;
    for (size_t i = 0; i < items.count; i++) {
        struct mclistd_item item = item_at(items, i);
        bytes +=
            strlen("ITEM x \r\n\r\n") + item.bytes + (size_t)snprintf(NULL, 0, "%zu", item.bytes);
    }
    begin(l, "lputb");
    word(l, text(key));
    print(l, " %zu", bytes);
    put_options(l, options);
    put(l, "\r\n", 2);
    for (size_t i = 0; i < items.count; i++) {
        print(l, "ITEM x");
        data(l, item_at(items, i));
    }
    return line(l, DONE);
}

const struct mclistd_result *mclistd_lcopy(struct mclistd *l, const char *src, const char *dst,
                                           const struct mclistd_put *options)
{
    begin(l, "lcopy");
    word(l, text(src));
    word(l, text(dst));
    put_options(l, options);
    return line(l, NUMBER);
}

const struct mclistd_result *mclistd_ltouch(struct mclistd *l, const char *key, long long exptime)
{
    return ask_number(l, DONE, "ltouch", key, exptime);
}

const struct mclistd_result *mclistd_ldrop(struct mclistd *l, const char *key)
{
    return ask(l, DONE, "ldrop", key);
}

const struct mclistd_result *mclistd_lpurge(struct mclistd *l, const char *key)
{
    return ask(l, NUMBER, "lpurge", key);
}

const struct mclistd_result *mclistd_lcompact(struct mclistd *l, const char *key)
{
    return ask(l, DONE, "lcompact", key);
}

const struct mclistd_result *mclistd_lmigrate(struct mclistd *l, const char *key)
{
    return ask(l, DONE, "lmigrate", key);
}

const struct mclistd_result *mclistd_lconvert(struct mclistd *l, const char *key)
{
    return ask(l, NUMBER, "lconvert", key);
}

const struct mclistd_result *mclistd_llease(struct mclistd *l, const char *key, long long seconds)
{
    return ask_number(l, TOKEN, "llease", key, seconds);
}

/* --- reads --- */

const struct mclistd_result *mclistd_lget(struct mclistd *l, const char *key)
{
    return ask(l, ITEMS, "lgetb", key);
}

const struct mclistd_result *mclistd_lgets(struct mclistd *l, const char *key)
{
    return ask(l, VERSIONED, "lgets", key);
}

const struct mclistd_result *mclistd_lgetx(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, EACH, "lgetx", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_lhas(struct mclistd *l, const char *key,
                                          struct mclistd_list items)
{
    if (items.count != 1) {
        return ask_some(l, ITEMS, "lhas", key, NULL, items);
    }
    begin(l, "lhasb");
    word(l, text(key));
    data(l, item_at(items, 0));
    return finish(l, WHOLE);
}

const struct mclistd_result *mclistd_llen(struct mclistd *l, const char *key)
{
    return ask(l, NUMBER, "llen", key);
}

const struct mclistd_result *mclistd_lttl(struct mclistd *l, const char *key)
{
    return ask(l, NUMBER, "lttl", key);
}

const struct mclistd_result *mclistd_lttl_item(struct mclistd *l, const char *key,
                                               struct mclistd_item item)
{
    begin(l, "lttlb");
    word(l, text(key));
    data(l, item);
    return finish(l, NUMBER);
}

const struct mclistd_result *mclistd_lrange(struct mclistd *l, const char *key, long long from,
                                            long long to)
{
    return ask_range(l, "lrange", key, from, to);
}

const struct mclistd_result *mclistd_lrevrange(struct mclistd *l, const char *key, long long from,
                                               long long to)
{
    return ask_range(l, "lrevrange", key, from, to);
}

const struct mclistd_result *mclistd_lafter(struct mclistd *l, const char *key,
                                            struct mclistd_item item, long long count)
{
    return ask_count(l, "lafter", key, item, count);
}

const struct mclistd_result *mclistd_lbefore(struct mclistd *l, const char *key,
                                             struct mclistd_item item, long long count)
{
    return ask_count(l, "lbefore", key, item, count);
}

const struct mclistd_result *mclistd_lrandom(struct mclistd *l, const char *key, long long count)
{
    return ask_number(l, ITEMS, "lrandomb", key, count);
}

const struct mclistd_result *mclistd_lstat(struct mclistd *l, const char *key)
{
    return ask(l, STATS, "lstat", key);
}

/* --- several lists --- */

const struct mclistd_result *mclistd_linter(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, ITEMS, "linter", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_lunion(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, ITEMS, "lunion", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_ldiff(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, ITEMS, "ldiff", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_linterlen(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, NUMBER, "linterlen", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_lunionlen(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, NUMBER, "lunionlen", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_ldifflen(struct mclistd *l, struct mclistd_list keys)
{
    return ask_some(l, NUMBER, "ldifflen", NULL, NULL, keys);
}

const struct mclistd_result *mclistd_linterstore(struct mclistd *l, const char *dst,
                                                 struct mclistd_list keys)
{
    return ask_some(l, NUMBER, "linterstore", dst, NULL, keys);
}

const struct mclistd_result *mclistd_lunionstore(struct mclistd *l, const char *dst,
                                                 struct mclistd_list keys)
{
    return ask_some(l, NUMBER, "lunionstore", dst, NULL, keys);
}

const struct mclistd_result *mclistd_ldiffstore(struct mclistd *l, const char *dst,
                                                struct mclistd_list keys)
{
    return ask_some(l, NUMBER, "ldiffstore", dst, NULL, keys);
}

const struct mclistd_result *mclistd_lpop(struct mclistd *l, const char *key, long long count)
{
    return ask_number(l, ITEMS, "lpopb", key, count);
}

const struct mclistd_result *mclistd_lpopto(struct mclistd *l, const char *src, const char *dst,
                                            long long count)
{
    return ask_count(l, "lpoptob", src, text(dst), count);
}

const struct mclistd_result *mclistd_lmove(struct mclistd *l, const char *src, const char *dst,
                                           struct mclistd_list items)
{
    return ask_some(l, NUMBER, "lmove", src, dst, items);
}

const struct mclistd_result *mclistd_ltx(struct mclistd *l, const struct mclistd_change *changes,
                                         size_t count)
{
    static const char *const verbs[] = {"ladd", "ldel", "lset", "lrequire", "lrefuse"};
    struct buffer before = l->requests;
    /* The block is written where the requests are written, and then taken out of them. */
    l->requests = (struct buffer){NULL, 0, 0};
    begin(l, "");
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t v = 0; v < LENGTH(verbs); v++) {
            known = known || strcmp(changes[i].verb, verbs[v]) == 0;
        }
        l->bad = l->bad || !known;
        change(l, changes[i].verb, changes[i].key, "", changes[i].items);
    }
    struct buffer block = l->requests;
    l->requests = before;
    print(l, "ltx %zu\r\n", block.used);
    put(l, block.bytes, block.used);
    free(block.bytes);
    return line(l, DONE);
}

/* --- pages --- */

void mclistd_stop(struct mclistd_pages *pages)
{
    for (size_t i = 0; i < pages->last_count; i++) {
        free((char *)pages->last[i].data);
    }
    free(pages->last);
    pages->last = NULL;
    pages->last_count = 0;
    pages->ended = true;
}

/* Keeps the page's items beyond the next call. False: no memory. */
static bool keep_page(struct mclistd_pages *pages, const struct mclistd_result *page)
{
    mclistd_stop(pages);
    pages->last = calloc(page->count, sizeof(*pages->last));
    if (pages->last == NULL) {
        return false;
    }
    for (; pages->last_count < page->count; pages->last_count++) {
        struct mclistd_item item = page->items[pages->last_count];
        char *copy = malloc(item.bytes + 1);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, item.data, item.bytes);
        pages->last[pages->last_count] = (struct mclistd_item){copy, item.bytes};
    }
    pages->ended = false;
    return true;
}

static bool is_among(struct mclistd_item item, const struct mclistd_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].bytes == item.bytes && memcmp(items[i].data, item.data, item.bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Leaves out the items that the reader has seen, and those beyond a page. */
static void cut_page(struct mclistd *l, const struct mclistd_pages *pages, size_t seen_from)
{
    struct mclistd_item *items = l->answers[0].items;
    const struct mclistd_item *seen = pages->last + seen_from;
    size_t count = 0;
    for (size_t i = 0; i < l->results[0].count; i++) {
        if (!is_among(items[i], seen, pages->last_count - seen_from)) {
            items[count++] = items[i];
        }
    }
    l->results[0].count = (long long)count > pages->count ? (size_t)pages->count : count;
}

/* The page behind the last one, by the last of its items that is in the list. */
static const struct mclistd_result *page_behind(struct mclistd_pages *pages)
{
    struct mclistd *l = pages->lists;
    for (size_t at = pages->last_count; at-- > 0;) {
        if (!is_word(pages->last[at])) {
            continue;
        }
        long long count = pages->count + (long long)(pages->last_count - at - 1);
        const struct mclistd_result *page =
            pages->newest ? mclistd_lbefore(l, pages->key, pages->last[at], count)
                          : mclistd_lafter(l, pages->key, pages->last[at], count);
        if (page->kind == MCLISTD_ITEMS) {
            cut_page(l, pages, at + 1);
        }
        if (page->kind != MCLISTD_NONE) {
            return page;
        }
    }
    return other(l, MCLISTD_MOVED, "no item of the last page can say where the next one begins");
}

const struct mclistd_result *mclistd_next(struct mclistd_pages *pages)
{
    struct mclistd *l = pages->lists;
    const struct mclistd_result *page;
    if (pages->ended) {
        return NULL;
    }
    if (pages->last != NULL) {
        page = page_behind(pages);
    } else if (pages->newest) {
        page = mclistd_lrevrange(l, pages->key, 0, pages->count - 1);
    } else {
        page = mclistd_lrange(l, pages->key, 0, pages->count - 1);
    }
    bool is_page = page->kind == MCLISTD_ITEMS && page->count > 0;
    if (!is_page) {
        mclistd_stop(pages);
        return page->kind == MCLISTD_ITEMS ? NULL : page;
    }
    if (!keep_page(pages, page)) {
        mclistd_stop(pages);
        return other(l, MCLISTD_LOST, "no memory");
    }
    return page;
}
