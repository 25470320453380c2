/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The content of a list, streamed in order: the newer runs and the log are folded in memory
 * ("overlay"), the oldest run, by far the largest, is passed through it sublist by sublist, and
 * what the overlay adds follows.
 *
 *     content_init
 *     scan(content_overlay_runs), content_fold_visit   newer runs into the overlay
 *     content_fold_log                                 the log on top
 *     scan(content_base_run), content_base_visit       -> items of the oldest run still in it
 *     content_rest                                     -> items behind them
 *
 * Backwards the last two change places, and the sublists come from the last one to the first. What
 * the overlay adds is only known after the base has passed through: where there is both, a pass
 * that counts goes before (content_needs_places).
 *
 * A merge (compact/merge.c) folds and passes through in the same way, without a log: it fills in
 * its inputs as the runs and writes the result itself.
 */
#ifndef LIST_CONTENT_CONTENT_H
#define LIST_CONTENT_CONTENT_H

#include "config/config.h"
#include "list/content/output.h"
#include "list/format/fold.h"
#include "list/format/head.h"

struct content {
    struct fold overlay;
    const struct run *runs; /* those that count: none when the log holds a '!' */
    size_t run_count;
    uint64_t memory_limit_bytes;
    uint32_t folded;  /* items of the sublist that is folded, so far */
    bool too_large;   /* the overlay outgrew the limit */
    bool backwards;   /* the newest item first: see below */
    int64_t over_s;   /* items that are over in that second are not passed on: of a read, when the
                         head was read */
    bool exact_items; /* what the header says of its runs' items holds in that second */

    struct output output;
};

void content_init(struct content *c, const struct head *head, const struct list_policy *policy);
void content_fini(struct content *c);

static inline const struct run *content_overlay_runs(const struct content *c, size_t *count)
{
    *count = c->run_count > 1 ? c->run_count - 1 : 0;
    return c->runs + (c->run_count > 1);
}
static inline const struct run *content_base_run(const struct content *c, size_t *count)
{
    *count = c->run_count > 0;
    return c->runs;
}

/* Before the i-th item of a sublist is laid under or over the overlay: has the memory fetched that
 * one further on will touch. */
static inline void content_expect(const struct content *c, const struct sublist *s, uint32_t i)
{
    enum { AHEAD = 16 };
    if (i + AHEAD < s->count) {
        fold_expect(&c->overlay, sublist_item(s, i + AHEAD));
    }
}

/* scan_visit functions; arg is the content. */
enum visited content_fold_visit(void *arg, struct sublist *sublist);
enum visited content_base_visit(void *arg, struct sublist *sublist);
/* The log stays where it is until content_fini. */
void content_fold_log(struct content *c, struct slice log);
void content_rest(struct content *c);

/* Backwards: must the base pass through first? After content_fold_log. */
static inline bool content_needs_places(const struct content *c)
{
    return c->run_count > 0 && c->overlay.count > 0;
}

/* The number of items, when it is known without a pass over the base; else false. After
 * content_fold_log. */
bool content_known_count(const struct content *c, uint64_t *count);

#endif
