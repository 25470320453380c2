/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing a run: its sublists under a fresh name that was announced in the log before (storage
 * rules 1 and 2), each by ADD, so that a name that was swept in the meantime (burnt) refuses
 * instead of coming to life.
 */
#ifndef LIST_COMPACT_WRITE_RUN_H
#define LIST_COMPACT_WRITE_RUN_H

#include "list/core/op.h"

struct op_compact;

/* A run being written: sublists go out as they fill. */
struct run_writer {
    struct announcement announcement; /* its name, and how many sublists it may have */
    uint64_t limit_bytes;             /* of a sublist */
    struct block *sublist;            /* being filled, or NULL */
    uint32_t sublist_entries;
    struct run run; /* what was written so far */
    bool announced; /* its name is known to stand in the log, or did */
    bool refused;   /* a write was definitely not done */
    bool unknown;   /* a write's outcome is not known, or its name is burnt */
};

void writer_init(struct engine *e, struct op_compact *c, uint64_t bytes_max);
void writer_put(struct engine *e, struct op_compact *c, char op, struct slice item);
void writer_flush(struct engine *e, struct op_compact *c);
/* Bytes of what was put so far, as stored; UINT64_MAX when a part of it is on its way. */
uint64_t writer_bytes(const struct op_compact *c);
/* The entries that were put and are not on their way. */
struct slice writer_entries(const struct op_compact *c);
void writer_take_reply(struct op_compact *c, const struct op_event *event);
bool writer_failed(const struct op_compact *c);
/* Announces the run and reads the head behind the announcement; c->head is NULL when that did not
 * go well. name: of the wait. */
enum progress announce_step(struct engine *e, struct op_compact *c, const struct op_event *event,
                            const char *name);
/* Deletes what was written and withdraws the announcement, where a list was last seen; only after
 * a definite refusal (storage rule 4). */
enum progress undo_step(struct engine *e, struct op_compact *c, const struct op_event *event);
void writer_fini(struct op_compact *c);

#endif
