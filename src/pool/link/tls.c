/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* The most that one record of TLS holds. */
#define RECORD_BYTES 16384

struct tls_trust {
    SSL_CTX *context;
};

struct tls {
    SSL *ssl;
    bool is_up;
    /* What was taken goes out from here: OpenSSL wants to be given the same bytes again, and the
     * caller may take back what was not taken. */
    size_t held;
    const char *problem; /* why it cannot go on, where TLS knows that; or NULL. Lives for ever */
    char record[RECORD_BYTES];
};

/* A key with a passphrase is none that a daemon can use: nothing asks for it. */
static int no_passphrase(char *buffer, int size, int for_writing, void *arg)
{
    (void)buffer, (void)size, (void)for_writing, (void)arg;
    return 0;
}

static bool use_certificate(SSL_CTX *context, const struct pool_config *config,
                            char error[CONFIG_ERROR_MAX])
{
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(context, config->tls_cert) != 1) {
        snprintf(error, CONFIG_ERROR_MAX, "tls_cert: %s holds no certificate that can be read",
                 config->tls_cert);
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(context, config->tls_key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        snprintf(error, CONFIG_ERROR_MAX,
                 "tls_key: %s holds no key of tls_cert that can be read without a passphrase",
                 config->tls_key);
        return false;
    }
    return true;
}

struct tls_trust *tls_trust_create(const struct pool_config *config, char error[CONFIG_ERROR_MAX])
{
    const char *ca_file = config->ca_file;
    struct tls_trust *trust = calloc(1, sizeof *trust);
    CHECK(trust != NULL);
    trust->context = SSL_CTX_new(TLS_client_method());
    CHECK(trust->context != NULL);
    CHECK(SSL_CTX_set_min_proto_version(trust->context, TLS1_2_VERSION) == 1);
    SSL_CTX_set_verify(trust->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_quiet_shutdown(trust->context, 1);
    /* In the middle of a write it would wait for input, which the worker does not. */
    SSL_CTX_set_options(trust->context, SSL_OP_NO_RENEGOTIATION);
    int rc = ca_file[0] == '\0' ? SSL_CTX_set_default_verify_paths(trust->context)
                                : SSL_CTX_load_verify_locations(trust->context, ca_file, NULL);
    if (rc != 1) {
        snprintf(error, CONFIG_ERROR_MAX, "ca_file: %s holds no certificates that can be read",
                 ca_file[0] == '\0' ? "that of the system" : ca_file);
        tls_trust_destroy(&trust);
    } else if (config->tls_cert[0] != '\0' && !use_certificate(trust->context, config, error)) {
        tls_trust_destroy(&trust);
    }
    ERR_clear_error();
    return trust;
}

void tls_trust_destroy(struct tls_trust **slot)
{
    struct tls_trust *trust = *slot;
    *slot = NULL;
    if (trust != NULL) {
        SSL_CTX_free(trust->context);
        free(trust);
    }
}

struct tls *tls_open(const struct tls_trust *trust, int fd, const char *host)
{
    struct tls *tls = malloc(sizeof *tls);
    CHECK(tls != NULL);
    tls->is_up = false;
    tls->problem = NULL;
    tls->held = 0;
    tls->ssl = SSL_new(trust->context);
    CHECK(tls->ssl != NULL && SSL_set_fd(tls->ssl, fd) == 1);
    /* An address, or else a name, which the server is told as well: it may have several. */
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) != 1) {
        CHECK(SSL_set1_host(tls->ssl, host) == 1);
        CHECK(SSL_set_tlsext_host_name(tls->ssl, host) == 1);
    }
    SSL_set_connect_state(tls->ssl);
    ERR_clear_error();
    return tls;
}

void tls_close(struct tls **slot)
{
    struct tls *tls = *slot;
    *slot = NULL;
    if (tls != NULL) {
        SSL_free(tls->ssl);
        free(tls);
    }
}

static const char *reason_of_failure(const struct tls *tls)
{
    long verified = SSL_get_verify_result(tls->ssl);
    if (verified != X509_V_OK) {
        return X509_verify_cert_error_string(verified);
    }
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    return reason != NULL ? reason : "closed by the server";
}

enum tls_step tls_shake_hands(struct tls *tls, const char **reason)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(tls->ssl);
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
        *reason = reason_of_failure(tls);
        return TLS_FAILED;
    }
}

bool tls_is_up(const struct tls *tls)
{
    return tls->is_up;
}

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
        errno = saved != 0 ? saved : ECONNRESET;
        return -1;
    default:
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
            return 0; /* a node that dies says no goodbye; answers tell their own length */
        }
        tls->problem = ERR_reason_error_string(ERR_peek_error());
        errno = EPROTO;
        return -1;
    }
}

ssize_t tls_read(struct tls *tls, void *to, size_t cap)
{
    size_t n;
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read_ex(tls->ssl, to, cap, &n);
    return rc == 1 ? (ssize_t)n : fail(tls, rc);
}

/* Sends what is held. Returns 0, or -1 with errno. */
static int flush_held(struct tls *tls)
{
    size_t n;
    if (tls->held == 0) {
        return 0;
    }
    ERR_clear_error();
    errno = 0;
    int rc = SSL_write_ex(tls->ssl, tls->record, tls->held, &n);
    if (rc == 1) {
        tls->held = 0;
        return 0;
    }
    if (fail(tls, rc) == 0) {
        errno = EPIPE;
    }
    return -1;
}

/* Small pieces share a record. */
ssize_t tls_write(struct tls *tls, const struct iovec *iov, size_t count)
{
    size_t taken = 0, offset = 0;
    if (flush_held(tls) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count;) {
        size_t left = iov[i].iov_len - offset;
        size_t n = left < RECORD_BYTES - tls->held ? left : RECORD_BYTES - tls->held;
        memcpy(tls->record + tls->held, (const char *)iov[i].iov_base + offset, n);
        tls->held += n;
        taken += n;
        offset = n == left ? 0 : offset + n;
        i += n == left;
        if (tls->held == RECORD_BYTES && flush_held(tls) < 0) {
            return errno == EAGAIN ? (ssize_t)taken : -1;
        }
    }
    return flush_held(tls) < 0 && errno != EAGAIN ? -1 : (ssize_t)taken;
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
    return tls->held > 0;
}
