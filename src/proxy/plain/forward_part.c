/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/forward_part.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/server/binary.h"
#include "proxy/core/shared.h"
#include "proxy/plain/next.h"
#include "proxy/plain/route.h"

/* Smaller values are not worth asking for again. */
#define WAIT_BYTES_MIN ((size_t)4096)

/* What the server was asked by, in memcached's words; valid during the call. */
static struct slice verb_asked(const struct be_operation *op, char room[2])
{
    if (op->verb == BE_LINE_GET) {
        return SLICE_LIT("get");
    }
    if (op->verb >= BE_LINE && op->form.meta != 0) {
        room[0] = 'm';
        room[1] = op->form.meta;
        return slice_make(room, 2);
    }
    return trace_verb(op->verb >= BE_LINE ? op->form.like : op->verb);
}

static void trace_part(struct worker *w, const struct forward_part *f, const struct exchange *x,
                       const struct be_reply *reply)
{
    char room[2];
    struct trace_row row = {.worker = w->index,
                            .us = x->since_us == 0 ? 0 : w->now.mono_us - x->since_us,
                            .verb = verb_asked(&x->op, room)};
    struct be_reply named = *reply;
    named.caps = reply->caps != NULL ? reply->caps : pool_caps_of(x);
    trace_add_reply(&w->shared->trace, &row, forward_part_key(f), &named);
}

/* An operator looks on, or did when the part began; or its request has ended, which gets no answer.
 * True: it goes on. */
static RARE bool heed_reply(struct forward_part *f, const struct exchange *x,
                            const struct be_reply *reply)
{
    struct worker *w = f->heeded;
    if (trace_is_on(&w->shared->trace)) {
        trace_part(w, f, x, reply);
    } else {
        w->heeded = NULL;
    }
    if (f->part.pending != NULL) {
        return true;
    }
    block_unref(&f->key_block);
    block_unref(&f->own_key);
    spare_give(&w->spare_exchanges, f);
    return false;
}

/* The answer has come. One that is large may have to wait. */
static ALWAYS_INLINE void answer(struct forward_part *f)
{
    if (f->has_value && f->value.len >= WAIT_BYTES_MIN &&
        f->part.pending->handler->restart != NULL && part_may_wait(&f->part)) {
        part_postpone(&f->part, f->value.len);
        return;
    }
    size_t bytes = f->failed ? strlen(f->text) : f->line.len;
    part_answered(&f->part, bytes + (f->has_value ? f->value.len : 0));
}

static RARE const char *text_of_failure(const struct be_reply *reply)
{
    switch (reply->status) {
    case BE_TOO_LARGE:
        return "object too large for cache";
    case BE_NO_MEMORY:
        return "out of memory storing object";
    default:
        return reply->text;
    }
}

/* That a value is no number is an answer of its own, to what counts alone: a node may say it to
 * anything. */
static bool is_failure(const struct exchange *x, const struct be_reply *reply)
{
    return UNLIKELY(reply->status >= BE_NO_MEMORY) &&
           (reply->status != BE_REFUSED || reply->code != BINARY_STATUS_NOT_A_NUMBER ||
            (x->op.verb != BE_INCR && x->op.verb != BE_DECR));
}

/* failed: whether it is a failure, which stays one. */
static ALWAYS_INLINE void take(struct forward_part *f, const struct be_reply *reply, bool failed)
{
    f->failed = failed;
    f->line = reply->line;
    f->has_value = !failed && reply->has_value;
    f->value = reply->value;
    f->block = reply->block;
    f->text = failed ? text_of_failure(reply) : NULL;
    f->item.status = reply->status;
    if (reply->status != BE_ANSWERED) {
        f->item.flags = reply->flags;
        f->item.code = reply->code;
        f->item.ttl_s = reply->ttl_s;
        f->item.cas = reply->cas;
        f->item.number = reply->number;
    }
    answer(f);
}

static RARE void take_failure(struct forward_part *f, const struct be_reply *reply)
{
    if (!route_fails_over(f, reply)) {
        take(f, reply, true);
    }
}

static ALWAYS_INLINE void take_reply(struct forward_part *f, const struct exchange *x,
                                     const struct be_reply *reply)
{
    if (UNLIKELY(f->heeded != NULL) && !heed_reply(f, x, reply)) {
        return;
    }
    if (is_failure(x, reply)) {
        take_failure(f, reply);
    } else {
        take(f, reply, false);
    }
}

void forward_part_reply(struct forward_part *f, const struct exchange *x,
                        const struct be_reply *reply)
{
    take_reply(f, x, reply);
}

