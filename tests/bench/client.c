/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool fail(struct run *run, const char *what, const char *detail)
{
    snprintf(run->error, sizeof(run->error), "%s: %s", what, detail);
    return false;
}

/* What stands there, up to its line end, in printable letters. */
static bool fail_at(struct run *run, const char *what, const char *at, const char *end)
{
    char text[201];
    size_t used = 0;
    while (at < end && *at != '\n' && used < sizeof(text) - 1) {
        text[used++] = isprint((unsigned char)*at) ? *at : '?';
        at++;
    }
    text[used] = '\0';
    return fail(run, what, text);
}

static bool open_socket(struct client *client, struct run *run, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) {
        return fail(run, host, gai_strerror(error));
    }
    client->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = client->fd >= 0 && connect(client->fd, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    if (!connected) {
        return fail(run, "cannot connect", strerror(errno));
    }
    int on = 1;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    fcntl(client->fd, F_SETFL, fcntl(client->fd, F_GETFL) | O_NONBLOCK);
    return true;
}

bool client_connect(struct client *client, struct run *run, struct tape *tape, const char *host,
                    const char *port)
{
    *client = (struct client){.fd = -1, .tape = tape};
    if (!open_socket(client, run, host, port)) {
        return false;
    }
    if (tape->is_running) {
        client->room = malloc(tape->batch_bytes_max);
        if (!client->room) {
            return fail(run, "no memory", "for a batch of requests");
        }
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0) {
        return fail(run, "epoll", strerror(errno));
    }
    return true;
}

void client_close(struct client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
    }
    free(client->room);
}

static void want_write(struct client *client, struct run *run, bool wanted)
{
    if (client->wants_write != wanted) {
        struct epoll_event event = {.data.ptr = client};
        event.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
        epoll_ctl(run->epoll, EPOLL_CTL_MOD, client->fd, &event);
        client->wants_write = wanted;
    }
}

bool client_write(struct client *client, struct run *run)
{
    ssize_t sent = send(client->fd, client->output, client->output_bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        return fail(run, "cannot send", strerror(errno));
    }
    if (sent > 0) {
        client->output += sent;
        client->output_bytes -= (size_t)sent;
        run->bytes_written += (uint64_t)sent;
    }
    want_write(client, run, client->output_bytes > 0);
    return true;
}

bool client_start(struct client *client, struct run *run)
{
    unsigned count = client->tape->depth;
    if (count > run->requests_left) {
        count = (unsigned)run->requests_left;
    }
    client->batch = count;
    client->answered = 0;
    if (count == 0) {
        return true;
    }
    run->requests_left -= count;
    run->waiting++;
    client->output = tape_take(client->tape, count, client->room, &client->output_bytes);
    client->sent_ns = run->now_ns;
    return client_write(client, run);
}

/* Reads the replies in [at, end), keeps what is incomplete. */
static bool take_replies(struct client *client, struct run *run, const char *at, const char *end)
{
    const struct tape *tape = client->tape;
    unsigned before = client->answered;
    while (client->answered < client->batch && at < end) {
        size_t kind = client->answered % tape->template_count;
        const struct expectation *expected = &tape->templates[kind].expectation;
        enum reply_step step = reply_read(&client->reader, expected, &at, end);
        if (step == REPLY_WRONG) {
            return fail_at(run, "unexpected reply", at, end);
        }
        if (step == REPLY_MORE) {
            break;
        }
        client->answered++;
    }
    if (client->answered == client->batch && at < end) {
        return fail_at(run, "a reply that no request asked for", at, end);
    }
    client->partial_bytes = (size_t)(end - at);
    if (client->partial_bytes > sizeof(client->partial)) {
        return fail_at(run, "a line without an end", at, end);
    }
    memcpy(client->partial, at, client->partial_bytes);
    run->replies += client->answered - before;
    if (run->histogram) {
        histogram_add(run->histogram, run->now_ns - client->sent_ns, client->answered - before);
    }
    return true;
}

bool client_read(struct client *client, struct run *run)
{
    memcpy(run->input, client->partial, client->partial_bytes);
    char *fresh = run->input + client->partial_bytes;
    ssize_t got = recv(client->fd, fresh, INPUT_BYTES - client->partial_bytes, 0);
    run->now_ns = clock_ns();
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (got <= 0) {
        char detail[80];
        snprintf(detail, sizeof(detail), "%u replies missing on this connection",
                 client->batch - client->answered);
        return fail(run, "connection closed", detail);
    }
    run->bytes_read += (uint64_t)got;
    if (!take_replies(client, run, run->input, fresh + got)) {
        return false;
    }
    if (client->batch > 0 && client->answered == client->batch) {
        run->waiting--;
        return client_start(client, run);
    }
    return true;
}

bool client_check_silent(struct client *client, struct run *run)
{
    ssize_t got = recv(client->fd, run->input, INPUT_BYTES, 0);
    if (got > 0) {
        return fail_at(run, "a reply that no request asked for", run->input, run->input + got);
    }
    if (got == 0) {
        return fail(run, "connection closed", "by the server, at the end");
    }
    return errno == EAGAIN || fail(run, "cannot read", strerror(errno));
}
