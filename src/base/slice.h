/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slice: bytes that another object owns. Never ends in NUL, may hold any byte.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *p;
    size_t len;
};

#define SLICE_NONE ((struct slice){NULL, 0})
#define SLICE_LIT(text) ((struct slice){(text), sizeof(text) - 1})
/* For printf: "%.*s", SLICE_ARGS(s). */
#define SLICE_ARGS(s) (int)(s).len, (s).p

static inline struct slice slice_make(const char *p, size_t len)
{
    return (struct slice){p, len};
}

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool slice_starts_with(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.p, prefix.p, prefix.len) == 0);
}

/* Takes n bytes from the front; n must not exceed the length. */
static inline struct slice slice_take(struct slice *s, size_t n)
{
    struct slice front = {s->p, n};
    if (n > 0) { /* p may be NULL */
        s->p += n;
        s->len -= n;
    }
    return front;
}

/* Parses a whole slice of decimal digits (1 to 20). Returns false on anything else or above 2^64-1.
 */
bool slice_to_u64(struct slice s, uint64_t *value);

/* A set of letters is the sum of their bits. */
static inline uint64_t letter_bit(char letter)
{
    return UINT64_C(1) << (letter & 63);
}

/* Writes value in decimal to out (at least 20 bytes of room, no NUL is written). Returns the number
 * of bytes. */
size_t format_u64(char *out, uint64_t value);

/* A 64-bit hash of bytes for tables in memory; never for anything that is stored or shared with
 * other processes. */
uint64_t hash_bytes(const void *p, size_t len, uint64_t seed);
/* Makes that hash unpredictable to clients, who could otherwise choose items that collide. Call
 * once, before threads start and anything is hashed; without it runs can be repeated exactly. */
void hash_set_secret(uint64_t secret);
/* FNV-1a, 64 bits: the same in every process, so that it may be stored. seed: 0, or the hash of
 * what stands before. */
uint64_t hash_stable(struct slice s, uint64_t seed);

/* Copies s into out (cap bytes, always NUL-terminated) with control bytes, non-ASCII bytes and
 * those of `also` as \xNN; a text that does not fit ends in "...". Returns out. */
const char *slice_escape_also(struct slice s, const char *also, char *out, size_t cap);
/* The same with blanks, quotes and backslashes as \xNN. For keys in logs and error lines. */
const char *slice_escape(struct slice s, char *out, size_t cap);

#endif
