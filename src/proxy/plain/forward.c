/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/forward.h"

#include "proto/client/request_shape.h"
#include "proxy/client/deadline.h"
#include "proxy/core/shared.h"
#include "proxy/plain/forward_part.h"
#include "proxy/plain/meta.h"
#include "proxy/plain/multiget.h"
#include "proxy/plain/next.h"
#include "proxy/plain/operation.h"
#include "proxy/plain/protect.h"
#include "proxy/plain/route.h"

/* Its data block was taken with it, so nothing of it is run as a command. */
static RARE void refuse_protected(struct client *client, const struct request *r)
{
    struct metrics *m = &client->worker->metrics;
    metric_inc(m, METRIC_protected_writes);
    metric_inc(m, METRIC_client_errors);
    if (!r->noreply) {
        pending_answer_fixed(client, PROTECT_REPLY);
    }
}

/* A key with blanks is none of a list's, however it ends. */
static bool is_protected(const struct client *client, const struct request *r)
{
    return protect_refuses(client->worker->config, r) &&
           !(client_is_binary(client) && r->binary.odd_key);
}

/* --- one key, one reply --- */

static char *put_exptime(char *out, int64_t exptime)
{
    return exptime < 0 ? put(out, SLICE_LIT(" -1")) : put_number(out, (uint64_t)exptime);
}

/* The line without noreply, its numbers in the usual form. Extra words that memcached tolerates are
 * left out as well. */
static struct slice rebuild_classic(struct worker *w, const struct request *r)
{
    char *start = worker_scratch(w, r->line.len + 128);
    char *out = put(start, r->verb->text);
    out = put_word(out, r->key);
    if (r->verb->shape == SHAPE_STORE) {
        out = put_number(out, r->flags);
        out = put_exptime(out, r->exptime);
        out = put_number(out, r->data.len);
        if (r->verb->verb == VERB_CAS) {
            out = put_number(out, r->cas);
        }
    } else if (r->verb->shape == SHAPE_ARITH) {
        out = put_number(out, r->delta);
    } else if (r->verb->shape == SHAPE_TOUCH) {
        out = put_exptime(out, r->exptime);
    }
    out = put(out, SLICE_LIT("\r\n"));
    return slice_make(start, (size_t)(out - start));
}

static char *put_meta_time(char *out, int64_t exptime)
{
    out = put(out, SLICE_LIT(" T"));
    if (exptime < 0) {
        return put(out, SLICE_LIT("-1"));
    }
    return out + format_u64(out, (uint64_t)exptime);
}

/* The line without flag q. limited: of a part whose value lives no longer than that lets it. */
static struct slice rebuild_meta(struct worker *w, const struct request *r,
                                 const struct forward_part *limited)
{
    char *start = worker_scratch(w, r->line.len + 32);
    char *out = put(start, r->verb->text);
    out = put_word(out, r->key);
    struct slice args = r->args;
    struct slice token;
    int64_t exptime = 0;
    bool is_usual, is_flag = r->verb->shape != SHAPE_META_SET; /* ms: the size comes first */
    while (token_next(&args, &token)) {
        if (is_flag && limited != NULL && token.p[0] == 'T') {
            (void)word_to_exptime(slice_make(token.p + 1, token.len - 1), &exptime, &is_usual);
        } else if (!is_flag || token.p[0] != 'q') {
            out = put_word(out, token);
        }
        is_flag = true;
    }
    if (limited != NULL) {
        out = put_meta_time(out, route_failover_exptime(limited, exptime));
    }
    out = put(out, SLICE_LIT("\r\n"));
    return slice_make(start, (size_t)(out - start));
}

/* The line with its line end, as the server is to get it: where possible as it lies in the input.
 */
static ALWAYS_INLINE struct slice line_to_send(struct worker *w, const struct request *r)
{
    if (request_is_meta(r) && r->quiet) {
        return rebuild_meta(w, r, NULL);
    }
    if (r->noreply || UNLIKELY(!r->is_usual)) {
        return rebuild_classic(w, r);
    }
    /* A line that ends in LF alone is in order as well, but servers are only given the usual form.
     */
    if (r->line.p[r->line.len] == '\r') {
        return slice_make(r->line.p, r->line.len + 2);
    }
    char *out = worker_scratch(w, r->line.len + 2);
    put(put(out, r->line), SLICE_LIT("\r\n"));
    return slice_make(out, r->line.len + 2);
}

/* Its answer has the form of meta commands. */
static void expect_meta(struct exchange *x, const struct request *r)
{
    x->op.form = (struct be_line_form){.meta = r->verb->text.p[1],
                                       .key_is_base64 = r->base64,
                                       .flags = r->meta_flags,
                                       .key = r->key,
                                       .opaque = r->opaque};
}

