/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_fake_server.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define GOT_MAX ((size_t)16 << 20)

/* ---- time ---- */

/* What a turn takes. A busy machine needs longer for one, which no timeout notices. */
#define TURN_US 200

static uint64_t virtual_us; /* 0: no world is there, and time is the machine's */

/* In place of libc's, for libevent's timers and for clock_now(). */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (virtual_us == 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)) {
        return (int)syscall(SYS_clock_gettime, clock, t);
    }
    *t = (struct timespec){.tv_sec = (time_t)(virtual_us / 1000000),
                           .tv_nsec = (long)(virtual_us % 1000000) * 1000};
    return 0;
}

void fake_pass_ms(unsigned ms)
{
    virtual_us += (uint64_t)ms * 1000;
}

/* ---- the server ---- */

void fake_start(struct fake_server *s)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int one = 1;
    s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(s->listen_fd >= 0);
    setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(s->listen_fd, 16), 0);
    assert_int_equal(getsockname(s->listen_fd, (struct sockaddr *)&in, &len), 0);
    s->port = ntohs(in.sin_port);
}

void fake_forget(struct fake_server *s)
{
    s->got_len = 0;
    s->got[0] = '\0';
}

void fake_hang_up(struct fake_server *s)
{
    if (s->fd >= 0) {
        close(s->fd);
    }
    s->fd = -1;
    s->greeted = false;
    fake_forget(s);
}

void fake_stop(struct fake_server *s)
{
    fake_hang_up(s);
    if (s->listen_fd >= 0) {
        close(s->listen_fd);
    }
    s->listen_fd = -1;
}

void fake_say_bytes(struct fake_server *s, const void *p, size_t len)
{
    assert_true(s->fd >= 0);
    assert_int_equal(send(s->fd, p, len, MSG_NOSIGNAL), (ssize_t)len);
}

void fake_say(struct fake_server *s, const char *text)
{
    fake_say_bytes(s, text, strlen(text));
}

static void greet(struct fake_server *s)
{
    static const char hello[] = "version\r\nstats settings\r\n";
    if (s->greeted || s->version == NULL || s->got_len < sizeof hello - 1) {
        return;
    }
    assert_memory_equal(s->got, hello, sizeof hello - 1);
    s->greeted = true;
    s->got_len -= sizeof hello - 1;
    memmove(s->got, s->got + sizeof hello - 1, s->got_len + 1);
    fake_say(s, s->version);
    fake_say(s, s->settings);
}

static void serve(struct fake_server *s)
{
    if (s->fd < 0 && s->listen_fd >= 0) {
        s->fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (s->fd >= 0) {
            /* What it says goes out at once. */
            setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            s->accepted++;
            s->greeted = false;
            fake_forget(s);
        }
    }
    ssize_t n = 1;
    while (s->fd >= 0 && n > 0 && (s->reads || !s->greeted)) {
        assert_true(s->got_len < GOT_MAX);
        n = read(s->fd, s->got + s->got_len, GOT_MAX - s->got_len);
        if (n > 0) {
            s->got_len += (size_t)n;
            s->got[s->got_len] = '\0';
            greet(s);
        }
    }
    if (n == 0) {
        fake_hang_up(s);
    } else if (s->fd >= 0) {
        greet(s); /* its version may have been set since it was asked */
    }
}

void fake_hang_up_heard(struct fake_server *s)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    assert_int_equal(shutdown(s->fd, SHUT_WR), 0);
    while (info.tcpi_state != TCP_FIN_WAIT2) {
        assert_int_equal(getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    }
    fake_hang_up(s);
}

static void tick(struct fake_world *w)
{
    w->now = clock_now();
}

void fake_events(struct fake_world *w)
{
    tick(w);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
}

void fake_turn(struct fake_world *w)
{
    fake_events(w);
    pool_flush(w->pool);
    serve(&w->server);
    const struct timespec nap = {0, TURN_US * 1000L};
    nanosleep(&nap, NULL);
    virtual_us += TURN_US;
}

void fake_for_ms(struct fake_world *w, unsigned ms)
{
    uint64_t end = clock_now().mono_us + (uint64_t)ms * 1000;
    while (clock_now().mono_us < end) {
        fake_turn(w);
    }
}

/* Nothing takes that long. */
#define HANG_US 20000000u

void fake_until(struct fake_world *w, const bool *flag)
{
    uint64_t end = clock_now().mono_us + HANG_US;
    while (!*flag) {
        assert_true(clock_now().mono_us < end);
        fake_turn(w);
    }
}

void fake_until_got(struct fake_world *w, size_t len)
{
    uint64_t end = clock_now().mono_us + HANG_US;
    while (!w->server.greeted || w->server.got_len < len) {
        assert_true(clock_now().mono_us < end);
        fake_turn(w);
    }
}

void fake_world_init(struct fake_world *w)
{
    *w = (struct fake_world){0};
    w->server = (struct fake_server){
        .fd = -1,
        .reads = true,
        .version = "VERSION 1.6.18\r\n",
        .settings = "STAT item_size_max 1048576\r\nSTAT cas_enabled yes\r\nEND\r\n",
        .got = calloc(1, GOT_MAX + 1),
    };
    assert_non_null(w->server.got);
    fake_start(&w->server);
    virtual_us = clock_now().mono_us;
    w->base = event_base_new();
    assert_non_null(w->base);
    snprintf(w->server_config.endpoint.host, sizeof w->server_config.endpoint.host, "127.0.0.1");
    w->server_config.endpoint.port = w->server.port;
    w->server_config.weight = 1;
    snprintf(w->server_config.name, sizeof w->server_config.name, "fake");
    w->config = (struct pool_config){
        .name = "p",
        .servers = &w->server_config,
        .server_count = 1,
        .connections = 1,
        .connect_timeout_ms = 500,
        .timeout_ms = 500,
        .retry_min_ms = 100,
        .retry_max_ms = 1000,
        .max_pending = 1000,
        .max_pending_bytes = 128 << 20,
    };
    tick(w);
}

void fake_pool_create(struct fake_world *w)
{
    char error[CONFIG_ERROR_MAX] = "";
    w->pool = pool_create(&w->config, w->base, &w->now, &w->metrics, NULL, error);
    assert_string_equal(error, "");
    assert_non_null(w->pool);
}

void fake_world_fini(struct fake_world *w)
{
    pool_destroy(&w->pool);
    fake_stop(&w->server);
    event_base_free(w->base);
    free(w->server.got);
    block_thread_fini();
    virtual_us = 0;
}

struct be_line_form fake_line_form(const char *line)
{
    static const struct {
        const char *verb;
        enum be_verb like;
    } verbs[] = {{"set", BE_SET},        {"add", BE_ADD},       {"cas", BE_CAS},
                 {"append", BE_APPEND},  {"delete", BE_DELETE}, {"incr", BE_INCR},
                 {"decr", BE_DECR},      {"touch", BE_TOUCH},   {"replace", BE_REPLACE},
                 {"prepend", BE_PREPEND}};
    if (line[0] == 'm') {
        struct be_line_form form = {.meta = line[1]};
        const char *flag = strchr(line + 3, ' ');
        for (; flag != NULL; flag = strchr(flag + 1, ' ')) {
            form.flags |= letter_bit(flag[1]);
        }
        return form;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (slice_starts_with(slice_of(line), slice_of(verbs[i].verb))) {
            return (struct be_line_form){.like = verbs[i].like};
        }
    }
    return (struct be_line_form){.like = BE_LINE};
}
