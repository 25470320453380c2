/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two items of a paired list say, as pure functions. The additions end what was folded by
 * a mark, and the same mark stands among the deletions:
 *
 *     additions:  a,b,b,@5d0c81f2a4b69e37,d,a,     folded: a, b; added since: d, a
 *     deletions:  c,b,,@5d0c81f2a4b69e37,d,        taken into account: c, b; not yet: d
 *
 * Before the mark of the additions, copies of an item that stand together are one: each of the
 * deletions that are not cut off yet has its copy there, so that a client by hand, which knows no
 * marks and subtracts all deletions, sees the item as well, and the mark not at all. Behind the
 * mark items are counted. Additions without a mark were never folded: all deletions are set against
 * them, as they are when the mark is not among the deletions.
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
    struct slice mark;          /* that mark; of length 0: they have none */
    bool mark_there;            /* it is among the deletions */
    size_t cut;                 /* bytes of deletions that stand before it */
    struct slice pending;       /* the deletions that count, and marks between them */
    size_t pending_bytes;       /* of these, what are deletions */
    unsigned strays;   /* and how many are marks: none where these are all that there is, and the
                          additions know none of them */
    struct slice last; /* a mark with no deletion behind it; of length 0: there is none to use */
};

/* Reads both texts; the pair points into them. */
void pair_read(struct pair *pair, struct slice adds, struct slice deletes, char delimiter);
/* May these deletions have been read before, and these additions after somebody has cut the
 * deletions, or the other way round? That is so when the deletions begin with a mark that the
 * additions do not know, and when they do not know the mark of the additions. */
bool pair_is_torn(const struct pair *pair);

/* The bytes of the deletions up to that mark, which stands among the pending ones. SIZE_MAX: it
 * does not. */
size_t pair_find(const struct pair *pair, struct slice mark);

/* Applies the additions, less the pending deletions before that byte of them all. */
void pair_fold(const struct pair *pair, size_t until, struct fold *fold);
/* What the additions are to be: the fold's items, each with a copy for each deletion before that
 * byte, and the mark, unless that is of length 0. */
struct block *pair_folded(const struct pair *pair, const struct fold *fold, size_t until,
                          struct slice mark);

#endif