/* Fills the part's own exchange. */
static ALWAYS_INLINE void fill_single(struct forward_part *f, struct slice line)
{
    struct pending *p = f->part.pending;
    const struct request *r = &p->request;
    struct exchange *x = forward_part_exchange(f, request_changes(r) ? BE_LINE : BE_LINE_READ, line,
                                               operation_verb(r->verb->verb));
    if (request_is_meta(r)) {
        expect_meta(x, r);
    }
    if (r->has_data) {
        x->op.value = r->data_crlf;
        x->op.block = p->block;
    }
}

static void start_single(struct pending *p)
{
    struct worker *w = worker_of(p);
    const struct request *r = &p->request;
    bool may_be_long = r->verb->verb == VERB_MG;
    struct forward_part *f = forward_part_new(p, r->key, may_be_long ? WINDOW_ITEM : WINDOW_SHORT);
    p->all_started = true;
    fill_single(f, line_to_send(w, r));
    route_submit(f);
}

/* The line for the failover pool. */
static struct slice line_elsewhere(struct worker *w, const struct forward_part *f)
{
    struct request r = f->part.pending->request;
    if (request_is_meta(&r)) {
        return rebuild_meta(w, &r, r.has_data ? f : NULL);
    }
    if (r.has_data) {
        r.exptime = route_failover_exptime(f, r.exptime);
    }
    return rebuild_classic(w, &r);
}

/* Does the client not want to see this reply? As memcached has it: q hides misses of mg and
 * successes of ms, md, ma. */
static ALWAYS_INLINE bool is_hidden(const struct request *r, const struct forward_part *f)
{
    if (r->noreply) {
        return true;
    }
    if (!r->quiet || f->failed) {
        return false;
    }
    enum verb verb = r->verb->verb;
    bool done = slice_starts_with(f->line, SLICE_LIT("HD")) || f->has_value;
    bool miss = slice_starts_with(f->line, SLICE_LIT("EN"));
    return verb == VERB_MG ? miss : (verb == VERB_MS || verb == VERB_MD || verb == VERB_MA) && done;
}

/* As memcached counts it. */
static ALWAYS_INLINE void count_mg(struct metrics *m, const struct forward_part *f)
{
    if (f->has_value || (!f->failed && slice_starts_with(f->line, SLICE_LIT("HD")))) {
        metric_inc(m, METRIC_get_hits);
    } else if (!f->failed && slice_starts_with(f->line, SLICE_LIT("EN"))) {
        metric_inc(m, METRIC_get_misses);
    }
}

static void emit_single(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    struct worker *w = worker_of(p);
    if (p->request.verb->verb == VERB_MG) {
        if (forward_part_is_miss(f)) {
            meta_emit_miss(&p->request, out);
            return;
        }
        count_mg(&w->metrics, f);
    }
    if (!f->failed) {
        forward_count_error(w, f->line);
    }
    if (is_hidden(&p->request, f)) {
        return;
    }
    if (f->failed) {
        forward_part_emit_failure(f, out);
        return;
    }
    chain_add(out, f->block, f->line.p, f->line.len + 2 + (f->has_value ? f->value.len + 2 : 0));
}

/* The answer to a meta command that is not quite what the server says: of another pool, whose CAS
 * numbers are told otherwise, or with flags that the client has not asked for. */
static void emit_rewritten(const struct forward_part *f, struct chain *out)
{
    const struct request *r = &f->part.pending->request;
    char *start = chain_reserve(out, f->line.len + 32);
    struct slice rest = f->line, token;
    uint64_t cas;
    (void)token_next(&rest, &token);
    char *end = put(start, token);
    while (token_next(&rest, &token)) {
        if (token.p[0] == 'f' && (r->meta_flags & letter_bit('f')) == 0) {
            continue; /* the proxy has asked for it */
        }
        if (token.p[0] == 'c' && slice_to_u64(slice_make(token.p + 1, token.len - 1), &cas)) {
            end = put(end, SLICE_LIT(" c"));
            end += format_u64(end, forward_part_cas(f, cas));
        } else {
            end = put_word(end, token);
        }
    }
    end = put(end, SLICE_LIT("\r\n"));
    chain_commit(out, (size_t)(end - start));
    if (f->has_value) {
        chain_add(out, f->block, f->value.p, f->value.len + 2);
    }
}

static void emit_elsewhere(struct part *part, struct chain *out)
{
    const struct request *r = &part->pending->request;
    const struct forward_part *f = forward_of(part);
    bool tells_cas = request_is_meta(r) && (r->meta_flags & letter_bit('c')) != 0;
    if (tells_cas && !f->failed && !is_hidden(r, f)) {
        forward_count_error(worker_of(part->pending), f->line);
        emit_rewritten(f, out);
    } else {
        emit_single(part, out);
    }
}

