/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two items of a paired list say, as pure functions. In the additions, a mark ends what
 * was folded; the same mark stands among the deletions:
 *
 *     additions:  a,b,b,@5d0c81f2a4b69e37,d,a,     folded: a, b; added since: d, a
 *     deletions:  c,b,,@5d0c81f2a4b69e37,d,        taken into account: c, b; not yet: d
 *
 * Before the mark of the additions, copies of an item that stand together are one item. Each
 * deletion that is not cut off yet has its copy there. So a client by hand, which knows no marks
 * and subtracts all deletions, sees the item, too, and does not see the mark. Behind the mark items
 * are counted. If the additions have no mark, or the deletions do not have that mark, all deletions
 * are set against the additions.
 *
 * A mark is never an item, wherever it stands. If it stands twice among the deletions, the first
 * one counts.
 */
#ifndef DIALECT_PAIRED_PAIR_H
#define DIALECT_PAIRED_PAIR_H

#include "dialect/shared/text.h"

struct pair {
    char delimiter;
    struct slice adds, deletes; /* as they are stored */
    struct slice base;          /* the additions before their last mark */
    struct slice mark;          /* that mark; of length 0: there is none */
    bool mark_there;            /* the mark stands among the deletions */
    size_t cut;                 /* bytes of deletions before it */
    struct slice pending;       /* the deletions that count, and marks between them */
    size_t pending_bytes;       /* bytes of pending deletions, without marks */
    unsigned strays;   /* marks among them; 0 if only marks are there, and none in the additions */
    struct slice last; /* a mark with no deletion behind it; of length 0: there is none */
};

/* Reads both texts; the pair points into them. */
void pair_read(struct pair *pair, struct slice adds, struct slice deletes, char delimiter);
/* May these deletions have been read before another proxy cut them, and these additions afterwards,
 * or the other way round? So it is when the deletions begin with a mark that the additions do not
 * have, and when they do not have the mark of the additions. */
bool pair_is_torn(const struct pair *pair);

/* Where that mark stands, in bytes of the deletions, if among the pending ones; SIZE_MAX: it does
 * not. */
size_t pair_find(const struct pair *pair, struct slice mark);

/* Applies the additions, less the pending deletions before that byte of all deletions. */
void pair_fold(const struct pair *pair, size_t until, struct fold *fold);
/* Makes the folded additions: the fold's items, each with a copy for each deletion before that
 * byte, and the mark, unless its length is 0. */
struct block *pair_folded(const struct pair *pair, const struct fold *fold, size_t until,
                          struct slice mark);

#endif
