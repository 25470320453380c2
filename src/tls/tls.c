/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls/tls.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "tls/context.h"

/* The most that one record of TLS holds. */
#define RECORD_BYTES 16384

struct tls {
    SSL *ssl;
    bool is_up;
    bool has_failed;     /* nothing more may be said */
    const char *problem; /* why it cannot go on, where TLS knows that; or NULL. Lives for ever */
    /* What was taken while the socket was full: OpenSSL wants to be given the same bytes again, and
     * the caller may take back what was not taken. */
    char *held; /* NULL: nothing */
    size_t held_len;
    int64_t bytes; /* what all this takes */
};

/* --- memory: what OpenSSL takes during a call for a connection is charged to that --- */

static _Thread_local int64_t taken_here;

static void *take(size_t len, const char *file, int line)
{
    (void)file, (void)line;
    void *p = malloc(len);
    taken_here += p == NULL ? 0 : (int64_t)malloc_usable_size(p);
    return p;
}

static void give(void *p, const char *file, int line)
{
    (void)file, (void)line;
    taken_here -= p == NULL ? 0 : (int64_t)malloc_usable_size(p);
    free(p);
}

static void *resize(void *old, size_t len, const char *file, int line)
{
    if (len == 0) {
        give(old, file, line);
        return NULL;
    }
    int64_t before = old == NULL ? 0 : (int64_t)malloc_usable_size(old);
    void *p = realloc(old, len);
    taken_here += p == NULL ? 0 : (int64_t)malloc_usable_size(p) - before;
    return p;
}

/* Before OpenSSL takes anything. */
static void __attribute__((constructor)) count_memory(void)
{
    CHECK(CRYPTO_set_mem_functions(take, resize, give) == 1);
}

static void charge(struct tls *tls, int64_t bytes)
{
    tls->bytes += bytes;
    memory_count(bytes);
}

/* Around each call of OpenSSL that may take or give memory. */
static int64_t begin(void)
{
    ERR_clear_error();
    errno = 0;
    return taken_here;
}

static void end(struct tls *tls, int64_t before)
{
    charge(tls, taken_here - before);
}

/* --- begin and end --- */

static struct tls *create(struct tls_trust *trust, int fd)
{
    struct tls *tls = calloc(1, sizeof *tls);
    CHECK(tls != NULL);
    int64_t before = begin();
    SSL_CTX *context = tls_trust_context(trust);
    tls->ssl = SSL_new(context);
    SSL_CTX_free(context); /* the connection keeps it */
    CHECK(tls->ssl != NULL && SSL_set_fd(tls->ssl, fd) == 1);
    end(tls, before);
    charge(tls, sizeof *tls);
    return tls;
}

struct tls *tls_open(struct tls_trust *trust, int fd, const char *host)
{
    struct tls *tls = create(trust, fd);
    int64_t before = begin();
    /* An address, or else a name, which the server is told as well: it may have several. */
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) != 1) {
        CHECK(SSL_set1_host(tls->ssl, host) == 1);
        CHECK(SSL_set_tlsext_host_name(tls->ssl, host) == 1);
    }
    SSL_set_connect_state(tls->ssl);
    end(tls, before);
    ERR_clear_error();
    return tls;
}

