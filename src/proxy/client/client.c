/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/client.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/inherited.h"
#include "proto/client/binary_request.h"
#include "proxy/client/deadline.h"
#include "proxy/client/login.h"
#include "proxy/client/pressure.h"
#include "proxy/client/request_clock.h"
#include "proxy/client/reserve.h"
#include "proxy/client/secure.h"
#include "proxy/client/stranger.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "tls/tls.h"

/* A line of unknown length goes on in a new block when less than this is left in the old one. */
#define ROOM_MIN (BLOCK_BYTES / 4)
/* Pieces per writev. */
#define IOV_COUNT 64

/* --- verbs that a listener does not take: allow_verbs and deny_verbs --- */

/* Room for the longest verb in a line. */
#define LINE_MAX_BYTES 128

/* Sets or takes RULE_VERBS, as the client's listener has it now. */
static void verbs_set_rule(struct client *c)
{
    const struct listener_config *l = c->listener;
    bool takes_all = verb_set_is_empty(&l->allow_verbs) && verb_set_is_empty(&l->deny_verbs);
    c->rules = (uint8_t)(takes_all ? c->rules & ~RULE_VERBS : c->rules | RULE_VERBS);
}

/* The parser does not look at the words of plain verbs. */
static bool wants_no_answer(const struct client *c, const struct request *r)
{
    struct slice rest = r->args, word, last = SLICE_NONE;
    if (r->verb->shape != SHAPE_PLAIN || client_is_binary(c)) {
        return r->noreply;
    }
    while (token_next(&rest, &word)) {
        last = word;
    }
    return slice_equal(last, SLICE_LIT("noreply"));
}

/* Does the client's listener take the request's verb? If not, the request was refused. */
static bool verbs_admit(struct client *c, const struct request *r)
{
    const struct listener_config *l = c->listener;
    char line[LINE_MAX_BYTES];
    bool is_denied = verb_set_has(&l->deny_verbs, r->verb->verb);
    if (!is_denied &&
        (verb_set_is_empty(&l->allow_verbs) || verb_set_has(&l->allow_verbs, r->verb->verb))) {
        return true;
    }
    (void)snprintf(line, sizeof line, "CLIENT_ERROR %s is not allowed here (%s)", r->verb->text.p,
                   is_denied ? "deny_verbs" : "allow_verbs");
    metric_inc(&c->worker->metrics, METRIC_refused_verb);
    pending_refuse(c, wants_no_answer(c, r), line);
    return false;
}

/* --- beginning --- */

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);

struct client *client_create(struct worker *worker, int fd, const struct listener_config *listener,
                             struct tls_trust *trust)
{
    struct client *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->worker = worker;
    c->listener = listener;
    c->rules = listener->users != NULL ? RULE_LOGIN : 0;
    verbs_set_rule(c);
    c->id = atomic_fetch_add(&worker->shared->clients, 1) + 1;
    c->since_us = worker->now.mono_us;
    c->fd = fd;
    c->active_us = worker->now.mono_us;
    c->parsed = true;
    TAILQ_INIT(&c->fifo);
    window_init(&c->window, worker->config);
    c->session.limit_bytes = worker->config->client_output_bytes;
    chain_init(&c->out);
    event_assign(&c->read_event, worker->base, fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->write_event, worker->base, fd, EV_WRITE, on_writable, c);
    TAILQ_INSERT_TAIL(&worker->clients, c, link);
    metric_inc(&worker->metrics, METRIC_total_connections);
    metric_inc(&worker->metrics, METRIC_curr_connections);
    client_touch(c);
    if (trust != NULL) {
        secure_begin(c, trust);
    }
    return c;
}

void client_take_config(struct client *c)
{
    window_set_limits(&c->window, c->worker->config);
    c->session.limit_bytes = c->worker->config->client_output_bytes;
    if (c->listener->users == NULL) {
        c->rules &= (uint8_t)~RULE_LOGIN;
    }
    verbs_set_rule(c);
    /* It may be read from again, or no more. */
    client_touch(c);
}

