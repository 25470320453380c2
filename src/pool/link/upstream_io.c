/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes over an established connection: writing the output chain, reading replies and handing
 * them out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "pool/link/server.h"
#include "pool/link/upstream.h"

/* Pieces of one writev; a chain with more takes another call. */
#define WRITE_PIECES 64
/* Reads of one connection before others get their turn. */
#define READS_PER_TURN 16
/* Rather a new block than reading into less room than this. */
#define READ_ROOM_MIN ((size_t)2048)

void upstream_write(struct upstream *u)
{
    struct pool_context *context = u->server->context;
    while (u->out.bytes > 0 || UNLIKELY(u->tls != NULL && tls_has_output(u->tls))) {
        struct iovec iov[WRITE_PIECES];
        struct msghdr message = {.msg_iov = iov,
                                 .msg_iovlen = chain_iov(&u->out, iov, WRITE_PIECES)};
        ssize_t n = u->tls == NULL ? sendmsg(u->fd, &message, MSG_NOSIGNAL)
                                   : tls_write(u->tls, iov, message.msg_iovlen);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN)) {
            u->socket_full = true;
            CHECK(event_add(&u->write_event, NULL) == 0);
            return;
        }
        if (n < 0) {
            /* Answers that arrived before the end are still good: on_readable takes them first. */
            u->write_failed = true;
            event_active(&u->read_event, EV_READ, 0);
            return;
        }
        chain_consume(&u->out, (size_t)n);
        u->out_written += (uint64_t)n;
        metric_add(context->metrics, METRIC_backend_bytes_written, (uint64_t)n);
    }
}

