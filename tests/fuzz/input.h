/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzed bytes read as choices. Past their end all choices are 0, so that every prefix of an input
 * is an input.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include "base/slice.h"

struct input {
    struct slice rest;
};

static inline struct input input_make(const uint8_t *data, size_t size)
{
    return (struct input){{(const char *)data, size}};
}

static inline bool input_more(const struct input *in)
{
    return in->rest.len > 0;
}

static inline uint8_t input_byte(struct input *in)
{
    return input_more(in) ? (uint8_t)*slice_take(&in->rest, 1).p : 0;
}

/* A choice of 0 to bound - 1; bound is 1 to 256. */
static inline unsigned input_below(struct input *in, unsigned bound)
{
    return input_byte(in) % bound;
}

/* Some bytes as they are: up to 255, or what is left. They live as long as the input. */
static inline struct slice input_bytes(struct input *in)
{
    size_t len = input_byte(in);
    return slice_take(&in->rest, len < in->rest.len ? len : in->rest.len);
}

/* Is it a part of the input? */
static inline bool inside(struct slice s, struct slice input)
{
    return s.len == 0 || (s.p >= input.p && s.p + s.len <= input.p + input.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#endif