/* The peer did something: it goes to the end of the line of those that may be kicked for idling. */
static void mark_active(struct client *c)
{
    struct worker *w = c->worker;
    c->active_us = w->now.mono_us;
    if (w->config->idle_timeout_s != 0) {
        TAILQ_REMOVE(&w->clients, c, link);
        TAILQ_INSERT_TAIL(&w->clients, c, link);
    }
}

/* --- input --- */

/* For a line whose end has not come: twice as much as there is, but no more than a line may have.
 */
static size_t room_for_line(const struct client *c, size_t kept)
{
    size_t most = (size_t)c->worker->config->max_line_bytes + BLOCK_BYTES;
    size_t twice = kept * 2 < most ? kept * 2 : most;
    return twice > kept + ROOM_MIN ? twice : kept + BLOCK_BYTES;
}

/* Makes sure that in has room for what comes next: the rest of a request whose size is known goes
 * into one block, so that it can be parsed and forwarded in place. The client may be closed, for
 * want of memory. */
static void make_room(struct client *c)
{
    size_t kept = client_unparsed(c);
    size_t cap = BLOCK_BYTES;
    if (c->in == NULL) {
        c->in = block_new(cap);
        c->in_pos = 0;
        return;
    }
    if (c->need != 0) {
        if (c->in->cap - c->in_pos >= c->need) {
            return;
        }
        cap = c->need;
    } else {
        if (block_room(c->in) >= ROOM_MIN) {
            return;
        }
        if (kept > BLOCK_BYTES / 2) {
            cap = room_for_line(c, kept);
        }
    }
    if (cap > BLOCK_BYTES) {
        pressure_make_room(c, cap);
        if (client_is_closed(c)) {
            return;
        }
    }
    struct block *bigger = block_new(cap);
    memcpy(bigger->data, c->in->data + c->in_pos, kept);
    bigger->used = kept;
    block_unref(&c->in);
    c->in = bigger;
    c->in_pos = 0;
}

/* An idle client holds no block. */
static void drop_empty_input(struct client *c)
{
    if (c->in != NULL && client_unparsed(c) == 0) {
        block_unref(&c->in);
        c->in_pos = c->need = c->scanned = 0;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)what;
    worker_woke(c->worker);
    if (UNLIKELY(secure_is_pending(c))) {
        secure_go_on(c);
        return;
    }
    make_room(c);
    if (client_is_closed(c)) {
        return;
    }
    char *to = c->in->data + c->in->used;
    ssize_t n = LIKELY(c->tls == NULL) ? recv(fd, to, block_room(c->in), 0)
                                       : tls_read(c->tls, to, block_room(c->in));
    if (n > 0) {
        c->in->used += (size_t)n;
        c->parsed = false;
        metric_add(&c->worker->metrics, METRIC_bytes_read, (uint64_t)n);
        mark_active(c);
        client_touch(c);
    } else if (n == 0) {
        metric_inc(&c->worker->metrics, METRIC_closed_by_client);
        client_finish(c);
    } else {
        drop_empty_input(c);
        if (errno != EAGAIN && errno != EINTR) {
            metric_inc(&c->worker->metrics, METRIC_closed_lost);
            client_close(c);
        }
    }
}

static void set_reading(struct client *c, bool on)
{
    if (c->reading == on ||
        (on && c->worker->moving && client_unparsed(c) <= INHERITED_INPUT_MAX)) {
        return;
    }
    c->reading = on;
    if (on) {
        event_add(&c->read_event, NULL);
    } else {
        event_del(&c->read_event);
    }
}

void client_pause(struct client *c)
{
    if (client_unparsed(c) <= INHERITED_INPUT_MAX) {
        set_reading(c, false);
    }
}

void client_resume(struct client *c, const struct moved *moved)
{
    struct slice input = moved->input;
    /* What else is not as usual, is so for a reason of this process. */
    if (!moved->needs_login || c->listener->users == NULL) {
        c->rules &= (uint8_t)~RULE_LOGIN;
    }
    c->rules |= moved->protocol == MOVED_BINARY ? RULE_BINARY : 0;
    c->spoke = moved->protocol != MOVED_NEW;
    if (input.len > 0) {
        c->in = block_new(input.len > BLOCK_BYTES ? input.len : BLOCK_BYTES);
        block_append(&c->in, input.p, input.len);
    }
}