/* Of what the failover pool is asked for. */
static const struct handler elsewhere_handler = {.kinds = ABOUT_ITEMS,
                                                 .start = start_single,
                                                 .emit = emit_elsewhere,
                                                 .timeout_text = forward_timeout_text};

static RARE void redirect_single(struct part *part)
{
    struct forward_part *f = forward_of(part);
    part->pending->handler = &elsewhere_handler;
    fill_single(f, line_elsewhere(worker_of(part->pending), f));
}

static const struct handler single_handler = {.kinds = ABOUT_ITEMS,
                                              .start = start_single,
                                              .redirect = redirect_single,
                                              .emit = emit_single,
                                              .timeout_text = forward_timeout_text};

/* --- keys whose server changes --- */

/* A lease is known by its flags. */
RARE static void ask_for_flags(struct part *part)
{
    struct forward_part *f = forward_of(part);
    struct worker *w = worker_of(part->pending);
    const struct request *r = &part->pending->request;
    bool asks = r->verb->verb == VERB_MG && (r->meta_flags & letter_bit('f')) == 0;
    struct slice line = r->verb->verb == VERB_MG ? rebuild_meta(w, r, NULL) : line_to_send(w, r);
    if (asks) {
        char *end = (char *)(uintptr_t)line.p + line.len - 2; /* in the worker's scratch */
        line.len = (size_t)(put(end, SLICE_LIT(" f\r\n")) - line.p);
    }
    fill_single(f, line);
    f->exchange.op.form.flags |= asks ? letter_bit('f') : 0;
}

RARE static void start_moving(struct pending *p)
{
    struct forward_part *f = forward_part_new(p, p->request.key, WINDOW_ITEM);
    p->all_started = true;
    ask_for_flags(&f->part);
    route_submit(f);
}

RARE static void emit_moving(struct part *part, struct chain *out)
{
    const struct request *r = &part->pending->request;
    const struct forward_part *f = forward_of(part);
    bool hit = !f->failed && (f->has_value || slice_starts_with(f->line, SLICE_LIT("HD")));
    if (r->verb->verb == VERB_MG && hit) {
        count_mg(&worker_of(part->pending)->metrics, f);
        emit_rewritten(f, out);
    } else {
        emit_single(part, out);
    }
}

static const struct handler moving_handler = {.kinds = ABOUT_ITEMS,
                                              .start = start_moving,
                                              .redirect = ask_for_flags,
                                              .emit = emit_moving,
                                              .timeout_text = forward_timeout_text};

static void add_moving(struct client *client, const struct request *r, struct block *block)
{
    struct pending *p = pending_add(client, &moving_handler, r, block);
    pending_count(p, pending_metric(r), 1);
    next_take_turn(p);
    deadline_watch(p, false);
}

/* Of requests that may not go to their one server as they are. False: it may. */
static RARE bool takes_other_way(struct client *client, const struct request *r,
                                 struct block *block)
{
    struct worker *w = client->worker;
    bool has_lines = route_has_lines(w, r);
    if (has_lines && !next_has_request(w, r)) {
        return false;
    }
    if (has_lines && next_takes_line(r)) {
        add_moving(client, r, block);
    } else {
        operation_request(client, r, block);
    }
    return true;
}

/* --- values that are too large --- */

#define TOO_LARGE "SERVER_ERROR object too large for cache\r\n"

static void start_remove_binary(struct forward_part *f, const struct request *r)
{
    struct exchange *x = forward_part_operation(f);
    x->op.verb = BE_DELETE;
    x->op.key = r->key;
    x->op.asks_cas = x->op.odd_key = r->binary.odd_key;
    route_submit(f);
}

static void start_remove(struct pending *p)
{
    struct worker *w = worker_of(p);
    const struct request *r = &p->request;
    struct forward_part *f = forward_part_new(p, r->key, WINDOW_SHORT);
    if (client_is_binary(p->client)) {
        p->all_started = true;
        start_remove_binary(f, r);
        return;
    }
    char *start = worker_scratch(w, r->key.len + 16);
    char *out = put(start, r->base64 ? SLICE_LIT("md") : SLICE_LIT("delete"));
    out = put_word(out, r->key);
    out = put(out, r->base64 ? SLICE_LIT(" b\r\n") : SLICE_LIT("\r\n"));
    p->all_started = true;
    struct slice line = slice_make(start, (size_t)(out - start));
    struct exchange *x = forward_part_exchange(f, BE_LINE, line, BE_DELETE);
    x->op.form = (struct be_line_form){.meta = r->base64 ? 'd' : 0, .like = BE_DELETE};
    route_submit(f);
}

