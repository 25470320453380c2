/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the proxy logs in at a server without telling it the password: SCRAM (RFC 5802, RFC 7677), as
 * pure functions. The random number is handed in. Both sides prove that they know the password: a
 * server that does not is refused, whatever else it says.
 *
 *     scram_begin    -->  n,,n=USER,r=NONCE
 *                    <--  r=NONCE+MORE,s=SALT,i=ITERATIONS
 *     scram_proof    -->  c=biws,r=NONCE+MORE,p=PROOF
 *                    <--  v=SIGNATURE
 *     scram_verify
 *
 * Besides the folder tls the only user of OpenSSL. Names and passwords are used as they are,
 * without SASLprep.
 */
#ifndef PROTO_SERVER_SCRAM_H
#define PROTO_SERVER_SCRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* RFC 7677 asks for at least so many; Couchbase's clients refuse fewer. */
#define SCRAM_ITERATIONS_MIN 4096
/* Couchbase's default is 15,000. So many take 0.1 s with SHA-512, in which the worker stands still.
 */
#define SCRAM_ITERATIONS_MAX 200000

#define SCRAM_USER_MAX 128
/* Of the proxy's own part, in printable characters without a comma. */
#define SCRAM_NONCE_BYTES 48
/* The longest message of either side. */
#define SCRAM_MESSAGE_MAX ((size_t)768)
#define SCRAM_HASH_MAX 64
#define SCRAM_SALT_MAX 128

enum scram_hash { SCRAM_SHA512, SCRAM_SHA256, SCRAM_SHA1, SCRAM_HASH_COUNT };

/* What was derived of the password last: every connection to the same user of a cluster asks for
 * the same. Zero-initialise; for one password. */
struct scram_cache {
    bool filled;
    enum scram_hash hash;
    uint32_t iterations;
    size_t salt_len;
    uint8_t salt[SCRAM_SALT_MAX];
    uint8_t salted[SCRAM_HASH_MAX];
};

/* One login. */
struct scram {
    enum scram_hash hash;
    char first[SCRAM_USER_MAX * 3 + SCRAM_NONCE_BYTES + 8]; /* without "n,,"; ends in NUL */
    char nonce[SCRAM_NONCE_BYTES + 1];
    uint8_t signature[SCRAM_HASH_MAX]; /* what the server must answer */
};

/* "SCRAM-SHA512" and so on: as servers offer it. Lives for ever. */
const char *scram_name(enum scram_hash hash);

/* Writes the first message to out; returns its length. user: 1 to SCRAM_USER_MAX bytes. */
size_t scram_begin(struct scram *s, enum scram_hash hash, struct slice user, const char *nonce,
                   char out[SCRAM_MESSAGE_MAX]);

/* Writes the answer to the server's first message to out. Returns its length, or 0 when that
 * message is refused; then *error (which lives for ever) is a phrase that says why. */
MUST_CHECK size_t scram_proof(struct scram *s, struct slice password, struct slice server_first,
                              struct scram_cache *cache, char out[SCRAM_MESSAGE_MAX],
                              const char **error);

/* True when the server's last message proves that it knows the password. */
MUST_CHECK bool scram_verify(const struct scram *s, struct slice server_final);

#endif
