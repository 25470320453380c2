/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words and numbers of a request's line.
 */
#include <limits.h>

#include "proto/client/request_shape.h"

/* What mcmc, the tokenizer of newer memcacheds, takes for a 32-bit number. */
#define DIGITS_32_MAX ((size_t)10)

size_t request_words(struct slice rest, struct slice *words, size_t max)
{
    size_t count = 0;
    struct slice word;
    while (token_next(&rest, &word)) {
        if (count == max) {
            return max + 1;
        }
        words[count++] = word;
    }
    return count;
}

static bool word_drop_plus(struct slice *word)
{
    if (word->len > 0 && *word->p == '+') {
        slice_take(word, 1);
        return true;
    }
    return false;
}

bool word_to_u64(struct slice word, uint64_t *value)
{
    word_drop_plus(&word);
    return slice_to_u64(word, value);
}

bool word_to_flags(struct slice word, uint32_t *value)
{
    uint64_t v;
    if (!word_to_u64(word, &v)) {
        return false;
    }
    *value = (uint32_t)v;
    return true;
}

bool word_to_i64(struct slice word, int64_t *value)
{
    bool negative = false;
    if (!word_drop_plus(&word) && word.len > 0 && *word.p == '-') {
        slice_take(&word, 1);
        negative = true;
    }
    uint64_t v;
    if (!slice_to_u64(word, &v) || v > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *value = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool word_to_i32(struct slice word, int64_t *value)
{
    return word.len <= DIGITS_32_MAX + 1 && word_to_i64(word, value) && *value >= INT32_MIN &&
           *value <= INT32_MAX;
}

bool word_to_exptime(struct slice word, int64_t *value, bool *is_usual)
{
    int64_t v;
    if (!word_to_i64(word, &v)) {
        return false;
    }
    *value = (int32_t)(uint32_t)(uint64_t)v;
    *is_usual = *word.p != '+' && word.len <= DIGITS_32_MAX + 1 && *value == v;
    return true;
}

bool word_to_length(struct slice word, size_t *value)
{
    uint64_t v;
    word_drop_plus(&word);
    if (word.len > DIGITS_32_MAX || !slice_to_u64(word, &v) || v > INT_MAX - 2) {
        return false;
    }
    *value = (size_t)v;
    return true;
}
