/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection to one server: a queue of exchanges, answered in order. For this folder only.
 *
 *     IDLE --> RESOLVING --> CONNECTING --> HANDSHAKE --> UP --lost--> RESOLVING (at once)
 *                 ^  |_____________|____________|_____          |
 *                 |             failed                |         | lost before it proved useful
 *                 |                                   v         |
 *                 +--------------back-off----------- DOWN <-----+
 *
 * RESOLVING is left at once where nothing has to be looked up. When the server's name means another
 * address, each state but IDLE goes to RESOLVING: a connection belongs to one address for good.
 *
 * The output is one stream of bytes; positions in it say what was sent, exactly:
 *
 *     0             out_written                out_end
 *     | written      | in the chain `out`       |
 *        [start, end) of each exchange
 *
 * Where start < out_written, some of the exchange may have reached the server.
 *
 * They start at 0 again on each new connection; what was wholly unsent goes out there. The rest of
 * an exchange that was sent in part never does.
 */
#ifndef POOL_LINK_UPSTREAM_H
#define POOL_LINK_UPSTREAM_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/block.h"
#include "base/chain.h"
#include "pool/link/exchange.h"
#include "pool/link/failure.h"
#include "pool/link/health.h"
#include "tls/tls.h"
#include "pool/link/wire.h"
#include "pool/locate/address.h"

struct server;

enum upstream_state {
    UPSTREAM_IDLE, /* before pool_connect and the first request */
    UPSTREAM_RESOLVING,
    UPSTREAM_CONNECTING,
    UPSTREAM_HANDSHAKE,
    UPSTREAM_UP,
    UPSTREAM_DOWN, /* waits before the next attempt */
    UPSTREAM_STATE_COUNT
};

/* A server may shake hands and then answer nothing: after eject_failures requests that timed out in
 * a row, no more are sent until a new connection has answered the handshake and a probe behind it.
 * Then one request is let through at a time; the first answer ends the trial, a time-out the
 * connection. One that an operator has drained takes no more requests; it ends its connection when
 * those that it has are over, and is DOWN without further attempts. */
enum upstream_favour {
    UPSTREAM_TRUSTED,
    UPSTREAM_EJECTED,
    UPSTREAM_ON_TRIAL,
    UPSTREAM_DRAINED,
    UPSTREAM_FAVOUR_COUNT
};

/* The connection is to end; more than one reason may hold. */
enum upstream_ending {
    UPSTREAM_STALE = 1,    /* nothing more is sent: it is replaced once what was sent is answered */
    UPSTREAM_DRAINING = 2, /* it ends once all that is queued is answered */
};

struct upstream {
    struct server *server;
    const struct wire *wire; /* of this connection or, before it is UP, of the last one: what is
                                queued is encoded so */
    enum upstream_state state;
    enum upstream_favour favour;
    uint32_t timeouts;        /* in a row, without a word of the server in between */
    enum silence silence;     /* see pool/link/health.h */
    bool is_doubted;          /* there were timeouts, it is on trial, or was silent: its next answer
                                 ends that */
    int fd;                   /* -1: none */
    struct tls *tls;          /* over fd, or NULL */
    struct event read_event;  /* while connected */
    struct event write_event; /* while connecting, and while the socket is full */
    struct event state_timer; /* end of the attempt or of the back-off */
    struct event queue_timer; /* deadline of the first exchange, or earlier */
    uint64_t queue_timer_us;  /* when it fires; UINT64_MAX: it is not set */
    bool is_dirty;
    bool is_reading;   /* input is being handed out: done() may submit meanwhile */
    bool socket_full;  /* write_event waits for room */
    uint8_t ending;    /* see enum upstream_ending */
    bool write_failed; /* what can still be read is read, then the connection is given up */
    bool answered;     /* this connection has proved useful */
    bool has_turn;     /* see pool/link/login_turn.h */
    bool awaits_turn;
    bool doubtful; /* the last attempt failed slowly: requests do not wait for the next one */
    enum exchange_failure down_failure; /* of requests while DOWN */
    uint64_t epoch;                     /* names the connection while UP, else 0 */
    uint64_t up_since_us;
    uint64_t heard_us;      /* last time something was read */
    uint64_t failed_us;     /* end of the last failed attempt */
    uint64_t retry_ms;      /* next back-off */
    struct address address; /* of this attempt or connection */
    uint64_t version;       /* of the server's location, for this attempt or connection */
    struct handshake handshake;
    uint64_t turn_until_us; /* so long it waits for its turn at most */

    struct exchange_list queue;
    size_t queued;
    struct chain out;
    uint64_t out_written;
    uint64_t out_end;
    struct block *in;
    size_t in_parsed; /* bytes of in that are done with */
    size_t in_need;   /* bytes of the reply that is not all there; 0 = not known */
    TAILQ_ENTRY(upstream) dirty_link;
};

void upstream_init(struct upstream *u, struct server *server);
/* Closes the connection and finishes all exchanges. */
void upstream_shutdown(struct upstream *u);
void upstream_fini(struct upstream *u);

/* Queues the exchange, connecting if needed; it is written by upstream_flush. */
void upstream_submit(struct upstream *u, struct exchange *x);
/* Writes what is queued, if connected. */
void upstream_flush(struct upstream *u);

/* An operator takes the server out of use, or back into it. */
void upstream_drain(struct upstream *u);
void upstream_undrain(struct upstream *u);
/* Of a connection with an `ending`: ends it where that is due. True: it has ended. */
bool upstream_end_if_due(struct upstream *u);

/* The connection is over: ends what was sent, keeps the rest for the next one. timed_out: the first
 * exchange waited too long. */
void upstream_lost(struct upstream *u, const char *reason, bool timed_out);
/* The handshake is over. */
void upstream_established(struct upstream *u);
/* An attempt failed; requests end with that failure. quickly: it was refused at once. */
void upstream_attempt_failed(struct upstream *u, const char *reason, bool quickly,
                             enum exchange_failure failure);
/* The server has another address now: connects there. What was sent is lost. */
void upstream_move(struct upstream *u);
/* Takes the first exchange, which was answered, from the queue. */
void upstream_dequeue(struct upstream *u, struct exchange *x);
/* The server has answered a request of a submitter, which ends all doubts. */
void upstream_answered(struct upstream *u);

/* upstream_io.c: sends these few bytes of a handshake; false with errno when that fails. */
bool upstream_send(struct upstream *u, const char *bytes, size_t len);
/* Writes until the socket is full; reads and hands out what came. */
void upstream_write(struct upstream *u);
void upstream_readable(struct upstream *u);
/* False when the idle connection turned out to be dead. */
bool upstream_probe(struct upstream *u);

/* upstream_connect.c: finds out where the server is and connects. Ends in RESOLVING or later, or in
 * DOWN. */
void upstream_attempt(struct upstream *u);
/* Begins the handshake once no other login at this server is under way, or it has waited long
 * enough. */
void upstream_take_turn(struct upstream *u);
/* Lets the next login go ahead, if this one had its turn. */
void upstream_end_turn(struct upstream *u);
/* Begins the handshake, or goes on with it as far as bytes have arrived. False when the attempt has
 * failed. */
bool upstream_handshake(struct upstream *u);
void upstream_set_state(struct upstream *u, enum upstream_state state);
/* The end of the attempt, or of the back-off. */
void upstream_set_timer(struct upstream *u, uint64_t ms);

#endif