struct tls *tls_accept(struct tls_trust *trust, int fd)
{
    struct tls *tls = create(trust, fd);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

static void drop_held(struct tls *tls)
{
    charge(tls, -(int64_t)tls->held_len);
    free(tls->held);
    tls->held = NULL;
    tls->held_len = 0;
}

void tls_close(struct tls **slot)
{
    struct tls *tls = *slot;
    *slot = NULL;
    if (tls == NULL) {
        return;
    }
    if (tls->is_up && !tls->has_failed && tls->held == NULL) {
        (void)SSL_shutdown(tls->ssl);
    }
    drop_held(tls);
    SSL_free(tls->ssl);
    ERR_clear_error();
    memory_count(-tls->bytes);
    free(tls);
}

/* --- the handshake --- */

static const char *reason_of_failure(const struct tls *tls)
{
    long verified = SSL_get_verify_result(tls->ssl);
    if (verified != X509_V_OK) {
        return X509_verify_cert_error_string(verified);
    }
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    if (reason != NULL) {
        return reason;
    }
    return SSL_is_server(tls->ssl) ? "closed by the client" : "closed by the server";
}

enum tls_step tls_shake_hands(struct tls *tls, const char **reason)
{
    int64_t before = begin();
    int rc = SSL_do_handshake(tls->ssl);
    end(tls, before);
    if (rc == 1) {
        tls->is_up = true;
        return TLS_UP;
    }
    switch (SSL_get_error(tls->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANTS_INPUT;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANTS_ROOM;
    default:
        tls->has_failed = true;
        *reason = reason_of_failure(tls);
        return TLS_FAILED;
    }
}

bool tls_is_up(const struct tls *tls)
{
    return tls->is_up;
}

bool tls_has_begun(const struct tls *tls)
{
    return !SSL_in_before(tls->ssl);
}

bool tls_is_in_kernel(const struct tls *tls)
{
    return BIO_get_ktls_send(SSL_get_wbio(tls->ssl));
}

/* --- input and output --- */

/* Sets errno; returns what read(2) and write(2) would. */
static ssize_t fail(struct tls *tls, int rc)
{
    int saved = errno;
    switch (SSL_get_error(tls->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        tls->has_failed = true;
        errno = saved != 0 ? saved : ECONNRESET;
        return -1;
    default:
        tls->has_failed = true;
        tls->problem = ERR_reason_error_string(ERR_peek_error());
        errno = EPROTO;
        return -1;
    }
}

ssize_t tls_read(struct tls *tls, void *to, size_t cap)
{
    size_t n;
    int64_t before = begin();
    int rc = SSL_read_ex(tls->ssl, to, cap, &n);
    end(tls, before);
    return rc == 1 ? (ssize_t)n : fail(tls, rc);
}

/* Returns 0, or -1 with errno. */
static int write_record(struct tls *tls, const char *bytes, size_t len)
{
    size_t n;
    int64_t before = begin();
    int rc = SSL_write_ex(tls->ssl, bytes, len, &n);
    end(tls, before);
    if (rc != 1 && fail(tls, rc) == 0) {
        errno = EPIPE;
    }
    return rc == 1 ? 0 : -1;
}

/* Sends what is held. Returns 0, or -1 with errno. */
static int flush_held(struct tls *tls)
{
    if (tls->held == NULL) {
        return 0;
    }
    if (write_record(tls, tls->held, tls->held_len) < 0) {
        return -1;
    }
    drop_held(tls);
    return 0;
}

static void hold(struct tls *tls, const char *bytes, size_t len)
{
    tls->held = malloc(len);
    CHECK(tls->held != NULL);
    memcpy(tls->held, bytes, len);
    tls->held_len = len;
    charge(tls, (int64_t)len);
}

/* What is left of the pieces. */
struct pieces {
    const struct iovec *iov;
    size_t count;
    size_t offset; /* in the first one */
};

/* Takes up to a record off the front: one piece where it is, small ones together in room. */
static const char *next_record(struct pieces *pieces, char room[RECORD_BYTES], size_t *len)
{
    const char *bytes = room;
    *len = 0;
    while (pieces->count > 0 && *len < RECORD_BYTES) {
        const char *p = (const char *)pieces->iov->iov_base + pieces->offset;
        size_t left = pieces->iov->iov_len - pieces->offset;
        size_t n = left < RECORD_BYTES - *len ? left : RECORD_BYTES - *len;
        bool is_alone = *len == 0 && (n == RECORD_BYTES || pieces->count == 1);
        if (is_alone) {
            bytes = p;
        } else {
            memcpy(room + *len, p, n);
        }
        *len += n;
        pieces->offset += n;
        if (n == left) {
            pieces->iov++;
            pieces->count--;
            pieces->offset = 0;
        }
    }
    return bytes;
}

ssize_t tls_write(struct tls *tls, const struct iovec *iov, size_t count)
{
    static _Thread_local char room[RECORD_BYTES];
    struct pieces pieces = {iov, count, 0};
    size_t taken = 0, len;
    if (flush_held(tls) < 0) {
        return -1;
    }
    while (tls->held == NULL && pieces.count > 0) {
        const char *bytes = next_record(&pieces, room, &len);
        if (len == 0) {
            break;
        }
        if (write_record(tls, bytes, len) < 0) {
            if (errno != EAGAIN) {
                return -1;
            }
            hold(tls, bytes, len);
        }
        taken += len;
    }
    return (ssize_t)taken;
}

const char *tls_problem(const struct tls *tls)
{
    return tls->problem;
}

bool tls_has_input(const struct tls *tls)
{
    return SSL_has_pending(tls->ssl) == 1;
}

bool tls_has_output(const struct tls *tls)
{
    return tls->held != NULL;
}

size_t tls_bytes(const struct tls *tls)
{
    return tls->bytes < 0 ? 0 : (size_t)tls->bytes;
}
