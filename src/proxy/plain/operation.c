/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/operation.h"

#include <stdio.h>

#include "proto/server/binary.h"
#include "proxy/client/binary.h"
#include "proxy/client/deadline.h"
#include "proxy/plain/meta.h"
#include "proxy/plain/next.h"
#include "proxy/plain/route.h"

#define NOT_A_NUMBER "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"

/* --- requests ------------------------------------------------------------------------------------
 */

static void set_key(struct forward_part *f, const struct request *r, struct be_operation *op)
{
    if (UNLIKELY(r->base64) && f->own_key == NULL) {
        f->own_key = block_new(KEY_BYTES_MAX);
        f->own_key->used = key_decode_base64(r->key, f->own_key->data);
    }
    op->key = LIKELY(f->own_key == NULL) ? r->key : forward_part_key(f);
}

static bool reads_item(const struct request *r)
{
    return r->verb->verb == VERB_MG || r->verb->shape == SHAPE_KEYS || r->verb->shape == SHAPE_GAT;
}

/* Fills the part's own exchange. */
static void fill(struct forward_part *f)
{
    struct pending *p = f->part.pending;
    const struct request *r = &p->request;
    struct exchange *x = forward_part_operation(f);
    set_key(f, r, &x->op);
    if (client_is_binary(p->client)) {
        operation_fill_binary(r, &x->op);
    } else if (request_is_meta(r)) {
        meta_fill(r, &x->op);
    } else {
        operation_fill(r, &x->op);
    }
    if (r->has_data) {
        x->op.value = r->data;
        x->op.block = p->block;
    }
}

static void start(struct pending *p)
{
    const struct request *r = &p->request;
    struct forward_part *f =
        forward_part_new(p, r->key, reads_item(r) ? WINDOW_ITEM : WINDOW_SHORT);
    p->all_started = true;
    fill(f);
    route_submit(f);
}

static void restart(struct part *part)
{
    struct forward_part *f = forward_of(part);
    fill(f);
    route_submit_again(f);
}

static void redirect(struct part *part)
{
    struct forward_part *f = forward_of(part);
    struct be_operation *op = &f->exchange.op;
    fill(f);
    if (part->pending->request.has_data) {
        op->exptime = (int32_t)route_failover_exptime(f, op->exptime);
    }
}

/* --- answers -------------------------------------------------------------------------------------
 */

static struct slice classic_line(const struct forward_part *f)
{
    switch (f->item.status) {
    case BE_STORED:
        return f->exchange.op.verb == BE_TOUCH ? SLICE_LIT("TOUCHED\r\n") : SLICE_LIT("STORED\r\n");
    case BE_NOT_STORED:
        return SLICE_LIT("NOT_STORED\r\n");
    case BE_EXISTS:
        return SLICE_LIT("EXISTS\r\n");
    case BE_DELETED:
        return SLICE_LIT("DELETED\r\n");
    default:
        return SLICE_LIT("NOT_FOUND\r\n");
    }
}

static void emit_number(const struct forward_part *f, struct chain *out)
{
    char *start = chain_reserve(out, 24);
    char *end = start + format_u64(start, f->item.number);
    end = put(end, SLICE_LIT("\r\n"));
    chain_commit(out, (size_t)(end - start));
}

static void emit_answer(const struct forward_part *f, struct chain *out)
{
    struct pending *p = f->part.pending;
    enum be_verb verb = f->exchange.op.verb;
    if (f->item.status == BE_REFUSED) {
        metric_inc(&worker_of(p)->metrics, METRIC_client_errors);
        chain_copy_slice(out, p->request.noreply ? SLICE_NONE : SLICE_LIT(NOT_A_NUMBER));
    } else if (request_is_meta(&p->request)) {
        meta_emit(f, worker_of(p)->now.wall_s, out);
    } else if (p->request.noreply) {
        return;
    } else if ((verb == BE_INCR || verb == BE_DECR) && f->item.status == BE_STORED) {
        emit_number(f, out);
    } else {
        chain_copy_slice(out, classic_line(f));
    }
}

/* Of a read, as a get counts it. */
static void count_read(struct metrics *m, enum be_status status)
{
    if (status == BE_HIT) {
        metric_inc(m, METRIC_get_hits);
    } else if (status == BE_MISS) {
        metric_inc(m, METRIC_get_misses);
    }
}

static void emit(struct part *part, struct chain *out)
{
    const struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    if (p->request.verb->verb == VERB_MG && forward_part_is_miss(f)) {
        meta_emit_miss(&p->request, out);
    } else if (!f->failed) {
        if (reads_item(&p->request)) {
            count_read(&worker_of(p)->metrics, f->item.status);
        }
        emit_answer(f, out);
    } else if (p->request.noreply) {
        metric_inc(&worker_of(p)->metrics, METRIC_server_errors);
    } else {
        forward_part_emit_failure(f, out);
    }
}

static const struct handler handler = {.kinds = ABOUT_ITEMS,
                                       .start = start,
                                       .redirect = redirect,
                                       .emit = emit,
                                       .timeout_text = forward_timeout_text};

/* --- answers in the binary protocol --- */