void client_finish(struct client *c)
{
    if (client_is_closed(c)) {
        return;
    }
    client_advance(c, CLIENT_READ);
    set_reading(c, false);
    client_touch(c);
}

/* --- parsing and starting --- */

static inline struct pending *last_request(const struct client *c)
{
    return TAILQ_LAST(&c->fifo, pending_list);
}

static void count_refusal(struct client *c, struct slice reply)
{
    bool ours = slice_starts_with(reply, SLICE_LIT("SERVER_ERROR"));
    metric_inc(&c->worker->metrics, ours ? METRIC_server_errors : METRIC_client_errors);
    metric_inc(&c->worker->metrics, ours ? METRIC_refused_too_large : METRIC_refused_format);
}

/* Must all that is under way be answered before anything else starts? last: of the requests. */
static inline bool is_held_up(const struct client *c, const struct pending *last)
{
    return last != NULL && UNLIKELY(last->turn != TURN_NOW) && c->window.unanswered > 0;
}

/* It is held up, and its time goes on. */
static RARE void hold_up(const struct client *c, struct pending *last)
{
    last->held_us = c->worker->now.mono_us;
    if (last->due_us == 0 && last->handler->timeout_text != NULL) {
        deadline_watch_this(last);
    }
}

/* Starts the next part of the last request. Returns false when there is none to start. */
static inline bool start_part(struct client *c, struct pending *last)
{
    if (last == NULL || last->all_started) {
        return false;
    }
    if (UNLIKELY(last->turn != TURN_NOW)) {
        if (c->window.unanswered > 0) {
            hold_up(c, last);
            return false;
        }
        last->turn = last->turn == TURN_BEHIND ? TURN_NOW : last->turn;
    }
    last->handler->start(last);
    return true;
}

/* May the client, for whom there are rules, send this request? If not, it was refused. */
static RARE bool rules_admit(struct client *c, const struct request *request)
{
    return ((c->rules & RULE_VERBS) == 0 || verbs_admit(c, request)) &&
           ((c->rules & RULE_RESERVE) == 0 || reserve_admits(c, request));
}

/* Answers what the parser has refused. */
static RARE void refuse(struct client *c, const struct request *request,
                        const struct parse_result *result)
{
    c->swallow = result->swallow;
    if (result->status == PARSE_BINARY) {
        c->rules |= RULE_BINARY;
        return;
    }
    if (result->status == PARSE_CLOSE) {
        client_stop(c);
    }
    if (result->removes) {
        if (c->rules != 0 && !rules_admit(c, request)) {
            return;
        }
        c->worker->handlers->remove(c, request, c->in);
        (void)start_part(c, last_request(c));
        return;
    }
    if (result->stranger != STRANGER_NONE) {
        stranger_met(c, result->stranger);
    }
    count_refusal(c, result->reply);
    if (result->reply.len > 0) {
        pending_answer_fixed(c, result->reply);
    }
}

/* Throws away what is to be swallowed. */
static RARE void swallow(struct client *c)
{
    size_t len = client_unparsed(c);
    size_t skip = c->swallow < len ? c->swallow : len;
    c->swallow -= skip;
    c->in_pos += skip;
    if (c->swallow > 0) {
        request_clock_start(c);
    }
}

/* Notes what the parser says of the front of the input, len bytes. Returns false when no request is
 * whole. */
static ALWAYS_INLINE bool note_parsed(struct client *c, const struct parse_result *result,
                                      size_t len)
{
    if (result->status == PARSE_MORE) {
        c->need = result->need;
        c->scanned = result->need == 0 ? len : 0;
        request_clock_start(c);
        return false;
    }
    request_clock_stop(c);
    c->spoke = true;
    c->need = c->scanned = 0;
    CHECK(result->consumed <= len);
    c->in_pos += result->consumed;
    return true;
}

