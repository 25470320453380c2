/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom to ask for the addresses of names. For pool/locate/resolver.c. */
#ifndef POOL_LOCATE_DNS_H
#define POOL_LOCATE_DNS_H

#include "config/config.h"

struct event_base;
struct evdns_base;

/* Questions per DNS server and look-up; each waits for an equal part of resolve_timeout_ms. */
#define DNS_ATTEMPTS 4

/* Reads the system's files, as far as `resolver` does not name the DNS servers. A file that is
 * missing or odd leaves libevent's defaults. Never NULL; for evdns_base_free. */
struct evdns_base *dns_open(const struct config *config, struct event_base *base);

#endif
