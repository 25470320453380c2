/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* A longer request is refused. */
#define REQUEST_BYTES_MAX 8192
/* How long a client may take to close its side behind its answer. A close with unread input would
 * take the answer back. */
#define LINGER_S 1
/* How long accepting pauses while there are no descriptors. */
#define ACCEPT_PAUSE_US 100000

struct acceptor {
    struct http *http;
    struct event event;
    bool takes_commands; /* a unix socket: its permissions say who may */
};

struct connection {
    TAILQ_ENTRY(connection) link; /* http.connections */
    struct http *http;
    struct bufferevent *stream;
    struct event deadline;
    bool takes_commands;
    struct http_peer peer;
    bool answered; /* what comes now is thrown away */
    bool ended;    /* the answer is out */
};
TAILQ_HEAD(connection_list, connection);

struct http {
    struct event_base *base;
    const struct http_handlers *handlers;
    void *arg;
    uint32_t max_connections, timeout_ms;
    struct connection_list connections; /* oldest first */
    unsigned connection_count;
    struct event pause;
    size_t acceptor_count;
    struct acceptor acceptors[];
};

static void close_connection(struct connection *c)
{
    if (c->peer.gone != NULL) {
        c->peer.gone(c->peer.gone_arg);
    }
    TAILQ_REMOVE(&c->http->connections, c, link);
    c->http->connection_count--;
    event_del(&c->deadline);
    bufferevent_free(c->stream); /* closes the socket */
    free(c);
}

/* --- answers --- */

static const char *reason_of(unsigned status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    default:
        return "Service Unavailable";
    }
}

/* Takes the answer's body. */
static void send_answer(struct connection *c, struct http_answer *answer, bool is_head)
{
    struct evbuffer *out = bufferevent_get_output(c->stream);
    evbuffer_add_printf(out,
                        "HTTP/1.1 %u %s\r\n"
                        "Content-Type: %s\r\n"
                        "Content-Length: %zu\r\n"
                        "Connection: close\r\n"
                        "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "Content-Security-Policy: default-src 'none'; "
                        "style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
                        "%s\r\n",
                        answer->status, reason_of(answer->status), answer->type,
                        evbuffer_get_length(answer->body),
                        answer->status == 405 ? "Allow: GET, HEAD\r\n" : "");
    if (!is_head) {
        evbuffer_add_buffer(out, answer->body);
    }
    evbuffer_free(answer->body);
    c->answered = true;
}

static struct http_answer new_answer(unsigned status)
{
    struct evbuffer *body = evbuffer_new();
    CHECK(body != NULL);
    return (struct http_answer){status, "text/plain; charset=utf-8", body};
}

static void refuse(struct connection *c, unsigned status, const char *text)
{
    struct http_answer answer = new_answer(status);
    evbuffer_add_printf(answer.body, "%s\n", text);
    send_answer(c, &answer, false);
}

/* --- requests --- */

/* Takes the first line of text, without its end. */
static struct slice take_line(struct slice *text)
{
    const char *end = memchr(text->p, '\n', text->len);
    size_t len = end == NULL ? text->len : (size_t)(end - text->p);
    struct slice line = slice_take(text, len);
    (void)slice_take(text, end == NULL ? 0 : 1);
    line.len -= line.len > 0 && line.p[line.len - 1] == '\r';
    return line;
}

static struct slice take_word(struct slice *line)
{
    const char *end = memchr(line->p, ' ', line->len);
    struct slice word = slice_take(line, end == NULL ? line->len : (size_t)(end - line->p));
    (void)slice_take(line, end == NULL ? 0 : 1);
    return word;
}

/* The value of the header Accept, or nothing. */
static struct slice accept_of(struct slice headers)
{
    static const struct slice name = SLICE_LIT("accept:");
    while (headers.len > 0) {
        struct slice line = take_line(&headers);
        if (line.len > name.len && strncasecmp(line.p, name.p, name.len) == 0) {
            (void)slice_take(&line, name.len);
            return line;
        }
    }
    return SLICE_NONE;
}

