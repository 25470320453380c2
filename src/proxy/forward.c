/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/forward.h"

#include <stdlib.h>

#include "pool/pool.h"
#include "proxy/worker.h"

/* Values up to this size are built together with their line in one piece of the output. */
#define SMALL_REPLY_MAX ((size_t)4096)
/* Smaller values are not worth asking for again. */
#define WAIT_BYTES_MIN ((size_t)4096)
/* Room for "VALUE ", flags, size and CAS around a key. */
#define VALUE_LINE_MAX (KEY_BYTES_MAX + 80)

/* One request to one server, and its reply. */
struct forward_part {
    struct part part;
    struct exchange exchange;
    /* The reply: borrowed until it is parked. */
    bool failed; /* no reply: text says why */
    bool has_value;
    bool parked; /* block or text is ours */
    struct slice line;
    struct slice value;
    struct block *block;
    const char *text;
};

static struct forward_part *forward_of(struct part *part)
{
    return (struct forward_part *)((char *)part - offsetof(struct forward_part, part));
}

static struct worker *worker_of(const struct pending *p)
{
    return p->client->worker;
}

static struct pool *plain_pool(const struct worker *w)
{
    return w->pools[w->config->pool_index];
}

/* --- parts --- */

static void on_reply(struct exchange *exchange, const struct exchange_reply *reply)
{
    struct forward_part *f = exchange->owner;
    f->failed = reply->status != EXCHANGE_ANSWERED;
    f->line = reply->line;
    f->has_value = !f->failed && reply->has_value;
    f->value = reply->value;
    f->block = reply->block;
    f->text = reply->text;
    if (f->has_value && f->value.len >= WAIT_BYTES_MIN &&
        f->part.pending->handler->restart != NULL && part_may_wait(&f->part)) {
        part_postpone(&f->part, f->value.len);
        return;
    }
    size_t bytes = f->failed ? strlen(f->text) : f->line.len;
    part_answered(&f->part, bytes + (f->has_value ? f->value.len : 0));
}

static struct forward_part *new_part(struct pending *p, struct slice key, enum window_kind kind)
{
    struct forward_part *f = spare_take(&worker_of(p)->spare_exchanges, sizeof *f);
    *f = (struct forward_part){0};
    f->exchange.done = on_reply;
    f->exchange.owner = f;
    part_add(p, &f->part, key, kind);
    return f;
}

static void park(struct part *part)
{
    struct forward_part *f = forward_of(part);
    f->parked = true;
    if (f->failed) {
        f->text = strdup(f->text);
        CHECK(f->text != NULL);
        f->block = NULL;
    } else {
        block_ref(f->block);
    }
}

static void free_part(struct part *part)
{
    struct forward_part *f = forward_of(part);
    if (f->parked) {
        if (f->failed) {
            free((char *)(uintptr_t)f->text);
        } else {
            block_unref(&f->block);
        }
    }
    spare_give(&worker_of(part->pending)->spare_exchanges, f);
}

void forward_fini(struct worker *w)
{
    spare_fini(&w->spare_exchanges);
}

static void count_error(struct worker *w, struct slice line)
{
    if (slice_starts_with(line, SLICE_LIT("SERVER_ERROR"))) {
        metric_inc(&w->metrics, METRIC_server_errors);
    } else if (slice_starts_with(line, SLICE_LIT("CLIENT_ERROR")) ||
               slice_starts_with(line, SLICE_LIT("ERROR"))) {
        metric_inc(&w->metrics, METRIC_client_errors);
    }
}

/* --- one key, one reply --- */

static char *put(char *out, struct slice s)
{
    if (s.len > 0) {
        memcpy(out, s.p, s.len);
    }
    return out + s.len;
}

static char *put_word(char *out, struct slice s)
{
    *out++ = ' ';
    return put(out, s);
}

static char *put_number(char *out, uint64_t number)
{
    *out++ = ' ';
    return out + format_u64(out, number);
}

/* The line without noreply. Extra words that memcached tolerates are left out as well. */
static struct slice rebuild_classic(struct worker *w, const struct request *r)
{
    char *start = worker_scratch(w, r->line.len + 128);
    char *out = put(start, r->verb->text);
    out = put_word(out, r->key);
    if (r->verb->shape == SHAPE_STORE) {
        out = put_number(out, r->flags);
        out = put_word(out, r->exptime_text);
        out = put_number(out, r->data.len);
        if (r->verb->verb == VERB_CAS) {
            out = put_number(out, r->cas);
        }
    } else if (r->verb->shape == SHAPE_ARITH) {
        out = put_number(out, r->delta);
    } else if (r->verb->shape == SHAPE_TOUCH) {
        out = put_word(out, r->exptime_text);
    }
    out = put(out, SLICE_LIT("\r\n"));
    return slice_make(start, (size_t)(out - start));
}

