/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Did you mean ...?": the word nearest to the one that a user wrote, by how many letters are
 * missing, too many, wrong, or exchanged with their neighbour. Upper and lower case are the same.
 */
#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include "base/slice.h"

/* That of the words (NULL stands behind the last) which is nearest to the given one, or NULL when
 * none is near. */
const char *suggest(struct slice given, const char *const *words);

#endif