static void answer_request(struct connection *c, struct slice text)
{
    struct slice headers = text;
    struct slice line = take_line(&headers);
    struct slice method = take_word(&line);
    struct slice target = take_word(&line);
    if (!slice_starts_with(line, SLICE_LIT("HTTP/1."))) {
        refuse(c, 400, "an HTTP request is METHOD PATH HTTP/1.1");
        return;
    }
    bool is_head = slice_equal(method, SLICE_LIT("HEAD"));
    if (!is_head && !slice_equal(method, SLICE_LIT("GET"))) {
        refuse(c, 405, "nothing can be changed here: GET and HEAD only");
        return;
    }
    const char *query = memchr(target.p, '?', target.len);
    target.len = query == NULL ? target.len : (size_t)(query - target.p);
    struct http_request request = {target, accept_of(headers)};
    struct http_answer answer = new_answer(200);
    c->http->handlers->request(c->http->arg, &request, &answer);
    send_answer(c, &answer, is_head);
}

/* Is that line no HTTP request's? */
static bool is_command(struct slice line)
{
    static const char http[] = "HTTP/1.x";
    size_t len = sizeof http - 1;
    return line.len < len || memcmp(line.p + line.len - len, http, len - 1) != 0;
}

/* What the command says goes out as it is. */
static void answer_command(struct connection *c, struct slice line)
{
    struct evbuffer *out = bufferevent_get_output(c->stream);
    c->peer.fd = bufferevent_getfd(c->stream);
    c->peer.stays = false;
    c->http->handlers->command(c->http->arg, line, &c->peer, out);
    c->answered = !c->peer.stays;
    if (c->peer.gone != NULL) {
        event_del(&c->deadline);
    }
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *in = bufferevent_get_input(stream);
    size_t len = evbuffer_get_length(in);
    struct evbuffer_ptr line_end = evbuffer_search(in, "\n", 1, NULL);
    struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    struct evbuffer_ptr bare = evbuffer_search(in, "\n\n", 2, NULL);
    struct slice first = SLICE_NONE;
    if (c->takes_commands && line_end.pos >= 0) {
        struct slice text = slice_make((const char *)evbuffer_pullup(in, -1), len);
        first = take_line(&text);
    }
    if (c->answered || c->peer.gone != NULL) {
        evbuffer_drain(in, len);
    } else if (first.p != NULL && is_command(first)) {
        answer_command(c, first);
        evbuffer_drain(in, len);
    } else if (end.pos >= 0 || bare.pos >= 0) {
        const char *bytes = (const char *)evbuffer_pullup(in, -1);
        answer_request(c, slice_make(bytes, len));
        evbuffer_drain(in, len);
    } else if (len >= REQUEST_BYTES_MAX) {
        refuse(c, 431, "the request is too long");
        evbuffer_drain(in, len);
    }
}

static void end_if_written(struct connection *c)
{
    struct bufferevent *stream = c->stream;
    if (c->answered && !c->ended && evbuffer_get_length(bufferevent_get_output(stream)) == 0) {
        struct timeval left = {LINGER_S, 0};
        c->ended = true;
        (void)shutdown(bufferevent_getfd(stream), SHUT_WR);
        event_add(&c->deadline, &left);
    }
}

static void on_written(struct bufferevent *stream, void *arg)
{
    (void)stream;
    end_if_written(arg);
}

static struct connection *connection_of(struct http_peer *peer)
{
    return (struct connection *)(void *)((char *)peer - offsetof(struct connection, peer));
}

struct evbuffer *http_output(struct http_peer *peer)
{
    return bufferevent_get_output(connection_of(peer)->stream);
}

void http_end(struct http_peer *peer)
{
    struct connection *c = connection_of(peer);
    struct timeval left = timeval_of_ms(c->http->timeout_ms);
    peer->gone = NULL;
    c->answered = true;
    event_add(&c->deadline, &left);
    end_if_written(c);
}

