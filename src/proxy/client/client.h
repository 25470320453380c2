/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's connection. Files: client.c moves bytes and starts requests; client_end.c ends
 * clients; client_state.c keeps the lists that they stand in.
 *
 *     socket -> in (block) -> request_parse -> dispatch -> fifo (pending.h)
 *     socket <- out (chain) <--------------------------------- in its order
 *
 * Events only move bytes between sockets and blocks. Parsing and starting happens in client_pump,
 * writing in client_write, both called by the worker once per turn for the clients that something
 * happened to.
 */
#ifndef PROXY_CLIENT_CLIENT_H
#define PROXY_CLIENT_CLIENT_H

#include <event2/event_struct.h>
#include <sys/queue.h>

#include "base/chain.h"
#include "list/engine.h"
#include "proxy/client/pending.h"
#include "proxy/client/window.h"
#include "proxy/core/laggards.h"

/* What is done with the requests of clients. */
struct client_handlers {
    /* Answers the request at once or puts it in the client's queue. Its slices point into block. */
    void (*take)(struct client *client, const struct request *request, struct block *block);
    /* The same of a request that would replace an item by a value that is too large. */
    void (*remove)(struct client *client, const struct request *request, struct block *block);
    /* As take, of a client that speaks the binary protocol. */
    void (*take_binary)(struct client *client, const struct request *request, struct block *block);
};

/* A client's life goes down this list, and may skip lines. */
enum client_life {
    CLIENT_OPEN,
    CLIENT_READ,    /* to its end: what came is still parsed and answered */
    CLIENT_STOPPED, /* nothing more is parsed: what was started is still answered */
    CLIENT_CLOSED,  /* the socket is gone; parts in flight are waited for */
    CLIENT_BURIED,  /* in worker.graveyard, to be freed at the end of the turn */
};

struct moved;
struct tls;
struct tls_trust;

/* What is not as usual with a client; see client.rules. */
enum client_rule {
    RULE_LOGIN = 1,   /* it has to log in before anything else: see login.h */
    RULE_RESERVE = 2, /* it is in worker.reserved: see reserve.h */
    RULE_VERBS = 4,   /* its listener does not take all verbs: see verbs_admit() */
    RULE_BINARY = 8,  /* it speaks the binary protocol: see binary.h */
};

struct client {
    struct worker *worker;
    const struct listener_config *listener; /* where it came in */
    uint64_t id;                            /* in the process, from 1 on */
    uint64_t since_us;                      /* when it came */
    TAILQ_ENTRY(client) link;               /* worker.clients, longest inactive first */
    TAILQ_ENTRY(client) touched_link;
    TAILQ_ENTRY(client) write_link;
    TAILQ_ENTRY(client) reserved_link;
    enum client_life life;
    bool touched;   /* in worker.touched: wants client_pump */
    bool unsent;    /* in worker.unsent: wants client_write */
    bool receiving; /* in worker.receiving: a part of a request is there */
    uint64_t active_us;

    int fd;
    struct tls *tls; /* over fd, or NULL */
    bool is_secure;  /* with tls: its handshake is over */
    struct event read_event;
    struct event write_event;
    bool reading;     /* read_event is added */
    bool writing;     /* write_event is added: the socket is full */
    uint64_t took_us; /* when it last took answers that it had left lying */
    struct lag lag;   /* while writing */

    /* Input: in->data[in_pos .. in->used) is not parsed yet. */
    struct block *in;
    size_t in_pos;
    size_t need;               /* bytes the request at in_pos will have, 0 when not known */
    size_t scanned;            /* bytes from in_pos on known to hold no newline */
    size_t swallow;            /* bytes to throw away before the next request */
    bool spoke;                /* a request was parsed */
    uint8_t rules;             /* bits of enum client_rule */
    bool parsed;               /* nothing whole is left in in: reading may go on */
    struct binary_call binary; /* with RULE_BINARY: of the request that is being taken */

