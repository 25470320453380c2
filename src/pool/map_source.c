/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/map_source.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/server/map_stream.h"

/* What one answer may hold before it is asked for anew: some dozen maps of usual size. */
#define ANSWER_BYTES_MAX ((ev_ssize_t)4 << 20)
#define HEADERS_BYTES_MAX ((ev_ssize_t)16 << 10)
/* A server that says nothing for so long is asked anew: its machine may be gone. */
#define SILENCE_S 30
/* The same server is asked anew no sooner than so long after its last map. */
#define ANEW_AFTER_US ((uint64_t)500000)
/* How often it is looked whether a name was found. */
#define LOOK_MS 100
#define PROBLEM_MAX 160

static const char *const paths[] = {"/pools/default/bs/", "/pools/default/bucketsStreaming/"};

/* Where a map is asked for. */
struct place {
    const struct server_config *config;
    struct resolver_name *name; /* or NULL: location is known */
    struct location location;
    char problem[PROBLEM_MAX]; /* the last one in the log */
};

struct map_source {
    struct cluster *cluster;
    struct place *places;
    size_t place_count, current;
    size_t path;
    bool at_twin;                   /* the other loopback address's turn */
    struct evhttp_connection *http; /* or NULL */
    bool is_over;                   /* it is freed by the timer: not from its own callbacks */
    bool has_told;                  /* a map has come with this answer */
    uint64_t told_us;               /* the last one, or the request */
    uint64_t retry_ms;              /* next back-off */
    struct map_stream stream;
    uint64_t map_hash; /* of the last one */
    struct event *timer;
};

static const struct pool_config *config_of(const struct map_source *s)
{
    return s->cluster->context->config;
}

static uint64_t now_us(const struct map_source *s)
{
    return s->cluster->context->now->mono_us;
}

static void set_timer(struct map_source *s, uint64_t ms)
{
    struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    CHECK(event_add(s->timer, &tv) == 0);
}

/* --- ends of an answer ---------------------------------------------------------------------------
 */

/* Goes on with the next request, after the back-off where this one was of no use. */
static void end(struct map_source *s, const char *problem)
{
    struct place *at = &s->places[s->current];
    uint64_t ms = s->retry_ms;
    if (s->is_over) {
        return;
    }
    s->is_over = true;
    if (s->has_told) {
        s->retry_ms = config_of(s)->retry_min_ms;
        set_timer(s, s->retry_ms);
        return;
    }
    if (strcmp(problem, at->problem) != 0) {
        log_warn("pool %s: %s: no map: %s", config_of(s)->name, at->config->name, problem);
        snprintf(at->problem, sizeof at->problem, "%s", problem);
    }
    s->at_twin = !s->at_twin && at->location.twin.len > 0;
    s->current = s->at_twin ? s->current : (s->current + 1) % s->place_count;
    s->retry_ms = ms * 2 < config_of(s)->retry_max_ms ? ms * 2 : config_of(s)->retry_max_ms;
    set_timer(s, (ms * (75 + rng_below(&s->cluster->context->rng, 51)) + 99) / 100);
}

static void take(struct map_source *s, struct slice json)
{
    static const struct timeval silence = {SILENCE_S, 0};
    struct bufferevent *bev = evhttp_connection_get_bufferevent(s->http);
    struct place *at = &s->places[s->current];
    if (!cluster_take_map_of(s->cluster, at->config, &at->location.address, &s->map_hash, json)) {
        end(s, "it cannot be read");
        return;
    }
    s->has_told = true;
    s->told_us = now_us(s);
    s->places[s->current].problem[0] = '\0';
    s->retry_ms = config_of(s)->retry_min_ms;
    CHECK(bufferevent_set_timeouts(bev, &silence, &silence) == 0);
}

static void on_piece(struct evhttp_request *request, void *arg)
{
    struct map_source *s = arg;
    struct evbuffer *in = evhttp_request_get_input_buffer(request);
    size_t len = evbuffer_get_length(in);
    struct slice map;
    context_woke(s->cluster->context);
    if (s->is_over || evhttp_request_get_response_code(request) != HTTP_OK || len == 0) {
        return;
    }
    if (!map_stream_add(&s->stream, slice_make((char *)evbuffer_pullup(in, -1), len))) {
        end(s, "it is too long");
        return;
    }
    while (!s->is_over && map_stream_next(&s->stream, &map)) {
        take(s, map);
    }
}

static void on_end(struct evhttp_request *request, void *arg)
{
    struct map_source *s = arg;
    char problem[PROBLEM_MAX] = "it cannot be reached, or speaks no HTTP";
    context_woke(s->cluster->context);
    int code = request == NULL ? 0 : evhttp_request_get_response_code(request);
    struct slice rest = map_stream_rest(&s->stream);
    if (s->is_over) {
        return;
    }
    if (code == HTTP_OK && rest.len > 0) {
        take(s, rest);
    } else if (code != 0 && code != HTTP_OK && s->path == 0 && code != 401) {
        s->path = 1;
        s->is_over = true;
        set_timer(s, 0);
        return;
    } else if (code != 0) {
        const char *line = evhttp_request_get_response_code_line(request);
        char shown[PROBLEM_MAX - 32];
        slice_escape_also(slice_of(line == NULL ? "" : line), "", shown, sizeof shown);
        snprintf(problem, sizeof problem, "it answers %d %s", code, shown);
    }
    s->path = s->has_told ? s->path : 0;
    end(s, problem);
}

/* --- requests ------------------------------------------------------------------------------------
 */