/* The line without flag q. */
static struct slice rebuild_meta(struct worker *w, const struct request *r)
{
    char *start = worker_scratch(w, r->line.len + 16);
    char *out = put(start, r->verb->text);
    out = put_word(out, r->key);
    struct slice args = r->args;
    struct slice token;
    bool is_flag = r->verb->shape != SHAPE_META_SET; /* ms: the size comes first */
    while (token_next(&args, &token)) {
        if (!is_flag || token.p[0] != 'q') {
            out = put_word(out, token);
        }
        is_flag = true;
    }
    out = put(out, SLICE_LIT("\r\n"));
    return slice_make(start, (size_t)(out - start));
}

/* The line with its line end, as the server is to get it: where possible as it lies in the input.
 */
static struct slice line_to_send(struct worker *w, const struct request *r)
{
    bool meta = r->verb->shape == SHAPE_META || r->verb->shape == SHAPE_META_SET;
    if (meta && r->quiet) {
        return rebuild_meta(w, r);
    }
    if (!meta && r->noreply) {
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

static void start_single(struct pending *p)
{
    struct worker *w = worker_of(p);
    const struct request *r = &p->request;
    bool may_be_long = r->verb->verb == VERB_MG;
    struct forward_part *f = new_part(p, r->key, may_be_long ? WINDOW_ITEM : WINDOW_SHORT);
    p->all_started = true;
    f->exchange.line = line_to_send(w, r);
    if (r->has_data) {
        f->exchange.body = r->data_crlf;
        f->exchange.body_block = p->block;
    }
    char decoded[KEY_BYTES_MAX];
    struct slice placement = r->key;
    if (r->base64) {
        size_t len = key_decode_base64(r->key, decoded);
        if (len > 0) {
            placement = slice_make(decoded, len);
        }
    }
    pool_submit(plain_pool(w), placement, &f->exchange);
}

/* Does the client not want to see this reply? As memcached has it: q hides misses of mg and
 * successes of ms, md, ma. */
static bool is_hidden(const struct request *r, const struct forward_part *f)
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

static void emit_failure(struct worker *w, const char *text, struct chain *out)
{
    metric_inc(&w->metrics, METRIC_server_errors);
    chain_copy_slice(out, SLICE_LIT("SERVER_ERROR "));
    chain_copy_slice(out, slice_of(text));
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

static void emit_single(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    struct worker *w = worker_of(p);
    if (!f->failed) {
        count_error(w, f->line);
    }
    if (is_hidden(&p->request, f)) {
        return;
    }
    if (f->failed) {
        emit_failure(w, f->text, out);
        return;
    }
    chain_add(out, f->block, f->line.p, f->line.len);
    chain_copy_slice(out, SLICE_LIT("\r\n"));
    if (f->has_value) {
        chain_add(out, f->block, f->value.p, f->value.len);
        chain_copy_slice(out, SLICE_LIT("\r\n"));
    }
}

static const struct handler single_handler = {
    .start = start_single, .park = park, .emit = emit_single, .free = free_part};

/* --- get gets gat gats --- */

static bool wants_cas(const struct request *r)
{
    return r->verb->verb == VERB_GETS || r->verb->verb == VERB_GATS;
}

static void ask_for_key(struct forward_part *f)
{
    struct worker *w = worker_of(f->part.pending);
    const struct request *r = &f->part.pending->request;
    struct slice key = f->part.key;
    char *start = worker_scratch(w, key.len + r->exptime_text.len + 16);
    char *out = put(start, SLICE_LIT("mg "));
    out = put(out, key);
    out = put(out, SLICE_LIT(" v f"));
    if (wants_cas(r)) {
        out = put(out, SLICE_LIT(" c"));
    }
    if (r->verb->shape == SHAPE_GAT) {
        out = put(out, SLICE_LIT(" T"));
        out = put(out, r->exptime_text);
    }
    out = put(out, SLICE_LIT("\r\n"));
    f->exchange.line = slice_make(start, (size_t)(out - start));
    pool_submit(plain_pool(w), key, &f->exchange);
}

static void start_key(struct pending *p)
{
    struct slice key;
    if (!token_next(&p->rest, &key)) {
        p->all_started = true;
        return;
    }
    p->all_started = p->next + 1 == p->request.arg_count;
    ask_for_key(new_part(p, key, WINDOW_ITEM));
}

static void restart_key(struct part *part)
{
    struct forward_part *f = forward_of(part);
    f->exchange = (struct exchange){.done = on_reply, .owner = f};
    ask_for_key(f);
}

/* The digits behind a flag letter of a "VA" line, "0" when it has none. */
static struct slice meta_flag(struct slice line, char letter)
{
    struct slice token;
    (void)token_next(&line, &token); /* VA */
    (void)token_next(&line, &token); /* size */
    while (token_next(&line, &token)) {
        if (token.p[0] == letter && token.len > 1) {
            (void)slice_take(&token, 1);
            return token;
        }
    }
    return SLICE_LIT("0");
}

static void emit_value(const struct part *part, const struct forward_part *f, struct chain *out)
{
    struct slice flags = meta_flag(f->line, 'f');
    struct slice cas = SLICE_NONE;
    if (wants_cas(&part->pending->request)) {
        cas = meta_flag(f->line, 'c');
    }
    CHECK(part->key.len <= KEY_BYTES_MAX && flags.len <= 20 && cas.len <= 20);
    bool small = f->value.len <= SMALL_REPLY_MAX;
    char *start = chain_reserve(out, VALUE_LINE_MAX + (small ? f->value.len + 2 : 0));
    char *end = put(start, SLICE_LIT("VALUE "));
    end = put(end, part->key);
    end = put_word(end, flags);
    end = put_number(end, f->value.len);
    if (cas.len > 0) {
        end = put_word(end, cas);
    }
    end = put(end, SLICE_LIT("\r\n"));
    if (small) {
        end = put(end, f->value);
        end = put(end, SLICE_LIT("\r\n"));
        chain_commit(out, (size_t)(end - start));
    } else {
        chain_commit(out, (size_t)(end - start));
        chain_add(out, f->block, f->value.p, f->value.len);
        chain_copy_slice(out, SLICE_LIT("\r\n"));
    }
}

/* The answer ends in an error line, not in END: a key must never look like a miss when it could not
 * be asked for. */
static void fail_key(struct pending *p, const struct forward_part *f)
{
    char line[CONFIG_ERROR_MAX];
    if (f->failed) {
        snprintf(line, sizeof line, "SERVER_ERROR %s", f->text);
    } else {
        snprintf(line, sizeof line, "%.*s", SLICE_ARGS(f->line));
    }
    count_error(worker_of(p), slice_of(line));
    pending_fail(p, line);
}

static void emit_key(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct metrics *m = &worker_of(part->pending)->metrics;
    if (!f->failed && f->has_value) {
        metric_inc(m, METRIC_get_hits);
        emit_value(part, f, out);
    } else if (!f->failed && slice_starts_with(f->line, SLICE_LIT("EN"))) {
        metric_inc(m, METRIC_get_misses);
    } else {
        fail_key(part->pending, f);
    }
}

static const struct handler keys_handler = {
    .start = start_key, .park = park, .restart = restart_key, .emit = emit_key, .free = free_part};

/* gat changes the time to live: asked again, it would miss what its first asking let expire, and so
 * would a get before it. */
static const struct handler touch_keys_handler = {
    .start = start_key, .park = park, .emit = emit_key, .free = free_part};

/* --- flush_all --- */

/* All servers of all pools, one after the other. */
static void start_flush(struct pending *p)
{
    struct worker *w = worker_of(p);
    size_t pool = 0, server = p->next, left = 0;
    while (server >= pool_server_count(w->pools[pool])) {
        server -= pool_server_count(w->pools[pool++]);
    }
    left = pool_server_count(w->pools[pool]) - server;
    struct forward_part *f = new_part(p, SLICE_NONE, WINDOW_SHORT);
    p->all_started = left == 1 && pool + 1 == w->config->pool_count;
    f->exchange.line = SLICE_LIT("flush_all\r\n");
    pool_submit_to(w->pools[pool], server, &f->exchange);
}

static void emit_flush(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    (void)out;
    if (f->failed || !slice_equal(f->line, SLICE_LIT("OK"))) {
        bool all_started = p->all_started;
        fail_key(p, f);
        /* A server that failed is no reason to spare the others. */
        p->all_started = all_started;
    }
}

static const struct handler flush_handler = {
    .start = start_flush, .park = park, .emit = emit_flush, .free = free_part};

void forward_flush_all(struct client *client, const struct request *request, struct block *block,
                       bool noreply)
{
    metric_inc(&client->worker->metrics, METRIC_cmd_other);
    struct pending *p = pending_add(client, &flush_handler, request, block);
    p->request.noreply = noreply;
    p->trailer = SLICE_LIT("OK\r\n");
}

void forward_request(struct client *client, const struct request *r, struct block *block)
{
    struct metrics *m = &client->worker->metrics;
    switch (r->verb->shape) {
    case SHAPE_KEYS:
    case SHAPE_GAT: {
        metric_add(m, METRIC_cmd_get, r->arg_count);
        struct pending *p = pending_add(
            client, r->verb->shape == SHAPE_GAT ? &touch_keys_handler : &keys_handler, r, block);
        p->rest = r->args;
        p->trailer = SLICE_LIT("END\r\n");
        return;
    }
    case SHAPE_STORE:
        metric_inc(m, METRIC_cmd_set);
        break;
    case SHAPE_META:
    case SHAPE_META_SET:
        metric_inc(m, METRIC_cmd_meta);
        break;
    default:
        metric_inc(m, METRIC_cmd_other);
        break;
    }
    (void)pending_add(client, &single_handler, r, block);
}