bool upstream_send(struct upstream *u, const char *bytes, size_t len)
{
    struct iovec iov = {.iov_base = (char *)(uintptr_t)bytes, .iov_len = len};
    if (u->tls == NULL) {
        return send(u->fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
    }
    bool taken = tls_write(u->tls, &iov, len > 0) == (ssize_t)len;
    if (tls_has_output(u->tls)) {
        CHECK(event_add(&u->write_event, NULL) == 0);
    }
    return taken;
}

/* Does the server say something by itself? */
static bool is_news(const struct upstream *u, char byte)
{
    return u->wire->news_mark != 0 && (uint8_t)byte == u->wire->news_mark;
}

bool upstream_probe(struct upstream *u)
{
    char byte;
    ssize_t n = recv(u->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 1 && u->tls == NULL && is_news(u, byte)) {
        return true;
    }
    /* Any other byte without a request is no better than the end. */
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The connection cannot go on, whatever it was doing. */
static void give_up(struct upstream *u, const char *reason)
{
    if (u->state == UPSTREAM_UP) {
        upstream_lost(u, reason, false);
    } else {
        upstream_attempt_failed(u, reason, false, FAILURE_DOWN);
    }
}

/* Over what the server has answered. */
static RARE void give_up_garbled(struct upstream *u, enum garbled reason)
{
    char text[HANDSHAKE_ERROR_MAX];
    give_up(u, server_answers_garbage(u->server, reason, text));
}

static struct slice unparsed(const struct upstream *u)
{
    return slice_make(u->in->data + u->in_parsed, u->in->used - u->in_parsed);
}

/* Makes sure that the rest of the reply that is under way fits into the block, moving its first
 * part at most once when its size is known. Others may hold the old block: what is filled stays as
 * it is. */
static void make_room(struct upstream *u)
{
    size_t pending = u->in == NULL ? 0 : u->in->used - u->in_parsed;
    size_t want = u->in_need > pending ? u->in_need : pending + READ_ROOM_MIN;
    if (u->in != NULL && pending == 0 &&
        atomic_load_explicit(&u->in->refs, memory_order_acquire) == 1) {
        u->in->used = u->in_parsed = 0;
    }
    /* What a large value needed is not kept for small ones. */
    if (u->in != NULL && pending == 0 && u->in->cap > BLOCK_BYTES && want <= BLOCK_BYTES) {
        block_unref(&u->in);
    }
    if (u->in != NULL && u->in->cap - u->in_parsed >= want) {
        return;
    }
    struct block *larger = block_new(want > BLOCK_BYTES ? want : BLOCK_BYTES);
    if (pending > 0) {
        memcpy(larger->data, unparsed(u).p, pending);
        larger->used = pending;
    }
    block_unref(&u->in);
    u->in = larger;
    u->in_parsed = 0;
}

/* How long the exchange took, from its submission to its answer. */
static inline void note_time(struct upstream *u, const struct exchange *x)
{
    histogram_add(&u->server->times, u->server->context->now->mono_us - x->since_us);
}

/* Hands the first exchange its answer, or a part of it. Like all parsers of input it returns false
 * when the connection is over. */
static bool hand_out(struct upstream *u, struct exchange *x, struct wire_answer *answer, bool whole)
{
    struct server *server = u->server;
    struct be_reply *reply = &answer->reply;
    reply->block = u->in;
    reply->epoch = u->epoch;
    reply->caps = &server->caps;
    reply->distrust = &answer->distrust;
    u->answered = true;
    u->ending |= answer->stale ? UPSTREAM_STALE : 0;
    if (UNLIKELY(u->is_doubted) && !x->is_internal) {
        upstream_answered(u);
    }
    if (!whole) {
        x->value(x, reply);
    } else {
        upstream_dequeue(u, x);
        if (!x->is_internal) {
            note_time(u, x);
        }
        exchange_answer(server->context, x, reply);
    }
    if (answer->distrust) {
        give_up_garbled(u, GARBLED_misfit);
        return false;
    }
    return true;
}

/* The answer does not tell whether the operation was done. */
static RARE void note_unknown(struct upstream *u, const struct exchange *x,
                              struct wire_answer *answer, bool misfit)
{
    if (misfit) {
        answer->distrust = true;
        answer->reply = (struct be_reply){.status = BE_LOST, .text = answer->text};
        snprintf(answer->text, sizeof answer->text, "backend %s: unexpected answer%s",
                 u->server->config->name, x->changes ? ", outcome unknown" : "");
    }
    if (x->changes && !exchange_is_told(x)) {
        metric_inc(u->server->context->metrics, METRIC_outcomes_unknown);
    }
}

/* Has a later exchange been sent whose answer comes in parts, and may have displaced this one? */
static RARE bool was_displaced(const struct upstream *u, const struct exchange *x)
{
    while ((x = TAILQ_NEXT(x, link)) != NULL && x->start < u->out_written) {
        if (x->op.verb == BE_LINE_GET) {
            return true;
        }
    }
    return false;
}

static bool read_reply(struct upstream *u, bool *more)
{
    struct exchange *x = TAILQ_FIRST(&u->queue);
    struct server *server = u->server;
    struct wire_answer answer;
    if (x == NULL || x->start >= u->out_written) {
        give_up_garbled(u, GARBLED_unasked);
        return false;
    }
    answer.distrust = answer.stale = answer.no_memory = false;
    answer.now_s = server->context->now->wall_s;
    enum wire_result result = u->wire->decode(&x->op, unparsed(u), &server->caps, &answer);
    if (result == WIRE_MORE) {
        u->in_need = answer.size;
        *more = true;
        return true;
    }
    if (UNLIKELY(result == WIRE_GARBAGE)) {
        give_up_garbled(u, GARBLED_garbage);
        return false;
    }
    if (UNLIKELY(answer.no_memory)) {
        server_refuses_for_memory(server);
        if (answer.displaced && was_displaced(u, x)) {
            give_up_garbled(u, GARBLED_dropped);
            return false;
        }
    }
    u->in_need = 0;
    u->in_parsed += answer.size;
    if (UNLIKELY(result == WIRE_MISFIT || answer.reply.status == BE_LOST)) {
        note_unknown(u, x, &answer, result == WIRE_MISFIT);
    }
    return hand_out(u, x, &answer, result != WIRE_PART);
}

static RARE bool read_news(struct upstream *u, bool *more)
{
    struct wire_news news = {.size = 0};
    enum wire_result result = u->wire->news(unparsed(u), &news);
    if (result == WIRE_GARBAGE) {
        give_up_garbled(u, GARBLED_garbage);
        return false;
    }
    *more = result == WIRE_MORE;
    u->in_need = *more ? news.size : 0;
    u->in_parsed += *more ? 0 : news.size;
    if (!*more && news.of_map) {
        const struct pool_context *context = u->server->context;
        context->hooks->hear(context->cluster, u->server, &news);
    }
    return true;
}

static bool read_replies(struct upstream *u)
{
    bool more = false;
    while (!more && u->in_parsed < u->in->used) {
        if (u->in_need > u->in->used - u->in_parsed) {
            return true;
        }
        bool goes_on = UNLIKELY(is_news(u, u->in->data[u->in_parsed])) ? read_news(u, &more)
                                                                       : read_reply(u, &more);
        if (!goes_on || (UNLIKELY(u->ending != 0) && upstream_end_if_due(u))) {
            return false;
        }
    }
    return true;
}

static bool parse_input(struct upstream *u)
{
    if (u->state == UPSTREAM_HANDSHAKE && !upstream_handshake(u)) {
        return false;
    }
    return u->state != UPSTREAM_UP || read_replies(u);
}

void upstream_readable(struct upstream *u)
{
    struct pool_context *context = u->server->context;
    bool drained = false;
    for (int i = 0; i < READS_PER_TURN && !drained; i++) {
        make_room(u);
        size_t room = block_room(u->in);
        char *to = u->in->data + u->in->used;
        ssize_t n = u->tls == NULL ? read(u->fd, to, room) : tls_read(u->tls, to, room);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            drained = true;
            break;
        }
        if (n <= 0) {
            const char *problem = u->tls == NULL || n == 0 ? NULL : tls_problem(u->tls);
            char text[HANDSHAKE_ERROR_MAX];
            snprintf(text, sizeof text, "%s%s", problem == NULL ? "" : "TLS: ",
                     n == 0            ? "closed by the server"
                     : problem == NULL ? strerror(errno)
                                       : problem);
            give_up(u, text);
            return;
        }
        u->in->used += (size_t)n;
        u->heard_us = context->now->mono_us;
        metric_add(context->metrics, METRIC_backend_bytes_read, (uint64_t)n);
        u->is_reading = true;
        bool goes_on = parse_input(u);
        u->is_reading = false;
        if (!goes_on) {
            return;
        }
        drained = u->tls == NULL && (size_t)n < room;
    }
    if (UNLIKELY(u->tls != NULL && !drained && tls_has_input(u->tls))) {
        event_active(&u->read_event, EV_READ, 0); /* the socket alone would not tell */
    }
    if (drained && u->write_failed) {
        give_up(u, "it does not take any more");
    }
}
