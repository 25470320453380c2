/* SPDX-License-Identifier: BSD-3-Clause */
/* The list verbs of mclistd: each is a function that has its name and takes its words.
 *
 *     struct mclistd *lists = mclistd_open("127.0.0.1:11220", NULL);
 *     mclistd_ladd(lists, "followers:ann", MCLISTD_TEXTS("bob", "carol smith"));
 *     const struct mclistd_result *page = mclistd_lrevrange(lists, "followers:ann", 0, 9);
 *     for (size_t i = 0; i < page->count; i++) puts(page->items[i].data);
 *     mclistd_close(&lists);
 *
 * One connection, which the first request makes, for one thread at a time. A function returns its
 * result, never NULL, which belongs to the connection and is valid until the next call of it. */
#ifndef MCLISTD_H
#define MCLISTD_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mclistd;

enum mclistd_kind {
    MCLISTD_TRUE,    /* STORED, DELETED, OK, TOUCHED */
    MCLISTD_FALSE,   /* NOT_STORED, NOT_FOUND, EXISTS */
    MCLISTD_NUMBER,  /* number */
    MCLISTD_ITEMS,   /* items; of lgets also number, the version; of lgetx and lstat groups */
    MCLISTD_NONE,    /* NOT_FOUND or NOT_STORED in place of a number or items */
    MCLISTD_QUEUED,  /* mclistd_run() will tell */
    MCLISTD_REFUSED, /* error is the proxy's line; the connection goes on */
    MCLISTD_LOST,    /* no answer, or none that can be read: the request may have been done. The
                      * connection is closed, and the next request makes a new one. */
    MCLISTD_BAD,     /* what was to be sent is no key or no item; nothing was sent */
    MCLISTD_MOVED,   /* pages: no item of the last page can say where the next one begins */
};

/* Any bytes; in results a zero byte stands behind them. */
struct mclistd_item {
    const char *data;
    size_t bytes;
};

/* A list of lgetx, or a line of lstat, whose value is its one item. */
struct mclistd_group {
    struct mclistd_item name;
    const struct mclistd_item *items;
    size_t count;
};

struct mclistd_result {
    enum mclistd_kind kind;
    long long number;
    size_t count;
    const struct mclistd_item *items;
    size_t group_count;
    const struct mclistd_group *groups;
    const char *error; /* of MCLISTD_REFUSED and what stands below it; "" else */
};

/* What a function takes: texts that end in a zero byte, or items of any bytes. */
struct mclistd_list {
    size_t count;
    const char *const *texts;
    const struct mclistd_item *items; /* where texts is NULL */
};

#define MCLISTD_TEXTS(...) \
    ((struct mclistd_list){sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
                           (const char *[]){__VA_ARGS__}, NULL})

/* One item of any bytes. */
#define MCLISTD_BYTES(data, bytes) \
    ((struct mclistd_list){1, NULL, (struct mclistd_item[]){{(data), (bytes)}}})

/* Zero and NULL are the defaults. */
struct mclistd_options {
    int timeout_ms;    /* for each wait; 3000 */
    char delimiter;    /* between the items of lrange and other reads; ',' */
    const char *login; /* "USER PASSWORD"; copied */
};

/* address: HOST:PORT, [IPv6]:PORT or unix:PATH. Returns NULL where there is no memory, or where
 * this is no address. Connects with the first request. */
struct mclistd *mclistd_open(const char *address, const struct mclistd_options *options);
void mclistd_close(struct mclistd **lists);

/* --- changes --- */

const struct mclistd_result *mclistd_ladd(struct mclistd *, const char *key,
                                          struct mclistd_list items);
const struct mclistd_result *mclistd_laddt(struct mclistd *, const char *key, long long seconds,
                                           struct mclistd_list items);
const struct mclistd_result *mclistd_ldel(struct mclistd *, const char *key,
                                          struct mclistd_list items);
const struct mclistd_result *mclistd_lset(struct mclistd *, const char *key,
                                          struct mclistd_list items);
const struct mclistd_result *mclistd_lcreate(struct mclistd *, const char *key,
                                             struct mclistd_list items);
const struct mclistd_result *mclistd_laddx(struct mclistd *, const char *key,
                                           struct mclistd_list items);
const struct mclistd_result *mclistd_ldelx(struct mclistd *, const char *key,
                                           struct mclistd_list items);

/* Of lput and lcopy; a token goes with an exptime. */
struct mclistd_put {
    bool has_exptime, has_token, new_only;
    long long exptime, token;
};

/* Items of any bytes. options: NULL for none. */
const struct mclistd_result *mclistd_lput(struct mclistd *, const char *key,
                                          struct mclistd_list items,
                                          const struct mclistd_put *options);
const struct mclistd_result *mclistd_lcopy(struct mclistd *, const char *src, const char *dst,
                                           const struct mclistd_put *options);
