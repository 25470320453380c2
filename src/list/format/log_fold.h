/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fold of a head's log, kept from one head to the next: a log that begins as the one before is
 * only folded on.
 */
#ifndef LIST_FORMAT_LOG_FOLD_H
#define LIST_FORMAT_LOG_FOLD_H

#include "list/format/fold.h"
#include "list/format/head.h"

struct log_fold {
    struct fold fold;
    struct slice log; /* as far as it is folded; lives in block */
    struct block *block;
};

void log_fold_init(struct log_fold *f);
void log_fold_fini(struct log_fold *f);
/* Back to the fold of nothing. */
void log_fold_clear(struct log_fold *f);

/* From here on it is the fold of this head's log. Returns false when it was begun anew: what it
 * held before, and the order of its items, does not count any more. */
bool log_fold_take(struct log_fold *f, const struct head *head);

#endif
