/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/suggest.h"

#include <ctype.h>

#include "base/number.h"

/* No key and no value of the table is longer; longer words have no neighbours. */
#define WORD_BYTES_MAX 32

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits between two words of at most WORD_BYTES_MAX bytes: the table of all their beginnings, row
 * by row (optimal string alignment). */
static uint64_t distance(struct slice a, struct slice b)
{
    uint64_t at[WORD_BYTES_MAX + 1][WORD_BYTES_MAX + 1];
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t j = 0; j <= b.len; j++) {
            if (i == 0 || j == 0) {
                at[i][j] = i + j;
                continue;
            }
            bool same = same_letter(a.p[i - 1], b.p[j - 1]);
            at[i][j] =
                u64_least(u64_least(at[i - 1][j], at[i][j - 1]) + 1, at[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && same_letter(a.p[i - 1], b.p[j - 2]) &&
                same_letter(a.p[i - 2], b.p[j - 1])) {
                at[i][j] = u64_least(at[i][j], at[i - 2][j - 2] + 1);
            }
        }
    }
    return at[a.len][b.len];
}

const char *suggest(struct slice given, const char *const *words)
{
    const char *best = NULL;
    /* A third of the letters may be wrong: more would suggest any short word for any other. Of two
     * letters only the case may differ. */
    uint64_t least = given.len < 3 ? 1 : given.len / 3 + 1;
    if (given.len == 0 || given.len > WORD_BYTES_MAX) {
        return NULL;
    }
    for (; *words != NULL; words++) {
        struct slice word = slice_of(*words);
        uint64_t edits = word.len > WORD_BYTES_MAX ? least : distance(given, word);
        if (edits < least) {
            least = edits;
            best = *words;
        }
    }
    return best;
}