const struct mclistd_result *mclistd_ltouch(struct mclistd *, const char *key, long long exptime);
const struct mclistd_result *mclistd_ldrop(struct mclistd *, const char *key);
const struct mclistd_result *mclistd_lpurge(struct mclistd *, const char *key);
const struct mclistd_result *mclistd_lcompact(struct mclistd *, const char *key);
const struct mclistd_result *mclistd_lmigrate(struct mclistd *, const char *key);
const struct mclistd_result *mclistd_lconvert(struct mclistd *, const char *key);

/* The token; 0: another client has the lease; MCLISTD_NONE: the list is there. */
const struct mclistd_result *mclistd_llease(struct mclistd *, const char *key, long long seconds);

/* --- reads --- */

const struct mclistd_result *mclistd_lget(struct mclistd *, const char *key);
const struct mclistd_result *mclistd_lgets(struct mclistd *, const char *key); /* MCLISTD_NONE:
                                                                                  there are none */
/* Of one instant; a list that is missing has no group. */
const struct mclistd_result *mclistd_lgetx(struct mclistd *, struct mclistd_list keys);
/* Those of the items that are in the list. */
const struct mclistd_result *mclistd_lhas(struct mclistd *, const char *key,
                                          struct mclistd_list items);
const struct mclistd_result *mclistd_llen(struct mclistd *, const char *key);
const struct mclistd_result *mclistd_lttl(struct mclistd *, const char *key); /* seconds, -1 for
                                                                                 never */
const struct mclistd_result *mclistd_lttl_item(struct mclistd *, const char *key,
                                               struct mclistd_item item);
const struct mclistd_result *mclistd_lrange(struct mclistd *, const char *key, long long from,
                                            long long to);
const struct mclistd_result *mclistd_lrevrange(struct mclistd *, const char *key, long long from,
                                               long long to);
const struct mclistd_result *mclistd_lafter(struct mclistd *, const char *key,
                                            struct mclistd_item item, long long count);
const struct mclistd_result *mclistd_lbefore(struct mclistd *, const char *key,
                                             struct mclistd_item item, long long count);
const struct mclistd_result *mclistd_lrandom(struct mclistd *, const char *key, long long count);
const struct mclistd_result *mclistd_lstat(struct mclistd *, const char *key);

/* --- several lists --- */

const struct mclistd_result *mclistd_linter(struct mclistd *, struct mclistd_list keys);
const struct mclistd_result *mclistd_lunion(struct mclistd *, struct mclistd_list keys);
const struct mclistd_result *mclistd_ldiff(struct mclistd *, struct mclistd_list keys);
const struct mclistd_result *mclistd_linterlen(struct mclistd *, struct mclistd_list keys);
const struct mclistd_result *mclistd_lunionlen(struct mclistd *, struct mclistd_list keys);
const struct mclistd_result *mclistd_ldifflen(struct mclistd *, struct mclistd_list keys);
const struct mclistd_result *mclistd_linterstore(struct mclistd *, const char *dst,
                                                 struct mclistd_list keys);
const struct mclistd_result *mclistd_lunionstore(struct mclistd *, const char *dst,
                                                 struct mclistd_list keys);
const struct mclistd_result *mclistd_ldiffstore(struct mclistd *, const char *dst,
                                                struct mclistd_list keys);
const struct mclistd_result *mclistd_lpop(struct mclistd *, const char *key, long long count);
const struct mclistd_result *mclistd_lpopto(struct mclistd *, const char *src, const char *dst,
                                            long long count);
const struct mclistd_result *mclistd_lmove(struct mclistd *, const char *src, const char *dst,
                                           struct mclistd_list items);

/* A line of a transaction: verb is ladd, ldel, lset, lrequire or lrefuse. */
struct mclistd_change {
    const char *verb, *key;
    struct mclistd_list items;
};

const struct mclistd_result *mclistd_ltx(struct mclistd *, const struct mclistd_change *changes,
                                         size_t count);

/* --- pages --- */

/* The list in pages, from its oldest item or its newest. Each goes on behind the last item of the
 * one before, or the one before that, if it has left the list meanwhile. Begin with
 * {.lists = ..., .key = ..., .count = ...}; lists and key must stay. */
struct mclistd_pages {
    struct mclistd *lists;
    const char *key;
    long long count;
    bool newest;
    struct mclistd_item *last; /* items of the page before; belongs to mclistd_next() */
    size_t last_count;
    bool ended;
};

/* MCLISTD_ITEMS, or what has failed; NULL: there are no more pages. Then nothing is left to free;
 * where a program stops before, mclistd_stop() frees it. Not within a pipeline. */
const struct mclistd_result *mclistd_next(struct mclistd_pages *pages);
void mclistd_stop(struct mclistd_pages *pages);

/* --- pipelines --- */

/* The calls that follow answer MCLISTD_QUEUED, or MCLISTD_BAD, and are not sent before
 * mclistd_run(). */
void mclistd_pipeline(struct mclistd *lists);

/* Sends them, up to 16 KB at a time, so that neither side waits for the other. Returns the result
 * of each, in their order, and in count how many these are: valid until the next call. Behind the
 * first that is lost, all are. NULL: there is no memory, and nothing was sent. */
const struct mclistd_result *mclistd_run(struct mclistd *lists, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
