/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/locate/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/ip.h"

/* "%" and the name of an interface (IFNAMSIZ). */
#define ZONE_MAX 17

static const struct sockaddr_in *ipv4(const struct address *a)
{
    return (const struct sockaddr_in *)&a->sa;
}

static const struct sockaddr_in6 *ipv6(const struct address *a)
{
    return (const struct sockaddr_in6 *)&a->sa;
}

bool address_read(const char *host, uint16_t port, struct address *out)
{
    /* getaddrinfo, since it knows zones (fe80::1%eth0). With this flag it looks nothing up. */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) {
        return false;
    }
    *out = (struct address){.len = found->ai_addrlen};
    CHECK(found->ai_addrlen <= sizeof out->sa);
    memcpy(&out->sa, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    address_set_port(out, port);
    return true;
}

bool address_of_path(const char *path, struct address *out)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&out->sa;
    *out = (struct address){.len = sizeof *un};
    if (strlen(path) >= sizeof un->sun_path) {
        return false;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, strlen(path) + 1);
    return true;
}

void address_set_port(struct address *a, uint16_t port)
{
    if (a->sa.ss_family == AF_INET) {
        ((struct sockaddr_in *)&a->sa)->sin_port = htons(port);
    } else if (a->sa.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&a->sa)->sin6_port = htons(port);
    }
}

int address_compare(const struct address *a, const struct address *b)
{
    if (a->sa.ss_family != b->sa.ss_family) {
        return a->sa.ss_family == AF_INET ? -1 : 1;
    }
    if (a->sa.ss_family == AF_INET) {
        return memcmp(&ipv4(a)->sin_addr, &ipv4(b)->sin_addr, sizeof ipv4(a)->sin_addr);
    }
    return memcmp(&ipv6(a)->sin6_addr, &ipv6(b)->sin6_addr, sizeof ipv6(a)->sin6_addr);
}

bool address_is_loopback(const struct address *a)
{
    if (a->sa.ss_family == AF_INET) {
        return ntohl(ipv4(a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return a->sa.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&ipv6(a)->sin6_addr);
}

bool address_is_host(const struct address *a)
{
    if (a->sa.ss_family == AF_INET) {
        return ipv4_is_host(ipv4(a)->sin_addr);
    }
    return a->sa.ss_family == AF_INET6 && ipv6_is_host(&ipv6(a)->sin6_addr);
}

bool address_is_localhost(const char *host)
{
    static const char suffix[] = ".localhost";
    size_t len = strlen(host);
    return strcasecmp(host, suffix + 1) == 0 ||
           (len >= sizeof suffix && strcasecmp(host + len - (sizeof suffix - 1), suffix) == 0);
}

void address_localhost(struct location *out)
{
    CHECK(address_read("127.0.0.1", 0, &out->address) && address_read("::1", 0, &out->twin));
}

bool address_of_endpoint(const struct endpoint *endpoint, struct location *out)
{
    bool known = true;
    *out = (struct location){0};
    if (endpoint->port == 0) {
        known = address_of_path(endpoint->host, &out->address);
    } else if (address_is_localhost(endpoint->host)) {
        address_localhost(out);
        address_set_port(&out->address, endpoint->port);
        address_set_port(&out->twin, endpoint->port);
    } else {
        known = address_read(endpoint->host, endpoint->port, &out->address);
    }
    if (!known) {
        out->address.len = 0;
    }
    return known;
}

const char *address_text(const struct address *a, char out[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN + ZONE_MAX];
    if (a->sa.ss_family == AF_UNIX) {
        snprintf(out, ADDRESS_TEXT_MAX, "unix:%s", ((const struct sockaddr_un *)&a->sa)->sun_path);
        return out;
    }
    if (a->len == 0 || getnameinfo((const struct sockaddr *)&a->sa, a->len, host, sizeof host, NULL,
                                   0, NI_NUMERICHOST) != 0) {
        snprintf(out, ADDRESS_TEXT_MAX, "none");
        return out;
    }
    bool v6 = a->sa.ss_family == AF_INET6;
    unsigned port = ntohs(v6 ? ipv6(a)->sin6_port : ipv4(a)->sin_port);
    if (port == 0) {
        snprintf(out, ADDRESS_TEXT_MAX, "%s", host);
    } else {
        snprintf(out, ADDRESS_TEXT_MAX, v6 ? "[%s]:%u" : "%s:%u", host, port);
    }
    return out;
}
