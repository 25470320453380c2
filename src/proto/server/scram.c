/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

/* A digest as base64, with the NUL that OpenSSL writes. */
#define DIGEST_TEXT (SCRAM_HASH_MAX / 3 * 4 + 8)
/* base64 of "n,,": no channel is bound. */
#define CHANNEL "c=biws"

static const struct {
    const char *name;
    const EVP_MD *(*digest)(void);
    size_t bytes;
} hashes[SCRAM_HASH_COUNT] = {
    [SCRAM_SHA512] = {"SCRAM-SHA512", EVP_sha512, 64},
    [SCRAM_SHA256] = {"SCRAM-SHA256", EVP_sha256, 32},
    [SCRAM_SHA1] = {"SCRAM-SHA1", EVP_sha1, 20},
};

const char *scram_name(enum scram_hash hash)
{
    return hashes[hash].name;
}

static void hmac(enum scram_hash hash, const uint8_t *key, struct slice text,
                 uint8_t out[SCRAM_HASH_MAX])
{
    CHECK(HMAC(hashes[hash].digest(), key, (int)hashes[hash].bytes, (const uint8_t *)text.p,
               text.len, out, NULL) != NULL);
}

/* Strict base64: returns the number of bytes, or -1. */
static int decode_base64(struct slice text, uint8_t *out, size_t cap)
{
    if (text.len == 0 || text.len % 4 != 0 || text.len / 4 * 3 > cap) {
        return -1;
    }
    int padding = (text.p[text.len - 1] == '=') + (text.p[text.len - 2] == '=');
    if (memchr(text.p, '=', text.len - (size_t)padding) != NULL) {
        return -1;
    }
    int len = EVP_DecodeBlock(out, (const uint8_t *)text.p, (int)text.len);
    return len < 0 ? -1 : len - padding;
}

/* --- the first message ------------------------------------------------------------------------ */

size_t scram_begin(struct scram *s, enum scram_hash hash, struct slice user, const char *nonce,
                   char out[SCRAM_MESSAGE_MAX])
{
    char name[SCRAM_USER_MAX * 3 + 1];
    char *to = name;
    CHECK(user.len > 0 && user.len <= SCRAM_USER_MAX && strlen(nonce) <= SCRAM_NONCE_BYTES);
    for (size_t i = 0; i < user.len; i++) {
        if (user.p[i] == ',' || user.p[i] == '=') {
            memcpy(to, user.p[i] == ',' ? "=2C" : "=3D", 3);
            to += 3;
        } else {
            *to++ = user.p[i];
        }
    }
    *to = '\0';
    *s = (struct scram){.hash = hash};
    snprintf(s->nonce, sizeof s->nonce, "%s", nonce);
    snprintf(s->first, sizeof s->first, "n=%s,r=%s", name, s->nonce);
    return (size_t)snprintf(out, SCRAM_MESSAGE_MAX, "n,,%s", s->first);
}

/* --- the proof ---------------------------------------------------------------------------------
 */

/* What the server's first message says. */
struct challenge {
    struct slice nonce, salt;
    uint64_t iterations;
};

/* Takes "LETTER=TEXT" and the comma behind it. */
static bool take_attribute(struct slice *message, char letter, struct slice *text)
{
    if (message->len < 2 || message->p[0] != letter || message->p[1] != '=') {
        return false;
    }
    (void)slice_take(message, 2);
    const char *comma = message->len == 0 ? NULL : memchr(message->p, ',', message->len);
    *text = slice_take(message, comma == NULL ? message->len : (size_t)(comma - message->p));
    (void)slice_take(message, message->len > 0);
    return text->len > 0;
}

static const char *read_challenge(const struct scram *s, struct slice message, struct challenge *c)
{
    struct slice own = slice_of(s->nonce), digits;
    if (message.len > SCRAM_MESSAGE_MAX / 2 || !take_attribute(&message, 'r', &c->nonce) ||
        !take_attribute(&message, 's', &c->salt) || !take_attribute(&message, 'i', &digits) ||
        !slice_to_u64(digits, &c->iterations)) {
        return "its SCRAM challenge cannot be read";
    }
    if (c->nonce.len <= own.len || !slice_starts_with(c->nonce, own)) {
        return "its SCRAM nonce does not begin with the proxy's";
    }
    if (c->iterations < SCRAM_ITERATIONS_MIN) {
        return "its SCRAM iterations are fewer than 4096";
    }
    return c->iterations > SCRAM_ITERATIONS_MAX ? "its SCRAM iterations are more than 200000"
                                                : NULL;
}

