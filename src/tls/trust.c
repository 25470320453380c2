/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls/trust.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "tls/context.h"

struct tls_trust {
    struct tls_trust *next;
    size_t users;
    char *owner, *cert, *key, *ca;
    bool accepts;
    SSL_CTX *context;      /* what new connections take */
    SSL_CTX *next_context; /* while files are read anew, or NULL */
};

/* The lock is for the list, and for the contexts in it. */
static struct {
    pthread_mutex_t lock;
    struct tls_trust *first;
} trusts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- one context --- */

/* A key with a passphrase is none that a daemon can use: nothing asks for it. */
static int no_passphrase(char *buffer, int size, int for_writing, void *arg)
{
    (void)buffer, (void)size, (void)for_writing, (void)arg;
    return 0;
}

/* False with the reason in error: the file is not there, or this user may not read it. OpenSSL
 * tells that in other words, and waits for a pipe. */
static bool is_there(const struct tls_files *files, const char *key, const char *path,
                     char error[TLS_ERROR_MAX])
{
    const char *why = file_problem(path);
    if (why != NULL) {
        snprintf(error, TLS_ERROR_MAX, "%s: %s: %s cannot be opened: %s", files->owner, key, path,
                 why);
    }
    return why == NULL;
}

static bool use_certificate(SSL_CTX *context, const struct tls_files *files,
                            char error[TLS_ERROR_MAX])
{
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    if (!is_there(files, "tls_cert", files->cert, error) ||
        !is_there(files, "tls_key", files->key, error)) {
        return false;
    }
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1) {
        snprintf(error, TLS_ERROR_MAX, "%s: tls_cert: %s holds no certificate that can be read",
                 files->owner, files->cert);
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        snprintf(error, TLS_ERROR_MAX,
                 "%s: tls_key: %s holds no key of tls_cert that can be read without a passphrase",
                 files->owner, files->key);
        return false;
    }
    return true;
}

static bool use_authorities(SSL_CTX *context, const struct tls_files *files,
                            char error[TLS_ERROR_MAX])
{
    bool by_system = files->ca[0] == '\0';
    if (by_system && files->accepts) {
        return true;
    }
    const char *key = files->accepts ? "tls_client_ca" : "tls_ca";
    if (!by_system && !is_there(files, key, files->ca, error)) {
        return false;
    }
    int rc = by_system ? SSL_CTX_set_default_verify_paths(context)
                       : SSL_CTX_load_verify_locations(context, files->ca, NULL);
    if (rc != 1) {
        snprintf(error, TLS_ERROR_MAX, "%s: %s: %s holds no certificates that can be read",
                 files->owner, key, by_system ? "that of the system" : files->ca);
        return false;
    }
    if (files->accepts) {
        /* So that clients that have several know which one is meant. */
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files->ca));
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return true;
}

/* OpenSSL works out what a certificate is for when it first needs that, and keeps it in the
 * certificate. Here it needs that before workers share it. */
static void prepare_authorities(SSL_CTX *context)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (authority != NULL) {
            (void)X509_check_purpose(authority, -1, 0);
        }
    }
}

/* Returns NULL with the reason in error. */
static SSL_CTX *make_context(const struct tls_files *files, char error[TLS_ERROR_MAX])
{
    static const unsigned char name[] = "mclistd";
    SSL_CTX *context = SSL_CTX_new(files->accepts ? TLS_server_method() : TLS_client_method());
    CHECK(context != NULL);
    CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
    /* Without renegotiation: in the middle of a write it would wait for input, which the worker
     * does not. An end without a goodbye is an end: requests and answers tell their own length. */
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_ENABLE_KTLS |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* A session that is resumed is in the client's ticket. */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    CHECK(SSL_CTX_set_session_id_context(context, name, sizeof name - 1) == 1);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_quiet_shutdown(context, !files->accepts);
    if (!use_authorities(context, files, error) ||
        (files->cert[0] != '\0' && !use_certificate(context, files, error))) {
        SSL_CTX_free(context);
        context = NULL;
    } else {
        prepare_authorities(context);
    }
    ERR_clear_error();
    return context;
}

/* --- how long certificates are good --- */

static int64_t days_until(const ASN1_TIME *time)
{
    int days = 0, seconds = 0;
    (void)ASN1_TIME_diff(&days, &seconds, NULL, time);
    return seconds < 0 ? days - 1 : days;
}

/* Of all certificates of tls_cert, which there is. */
static int64_t days_left(SSL_CTX *context)
{
    STACK_OF(X509) *chain = NULL;
    int64_t least = days_until(X509_get0_notAfter(SSL_CTX_get0_certificate(context)));
    (void)SSL_CTX_get0_chain_certs(context, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t days = days_until(X509_get0_notAfter(sk_X509_value(chain, i)));
        least = days < least ? days : least;
    }
    return least;
}

