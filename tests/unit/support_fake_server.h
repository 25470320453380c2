/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that says what a test tells it to say, on the loopback interface, and the loop that runs
 * it beside a pool in one thread. It answers the handshake by itself. While there is a world, time
 * goes on only by its turns, for libevent as well.
 */
#ifndef SUPPORT_FAKE_SERVER_H
#define SUPPORT_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "config/config.h"
#include "pool/link/metrics.h"
#include "pool/pool.h"

struct event_base;

struct fake_server {
    uint16_t port;
    int listen_fd; /* -1: refuses connections */
    int fd;        /* -1: no client is connected */
    unsigned accepted;
    const char *version;  /* what it says to `version`; NULL: nothing */
    const char *settings; /* what it says to `stats settings` */
    bool reads;           /* false: it leaves everything in the socket */
    bool greeted;         /* the handshake of this connection is over */
    char *got;            /* everything received since the handshake, or fake_forget; ends in NUL */
    size_t got_len;
};

/* One pool with one server, and everything around it. */
struct fake_world {
    struct fake_server server;
    struct event_base *base;
    struct now now;
    struct metrics metrics;
    struct server_config server_config;
    struct pool_config config;
    struct pool *pool; /* made by fake_pool_create */
};

void fake_world_init(struct fake_world *w);
void fake_world_fini(struct fake_world *w);
/* Makes the pool of w->config. */
void fake_pool_create(struct fake_world *w);

/* Answers; the bytes go out at once. */
void fake_say(struct fake_server *s, const char *text);
void fake_say_bytes(struct fake_server *s, const void *p, size_t len);
/* Drops what was received. */
void fake_forget(struct fake_server *s);
/* Ends the connection; stops and starts listening at the same port. */
void fake_hang_up(struct fake_server *s);
/* The same; returns when the other side's kernel knows of the end. */
void fake_hang_up_heard(struct fake_server *s);
void fake_stop(struct fake_server *s);
void fake_start(struct fake_server *s);

/* Which answers a line of memcached's protocol may draw. */
struct be_line_form fake_line_form(const char *line);

/* One turn of events, of the server, and of the pool's writing. */
void fake_turn(struct fake_world *w);
/* The events only: what was submitted is not written. */
void fake_events(struct fake_world *w);
/* Turns until *flag, for at most twenty seconds, which fails the test. */
void fake_until(struct fake_world *w, const bool *flag);
/* Turns until the server got so many bytes. */
void fake_until_got(struct fake_world *w, size_t len);
/* Turns for that time. */
void fake_for_ms(struct fake_world *w, unsigned ms);
/* That time passes without a turn. */
void fake_pass_ms(unsigned ms);

#endif
