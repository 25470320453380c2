/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: the same towards clients and towards servers. */
#ifndef PROTO_KEY_H
#define PROTO_KEY_H

#include <stddef.h>

#include "base/slice.h"

/* memcached's limit on keys. */
#define KEY_BYTES_MAX 250
/* Couchbase's, in a collection: the id in front of such a key has up to 5 bytes. */
#define COLLECTION_KEY_BYTES_MAX 246
/* Longest key of a list: with "#", a run's name, "." and the number of a sublist behind it
 * (list/format/name.h) it is still a key for memcached. */
#define LIST_KEY_BYTES_MAX 220

/* The lists that one transaction changes or looks at, at most: each holds the keys of all. */
#define TX_LISTS_MAX 16

/* The longest key that memcached takes in base64. */
#define KEY_ENCODED_MAX 186

/* Can it stand in a line: is it not empty, without blanks and control bytes? */
static inline bool key_is_word(struct slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        if ((unsigned char)key.p[i] <= ' ' || key.p[i] == 0x7f) {
            return false;
        }
    }
    return key.len > 0;
}

/* Writes the key in base64 to out (KEY_BYTES_MAX bytes), where it has KEY_ENCODED_MAX bytes at
 * most; returns the length. */
size_t key_encode_base64(struct slice key, char *out);

/* Decodes a base64 key of a meta command into out (KEY_BYTES_MAX bytes); returns its length, or 0
 * when it is not valid. */
size_t key_decode_base64(struct slice encoded, char *out);

#endif
