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
#include "pool/server.h"
#include "pool/upstream.h"
#include "proto/server/backend_parse.h"

/* Pieces of one writev; a chain with more takes another call. */
#define WRITE_PIECES 64
/* Reads of one connection before others get their turn. */
#define READS_PER_TURN 16
/* Rather a new block than reading into less room than this. */
#define READ_ROOM_MIN ((size_t)2048)

void upstream_write(struct upstream *u)
{
    struct pool_context *context = u->server->context;
    while (u->out.bytes > 0) {
        struct iovec iov[WRITE_PIECES];
        struct msghdr message = {.msg_iov = iov,
                                 .msg_iovlen = chain_iov(&u->out, iov, WRITE_PIECES)};
        ssize_t n = sendmsg(u->fd, &message, MSG_NOSIGNAL);
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

bool upstream_probe(struct upstream *u)
{
    char byte;
    ssize_t n = recv(u->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    /* A byte that nobody asked for is no better than the end. */
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The connection cannot go on, whatever it was doing. */
static void give_up(struct upstream *u, const char *reason)
{
    if (u->state == UPSTREAM_UP) {
        upstream_lost(u, reason, false);
    } else {
        upstream_attempt_failed(u, reason, false, FATE_DOWN);
    }
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

/* Takes a line off the input. Returns 1, 0 when there is none yet, -1 when it is longer than any of
 * memcached's. */
static int take_line(struct upstream *u, struct slice *line)
{
    struct slice bytes = unparsed(u);
    const char *newline = bytes.len == 0 ? NULL : memchr(bytes.p, '\n', bytes.len);
    if (newline == NULL) {
        return bytes.len < BACKEND_REPLY_LINE_MAX ? 0 : -1;
    }
    *line = slice_make(bytes.p, (size_t)(newline - bytes.p));
    u->in_parsed += line->len + 1;
    if (line->len > 0 && line->p[line->len - 1] == '\r') {
        line->len--;
    }
    return 1;
}

static enum handshake_result take_handshake_line(struct upstream *u, struct slice line,
                                                 char error[HANDSHAKE_ERROR_MAX])
{
    if (!u->probing) {
        enum handshake_result result = handshake_line(&u->handshake, line, error);
        u->probing = result == HANDSHAKE_DONE && u->favour != UPSTREAM_TRUSTED;
        return u->probing ? HANDSHAKE_MORE : result;
    }
    if (slice_equal(line, SLICE_LIT(HANDSHAKE_PROBE_ANSWER))) {
        return HANDSHAKE_DONE;
    }
    char answer[64];
    snprintf(error, HANDSHAKE_ERROR_MAX, "no memcached, it answers \"%s\" to mn",
             backend_line_text(line, answer, sizeof answer));
    return HANDSHAKE_REFUSED;
}

/* All parsers of input return false when the connection is over. */
static bool read_handshake(struct upstream *u)
{
    char error[HANDSHAKE_ERROR_MAX] = "no memcached, its answer has no line end";
    struct slice line;
    int rc;
    while ((rc = take_line(u, &line)) == 1) {
        switch (take_handshake_line(u, line, error)) {
        case HANDSHAKE_MORE:
            break;
        case HANDSHAKE_REFUSED:
            upstream_attempt_failed(u, error, false, FATE_UNFIT);
            return false;
        case HANDSHAKE_DONE:
            upstream_established(u);
            return true;
        }
    }
    if (rc < 0) {
        upstream_attempt_failed(u, error, false, FATE_UNFIT);
        return false;
    }
    return true;
}

/* Hands the answer, or one value of it, to the first exchange. */
static bool answer(struct upstream *u, struct exchange *x, const struct backend_parsed *parsed)
{
    struct server *server = u->server;
    bool distrust = false;
    struct exchange_reply reply = {
        .status = EXCHANGE_ANSWERED,
        .line = parsed->line,
        .has_value = parsed->has_value,
        .value = parsed->value,
        .block = u->in,
        .epoch = u->epoch,
        .caps = &server->caps,
        .distrust = &distrust,
    };
    u->answered = true;
    if (!x->listing) {
        upstream_answered(u);
    }
    if (x->value != NULL && parsed->has_value) {
        x->value(x, &reply);
    } else {
        upstream_dequeue(u, x);
        if (!x->listing) {
            server->context->busy--;
        }
        x->done(x, &reply);
    }
    if (distrust) {
        give_up(u, "an answer that does not fit its request");
        return false;
    }
    return true;
}

/* The pool's own `stats`: lines until END or an error. Sets *more when the end is not there yet. */
static bool read_listing(struct upstream *u, struct exchange *x, bool *more)
{
    struct backend_parsed parsed = {0};
    int rc;
    while ((rc = take_line(u, &parsed.line)) == 1) {
        if (!slice_starts_with(parsed.line, SLICE_LIT("STAT "))) {
            return answer(u, x, &parsed);
        }
        server_stat_line(u->server, parsed.line);
    }
    *more = true;
    if (rc < 0) {
        give_up(u, "garbage");
        return false;
    }
    return true;
}

static enum backend_parse_result parse_reply(const struct upstream *u, const struct exchange *x,
                                             struct backend_parsed *parsed)
{
    uint64_t item_max = u->server->caps.item_size_max;
    size_t max_value = item_max != 0 ? (size_t)item_max : BACKEND_VALUE_MAX;
    return x->value != NULL ? backend_parse_values(unparsed(u), max_value, parsed)
                            : backend_parse(unparsed(u), max_value, parsed);
}

/* A memcached that runs out of memory for the answer to a `get` of many keys drops with it all
 * answers that it has not sent yet, and its error comes in place of the first of them: nobody can
 * tell then whose it is. */
static bool answers_were_dropped(const struct upstream *u, const struct exchange *x,
                                 struct slice line)
{
    if (x->value != NULL ||
        !slice_starts_with(line, SLICE_LIT("SERVER_ERROR out of memory writing get response"))) {
        return false;
    }
    while ((x = TAILQ_NEXT(x, link)) != NULL && x->start < u->out_written) {
        if (x->value != NULL) {
            return true;
        }
    }
    return false;
}

static bool read_reply(struct upstream *u, bool *more)
{
    struct exchange *x = TAILQ_FIRST(&u->queue);
    struct backend_parsed parsed;
    if (x == NULL || x->start >= u->out_written) {
        give_up(u, "an answer that nobody asked for");
        return false;
    }
    if (x->listing) {
        return read_listing(u, x, more);
    }
    switch (parse_reply(u, x, &parsed)) {
    case BACKEND_PARSE_MORE:
        u->in_need = parsed.need;
        *more = true;
        return true;
    case BACKEND_PARSE_GARBAGE:
        give_up(u, "garbage");
        return false;
    case BACKEND_PARSE_OK:
        break;
    }
    if (answers_were_dropped(u, x, parsed.line)) {
        give_up(u, "it has dropped answers for want of memory");
        return false;
    }
    u->in_need = 0;
    u->in_parsed += parsed.consumed;
    return answer(u, x, &parsed);
}

static bool read_replies(struct upstream *u)
{
    bool more = false;
    while (!more && u->in_parsed < u->in->used) {
        if (u->in_need > u->in->used - u->in_parsed) {
            return true;
        }
        if (!read_reply(u, &more)) {
            return false;
        }
    }
    return true;
}

static bool parse_input(struct upstream *u)
{
    if (u->state == UPSTREAM_HANDSHAKE && !read_handshake(u)) {
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
        ssize_t n = read(u->fd, u->in->data + u->in->used, room);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            drained = true;
            break;
        }
        if (n <= 0) {
            give_up(u, n == 0 ? "closed by the server" : strerror(errno));
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
        drained = (size_t)n < room;
    }
    if (drained && u->write_failed) {
        give_up(u, "it does not take any more");
    }
}
