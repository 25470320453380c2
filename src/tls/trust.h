/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Certificates, keys, and whom to trust: what the connections of one pool or of one listener have
 * in common. Read once for all workers, and anew when the operator says so: connections that there
 * are keep what they began with.
 */
#ifndef TLS_TRUST_H
#define TLS_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* Room for the longest error text. */
#define TLS_ERROR_MAX 1024

struct tls_files {
    const char *owner; /* whose they are, for texts: "[pool main]" */
    bool accepts;      /* connections come from clients; else they go to servers */
    const char *cert;  /* what the proxy shows of itself, as PEM, behind it those that signed it;
                          "": nothing, which clients do not accept */
    const char *key;   /* of cert */
    const char *ca;    /* who must have signed what the other side shows; "": of servers, those that
                          the system trusts; clients need not show anything */
};

struct tls_trust;

/* The trust of these files, which is made if there is none yet. Returns NULL with the reason in
 * error. To be given back by each that has taken it. Not to be called by several threads at once.
 */
MUST_CHECK struct tls_trust *tls_trust_take(const struct tls_files *files,
                                            char error[TLS_ERROR_MAX]);
/* NULL is fine. */
void tls_trust_give(struct tls_trust **trust);

/* Reads the files of all trusts anew, for the connections that begin from now on. Where one is not
 * in order, all old ones stay in use. Returns 0, or -1 with the reason in error. Not to be called
 * beside tls_trust_take and tls_trust_give. */
MUST_CHECK int tls_trust_load_anew(char error[TLS_ERROR_MAX]);

/* Calls visit for each certificate file in use: whose it is, and how many days are left until the
 * first certificate in it is over; below zero: so long it has been. Thread-safe. */
typedef void tls_visitor(void *arg, const char *owner, const char *path, int64_t days_left);
void tls_trust_visit(tls_visitor *visit, void *arg);

#endif
