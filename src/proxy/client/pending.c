/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/pending.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/client/binary.h"
#include "proxy/client/client.h"
#include "proxy/core/shared.h"
#include "proxy/core/timing.h"

struct request *pending_room(struct worker *w)
{
    if (w->next_pending == NULL) {
        w->next_pending = spare_take(&w->spare_pendings);
    }
    return &w->next_pending->request;
}

static void hold(struct pending *p, size_t bytes)
{
    p->held_bytes += bytes;
    p->client->window.held_bytes += bytes;
}

static void let_go(struct pending *p, size_t bytes)
{
    p->held_bytes -= bytes;
    p->client->window.held_bytes -= bytes;
}

/* bytes: of its block. */
static void enqueue(struct pending *p, struct client *client, const struct handler *handler,
                    size_t bytes)
{
    p->client = client;
    p->read_us = client->worker->now.mono_us;
    p->held_us = 0;
    p->due_us = 0;
    p->handler = handler;
    TAILQ_INIT(&p->parts);
    p->rest = SLICE_NONE;
    p->next = 0;
    p->weight_bytes = 0;
    p->held_bytes = sizeof *p + bytes;
    client->window.held_bytes += sizeof *p + bytes;
    p->all_started = false;
    p->turn = TURN_NOW;
    p->trailer = SLICE_NONE;
    p->failure = NULL;
    p->unreachable = NULL;
    p->text = NULL;
    TAILQ_INSERT_TAIL(&client->fifo, p, link);
}

static bool names_many(const struct request *r)
{
    return r->verb->shape == SHAPE_KEYS || r->verb->shape == SHAPE_GAT ||
           r->verb->shape == SHAPE_LIST_KEYS || r->verb->shape == SHAPE_LIST_LISTS;
}

/* All keys of one request, since it was chosen for many: so each key counts as often as others. */
RARE static void count_keys(struct worker *w, const struct request *r)
{
    bool has_many = names_many(r);
    struct slice rest = r->args, key;
    if (!has_many && r->key.len > 0) {
        hot_count(&w->timing.keys, r->key, w->now.wall_s);
    }
    for (size_t i = 0; has_many && i < HOT_NAMES && token_next(&rest, &key); i++) {
        hot_count(&w->timing.keys, key, w->now.wall_s);
    }
}

/* Lets the request, the last one, wait if a change of the other kind is under way; returns it. When
 * a request of the same kind was added, there was none before it, or it has waited for that. */
static NOINLINE struct pending *wait_for_changes(struct pending *p)
{
    enum pending_kinds kinds = p->handler->kinds;
    const struct pending *before = p;
    while ((before = TAILQ_PREV(before, pending_list, link)) != NULL) {
        enum pending_kinds others = before->handler == NULL ? 0 : before->handler->kinds;
        bool differ = others != 0 && (others | kinds) == ABOUT_BOTH;
        if (differ && request_changes(&before->request)) {
            p->turn = TURN_BEHIND;
            break;
        }
        if ((others & kinds) == kinds) {
            break;
        }
    }
    return p;
}

struct pending *pending_add(struct client *client, const struct handler *handler,
                            const struct request *request, struct block *block)
{
    struct worker *w = client->worker;
    struct pending *p = w->next_pending;
    CHECK(request == &p->request);
    struct pending *before = TAILQ_LAST(&client->fifo, pending_list);
    w->next_pending = NULL;
    p->block = block_ref(block);
    /* A block counts for the last of the requests that it holds. */
    if (before != NULL && before->block == block) {
        let_go(before, block->cap);
    }
    enqueue(p, client, handler, block->cap);
    p->weight_bytes = request->line.len + request->data.len;
    client->window.request_bytes += p->weight_bytes;
    if (UNLIKELY(hot_is_next(&w->timing.keys))) {
        count_keys(w, request);
    }
    /* At the end, where a call costs those nothing that do without it. */
    return before != NULL && UNLIKELY(before->handler != handler) ? wait_for_changes(p) : p;
}

