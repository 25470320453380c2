/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Did you mean ...?": the word nearest to the one that a user wrote, by how many letters are
 * missing, too many, wrong, or exchanged with their neighbour. Upper and lower case are the same.
 */
#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include "base/slice.h"

struct suggestion {
    struct slice given;
    const char *best; /* NULL: none is near */
    size_t distance;
};

/* Begins a search for a word like given, which the caller keeps. */
void suggestion_init(struct suggestion *s, struct slice given);
/* Considers a word, which the caller keeps as long as best is used. */
void suggestion_offer(struct suggestion *s, const char *word);

#endif
