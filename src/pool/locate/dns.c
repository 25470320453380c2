/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/locate/dns.h"

#include <event2/dns.h>
#include <stdio.h>

#include "base/log.h"
#include "config/endpoint.h"
#include "config/text.h"

/* Look-ups at a time; the others wait for their turn. */
#define INFLIGHT_MAX 1024

/* libevent's own words go to our log. */
static void on_dns_log(int is_warning, const char *text)
{
    (void)is_warning;
    log_debug("resolver: %s", text);
}

static void set_option(struct evdns_base *dns, const char *option, size_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", value);
    CHECK(evdns_base_set_option(dns, option, text) == 0);
}

struct evdns_base *dns_open(const struct config *config, struct event_base *base)
{
    struct slice rest = slice_of(config->resolver);
    struct evdns_base *dns = evdns_base_new(base, 0);
    bool more = rest.len > 0;
    CHECK(dns != NULL);
    evdns_set_log_fn(on_dns_log);
    int what = DNS_OPTIONS_ALL & ~(more ? DNS_OPTION_NAMESERVERS : 0);
    (void)evdns_base_resolv_conf_parse(dns, what, "/etc/resolv.conf");
    struct slice item;
    while (more && text_next_item(&rest, &more, &item)) {
        struct endpoint endpoint;
        char error[CONFIG_ERROR_MAX], text[ENDPOINT_TEXT_MAX];
        CHECK(endpoint_parse(item, DNS_PORT, &endpoint, error) == 0);
        if (evdns_base_nameserver_ip_add(dns, endpoint_format(&endpoint, text)) != 0) {
            log_warn("resolver: %s cannot be asked", text);
        }
    }
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.3f", config->resolve_timeout_ms / 1000.0 / DNS_ATTEMPTS);
    CHECK(evdns_base_set_option(dns, "timeout:", seconds) == 0);
    set_option(dns, "attempts:", DNS_ATTEMPTS);
    set_option(dns, "max-inflight:", INFLIGHT_MAX);
    /* As the system's resolver asks: some DNS servers do not give a name back as it was written. */
    set_option(dns, "randomize-case:", 0);
    /* All questions of a look-up may be lost before a server is given up for it. */
    set_option(dns, "max-timeouts:", 255);
    return dns;
}