void pending_count(struct pending *p, enum proxy_metric which, uint64_t n)
{
    p->counted = which;
    metric_add(&p->client->worker->metrics, which, n);
}

/* Queues an answer of the proxy itself. */
static struct pending *add_own(struct client *client)
{
    struct pending *p = spare_take(&client->worker->spare_pendings);
    p->block = NULL;
    enqueue(p, client, NULL, 0);
    p->all_started = true;
    p->counted = 0;
    (void)window_started(&client->window, WINDOW_NONE);
    return p;
}

void pending_weigh(struct pending *p, size_t bytes)
{
    p->weight_bytes += bytes;
    p->client->window.request_bytes += bytes;
    hold(p, bytes);
}

/* What most requests do not have. */
static RARE void free_extras(struct pending *p)
{
    free(p->failure);
    free(p->unreachable);
    if (p->text != NULL) {
        chain_fini(p->text);
        free(p->text);
    }
}

void pending_unwatch(struct pending *p)
{
    if (p->due_us != 0) {
        TAILQ_REMOVE(&p->client->worker->watched, p, watch);
        p->due_us = 0;
    }
}

static void pending_free(struct pending *p)
{
    struct worker *w = p->client->worker;
    pending_unwatch(p);
    p->client->window.request_bytes -= p->weight_bytes;
    p->client->window.held_bytes -= p->held_bytes;
    TAILQ_REMOVE(&p->client->fifo, p, link);
    block_unref(&p->block);
    if (UNLIKELY(p->failure != NULL || p->unreachable != NULL || p->text != NULL)) {
        free_extras(p);
    }
    spare_give(&w->spare_pendings, p);
}

void part_add(struct pending *p, struct part *part, const struct part_type *type, size_t bytes,
              struct slice key, enum window_kind kind)
{
    part->pending = p;
    part->type = type;
    part->bytes = bytes;
    hold(p, bytes);
    part->key = key;
    part->kind = kind;
    part->expected_bytes = window_started(&p->client->window, kind);
    part->parked_bytes = 0;
    part->answered = false;
    part->postponed = false;
    part->order = ++p->client->last_order;
    if (p->handler->restart == NULL) {
        p->client->last_change = part->order;
    }
    p->next++;
    TAILQ_INSERT_TAIL(&p->parts, part, link);
}

static void part_free(struct part *part)
{
    struct pending *p = part->pending;
    p->client->postponed -= part->postponed;
    TAILQ_REMOVE(&p->parts, part, link);
    p->client->window.parked_bytes -= part->parked_bytes;
    let_go(p, part->bytes);
    window_emitted(&p->client->window);
    part->type->free(part);
}

void pending_emit_line(const struct pending *p, struct slice line, struct chain *out)
{
    if (client_is_binary(p->client)) {
        binary_emit_line(&p->request, slice_make(line.p, line.len - 2), out);
    } else {
        chain_copy_slice(out, line);
    }
}

