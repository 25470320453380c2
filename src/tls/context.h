/* SPDX-License-Identifier: BSD-3-Clause */
/* For this folder only. */
#ifndef TLS_CONTEXT_H
#define TLS_CONTEXT_H

#include <openssl/ssl.h>

struct tls_trust;

/* What a new connection takes; valid until the caller's SSL_CTX_free. Thread-safe. */
SSL_CTX *tls_trust_context(struct tls_trust *trust);

#endif