    struct pending_list fifo;
    uint64_t last_order;  /* of the part started last */
    uint64_t last_change; /* of the last part that may change something */
    size_t postponed;     /* parts to be asked for again before anything else is started */
    struct window window;
    struct chain out;
    struct list_session session;

    TAILQ_ENTRY(client) receiving_link;
    uint64_t receiving_us; /* since when a part of a request is there */
    uint64_t doomed_bytes; /* in shared.doomed_bytes */
};

/* Takes over a connected, non-blocking socket that has come in by that listener; trust: NULL, or
 * for TLS. Returns the client, which lives as said at client_close. */
struct client *client_create(struct worker *worker, int fd, const struct listener_config *listener,
                             struct tls_trust *trust);

/* Puts the client on the list of those that client_pump is to be called for in this turn. */
void client_touch(struct client *client);
/* The same for client_write. */
void client_want_write(struct client *client);
/* After an answer: when all that is left is to write it, that is asked for, else client_pump. */
void client_answered(struct client *client);

/* The configuration has changed. */
void client_take_config(struct client *client);

/* Emits what is due, parses and starts what the window allows. */
void client_pump(struct client *client);
/* Writes what is queued. Closes the client when all is said, or when it leaves too much unread. */
void client_write(struct client *client);

/* No more reading; closes as soon as what was asked is answered. */
void client_finish(struct client *client);
/* No more reading, unless a larger part of a request is there than goes with a client to another
 * process. */
void client_pause(struct client *client);
/* The socket lives on elsewhere. The same as client_close, but for that. */
void client_leave(struct client *client);
/* Bytes of input that are not parsed yet. */
static inline size_t client_unparsed(const struct client *client)
{
    return client->in == NULL ? 0 : client->in->used - client->in_pos;
}
/* The client was at another process before, where it was as moved says. */
void client_resume(struct client *client, const struct moved *moved);

/* Tells the engine how much the client has still to take. Without requests there is no call that
 * this could matter to. */
void client_update_session(struct client *client);
/* Closes at once. The struct lives on until the end of the turn, and as long as parts are in
 * flight. */
void client_close(struct client *client);
/* The same, for a client that was told why in a line behind its last answer: what it still sends is
 * thrown away for a while, so that the kernel does not throw away the line. */
void client_dismiss(struct client *client);
/* Call when a closed client may have lost its last part. */
void client_bury(struct client *client);
/* Frees the memory of a closed client. */
void client_destroy(struct client **client);

static inline bool client_is_binary(const struct client *client)
{
    return UNLIKELY((client->rules & RULE_BINARY) != 0);
}

static inline bool client_is_closed(const struct client *client)
{
    return client->life >= CLIENT_CLOSED;
}

static inline void client_advance(struct client *client, enum client_life life)
{
    client->life = client->life < life ? life : client->life;
}
/* No more reading, nor is what was read parsed any more. */
static inline void client_stop(struct client *client)
{
    client_advance(client, CLIENT_STOPPED);
}

/* The first part of the first request, or NULL. */
static inline const struct part *client_first_part(const struct client *client)
{
    const struct pending *p = TAILQ_FIRST(&client->fifo);
    return p == NULL ? NULL : TAILQ_FIRST(&p->parts);
}
/* Does everything wait for a postponed part, since it is the first of all? */
static inline bool client_front_waits(const struct client *client)
{
    const struct part *part = client_first_part(client);
    return part != NULL && part->postponed;
}

/* How long the client has been waiting for nothing but its peer. */
bool client_is_idle(const struct client *client, uint64_t since_us);

/* Notes for how long it left answers unread, which is over. */
void client_note_unread(struct client *client);

/* The peer's address, for the log; of a unix socket, process and user. Returns out. */
const char *client_peer(const struct client *client, char *out, size_t cap);
/* The same without the port, which the next connection of a program does not have. */
const char *client_host(const struct client *client, char *out, size_t cap);

#endif