/* parse_one, of a client that speaks the binary protocol. */
static NOINLINE bool parse_packet(struct client *c, struct slice input)
{
    const struct config *config = c->worker->config;
    struct request_limits limits = {.max_value_bytes = config->max_value_bytes,
                                    .before_login = (c->rules & RULE_LOGIN) != 0};
    struct request *request = pending_room(c->worker);
    struct parse_result result = binary_request_parse(input, &limits, request);
    /* Also of one that is not whole, and may never be. */
    c->binary = input.len >= BINARY_HEADER_BYTES ? request->binary : (struct binary_call){0};
    if (!note_parsed(c, &result, input.len)) {
        return false;
    }
    if (result.status != PARSE_OK) {
        refuse(c, request, &result);
    } else if (!login_take_binary(c, request) && rules_admit(c, request)) {
        c->worker->handlers->take_binary(c, request, c->in);
        (void)start_part(c, last_request(c));
    }
    return true;
}

/* Takes the next request from the input and starts its first part, for which there is room as there
 * was for the request. Returns false when none is whole. */
static ALWAYS_INLINE bool parse_one(struct client *c)
{
    if (UNLIKELY(c->swallow > 0)) {
        swallow(c);
    }
    size_t len = client_unparsed(c);
    if (len == 0) {
        return false;
    }
    struct slice input = slice_make(c->in->data + c->in_pos, len);
    if (UNLIKELY((c->rules & (RULE_LOGIN | RULE_BINARY)) != 0)) {
        return client_is_binary(c) ? parse_packet(c, input) : login_take(c, input);
    }
    const struct config *config = c->worker->config;
    struct request_limits limits = {.max_line_bytes = config->max_line_bytes,
                                    .max_value_bytes = config->max_value_bytes,
                                    .is_first = !c->spoke};
    struct request *request = pending_room(c->worker);
    struct parse_result result = request_parse(input, c->scanned, &limits, request);
    if (!note_parsed(c, &result, len)) {
        return false;
    }
    if (result.status == PARSE_OK) {
        if (UNLIKELY(c->rules != 0) && !rules_admit(c, request)) {
            return true;
        }
        c->worker->handlers->take(c, request, c->in);
        (void)start_part(c, last_request(c));
    } else {
        refuse(c, request, &result);
    }
    return true;
}

/* The output is read, but everything else waits for a part whose answer was dropped. */
static bool blocked_front_may_go(const struct client *c)
{
    return client_front_waits(c) && window_drained(&c->window, c->out.bytes);
}

/* What the window and memory say of requests that are still in the input. */
static inline bool may_take_request(const struct client *c, const struct pending *last)
{
    return window_admits(&c->window) && !is_held_up(c, last) &&
           (!c->worker->pressed || (c->window.unanswered == 0 && c->out.bytes == 0));
}

/* Is there something that client_pump could do, of what it left undone? */
static bool may_go_on(struct client *c)
{
    if (blocked_front_may_go(c)) {
        return true;
    }
    const struct pending *last = last_request(c);
    bool begun = c->postponed > 0 || (last != NULL && !last->all_started && !is_held_up(c, last));
    return window_open(&c->window, c->out.bytes) && (begun || may_take_request(c, last));
}

void client_pump(struct client *c)
{
    if (client_is_closed(c)) {
        return;
    }
    bool open;
    while ((open = window_open(&c->window, c->out.bytes)) || blocked_front_may_go(c)) {
        struct pending *last = last_request(c);
        if (c->postponed > 0) {
            pending_restart(c);
        } else if (start_part(c, last)) {
            continue;
        } else if (c->life >= CLIENT_STOPPED || !(open = may_take_request(c, last)) ||
                   !parse_one(c)) {
            break;
        }
    }
    if (!open) {
        request_clock_stop(c);
        if (c->reading) {
            metric_inc(&c->worker->metrics, METRIC_client_pauses);
        }
    }
    c->parsed = open;
    if (c->life >= CLIENT_STOPPED) {
        c->in_pos = c->in == NULL ? 0 : c->in->used;
    }
    drop_empty_input(c);
    set_reading(c, open && c->life == CLIENT_OPEN);
    if (UNLIKELY(c->is_secure)) {
        secure_read_on(c);
    }
    client_update_session(c);
    if (c->out.bytes + c->window.parked_bytes > 0 || c->life > CLIENT_OPEN) {
        client_want_write(c);
    }
}

