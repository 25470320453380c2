/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/key.h"

#include <stdint.h>

static int base64_digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t key_encode_base64(struct slice key, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t i = 0; i < key.len; i += 3) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++) {
            bits = bits << 8 | (i + j < key.len ? (unsigned char)key.p[i + j] : 0);
        }
        for (size_t j = 0; j < 4; j++) {
            out[n++] = i + j > key.len ? '=' : digits[bits >> (18 - 6 * j) & 63];
        }
    }
    return n;
}

size_t key_decode_base64(struct slice encoded, char *out)
{
    if (encoded.len == 0 || encoded.len > KEY_BYTES_MAX || encoded.len % 4 != 0) {
        return 0;
    }
    size_t padding = 0;
    while (padding < 2 && encoded.p[encoded.len - 1 - padding] == '=') {
        padding++;
    }
    size_t digits = encoded.len - padding;
    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < encoded.len; i++) {
        int digit = i < digits ? base64_digit((unsigned char)encoded.p[i]) : 0;
        if (digit < 0) {
            return 0;
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 3) {
            out[n++] = (char)(bits >> 16);
            if (i + 1 < encoded.len || padding < 2) {
                out[n++] = (char)(bits >> 8);
            }
            if (i + 1 < encoded.len || padding < 1) {
                out[n++] = (char)bits;
            }
        }
    }
    return n;
}