static void on_reply(struct exchange *exchange, const struct be_reply *reply)
{
    take_reply(exchange->owner, exchange, reply);
}

static void park_part(struct part *part)
{
    struct forward_part *f = forward_of(part);
    f->parked = true;
    if (f->failed) {
        f->text = strdup(f->text);
        CHECK(f->text != NULL);
        f->block = NULL;
    } else if (f->block != NULL) {
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
    if (UNLIKELY(f->own_key != NULL)) {
        block_unref(&f->own_key);
    }
    spare_give(&worker_of(part->pending)->spare_exchanges, f);
}

static void abandon_part(struct part *part, bool told)
{
    struct forward_part *f = forward_of(part);
    f->heeded = worker_of(part->pending);
    f->exchange.told = told;
    f->key_block = block_ref(part->pending->block);
    part->pending = NULL;
}

static const struct part_type type = {
    .park = park_part, .free = free_part, .abandon = abandon_part};

struct forward_part *forward_part_new(struct pending *p, struct slice key, enum window_kind kind)
{
    struct worker *w = worker_of(p);
    struct forward_part *f = spare_take(&w->spare_exchanges);
    f->parked = f->as_told = false;
    f->heeded = w->heeded;
    f->failed_over = false;
    f->own_key = NULL;
    f->next = NULL;
    part_add(p, &f->part, &type, sizeof *f, key, kind);
    return f;
}

struct exchange *forward_part_exchange(struct forward_part *f, enum be_verb verb, struct slice line,
                                       enum be_verb like)
{
    exchange_init_line(&f->exchange, verb, line, like, on_reply, f);
    return &f->exchange;
}

struct exchange *forward_part_operation(struct forward_part *f)
{
    struct exchange *x = &f->exchange;
    memset(&x->op, 0, offsetof(struct be_operation, form));
    exchange_init_line(x, BE_LINE, SLICE_NONE, BE_LINE, on_reply, f);
    return x;
}

const char *forward_read_timeout_text(const struct pending *p)
{
    (void)p;
    return "deadline over";
}

const char *forward_timeout_text(const struct pending *p)
{
    struct part *part = TAILQ_FIRST(&p->parts);
    if (part == NULL && p->next == 0) {
        return "deadline over, nothing done"; /* it was not its turn yet */
    }
    if (part == NULL || part->answered || p->next > 1) { /* of several, another may be done */
        return "deadline over, outcome unknown";
    }
    struct exchange *x = &forward_of(part)->exchange;
    if (next_is_busy(x)) {
        return request_changes(&p->request) ? "deadline over, outcome unknown" : "deadline over";
    }
    if (!x->changes) {
        return "deadline over";
    }
    return pool_withdraw(x) ? "deadline over, nothing done" : "deadline over, outcome unknown";
}

void forward_count_error(struct worker *w, struct slice line)
{
    if (slice_starts_with(line, SLICE_LIT("SERVER_ERROR"))) {
        metric_inc(&w->metrics, METRIC_server_errors);
    } else if (slice_starts_with(line, SLICE_LIT("CLIENT_ERROR")) ||
               slice_starts_with(line, SLICE_LIT("ERROR"))) {
        metric_inc(&w->metrics, METRIC_client_errors);
    } else {
        return;
    }
    metric_inc(&w->metrics, METRIC_refused_by_server);
}

void forward_part_fail(struct pending *p, const struct forward_part *f)
{
    char line[CONFIG_ERROR_MAX];
    if (f->failed) {
        snprintf(line, sizeof line, "SERVER_ERROR %s", f->text);
    } else {
        snprintf(line, sizeof line, "%.*s", SLICE_ARGS(f->line));
    }
    if (p->failure == NULL) {
        forward_count_error(worker_of(p), slice_of(line));
    }
    pending_note_failure(p, line);
}

void forward_part_emit_failure(const struct forward_part *f, struct chain *out)
{
    metric_inc(&worker_of(f->part.pending)->metrics, METRIC_server_errors);
    chain_copy_slice(out, SLICE_LIT("SERVER_ERROR "));
    chain_copy_slice(out, slice_of(f->text));
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

bool forward_part_is_miss(const struct forward_part *f)
{
    const struct worker *w = worker_of(f->part.pending);
    const struct route_config *route = f->failed ? route_of_part(f) : NULL;
    if (route == NULL || !route_is_silent(w, route, f->item.status) ||
        !route_reads_miss(w, route)) {
        return false;
    }
    metric_inc(&worker_of(f->part.pending)->metrics, METRIC_down_reads);
    return true;
}