static void emit_failure(const struct forward_part *f, struct chain *out)
{
    char line[CONFIG_ERROR_MAX];
    struct pending *p = f->part.pending;
    metric_inc(&worker_of(p)->metrics, METRIC_server_errors);
    int len = snprintf(line, sizeof line, "SERVER_ERROR %s", f->text);
    len = len < (int)sizeof line ? len : (int)sizeof line - 1;
    binary_emit_line(&p->request, slice_make(line, (size_t)len), out);
}

static void emit_hit(const struct forward_part *f, struct chain *out)
{
    const struct request *r = &f->part.pending->request;
    binary_emit_hit(r, f->item.flags, forward_part_cas(f, f->item.cas),
                    f->has_value ? f->value.len : 0, out);
    if (f->has_value) {
        chain_add(out, f->block, f->value.p, f->value.len);
    }
}

static enum binary_status binary_status_of(const struct forward_part *f, const struct request *r)
{
    switch (f->item.status) {
    case BE_MISS:
    case BE_NOT_FOUND:
        return BINARY_STATUS_NOT_FOUND;
    case BE_EXISTS:
        return BINARY_STATUS_EXISTS;
    case BE_NOT_STORED:
        return binary_not_stored(r->binary.opcode);
    case BE_REFUSED:
        return BINARY_STATUS_NOT_A_NUMBER;
    default:
        return BINARY_STATUS_SUCCESS;
    }
}

static void emit_binary(struct part *part, struct chain *out)
{
    const struct forward_part *f = forward_of(part);
    const struct request *r = &part->pending->request;
    struct metrics *m = &worker_of(part->pending)->metrics;
    enum verb_shape shape = r->verb->shape;
    enum be_status status = f->item.status;
    if (f->failed) {
        if (reads_item(r) && forward_part_is_miss(f)) {
            binary_emit_status(r, BINARY_STATUS_NOT_FOUND, 0, out);
        } else {
            emit_failure(f, out);
        }
        return;
    }
    if (reads_item(r)) {
        count_read(m, status);
    }
    if (status == BE_ANSWERED) {
        forward_count_error(worker_of(part->pending), f->line);
        binary_emit_line(r, f->line, out);
    } else if (status == BE_HIT || (status == BE_STORED && shape == SHAPE_TOUCH)) {
        emit_hit(f, out);
    } else if (status == BE_STORED && shape == SHAPE_ARITH) {
        binary_emit_number(r, f->item.number, forward_part_cas(f, f->item.cas), out);
    } else {
        metric_add(m, METRIC_client_errors, status == BE_REFUSED);
        binary_emit_status(r, binary_status_of(f, r),
                           status == BE_STORED ? forward_part_cas(f, f->item.cas) : 0, out);
    }
}

static const struct handler binary_handler = {.kinds = ABOUT_ITEMS,
                                              .start = start,
                                              .redirect = redirect,
                                              .emit = emit_binary,
                                              .timeout_text = forward_timeout_text};

static const struct handler binary_get_handler = {.kinds = ABOUT_ITEMS,
                                                  .start = start,
                                                  .restart = restart,
                                                  .redirect = redirect,
                                                  .emit = emit_binary,
                                                  .timeout_text = forward_read_timeout_text};

/* Says which flag, or that there is nothing for `me`. */
static RARE void refuse(struct client *client, const struct request *r, char flag)
{
    char line[CONFIG_ERROR_MAX], which[16] = "";
    const struct worker *w = client->worker;
    const struct pool_config *pool = &w->config->pools[route_of_request(w, r)->pool_index];
    if (flag != 0) {
        snprintf(which, sizeof which, "flag %c of ", flag);
    }
    snprintf(line, sizeof line, "CLIENT_ERROR %s%.*s: pool %s is of type couchbase", which,
             SLICE_ARGS(r->verb->text), pool->name);
    if (pool->type == POOL_MEMCACHED) {
        snprintf(line, sizeof line, "CLIENT_ERROR %s%.*s: the key moves from pool %s to its next",
                 which, SLICE_ARGS(r->verb->text), pool->name);
    }
    pending_refuse(client, r->noreply, line);
}

/* Memcached has more flags. What does not change what a key that moves is, is left out there: that
 * a value is to be stale, which is deleted, and numbers of CAS that the client wants to choose. */
static char refused_flag(const struct worker *w, const struct request *r)
{
    if (!request_is_meta(r) || r->verb->verb == VERB_ME) {
        return 0;
    }
    return r->verb->verb == VERB_MA || !route_has_lines(w, r) ? meta_refused_flag(r) : 0;
}

void operation_request(struct client *client, const struct request *r, struct block *block)
{
    char refused = refused_flag(client->worker, r);
    if (UNLIKELY(refused != 0 || r->verb->verb == VERB_ME)) {
        metric_inc(&client->worker->metrics, pending_metric(r));
        refuse(client, r, refused);
        return;
    }
    struct pending *p = pending_add(client, &handler, r, block);
    pending_count(p, pending_metric(r), 1);
    next_take_turn(p);
    deadline_watch(p, false);
}

void operation_binary(struct client *client, const struct request *r, struct block *block)
{
    bool reads = r->verb->shape == SHAPE_KEYS;
    const struct handler *handlers = reads ? &binary_get_handler : &binary_handler;
    struct pending *p = pending_add(client, handlers, r, block);
    pending_count(p, pending_metric(r), 1);
    if (UNLIKELY(client->worker->plain_pool == NULL)) {
        next_take_turn(p);
    }
    deadline_watch(p, false);
}
