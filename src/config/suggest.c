/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/suggest.h"

#include <ctype.h>

/* No key and no value of the table is longer; longer words have no neighbours. */
#define WORD_BYTES_MAX 32

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits between two words of at most WORD_BYTES_MAX bytes: the table of all their beginnings, row
 * by row (optimal string alignment). */
static size_t distance(struct slice a, struct slice b)
{
    size_t at[WORD_BYTES_MAX + 1][WORD_BYTES_MAX + 1];
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t j = 0; j <= b.len; j++) {
            if (i == 0 || j == 0) {
                at[i][j] = i + j;
                continue;
            }
            bool same = same_letter(a.p[i - 1], b.p[j - 1]);
            at[i][j] = least(least(at[i - 1][j], at[i][j - 1]) + 1, at[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && same_letter(a.p[i - 1], b.p[j - 2]) &&
                same_letter(a.p[i - 2], b.p[j - 1])) {
                at[i][j] = least(at[i][j], at[i - 2][j - 2] + 1);
            }
        }
    }
    return at[a.len][b.len];
}

void suggestion_init(struct suggestion *s, struct slice given)
{
    /* A third of the letters may be wrong: more would suggest any short word for any other. */
    *s = (struct suggestion){.given = given, .distance = given.len / 3 + 1};
    if (given.len < 3) {
        s->distance = 1; /* only its case may differ */
    }
}

void suggestion_offer(struct suggestion *s, const char *word)
{
    struct slice offered = slice_of(word);
    if (s->given.len == 0 || s->given.len > WORD_BYTES_MAX || offered.len > WORD_BYTES_MAX) {
        return;
    }
    size_t edits = distance(s->given, offered);
    if (edits < s->distance) {
        s->distance = edits;
        s->best = word;
    }
}
