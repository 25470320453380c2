/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing a run: its sublists under a fresh name that was announced in the log before (storage
 * rules 1 and 2), each by ADD. A name that was swept in the meantime is not announced any more:
 * the writer finds that out before it publishes, and undoes what it has written.
 *
 * Its requests carry these tags; an operation that writes runs numbers its own from TAG_OWN on.
 */
#ifndef LIST_CORE_WRITE_RUN_H
#define LIST_CORE_WRITE_RUN_H

#include "list/core/op.h"

enum { TAG_HEAD = 1, TAG_ANNOUNCE, TAG_SUBLIST, TAG_DELETE, TAG_OWN };

/* Sublists on their way to the backend before a source of items pauses. */
#define WRITES_MAX 4
/* Items that an operation takes or writes before others get their turn: about a millisecond of
 * work. */
#define WRITE_SLICE_ITEMS 4096u

/* A run being written: sublists go out as they fill. */
struct run_writer {
    struct op *op;                    /* which writes it */
    char *error;                      /* the operation's, LIST_ERROR_MAX bytes */
    struct announcement announcement; /* its name, and how many sublists it may have */
    uint64_t limit_bytes;             /* of a sublist */
    struct block *sublist;            /* being filled, or NULL */
    uint32_t sublist_entries;
    struct run run;         /* what was written so far */
    struct run_times times; /* when its items are over */
    int64_t until_s;  /* its sublists live at least until that second of the clock of the head's
                         server; 0: for ever */
    int32_t exptime;  /* that they are written with, for this */
    bool announced;   /* its name is known to stand in the log, or did */
    bool is_full;     /* it was not announced: the item takes no more bytes */
    bool conflict;    /* it was not announced: the head had moved on */
    bool refused;     /* a write was definitely not done */
    bool no_memory;   /* that was why */
    bool unknown;     /* a write's outcome is not known, or its name was taken */
    uint32_t deleted; /* of what was written, when it is undone */
    struct run_index_build *index; /* of what is written, or NULL */
};

/* Begins a run under a fresh name; the writer may be one that was used before, or zeroed.
 * bytes_max: of all entries that are to come. op and error stay the caller's, for as long as the
 * writer is. */
void writer_init(struct engine *e, struct run_writer *w, struct op *op, uint64_t bytes_max,
                 char error[LIST_ERROR_MAX]);
/* Sublists are written so that they live until that second, or for ever (0); now_s: by the clock of
 * the head's server. */
void writer_live(struct run_writer *w, int64_t now_s, int64_t until_s);
/* The run is one of a list of so many bytes: has its index made as well, if the list is too large
 * for a view. Before the first writer_put. */
void writer_make_index(struct engine *e, struct run_writer *w, uint64_t list_bytes);
/* Behind writer_flush: keeps the index, so that those who read the run find it. Nothing is sent. */
enum progress writer_index_step(struct engine *e, struct run_writer *w);
/* Copies an entry into the sublist that is being filled. One that is full goes out before. */
void writer_put(struct engine *e, struct run_writer *w, const struct entry *entry);
/* Sends what has been put and is not on its way: the last sublist. */
void writer_flush(struct engine *e, struct run_writer *w);
/* Bytes of what was put so far, as stored; UINT64_MAX when a part of it is on its way. */
uint64_t writer_bytes(const struct run_writer *w);
/* The entries that were put and are not on their way. */
struct slice writer_entries(const struct run_writer *w);
/* Takes the reply to a sublist; other events, and NULL, are passed over. */
void writer_take_reply(struct run_writer *w, const struct op_event *event);
/* Is a sublist not stored, or not known to be? Then the run must not be published. */
bool writer_failed(const struct run_writer *w);
/* The second, by this proxy's clock, in which the run has half the age at which others sweep it.
 * One that is not announced is not named from then on: scripts/sweep takes sublists that are older,
 * and that no head names, for those of a dead proxy. */
int64_t writer_old_s(const struct run_writer *w);
bool writer_is_old(const struct engine *e, const struct run_writer *w);
/* Announces the run and reads the head behind the announcement; *head is NULL when that did not go
 * well. name: of the wait. */
enum progress announce_step(struct engine *e, struct run_writer *w, struct head **head,
                            const struct op_event *event, const char *name);
/* Deletes what was written and withdraws the announcement, if there was one, where a list was last
 * seen; only after a definite refusal (storage rule 4). */
enum progress undo_step(struct engine *e, struct run_writer *w, const struct op_event *event);
/* Fine when it was never begun. */
void writer_fini(struct run_writer *w);

#endif
