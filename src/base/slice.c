/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slice.h"

#include <stdio.h>

bool slice_to_u64(struct slice s, uint64_t *value)
{
    if (s.len == 0 || s.len > 20) {
        return false;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, digit, &v)) {
            return false;
        }
    }
    *value = v;
    return true;
}

size_t format_u64(char *out, uint64_t value)
{
    size_t n = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10) {
        n++;
    }
    for (size_t i = n; --i > 0; value /= 10) {
        out[i] = (char)('0' + value % 10);
    }
    out[0] = (char)('0' + value);
    return n;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load_u64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load_u32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t hash_secret;

void hash_set_secret(uint64_t secret)
{
    hash_secret = secret;
}

/* Multiply-and-fold over sixteen bytes at a time; the constants are digits of pi. The secret stands
 * in both factors, so that no choice of bytes makes one of them zero and cancels what came before.
 */
uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t secret = hash_secret ^ 0x13198a2e03707344ULL;
    uint64_t h = seed ^ hash_secret ^ 0x243f6a8885a308d3ULL;
    size_t left = len;
    while (left >= 16) {
        h = mix(load_u64(p) ^ secret, load_u64(p + 8) ^ h);
        p += 16;
        left -= 16;
    }
    uint64_t a = 0, b = 0;
    if (left >= 8) {
        a = load_u64(p);
        b = load_u64(p + left - 8);
    } else if (left >= 4) {
        a = load_u32(p);
        b = load_u32(p + left - 4);
    } else if (left > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
    }
    /* The length comes last: next to the seed a difference in the bytes could make up for it. */
    h = mix(a ^ secret ^ 0xa4093822299f31d0ULL, b ^ h);
    return mix(h ^ (uint64_t)len, secret ^ 0x082efa98ec4e6c89ULL);
}

uint64_t hash_stable(struct slice s, uint64_t seed)
{
    uint64_t hash = seed == 0 ? 14695981039346656037u : seed;
    for (size_t i = 0; i < s.len; i++) {
        hash = (hash ^ (unsigned char)s.p[i]) * 1099511628211u;
    }
    return hash;
}

const char *slice_escape_also(struct slice s, const char *also, char *out, size_t cap)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = c >= ' ' && c < 0x7f && strchr(also, c) == NULL;
        size_t need = plain ? 1 : 4;
        if (n + need + 4 > cap) {
            n += (size_t)snprintf(out + n, cap - n, "...");
            return out;
        }
        if (plain) {
            out[n++] = (char)c;
        } else {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    out[n] = '\0';
    return out;
}

const char *slice_escape(struct slice s, char *out, size_t cap)
{
    return slice_escape_also(s, " \"\\", out, cap);
}