static void add_headers(const struct map_source *s, struct evkeyvalq *headers)
{
    const struct pool_config *config = config_of(s);
    const struct endpoint *at = &s->places[s->current].config->endpoint;
    char basic[LOGIN_BASIC_MAX], host[ENDPOINT_TEXT_MAX];
    login_basic(slice_of(config->username), slice_of(config->password), basic);
    CHECK(evhttp_add_header(headers, "Host", endpoint_format(at, host)) == 0);
    CHECK(evhttp_add_header(headers, "Authorization", basic) == 0);
    CHECK(evhttp_add_header(headers, "Accept", "application/json") == 0);
}

static void ask(struct map_source *s, const struct address *address)
{
    const struct pool_config *config = config_of(s);
    struct timeval tv = {config->connect_timeout_ms / 1000,
                         (suseconds_t)(config->connect_timeout_ms % 1000 * 1000)};
    char text[ADDRESS_TEXT_MAX], path[64 + 3 * CONFIG_NAME_MAX];
    struct address plain = *address;
    address_set_port(&plain, 0);
    s->http =
        evhttp_connection_base_new(s->cluster->context->base, NULL, address_text(&plain, text),
                                   s->places[s->current].config->endpoint.port);
    CHECK(s->http != NULL);
    evhttp_connection_set_timeout_tv(s->http, &tv);
    evhttp_connection_set_max_body_size(s->http, ANSWER_BYTES_MAX);
    evhttp_connection_set_max_headers_size(s->http, HEADERS_BYTES_MAX);
    struct evhttp_request *request = evhttp_request_new(on_end, s);
    CHECK(request != NULL);
    evhttp_request_set_chunked_cb(request, on_piece);
    add_headers(s, evhttp_request_get_output_headers(request));
    char *bucket = evhttp_uriencode(config->bucket, -1, 0);
    CHECK(bucket != NULL);
    snprintf(path, sizeof path, "%s%s", paths[s->path], bucket);
    free(bucket);
    s->is_over = s->has_told = false;
    s->told_us = now_us(s);
    map_stream_clear(&s->stream);
    /* The timeouts of the connection begin anew with each byte. */
    set_timer(s, SILENCE_S * 1000);
    if (evhttp_make_request(s->http, request, EVHTTP_REQ_GET, path) != 0) {
        end(s, "it cannot be reached, or speaks no HTTP");
    }
}

static void begin(struct map_source *s)
{
    struct place *at = &s->places[s->current];
    uint64_t version;
    enum resolver_answer answer =
        at->name == NULL ? RESOLVER_KNOWN : resolver_ask(at->name, &at->location, &version);
    s->is_over = s->has_told = false;
    if (answer == RESOLVER_WAIT) {
        set_timer(s, LOOK_MS);
    } else if (answer == RESOLVER_UNKNOWN || at->location.address.len == 0) {
        end(s, "its name is not resolved");
    } else {
        ask(s, s->at_twin ? &at->location.twin : &at->location.address);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct map_source *s = arg;
    (void)fd, (void)what;
    context_woke(s->cluster->context);
    if (s->http != NULL && s->is_over) {
        evhttp_connection_free(s->http);
        s->http = NULL;
    }
    if (s->http == NULL) {
        begin(s);
    } else if (!s->has_told) {
        end(s, "it takes too long");
    }
}

void map_source_want(struct map_source *s)
{
    /* What has told nothing yet is a question that is under way: begun anew each time, it would
     * never come to its timeout, and to the next server. */
    if (s->http != NULL && !s->is_over && s->has_told && now_us(s) >= s->told_us + ANEW_AFTER_US) {
        s->is_over = true;
        set_timer(s, 0);
    }
}

void map_source_relocate(struct map_source *s)
{
    if (s->http == NULL) {
        set_timer(s, 0);
    }
}

/* --- start and end ------------------------------------------------------------------------------
 */

static void locate(struct map_source *s, struct place *at, const struct server_config *config)
{
    at->config = config;
    if (address_is_localhost(config->endpoint.host)) {
        address_localhost(&at->location);
    } else if (!address_read(config->endpoint.host, config->endpoint.port, &at->location.address)) {
        at->name = resolver_find(s->cluster->resolver, &config->endpoint);
        at->location.address.len = 0;
    }
}

struct map_source *map_source_create(struct cluster *cluster)
{
    const struct pool_config *config = cluster->context->config;
    struct map_source *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->cluster = cluster;
    s->places = calloc(config->server_count, sizeof *s->places);
    CHECK(s->places != NULL);
    for (size_t i = 0; i < config->server_count; i++) {
        if (config->servers[i].scheme == SCHEME_HTTP) {
            locate(s, &s->places[s->place_count++], &config->servers[i]);
        }
    }
    if (s->place_count == 0) {
        free(s->places);
        free(s);
        return NULL;
    }
    s->retry_ms = config->retry_min_ms;
    s->timer = evtimer_new(cluster->context->base, on_timer, s);
    CHECK(s->timer != NULL);
    set_timer(s, 0);
    return s;
}

void map_source_destroy(struct map_source **slot)
{
    struct map_source *s = *slot;
    *slot = NULL;
    if (s == NULL) {
        return;
    }
    if (s->http != NULL) {
        evhttp_connection_free(s->http);
    }
    for (size_t i = 0; i < s->place_count; i++) {
        if (s->places[i].name != NULL) {
            resolver_release(s->places[i].name);
        }
    }
    map_stream_clear(&s->stream);
    event_free(s->timer);
    free(s->places);
    free(s);
}