static RARE void emit_failure(const struct pending *p, struct chain *out)
{
    if (client_is_binary(p->client)) {
        binary_emit_line(&p->request, slice_of(p->failure), out);
        return;
    }
    chain_copy_slice(out, slice_of(p->failure));
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

/* What stands behind the answers of the parts. */
static ALWAYS_INLINE void emit_trailer(struct pending *p, struct chain *out)
{
    if (p->failure != NULL) {
        emit_failure(p, out);
    } else {
        chain_copy_slice(out, p->trailer);
    }
}

/* What a parked answer of the proxy itself takes: its last block may be nearly empty. */
static size_t text_memory(const struct pending *p)
{
    return p->text->bytes + BLOCK_BYTES;
}

/* An answer of the proxy itself. */
static void emit_own(struct pending *p)
{
    struct client *client = p->client;
    chain_copy_slice(&client->out, p->trailer);
    if (p->text != NULL) {
        client->window.parked_bytes -= text_memory(p);
        chain_move(&client->out, p->text);
    }
    window_emitted(&client->window);
}

/* The request took slow_ms or longer. */
RARE static void note_slow(const struct pending *p, uint64_t us)
{
    struct worker *w = p->client->worker;
    const struct request *r = &p->request;
    struct slow_request slow = {.wall_s = w->now.wall_s, .us = us};
    char shown[4 * SLOW_KEY_BYTES + 1], more[LOG_MORE_MAX];
    slow.waited_us = p->held_us == 0 ? 0 : p->held_us - p->read_us;
    /* Of what has no key of its own, as ltx, what stands behind the verb. */
    struct slice key = r->key.len > 0 ? r->key : r->args;
    slow.key_len = (uint8_t)(key.len < SLOW_KEY_BYTES ? key.len : SLOW_KEY_BYTES);
    if (slow.key_len > 0) {
        memcpy(slow.key, key.p, slow.key_len);
    }
    (void)snprintf(slow.verb, sizeof slow.verb, "%.*s", (int)r->verb->text.len, r->verb->text.p);
    (void)client_peer(p->client, slow.peer, sizeof slow.peer);
    slow_log_add(w->shared->slow, &slow);
    metric_inc(&w->metrics, METRIC_slow_requests);
    if (log_limit_pass(&w->timing.slow_limit, w->now.wall_s, "requests or clients", more)) {
        log_warn("slow: %s %s of client %s took %" PRIu64 " ms, %" PRIu64
                 " of them until its turn came (slow_ms)%s",
                 slow.verb, slice_escape(slice_make(slow.key, slow.key_len), shown, sizeof shown),
                 slow.peer, us / 1000, slow.waited_us / 1000, more);
    }
}

/* An operator looks on: each request is to come here. */
RARE static void trace(const struct pending *p, uint64_t us)
{
    struct worker *w = p->client->worker;
    const struct request *r = &p->request;
    struct trace_row row = {w->index, us, r->verb->text};
    timing_forget_last(&w->timing);
    trace_add_request(&w->shared->trace, &row, p->client->id,
                      p->held_us == 0 ? 0 : p->held_us - p->read_us,
                      names_many(r) ? r->args : r->key);
}

/* One that took another time than the one before. */
RARE static void note_other_time(const struct pending *p, uint64_t us)
{
    struct worker *w = p->client->worker;
    if (p->counted == 0) {
        return;
    }
    timing_add(&w->timing, p->counted, us);
    if (trace_is_on(&w->shared->trace)) {
        trace(p, us);
    }
    if (us >= w->slow_us) {
        timing_forget_last(&w->timing); /* each of them is noted */
        note_slow(p, us);
    }
}

/* Its answer is whole. Of a pipeline many take the same time to the microsecond, since a worker
 * reads its clock once in a turn. */
static inline void note_time(const struct pending *p)
{
    struct worker *w = p->client->worker;
    uint64_t us = w->now.mono_us - p->read_us;
    if (!timing_add_again(&w->timing, p->counted, us)) {
        note_other_time(p, us);
    }
}

/* Moves to the output whatever is answered and in turn. */
static ALWAYS_INLINE void emit_ready(struct client *client)
{
    struct pending *p;
    while ((p = TAILQ_FIRST(&client->fifo)) != NULL) {
        struct part *part;
        while ((part = TAILQ_FIRST(&p->parts)) != NULL && part->answered) {
            p->handler->emit(part, &client->out);
            part_free(part);
        }
        if (part != NULL || !p->all_started) {
            return;
        }
        if (p->handler == NULL) {
            emit_own(p);
        } else if (!p->request.noreply) {
            emit_trailer(p, &client->out);
        }
        note_time(p);
        pending_free(p);
    }
}

static bool is_front(const struct part *part)
{
    const struct pending *p = part->pending;
    return p == TAILQ_FIRST(&p->client->fifo) && part == TAILQ_FIRST(&p->parts);
}

void part_answered(struct part *part, size_t bytes)
{
    struct pending *p = part->pending;
    struct client *client = p->client;
    CHECK(!part->answered);
    part->answered = true;
    window_answered(&client->window, part->kind, part->expected_bytes, bytes);
    if (client_is_closed(client)) {
        part_free(part);
        if (TAILQ_EMPTY(&p->parts)) {
            pending_free(p);
        }
        client_bury(client);
        return;
    }
    if (is_front(part)) {
        emit_ready(client);
    } else {
        part->type->park(part);
        part->parked_bytes = bytes;
        client->window.parked_bytes += bytes;
    }
    if (!client->touched) {
        client_answered(client);
    }
}

/* Is its key asked for once more behind it? That answer would be older than its own. */
static bool is_asked_again(const struct part *part)
{
    const struct pending *p = part->pending;
    const struct part *other = part;
    do {
        while ((other = other == NULL ? TAILQ_FIRST(&p->parts) : TAILQ_NEXT(other, link)) != NULL) {
            if (slice_equal(other->key, part->key)) {
                return true;
            }
        }
    } while ((p = TAILQ_NEXT(p, link)) != NULL);
    return false;
}

bool part_may_wait(const struct part *part)
{
    const struct client *client = part->pending->client;
    if (client_is_closed(client) || part->order <= client->last_change) {
        return false;
    }
    /* What is parked waits for the first part of all: that one must not wait for it. */
    bool waits = is_front(part) ? !window_drained(&client->window, client->out.bytes)
                                : window_backlogged(&client->window, client->out.bytes);
    return waits && !is_asked_again(part);
}

void part_postpone(struct part *part, size_t bytes)
{
    struct client *client = part->pending->client;
    CHECK(part->pending->handler->restart != NULL && !part->answered && !part->postponed);
    window_answered(&client->window, part->kind, part->expected_bytes, bytes);
    part->postponed = true;
    client->postponed++;
    metric_inc(&client->worker->metrics, METRIC_answers_dropped);
    client_touch(client);
}

void pending_restart(struct client *client)
{
    struct pending *p;
    struct part *part;
    TAILQ_FOREACH(p, &client->fifo, link)
    {
        TAILQ_FOREACH(part, &p->parts, link)
        {
            if (part->postponed) {
                part->postponed = false;
                client->postponed--;
                part->expected_bytes = window_restarted(&client->window, part->kind);
                p->handler->restart(part);
                return;
            }
        }
    }
    CHECK(client->postponed == 0);
}

void pending_note_failure(struct pending *p, const char *line)
{
    if (p->failure == NULL) {
        p->failure = strdup(line);
        CHECK(p->failure != NULL);
    }
}

void pending_fail(struct pending *p, const char *line)
{
    p->rest = SLICE_NONE;
    p->all_started = true;
    pending_note_failure(p, line);
}

void pending_settle(struct client *client)
{
    emit_ready(client);
}

uint64_t pending_since_us(const struct pending *p)
{
    const struct client *client = p->client;
    if (client->writing) {
        return client->worker->now.mono_us;
    }
    return client->took_us > p->read_us ? client->took_us : p->read_us;
}

/* Takes an unanswered part off the request. */
static void abandon(struct part *part, bool told)
{
    struct pending *p = part->pending;
    struct client *client = p->client;
    if (part->postponed) {
        part_free(part);
        return;
    }
    window_answered(&client->window, part->kind, part->expected_bytes, 0);
    window_emitted(&client->window);
    TAILQ_REMOVE(&p->parts, part, link);
    let_go(p, part->bytes);
    part->type->abandon(part, told);
}

bool pending_expire(struct pending *p, const char *line, bool told)
{
    struct client *client = p->client;
    struct part *part, *next;
    bool waits = !p->all_started;
    for (part = TAILQ_FIRST(&p->parts); part != NULL; part = next) {
        next = TAILQ_NEXT(part, link);
        if (!part->answered) {
            waits = true;
            if (part->kind != WINDOW_LIST) { /* the engine ends it, at the same time */
                abandon(part, told);
            }
        }
    }
    if (!waits) {
        return false;
    }
    pending_fail(p, line);
    pending_settle(client);
    client_touch(client);
    return true;
}

/* Answers as that to a noop, of which very many may wait. */
#define SMALL_TEXT_MAX ((size_t)64)

/* An answer of the proxy itself to a request of the binary protocol. */
static RARE void answer_binary(struct client *client, struct slice text)
{
    struct chain packets;
    chain_init(&packets);
    if (text.len <= SMALL_TEXT_MAX) {
        chain_begin_small(&packets);
    }
    binary_translate(&client->binary, text, &packets);
    pending_answer_packets(client, &packets);
    chain_fini(&packets);
}

void pending_answer_fixed(struct client *client, struct slice text)
{
    if (client_is_binary(client)) {
        answer_binary(client, text);
        return;
    }
    if (TAILQ_EMPTY(&client->fifo)) {
        chain_copy_slice(&client->out, text);
        return;
    }
    add_own(client)->trailer = text;
}

/* The chain's bytes in one piece, from malloc; it is empty then. */
static char *flatten(struct chain *text)
{
    char *bytes = malloc(text->bytes + 1), *to = bytes;
    struct iovec piece;
    CHECK(bytes != NULL);
    while (chain_iov(text, &piece, 1) == 1) {
        memcpy(to, piece.iov_base, piece.iov_len);
        to += piece.iov_len;
        chain_consume(text, piece.iov_len);
    }
    return bytes;
}

void pending_answer_text(struct client *client, struct chain *text)
{
    if (client_is_binary(client)) {
        size_t len = text->bytes;
        char *bytes = flatten(text);
        answer_binary(client, slice_make(bytes, len));
        free(bytes);
    } else {
        pending_answer_packets(client, text);
    }
}

void pending_answer_packets(struct client *client, struct chain *text)
{
    if (TAILQ_EMPTY(&client->fifo)) {
        chain_move(&client->out, text);
        return;
    }
    struct pending *p = add_own(client);
    p->text = malloc(sizeof *p->text);
    CHECK(p->text != NULL);
    *p->text = *text;
    chain_init(text);
    client->window.parked_bytes += text_memory(p);
}

void pending_refuse(struct client *client, bool noreply, const char *line)
{
    struct chain text;
    metric_inc(&client->worker->metrics,
               line[0] == 'S' ? METRIC_server_errors : METRIC_client_errors);
    if (noreply) {
        return;
    }
    chain_init(&text);
    chain_copy_slice(&text, slice_of(line));
    chain_copy_slice(&text, SLICE_LIT("\r\n"));
    pending_answer_text(client, &text);
    chain_fini(&text);
}

/* Drops the parts that are answered, or all of them, and the requests that are left without any. */
static void drop(struct client *client, bool in_flight_too)
{
    struct pending *p, *next_pending;
    for (p = TAILQ_FIRST(&client->fifo); p != NULL; p = next_pending) {
        next_pending = TAILQ_NEXT(p, link);
        struct part *part, *next_part;
        for (part = TAILQ_FIRST(&p->parts); part != NULL; part = next_part) {
            next_part = TAILQ_NEXT(part, link);
            if (part->answered || part->postponed || in_flight_too) {
                part_free(part);
            }
        }
        p->rest = SLICE_NONE;
        p->all_started = true;
        if (TAILQ_EMPTY(&p->parts)) {
            pending_free(p);
        }
    }
}

void pending_drop_answered(struct client *client)
{
    drop(client, false);
}

void pending_drop_all(struct client *client)
{
    drop(client, true);
}

void pending_init(struct worker *worker, size_t spare_bytes)
{
    spare_init(&worker->spare_pendings, sizeof(struct pending), spare_bytes);
}

void pending_fini(struct worker *worker)
{
    if (worker->next_pending != NULL) {
        spare_free(&worker->spare_pendings, worker->next_pending);
    }
    spare_fini(&worker->spare_pendings);
}
