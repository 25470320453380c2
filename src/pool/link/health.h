/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all workers of the process together know of a server's health, and what the log says of it:
 * once per process, however many workers meet it. For this folder only, from any thread: each
 * event takes a lock, so none of them happens while all is well.
 *
 * A connection is MUTE from the time-out that began it, until another connection in its place has
 * shaken hands. Then it is ON_PROBATION, since a server may do that and answer nothing, until a
 * request is answered. The server does not answer while a connection is mute; the log says that it
 * does again once none is and one of them has heard an answer.
 */
#ifndef POOL_LINK_HEALTH_H
#define POOL_LINK_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct health;
struct server;
struct server_stats;

/* Of a connection, see struct upstream. */
enum silence { SILENCE_NONE, SILENCE_MUTE, SILENCE_ON_PROBATION };

/* Lets this worker's part of the server take part in its health, of which there is one for each
 * name in a pool; and no more. */
void health_join(struct server *server);
void health_leave(struct server *server);

/* The server is lost to this worker, or is there again. Notes it, and says whether it is news for
 * the log: of a loss, if the log does not say already that it is lost; of a return, if it has said
 * that, and the server is lost to no worker any more, or if it was never there before. more: what
 * the line of a loss is to end with, see log_limit_pass. */
bool health_lost(struct server *server, char *more);
bool health_back(struct server *server);
/* The server cannot be used, for that reason. Is it another one than the log has given? */
bool health_unfit(struct server *server, const char *text);

/* A connection has fallen mute: nothing was heard since then, by the clock mono_us. */
void health_mute(struct server *server, enum silence *silence, uint64_t since_us,
                 const char *reason);
/* It has shaken hands again. */
void health_shook_hands(struct server *server, enum silence *silence);
/* It has heard an answer. */
void health_heard(struct server *server, enum silence *silence);
/* It was refused or belongs to another address now: that is no silence. */
void health_not_mute(struct server *server, enum silence *silence);
/* A connection is ejected. Is that the first one since the server fell silent? */
bool health_first_ejected(struct server *server);

/* The server is a node that has left its cluster. Is this the first worker to say so, since it was
 * there? */
bool health_first_left(struct server *server);

/* The server is full. Says so, at most once in HEALTH_TELL_S. */
#define HEALTH_TELL_S 60
void health_full(struct server *server);

/* These two: from the worker that watches the servers, every watch_interval_s.
 *
 * Takes what the server says of itself, and compares it with what it said at the look before, if
 * there was one. */
struct server_look;
void health_looked(struct server *server, const struct server_look *before,
                   const struct server_look *now);
/* Compares the times of the servers of a pool since the last call. */
void health_compare(struct server *servers, size_t count);

/* Fills in what stats know of that. */
void health_snapshot(const struct server *server, struct server_stats *out);

#endif
