/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of servers, and the rule by which one of several is chosen. Pure: nothing is looked up
 * here.
 *
 * Several addresses under one name may be several memcacheds. So every proxy must choose the same
 * one, whatever the order of the answers and whatever it can reach: IPv4 before IPv6, then the
 * numerically lowest.
 */
#ifndef POOL_LOCATE_ADDRESS_H
#define POOL_LOCATE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/check.h"
#include "config/config.h"

struct address {
    struct sockaddr_storage sa;
    socklen_t len; /* 0: none */
};

/* What a server's name means. */
struct location {
    struct address address; /* the one that is used */
    /* Of the loopback interface, the address of the other family, or none: it is connected to when
     * nothing listens at `address`. Both are this machine. */
    struct address twin;
};

/* Room for what address_text writes. */
#define ADDRESS_TEXT_MAX (CONFIG_NAME_MAX + 16)

/* Reads an IPv4 or IPv6 address, with zone if it has one. False when host is anything else. */
MUST_CHECK bool address_read(const char *host, uint16_t port, struct address *out);
/* The address of a unix socket. False when the path is too long for one. */
MUST_CHECK bool address_of_path(const char *path, struct address *out);
void address_set_port(struct address *address, uint16_t port);

/* Below 0 when a is chosen before b; 0 when they are the same but for the port. */
int address_compare(const struct address *a, const struct address *b);
bool address_is_loopback(const struct address *address);
/* Can it be a server's (base/ip.h)? */
bool address_is_host(const struct address *address);

/* "localhost", or a name that ends in ".localhost": it means the loopback interface and is never
 * looked up (RFC 6761, 6.3). */
bool address_is_localhost(const char *host);
/* 127.0.0.1, with its twin ::1. */
void address_localhost(struct location *out);

/* Where the endpoint is, with its port, if nothing has to be looked up for that. False, with no
 * address in *out: its name has to be, or the path of its unix socket is too long. */
MUST_CHECK bool address_of_endpoint(const struct endpoint *endpoint, struct location *out);

/* Writes "10.0.0.1", "10.0.0.1:11211", "[::1]:11211" (the port where there is one) or "unix:PATH".
 * Returns out. */
const char *address_text(const struct address *address, char out[ADDRESS_TEXT_MAX]);

#endif