static void emit_remove(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    if (f->failed) {
        forward_part_fail(p, f); /* the old value may still be there */
        return;
    }
    metric_inc(&worker_of(p)->metrics, METRIC_server_errors);
    if (!p->request.noreply) {
        pending_emit_line(p, SLICE_LIT(TOO_LARGE), out);
    }
}

static const struct handler remove_handler = {.kinds = ABOUT_ITEMS,
                                              .start = start_remove,
                                              .emit = emit_remove,
                                              .timeout_text = forward_timeout_text};

void forward_remove(struct client *client, const struct request *r, struct block *block)
{
    if (is_protected(client, r)) {
        refuse_protected(client, r);
        return;
    }
    if (!route_has_lines(client->worker, r)) {
        /* Couchbase keeps the old value. */
        metric_inc(&client->worker->metrics, pending_metric(r));
        metric_inc(&client->worker->metrics, METRIC_server_errors);
        if (!r->noreply) {
            pending_answer_fixed(client, SLICE_LIT(TOO_LARGE));
        }
        return;
    }
    struct pending *p = pending_add(client, &remove_handler, r, block);
    pending_count(p, pending_metric(r), 1);
    next_take_turn(p);
    deadline_watch(p, false);
}

/* --- flush_all --- */

/* How many servers of the pool are to be flushed: all or none, as it was when that was asked for:
 * cas, which means nothing else here, holds the pools, since a reload may change them meanwhile. */
static size_t flushed_servers(const struct pending *p, size_t pool)
{
    bool is_flushed = (p->request.cas >> pool & 1) != 0;
    return is_flushed ? pool_server_count(worker_of(p)->pools[pool]) : 0;
}

/* All servers of these pools, one after the other. */
static void start_flush(struct pending *p)
{
    struct worker *w = worker_of(p);
    size_t pool = 0, server = p->next;
    while (server >= flushed_servers(p, pool)) {
        server -= flushed_servers(p, pool++);
    }
    size_t left = flushed_servers(p, pool) - server - 1;
    for (size_t i = pool + 1; i < w->config->pool_count; i++) {
        left += flushed_servers(p, i);
    }
    struct forward_part *f = forward_part_new(p, SLICE_NONE, WINDOW_SHORT);
    p->all_started = left == 0;
    pool_submit_to(w->pools[pool], server,
                   forward_part_exchange(f, BE_LINE, SLICE_LIT("flush_all\r\n"), BE_LINE));
}

static void emit_flush(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    own_changes_add_to_all(&worker_of(p)->shared->own_changes);
    if (f->failed || !slice_equal(f->line, SLICE_LIT("OK"))) {
        forward_part_fail(p, f);
    } else if (part_is_last(part) && p->failure == NULL && !p->request.noreply) {
        pending_emit_line(p, SLICE_LIT("OK\r\n"), out);
    }
}

static const char *flush_timeout_text(const struct pending *p)
{
    (void)p;
    return "deadline over, outcome unknown";
}

static const struct handler flush_handler = {.kinds = ABOUT_BOTH,
                                             .start = start_flush,
                                             .emit = emit_flush,
                                             .timeout_text = flush_timeout_text};

void forward_flush_all(struct client *client, const struct request *request, struct block *block,
                       bool noreply)
{
    struct pending *p = pending_add(client, &flush_handler, request, block);
    pending_count(p, METRIC_cmd_other, 1);
    p->request.noreply = noreply;
    p->request.cas = client->worker->config->flush_pools;
    deadline_watch(p, true);
}

void forward_request(struct client *client, const struct request *r, struct block *block)
{
    if (r->verb->shape == SHAPE_KEYS) {
        multiget_request(client, r, block);
        return;
    }
    if (UNLIKELY(protect_refuses(client->worker->config, r))) {
        refuse_protected(client, r);
        return;
    }
    if (UNLIKELY(r->verb->shape == SHAPE_GAT)) {
        multiget_touch_request(client, r, block);
        return;
    }
    if (UNLIKELY(client->worker->plain_pool == NULL) && takes_other_way(client, r, block)) {
        return;
    }
    enum proxy_metric counted = pending_metric(r);
    struct pending *p = pending_add(client, &single_handler, r, block);
    pending_count(p, counted, 1);
    deadline_watch(p, false);
}

void forward_binary(struct client *client, const struct request *r, struct block *block)
{
    if (is_protected(client, r)) {
        refuse_protected(client, r);
        return;
    }
    operation_binary(client, r, block);
}

void forward_init(struct worker *w, size_t spare_bytes)
{
    spare_init(&w->spare_exchanges, sizeof(struct forward_part), spare_bytes);
}

void forward_fini(struct worker *w)
{
    spare_fini(&w->spare_exchanges);
}
