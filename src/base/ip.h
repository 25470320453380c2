/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which IP addresses can be a server's. Not so 0.0.0.0 and ::, which a DNS server may give for a
 * name that it blocks and which the system takes for this machine, another one for each proxy; nor
 * multicast and broadcast addresses.
 */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool ipv4_is_host(struct in_addr address)
{
    uint32_t host = ntohl(address.s_addr);
    return host >> 24 != 0 && !IN_MULTICAST(host) && host != INADDR_BROADCAST;
}

static inline bool ipv6_is_host(const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        struct in_addr v4;
        memcpy(&v4, &address->s6_addr[12], sizeof v4);
        return ipv4_is_host(v4);
    }
    return !IN6_IS_ADDR_UNSPECIFIED(address) && !IN6_IS_ADDR_MULTICAST(address);
}

#endif