static void on_end(struct bufferevent *stream, short what, void *arg)
{
    struct connection *c = arg;
    (void)stream;
    /* A client that has shut its side down still reads its answer. */
    if ((what & BEV_EVENT_EOF) == 0 || !c->answered || c->ended) {
        close_connection(c);
    }
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    close_connection(arg);
}

/* --- connections --- */

/* The oldest whose answer is not on its way, or else the oldest, makes room. */
static void make_room(struct http *h)
{
    struct connection *c;
    if (h->connection_count < h->max_connections) {
        return;
    }
    TAILQ_FOREACH(c, &h->connections, link)
    {
        if (!c->answered || c->ended) {
            break;
        }
    }
    close_connection(c != NULL ? c : TAILQ_FIRST(&h->connections));
}

static void add_connection(struct http *h, int fd, bool takes_commands)
{
    make_room(h);
    struct connection *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->http = h;
    c->takes_commands = takes_commands;
    c->stream = bufferevent_socket_new(h->base, fd, BEV_OPT_CLOSE_ON_FREE);
    CHECK(c->stream != NULL);
    TAILQ_INSERT_TAIL(&h->connections, c, link);
    h->connection_count++;
    struct timeval left = timeval_of_ms(h->timeout_ms);
    evtimer_assign(&c->deadline, h->base, on_deadline, c);
    event_add(&c->deadline, &left);
    bufferevent_setcb(c->stream, on_readable, on_written, on_end, c);
    bufferevent_setwatermark(c->stream, EV_READ, 0, REQUEST_BYTES_MAX);
    bufferevent_enable(c->stream, EV_READ | EV_WRITE);
}

static void stop_accepting(struct http *h)
{
    for (size_t i = 0; i < h->acceptor_count; i++) {
        event_del(&h->acceptors[i].event);
    }
}

static void start_accepting(struct http *h)
{
    for (size_t i = 0; i < h->acceptor_count; i++) {
        event_add(&h->acceptors[i].event, NULL);
    }
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    start_accepting(arg);
}

static void on_acceptable(evutil_socket_t listening, short what, void *arg)
{
    struct acceptor *a = arg;
    struct http *h = a->http;
    (void)what;
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        add_connection(h, fd, a->takes_commands);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        struct timeval pause = {0, ACCEPT_PAUSE_US};
        stop_accepting(h);
        event_add(&h->pause, &pause);
    }
}

struct http *http_start(struct event_base *base, const struct listen_set *listen,
                        const struct http_handlers *handlers, void *arg)
{
    size_t count = listen_set_count(listen);
    struct http *h = calloc(1, sizeof *h + count * sizeof h->acceptors[0]);
    CHECK(h != NULL);
    h->base = base;
    h->handlers = handlers;
    h->arg = arg;
    h->acceptor_count = count;
    TAILQ_INIT(&h->connections);
    evtimer_assign(&h->pause, base, on_pause_over, h);
    for (size_t i = 0; i < count; i++) {
        struct acceptor *a = &h->acceptors[i];
        a->http = h;
        a->takes_commands = strncmp(listen_set_name(listen, i), "unix:", 5) == 0;
        event_assign(&a->event, base, listen_set_socket(listen, i, 0), EV_READ | EV_PERSIST,
                     on_acceptable, a);
    }
    return h;
}

void http_serve(struct http *h)
{
    start_accepting(h);
}

void http_set_limits(struct http *h, uint32_t max_connections, uint32_t timeout_ms)
{
    h->max_connections = max_connections;
    h->timeout_ms = timeout_ms;
}

void http_leave(struct http *h)
{
    stop_accepting(h);
    event_del(&h->pause);
}

void http_stop(struct http **slot)
{
    struct http *h = *slot;
    *slot = NULL;
    http_leave(h);
    while (!TAILQ_EMPTY(&h->connections)) {
        close_connection(TAILQ_FIRST(&h->connections));
    }
    free(h);
}