static void warn_of_times(const struct tls_files *files, SSL_CTX *context)
{
    if (files->cert[0] == '\0') {
        return;
    }
    int64_t days = days_left(context);
    if (days < 0) {
        log_warn("%s: tls_cert: %s ended %lld day%s ago", files->owner, files->cert,
                 (long long)-days, days == -1 ? "" : "s");
    }
    if (days_until(X509_get0_notBefore(SSL_CTX_get0_certificate(context))) > 0) {
        log_warn("%s: tls_cert: %s is not good yet", files->owner, files->cert);
    }
}

/* --- all of them --- */

static struct tls_files files_of(const struct tls_trust *trust)
{
    return (struct tls_files){.owner = trust->owner,
                              .accepts = trust->accepts,
                              .cert = trust->cert,
                              .key = trust->key,
                              .ca = trust->ca};
}

static bool is_of(const struct tls_trust *trust, const struct tls_files *files)
{
    return trust->accepts == files->accepts && strcmp(trust->owner, files->owner) == 0 &&
           strcmp(trust->cert, files->cert) == 0 && strcmp(trust->key, files->key) == 0 &&
           strcmp(trust->ca, files->ca) == 0;
}

static char *copy(const char *text)
{
    char *out = strdup(text);
    CHECK(out != NULL);
    return out;
}

struct tls_trust *tls_trust_take(const struct tls_files *files, char error[TLS_ERROR_MAX])
{
    struct tls_trust *trust = trusts.first;
    while (trust != NULL && !is_of(trust, files)) {
        trust = trust->next;
    }
    if (trust != NULL) {
        trust->users++;
        return trust;
    }
    SSL_CTX *context = make_context(files, error);
    if (context == NULL) {
        return NULL;
    }
    warn_of_times(files, context);
    trust = malloc(sizeof *trust);
    CHECK(trust != NULL);
    *trust = (struct tls_trust){.users = 1,
                                .owner = copy(files->owner),
                                .cert = copy(files->cert),
                                .key = copy(files->key),
                                .ca = copy(files->ca),
                                .accepts = files->accepts,
                                .context = context};
    pthread_mutex_lock(&trusts.lock);
    trust->next = trusts.first;
    trusts.first = trust;
    pthread_mutex_unlock(&trusts.lock);
    return trust;
}

void tls_trust_give(struct tls_trust **slot)
{
    struct tls_trust *trust = *slot;
    *slot = NULL;
    if (trust == NULL || --trust->users > 0) {
        return;
    }
    pthread_mutex_lock(&trusts.lock);
    struct tls_trust **at = &trusts.first;
    while (*at != trust) {
        at = &(*at)->next;
    }
    *at = trust->next;
    pthread_mutex_unlock(&trusts.lock);
    SSL_CTX_free(trust->context);
    free(trust->owner);
    free(trust->cert);
    free(trust->key);
    free(trust->ca);
    free(trust);
}

SSL_CTX *tls_trust_context(struct tls_trust *trust)
{
    pthread_mutex_lock(&trusts.lock);
    SSL_CTX *context = trust->context;
    CHECK(SSL_CTX_up_ref(context) == 1);
    pthread_mutex_unlock(&trusts.lock);
    return context;
}

/* Makes the contexts that are to come. Returns 0, or -1 with the reason in error. */
static int make_next(char error[TLS_ERROR_MAX])
{
    for (struct tls_trust *trust = trusts.first; trust != NULL; trust = trust->next) {
        struct tls_files files = files_of(trust);
        trust->next_context = make_context(&files, error);
        if (trust->next_context == NULL) {
            return -1;
        }
        warn_of_times(&files, trust->next_context);
    }
    return 0;
}

int tls_trust_load_anew(char error[TLS_ERROR_MAX])
{
    int rc = make_next(error);
    pthread_mutex_lock(&trusts.lock);
    for (struct tls_trust *trust = trusts.first; trust != NULL; trust = trust->next) {
        if (rc == 0) {
            SSL_CTX *old = trust->context;
            trust->context = trust->next_context;
            trust->next_context = old;
        }
        SSL_CTX_free(trust->next_context);
        trust->next_context = NULL;
    }
    pthread_mutex_unlock(&trusts.lock);
    return rc;
}

void tls_trust_visit(tls_visitor *visit, void *arg)
{
    pthread_mutex_lock(&trusts.lock);
    for (struct tls_trust *trust = trusts.first; trust != NULL; trust = trust->next) {
        if (trust->cert[0] != '\0') {
            visit(arg, trust->owner, trust->cert, days_left(trust->context));
        }
    }
    pthread_mutex_unlock(&trusts.lock);
}
