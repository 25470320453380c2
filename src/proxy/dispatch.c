/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/dispatch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/version.h"
#include "pool/pool.h"
#include "proxy/bridge/bridge.h"
#include "proxy/core/worker.h"
#include "proxy/lists/request.h"
#include "proxy/plain/forward.h"
#include "proxy/stats.h"

/* Words of a SHAPE_PLAIN request that are looked at. */
#define WORDS_MAX 4

struct words {
    struct slice word[WORDS_MAX];
    size_t count; /* all of them, also those beyond WORDS_MAX */
    bool noreply; /* the last word was noreply; it is not counted */
};

static struct words split(struct slice args)
{
    struct words words = {.count = 0};
    struct slice token;
    bool noreply = false;
    while (token_next(&args, &token)) {
        if (words.count < WORDS_MAX) {
            words.word[words.count] = token;
        }
        words.count++;
        noreply = slice_equal(token, SLICE_LIT("noreply"));
    }
    if (noreply) {
        words.noreply = true;
        words.count--;
    }
    return words;
}

static void answer(struct client *client, struct slice text)
{
    pending_answer_fixed(client, text);
}

static void refuse(struct client *client, bool noreply, struct slice text)
{
    metric_inc(&client->worker->metrics, METRIC_client_errors);
    metric_inc(&client->worker->metrics, METRIC_refused_verb);
    if (!noreply) {
        answer(client, text);
    }
}

static void do_verbosity(struct client *client, const struct request *request)
{
    struct words words = split(request->args);
    if (words.noreply) {
        return;
    }
    if (words.count == 0 || words.count > 2) {
        refuse(client, false, SLICE_LIT("ERROR\r\n"));
    } else {
        answer(client, SLICE_LIT("OK\r\n"));
    }
}

/* Is it a number as memcached takes it for a time, and above zero? */
static bool parse_delay(struct slice word, bool *is_positive)
{
    bool negative = word.len > 0 && word.p[0] == '-';
    uint64_t value;
    if (negative || (word.len > 0 && word.p[0] == '+')) {
        (void)slice_take(&word, 1);
    }
    *is_positive = false;
    if (!slice_to_u64(word, &value) || value > INT64_MAX) {
        return false;
    }
    *is_positive = value > 0 && !negative;
    return true;
}

/* The first pool of those that are to be flushed and cannot be, or NULL. */
static const struct pool_config *pool_without_flush(const struct config *config)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        if ((config->flush_pools >> i & 1) != 0 && config->pools[i].type != POOL_MEMCACHED) {
            return &config->pools[i];
        }
    }
    return NULL;
}

static void do_flush_all(struct client *client, const struct request *request, struct block *block)
{
    struct words words = split(request->args);
    const struct pool_config *pool = pool_without_flush(client->worker->config);
    enum flush_all allowed = client->worker->config->allow_flush_all;
    bool delayed = false;
    if (words.count > 1) {
        refuse(client, words.noreply, SLICE_LIT("ERROR\r\n"));
    } else if (words.count == 1 && !parse_delay(words.word[0], &delayed)) {
        refuse(client, words.noreply, SLICE_LIT("CLIENT_ERROR invalid exptime argument\r\n"));
    } else if (pool != NULL) {
        char line[CONFIG_NAME_MAX + 64];
        snprintf(line, sizeof line, "CLIENT_ERROR flush_all: pool %s is of type couchbase",
                 pool->name);
        pending_refuse(client, words.noreply, line);
    } else if (allowed != FLUSH_ALL_YES && allowed != FLUSH_ALL_KEEP_LISTS) {
        refuse(client, words.noreply,
               SLICE_LIT("CLIENT_ERROR flush_all is off, since it would delete all lists as well: "
                         "set allow_flush_all = yes in [proxy], or keep_lists\r\n"));
    } else if (delayed) {
        refuse(client, words.noreply,
               SLICE_LIT("CLIENT_ERROR flush_all with a delay is refused, since what is stored "
                         "before it ends would vanish: use flush_all without one\r\n"));
    } else {
        forward_flush_all(client, request, block, words.noreply);
    }
}