/* The password with its salt, as of the cache if that has it. */
static bool derive(enum scram_hash hash, struct slice password, const struct challenge *c,
                   struct scram_cache *cache)
{
    uint8_t salt[SCRAM_SALT_MAX];
    int salt_len = decode_base64(c->salt, salt, sizeof salt);
    if (salt_len <= 0) {
        return false;
    }
    if (cache->filled && cache->hash == hash && cache->iterations == c->iterations &&
        cache->salt_len == (size_t)salt_len && memcmp(cache->salt, salt, cache->salt_len) == 0) {
        return true;
    }
    CHECK(PKCS5_PBKDF2_HMAC(password.p, (int)password.len, salt, salt_len, (int)c->iterations,
                            hashes[hash].digest(), (int)hashes[hash].bytes, cache->salted) == 1);
    cache->filled = true;
    cache->hash = hash;
    cache->iterations = (uint32_t)c->iterations;
    cache->salt_len = (size_t)salt_len;
    memcpy(cache->salt, salt, cache->salt_len);
    return true;
}

/* From what both sides have said, the proof of this one and what the other must answer. */
static void prove(struct scram *s, const struct scram_cache *cache, struct slice said,
                  uint8_t proof[SCRAM_HASH_MAX])
{
    uint8_t client_key[SCRAM_HASH_MAX], stored_key[SCRAM_HASH_MAX], server_key[SCRAM_HASH_MAX];
    uint8_t signature[SCRAM_HASH_MAX];
    size_t bytes = hashes[s->hash].bytes;
    hmac(s->hash, cache->salted, SLICE_LIT("Client Key"), client_key);
    CHECK(EVP_Digest(client_key, bytes, stored_key, NULL, hashes[s->hash].digest(), NULL) == 1);
    hmac(s->hash, stored_key, said, signature);
    for (size_t i = 0; i < bytes; i++) {
        proof[i] = client_key[i] ^ signature[i];
    }
    hmac(s->hash, cache->salted, SLICE_LIT("Server Key"), server_key);
    hmac(s->hash, server_key, said, s->signature);
}

size_t scram_proof(struct scram *s, struct slice password, struct slice server_first,
                   struct scram_cache *cache, char out[SCRAM_MESSAGE_MAX], const char **error)
{
    char said[sizeof s->first + 2 * SCRAM_MESSAGE_MAX];
    uint8_t proof[SCRAM_HASH_MAX];
    char text[DIGEST_TEXT];
    struct challenge c;
    *error = read_challenge(s, server_first, &c);
    if (*error == NULL && !derive(s->hash, password, &c, cache)) {
        *error = "its SCRAM salt cannot be read";
    }
    if (*error != NULL) {
        return 0;
    }
    int len = snprintf(out, SCRAM_MESSAGE_MAX, CHANNEL ",r=%.*s", SLICE_ARGS(c.nonce));
    int said_len =
        snprintf(said, sizeof said, "%s,%.*s,%s", s->first, SLICE_ARGS(server_first), out);
    CHECK(said_len > 0 && (size_t)said_len < sizeof said);
    /* A NUL in the server's message ends the text here; then the signatures differ. */
    prove(s, cache, slice_make(said, (size_t)said_len), proof);
    EVP_EncodeBlock((uint8_t *)text, proof, (int)hashes[s->hash].bytes);
    len += snprintf(out + len, SCRAM_MESSAGE_MAX - (size_t)len, ",p=%s", text);
    return (size_t)len;
}

bool scram_verify(const struct scram *s, struct slice server_final)
{
    uint8_t signature[DIGEST_TEXT];
    struct slice text;
    size_t bytes = hashes[s->hash].bytes;
    return take_attribute(&server_final, 'v', &text) &&
           decode_base64(text, signature, sizeof signature) == (int)bytes &&
           CRYPTO_memcmp(signature, s->signature, bytes) == 0;
}