/* --- output --- */

/* One piece, as there is most often, costs less without a header. */
static ssize_t send_pieces(int fd, struct iovec *iov, size_t count)
{
    if (count == 1) {
        return send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL);
    }
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* Is anything left that the socket has not taken? */
static inline bool has_unsent(const struct client *c)
{
    return c->out.bytes > 0 || (UNLIKELY(c->tls != NULL) && tls_has_output(c->tls));
}

/* Writes once, or until the pieces of one writev do not cover the output. Returns false when the
 * connection is lost. */
static bool write_out(struct client *c)
{
    while (has_unsent(c)) {
        struct iovec iov[IOV_COUNT];
        size_t count = chain_iov(&c->out, iov, IOV_COUNT);
        size_t offered = 0;
        for (size_t i = 0; i < count; i++) {
            offered += iov[i].iov_len;
        }
        ssize_t n =
            LIKELY(c->tls == NULL) ? send_pieces(c->fd, iov, count) : tls_write(c->tls, iov, count);
        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno == EAGAIN;
        }
        chain_consume(&c->out, (size_t)n);
        metric_add(&c->worker->metrics, METRIC_bytes_written, (uint64_t)n);
        mark_active(c);
        if ((size_t)n < offered) {
            return true;
        }
    }
    return true;
}

static void drop_slow(struct client *c)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_clients_dropped_slow);
    if (log_limit_pass(&w->slow_limit, w->now.wall_s, "clients", more)) {
        log_warn("client %s closed: it left %zu bytes of answers unread, client_hard_bytes is "
                 "%llu%s",
                 client_peer(c, peer, sizeof peer), c->out.bytes + c->window.parked_bytes,
                 (unsigned long long)w->config->client_hard_bytes, more);
    }
    if (c->lag.place == NULL) {
        lag_begin(&w->laggards, &c->lag, client_host(c, peer, sizeof peer), 0, &w->now);
    }
    lag_end(&w->laggards, &c->lag, &w->now, true);
    client_close(c);
}

/* Its socket is full. */
static RARE void wait_for_room(struct client *c)
{
    struct worker *w = c->worker;
    size_t unread = c->out.bytes + c->window.parked_bytes;
    char host[LAGGARD_NAME_BYTES];
    if (c->writing) {
        lag_set_bytes(&w->laggards, &c->lag, unread);
        return;
    }
    c->writing = true;
    event_add(&c->write_event, NULL);
    lag_begin(&w->laggards, &c->lag, client_host(c, host, sizeof host), unread, &w->now);
}

void client_write(struct client *c)
{
    if (client_is_closed(c)) {
        return;
    }
    size_t bytes = c->out.bytes;
    if (!c->writing && !write_out(c)) {
        metric_inc(&c->worker->metrics, METRIC_closed_lost);
        client_close(c);
        return;
    }
    if (c->out.bytes < bytes) {
        /* Also with nothing held yet: a read under way may ask for room when its head is there. */
        client_update_session(c);
    }
    if (c->out.bytes + c->window.parked_bytes > c->worker->config->client_hard_bytes) {
        drop_slow(c);
        return;
    }
    if (has_unsent(c)) {
        wait_for_room(c);
    }
    if (c->parsed) {
        if (c->life > CLIENT_OPEN && TAILQ_EMPTY(&c->fifo) && !has_unsent(c)) {
            c->life == CLIENT_READ ? client_close(c) : client_dismiss(c);
        }
    } else if (may_go_on(c)) {
        client_touch(c);
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd;
    (void)what;
    worker_woke(c->worker);
    c->writing = false;
    if (UNLIKELY(secure_is_pending(c))) {
        secure_go_on(c);
        return;
    }
    client_note_unread(c);
    c->took_us = c->worker->now.mono_us;
    client_want_write(c);
}