static void do_stats(struct client *client, const struct request *request)
{
    struct chain text;
    chain_init(&text);
    struct slice error = stats_answer(client->worker, request->args, &text);
    if (error.len == 0) {
        pending_answer_text(client, &text);
    } else {
        refuse(client, false, error);
    }
    chain_fini(&text);
}

/* Of the pools that answer plain keys. False: none of their servers has told its version. */
static bool lowest_version(const struct worker *w, struct version *out)
{
    const struct config *config = w->config;
    struct version of_pool;
    bool any = false;
    for (size_t pool = 0; pool < config->pool_count; pool++) {
        bool answers = false;
        for (size_t i = 0; i < config->route_count; i++) {
            const struct route_config *route = &config->routes[i];
            answers = answers || route->pool_index == pool || route->failover_index == pool;
        }
        if (answers && pool_lowest_version(w->pools[pool], &of_pool) &&
            (!any || version_is_before(&of_pool, out))) {
            *out = of_pool;
            any = true;
        }
    }
    return any;
}

/* What its servers can do, clients may send. */
static void do_version(struct client *client)
{
    const struct worker *w = client->worker;
    struct version lowest;
    struct chain text;
    char line[128];
    if (!lowest_version(w, &lowest)) {
        answer(client, SLICE_LIT("VERSION " PROXY_VERSION "\r\n"));
        return;
    }
    int len = snprintf(line, sizeof line,
                       "VERSION %" PRIu64 ".%" PRIu64 ".%" PRIu64 PROXY_MARK MCLISTD_VERSION "\r\n",
                       lowest.parts[0], lowest.parts[1], lowest.parts[2]);
    chain_init(&text);
    chain_copy(&text, line, (size_t)len);
    pending_answer_text(client, &text);
    chain_fini(&text);
}

/* What the proxy answers itself. */
static RARE void do_plain(struct client *client, const struct request *request, struct block *block)
{
    switch (request->verb->verb) {
    case VERB_MN:
        answer(client, SLICE_LIT("MN\r\n"));
        return;
    case VERB_VERSION:
        do_version(client);
        return;
    case VERB_VERBOSITY:
        do_verbosity(client, request);
        return;
    case VERB_STATS:
        do_stats(client, request);
        return;
    case VERB_FLUSH_ALL:
        do_flush_all(client, request, block);
        return;
    case VERB_QUIT:
        client_stop(client);
        return;
    default:
        refuse(client, false, SLICE_LIT("ERROR\r\n"));
        return;
    }
}

static void take(struct client *client, const struct request *request, struct block *block)
{
    enum verb_shape shape = request->verb->shape;
    if (shape == SHAPE_PLAIN) {
        do_plain(client, request, block);
    } else if (shape_is_list(shape)) {
        list_request_start(client, request, block);
    } else {
        CHECK(shape != SHAPE_REFUSED); /* the parser has answered it */
        if (!bridge_takes(client, request, block)) {
            forward_request(client, request, block);
        }
    }
}

static void take_large(struct client *client, const struct request *request, struct block *block)
{
    if (!bridge_take_large(client, request)) {
        forward_remove(client, request, block);
    }
}

static void take_binary(struct client *client, const struct request *request, struct block *block)
{
    if (request->verb->verb == VERB_QUIT && !request->binary.is_quiet) {
        answer(client, SLICE_LIT("OK\r\n"));
    }
    if (request->verb->shape == SHAPE_PLAIN) {
        do_plain(client, request, block);
    } else if (!bridge_takes(client, request, block)) {
        forward_binary(client, request, block);
    }
}

const struct client_handlers dispatch_handlers = {
    .take = take, .remove = take_large, .take_binary = take_binary};
