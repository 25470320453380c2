/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/operation.h"

#include <stdio.h>

#include "proto/server/binary.h"
#include "proxy/client/deadline.h"
#include "proxy/plain/meta.h"

#define NOT_A_NUMBER "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"

/* --- requests ------------------------------------------------------------------------------------
 */

enum be_verb operation_verb(enum verb verb)
{
    switch (verb) {
    case VERB_ADD:
        return BE_ADD;
    case VERB_REPLACE:
        return BE_REPLACE;
    case VERB_APPEND:
        return BE_APPEND;
    case VERB_PREPEND:
        return BE_PREPEND;
    case VERB_CAS:
        return BE_CAS;
    case VERB_DELETE:
        return BE_DELETE;
    case VERB_INCR:
        return BE_INCR;
    case VERB_DECR:
        return BE_DECR;
    case VERB_TOUCH:
        return BE_TOUCH;
    default:
        return BE_SET;
    }
}

static void fill_classic(const struct request *r, struct be_operation *op)
{
    op->verb = operation_verb(r->verb->verb);
    if (r->verb->shape == SHAPE_STORE || r->verb->shape == SHAPE_TOUCH) {
        op->exptime = operation_exptime(r->exptime);
    }
    if (r->verb->shape == SHAPE_STORE) {
        op->flags = r->flags;
        op->cas = r->cas;
    } else if (r->verb->shape == SHAPE_ARITH) {
        op->delta = r->delta;
    }
}

static void set_key(struct forward_part *f, const struct request *r, struct be_operation *op)
{
    op->key = r->key;
    if (UNLIKELY(r->base64)) {
        f->own_key = block_new(KEY_BYTES_MAX);
        op->key = slice_make(f->own_key->data, key_decode_base64(r->key, f->own_key->data));
    }
}

static void start(struct pending *p)
{
    struct worker *w = worker_of(p);
    const struct request *r = &p->request;
    bool may_be_long = r->verb->verb == VERB_MG;
    struct forward_part *f = forward_part_new(p, r->key, may_be_long ? WINDOW_ITEM : WINDOW_SHORT);
    struct exchange *x = forward_part_operation(f);
    p->all_started = true;
    set_key(f, r, &x->op);
    if (request_is_meta(r)) {
        meta_fill(r, &x->op);
    } else {
        fill_classic(r, &x->op);
    }
    if (r->has_data) {
        x->op.value = r->data;
        x->op.block = p->block;
    }
    pool_submit(plain_pool(w), x->op.key, x);
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

static void emit(struct part *part, struct chain *out)
{
    const struct forward_part *f = forward_of(part);
    struct pending *p = part->pending;
    if (p->request.verb->verb == VERB_MG && forward_part_is_miss(f)) {
        meta_emit_miss(&p->request, out);
    } else if (!f->failed) {
        emit_answer(f, out);
    } else if (p->request.noreply) {
        metric_inc(&worker_of(p)->metrics, METRIC_server_errors);
    } else {
        forward_part_emit_failure(f, out);
    }
}

static const struct handler handler = {
    .start = start, .emit = emit, .timeout_text = forward_timeout_text};

/* Says which flag, or that there is nothing for `me`. */
static RARE void refuse(struct client *client, const struct request *r, char flag)
{
    char line[CONFIG_ERROR_MAX], which[16] = "";
    const struct worker *w = client->worker;
    if (flag != 0) {
        snprintf(which, sizeof which, "flag %c of ", flag);
    }
    snprintf(line, sizeof line, "CLIENT_ERROR %s%.*s: pool %s is of type couchbase", which,
             SLICE_ARGS(r->verb->text), w->config->pools[w->config->pool_index].name);
    pending_refuse(client, r->noreply, line);
}

void operation_request(struct client *client, const struct request *r, struct block *block,
                       enum proxy_metric counted)
{
    char refused = request_is_meta(r) && r->verb->verb != VERB_ME ? meta_refused_flag(r) : 0;
    if (UNLIKELY(refused != 0 || r->verb->verb == VERB_ME)) {
        metric_inc(&client->worker->metrics, counted);
        refuse(client, r, refused);
        return;
    }
    struct pending *p = pending_add(client, &handler, r, block);
    pending_count(p, counted, 1);
    deadline_watch(p, false);
}
