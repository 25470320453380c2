/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/locate/resolver.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/locate/dns.h"
#include "pool/locate/srv.h"

/* How long the result of a look-up counts as new, and the pause between two look-ups of a name. */
#define FRESH_US ((uint64_t)1000000)
/* How often names are looked at that may have to be looked up. */
#define TICK_US 250000

/* What a look-up said about one family. */
struct answers {
    int error; /* EVUTIL_EAI_... when it is not known whether there are any */
    size_t count;
    struct address lowest;
    bool has_current; /* the address in use is one of them */
};

struct resolver_name {
    TAILQ_ENTRY(resolver_name) link;
    struct resolver *resolver;
    char host[CONFIG_NAME_MAX + 1];
    bool of_nodes; /* no memcached has it: only nodes of clusters, of which any knows the others */
    /* The thread's. */
    struct answers ipv4, ipv6;
    uint64_t asked_us; /* when the newest question was sent */
    bool several_warned;
    bool failure_logged;
    /* Under the lock. */
    uint32_t users; /* the file counts as one */
    bool wanted;
    bool asking;
    bool failed;        /* the last look-up */
    uint64_t looked_us; /* end of the last look-up; 0 = none yet */
    bool known;
    struct location location;
    uint64_t version;
};

/* Whose SRV records are looked up when a worker asks for them. */
struct resolver_srv {
    TAILQ_ENTRY(resolver_srv) link;
    struct resolver *resolver;
    char name[SRV_NAME_MAX]; /* _couchbase._tcp.HOST */
    /* The thread's. */
    struct srv_lookup *lookup; /* under way, or over; or NULL */
    bool failure_logged;
    /* Under the lock. */
    bool wanted, asking, failed, known;
    uint64_t looked_us; /* end of the last look-up; 0 = none yet */
    struct srv_records records;
};

struct resolver {
    const struct config *config;
    pthread_mutex_t lock;
    TAILQ_HEAD(, resolver_name) names; /* under the lock */
    size_t name_count;
    TAILQ_HEAD(, resolver_srv) srvs; /* of the file */
    bool takes_names;                /* that the file does not have */
    int *watchers;
    size_t watcher_count, watcher_cap;
    bool stopping;

    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd, -1: there is nothing to look up */
    struct event_base *base;
    struct event *wake_event, *tick_event;
    struct evdns_base *dns; /* while something is being looked up: so changed files are seen */
    size_t asking_count;
};

static uint64_t now_us(void)
{
    return clock_now().mono_us;
}

static void wake(int fd)
{
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) {
        log_debug("resolver: eventfd: %s", strerror(errno));
    }
}

/* Is what is still being asked called back only to be freed? */
static bool is_ending(const struct resolver *r)
{
    return r->dns == NULL;
}

/* libevent calls a time-out a failure like many others. Asked again it would take as long again. */
static bool has_timed_out(const struct resolver_name *name)
{
    uint64_t timeout_us = (uint64_t)name->resolver->config->resolve_timeout_ms * 1000;
    return now_us() - name->asked_us >= timeout_us * (DNS_ATTEMPTS - 1) / DNS_ATTEMPTS;
}

/* --- decisions ------------------------------------------------------------------------------ */

static void tell_watchers(struct resolver *r)
{
    for (size_t i = 0; i < r->watcher_count; i++) {
        wake(r->watchers[i]);
    }
}

static void finish(struct resolver_name *name, bool failed)
{
    struct resolver *r = name->resolver;
    pthread_mutex_lock(&r->lock);
    name->asking = false;
    name->failed = failed;
    name->looked_us = now_us();
    tell_watchers(r);
    pthread_mutex_unlock(&r->lock);
    r->asking_count--;
}

static void fail(struct resolver_name *name, int error)
{
    const char *reason = has_timed_out(name) ? "no answer" : evutil_gai_strerror(error);
    char text[ADDRESS_TEXT_MAX];
    if (is_ending(name->resolver)) {
        /* Nothing was found out. */
    } else if (name->failure_logged) {
        log_debug("server name %s: not resolved: %s", name->host, reason);
    } else if (name->known) {
        log_warn("server name %s: not resolved: %s; %s stays in use", name->host, reason,
                 address_text(&name->location.address, text));
    } else {
        log_error("server name %s: not resolved: %s; its servers are down until it is", name->host,
                  reason);
    }
    name->failure_logged = true;
    finish(name, true);
}

static void log_change(const struct resolver_name *name, const char *now)
{
    char before[ADDRESS_TEXT_MAX];
    log_write(name->of_nodes ? LOG_INFO_LEVEL : LOG_WARN_LEVEL,
              "server name %s: its address was %s and is %s now%s", name->host,
              address_text(&name->location.address, before), now,
              name->of_nodes ? ""
                             : ": another server; what the old one holds is not found any more");
}

static void log_choice(struct resolver_name *name, const struct location *chosen)
{
    char now[ADDRESS_TEXT_MAX];
    bool v6 = chosen->address.sa.ss_family == AF_INET6;
    size_t count = v6 ? name->ipv6.count : name->ipv4.count;
    address_text(&chosen->address, now);
    if (!name->known) {
        log_info("server name %s: address %s", name->host, now);
    } else if (address_compare(&chosen->address, &name->location.address) != 0) {
        log_change(name, now);
    } else if (name->failure_logged) {
        log_info("server name %s: resolved again, address %s", name->host, now);
    }
    if (count > 1 && !name->several_warned && !name->of_nodes) {
        log_error("server name %s: has %zu addresses of one family, only %s is used. If they are "
                  "different memcacheds, name each of them in `servers`",
                  name->host, count, now);
    }
    name->several_warned = count > 1;
    name->failure_logged = false;
}

static void choose(struct resolver_name *name)
{
    struct resolver *r = name->resolver;
    struct location chosen = name->location;
    bool kept = name->ipv4.has_current || name->ipv6.has_current;
    if (!kept) {
        chosen.address = name->ipv4.count > 0 ? name->ipv4.lowest : name->ipv6.lowest;
    }
    chosen.twin = (struct address){.len = 0};
    if (chosen.address.sa.ss_family == AF_INET && address_is_loopback(&chosen.address) &&
        name->ipv6.count > 0 && address_is_loopback(&name->ipv6.lowest)) {
        chosen.twin = name->ipv6.lowest;
    }
    log_choice(name, &chosen);
    pthread_mutex_lock(&r->lock);
    name->version += !name->known || !kept;
    name->known = true;
    name->location = chosen;
    pthread_mutex_unlock(&r->lock);
    finish(name, false);
}

/* --- looking up ----------------------------------------------------------------------------- */

/* Frees what was found. */
static void take_answers(const struct resolver_name *name, struct answers *answers, int error,
                         struct evutil_addrinfo *found)
{
    bool none = error == EVUTIL_EAI_NONAME || error == EVUTIL_EAI_NODATA;
    *answers = (struct answers){.error = none ? 0 : error};
    for (const struct evutil_addrinfo *i = found; error == 0 && i != NULL; i = i->ai_next) {
        struct address a = {.len = i->ai_addrlen};
        CHECK(i->ai_addrlen <= sizeof a.sa);
        memcpy(&a.sa, i->ai_addr, i->ai_addrlen);
        address_set_port(&a, 0);
        if (!address_is_host(&a)) {
            continue;
        }
        if (answers->count++ == 0 || address_compare(&a, &answers->lowest) < 0) {
            answers->lowest = a;
        }
        answers->has_current |= name->known && address_compare(&a, &name->location.address) == 0;
    }
    if (found != NULL) {
        evutil_freeaddrinfo(found);
    }
}

/* Family by family: asked for both at once, libevent does not tell "there are none" from "no
 * answer", and another proxy might choose from another half. */
static void look_up(struct resolver_name *name, int family, evdns_getaddrinfo_cb done)
{
    struct evutil_addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    name->asked_us = now_us();
    (void)evdns_getaddrinfo(name->resolver->dns, name->host, NULL, &hints, done, name);
}

static void decide(struct resolver_name *name)
{
    bool v6_in_use = name->known && name->location.address.sa.ss_family == AF_INET6;
    if (name->ipv6.error != 0 && (v6_in_use || name->ipv4.count == 0)) {
        fail(name, name->ipv6.error);
    } else if (name->ipv4.count + name->ipv6.count == 0) {
        fail(name, EVUTIL_EAI_NONAME);
    } else {
        choose(name);
    }
}

static void on_no_ipv6(int result, char type, int count, int ttl, void *addresses, void *arg)
{
    struct resolver_name *name = arg;
    (void)type, (void)count, (void)ttl, (void)addresses;
    if (result == DNS_ERR_NODATA) {
        name->ipv6.error = 0;
    }
    decide(name);
}

/* libevent's getaddrinfo calls it a failure, as many others, when a name has no address of that
 * family. Asked again in another way, it tells. */
static bool may_be_no_data(const struct resolver_name *name, const struct answers *answers)
{
    return answers->error == EVUTIL_EAI_FAIL && !has_timed_out(name) && !is_ending(name->resolver);
}

static void on_ipv6(int error, struct evutil_addrinfo *found, void *arg)
{
    struct resolver_name *name = arg;
    take_answers(name, &name->ipv6, error, found);
    if (!may_be_no_data(name, &name->ipv6) ||
        evdns_base_resolve_ipv6(name->resolver->dns, name->host, 0, on_no_ipv6, name) == NULL) {
        decide(name);
    }
}

static void look_on(struct resolver_name *name)
{
    bool v6_in_use = name->known && name->location.address.sa.ss_family == AF_INET6;
    if (name->ipv4.error != 0 || is_ending(name->resolver)) {
        /* There may be IPv4 addresses, which would go first. */
        fail(name, name->ipv4.error);
    } else if (name->ipv4.count == 0 || v6_in_use || address_is_loopback(&name->ipv4.lowest)) {
        look_up(name, AF_INET6, on_ipv6);
    } else {
        choose(name);
    }
}

static void on_no_ipv4(int result, char type, int count, int ttl, void *addresses, void *arg)
{
    struct resolver_name *name = arg;
    (void)type, (void)count, (void)ttl, (void)addresses;
    if (result == DNS_ERR_NODATA) {
        name->ipv4.error = 0;
    }
    look_on(name);
}

static void on_ipv4(int error, struct evutil_addrinfo *found, void *arg)
{
    struct resolver_name *name = arg;
    take_answers(name, &name->ipv4, error, found);
    name->ipv6 = (struct answers){.error = 0};
    if (!may_be_no_data(name, &name->ipv4) ||
        evdns_base_resolve_ipv4(name->resolver->dns, name->host, 0, on_no_ipv4, name) == NULL) {
        look_on(name);
    }
}

static bool is_due(const struct resolver *r, const struct resolver_name *name, uint64_t now)
{
    uint64_t interval_us = (uint64_t)r->config->resolve_interval_s * 1000000;
    if (name->asking || (name->looked_us != 0 && now < name->looked_us + FRESH_US)) {
        return false;
    }
    return name->wanted || name->looked_us == 0 || name->failed ||
           (interval_us != 0 && now >= name->looked_us + interval_us);
}

/* The next name that is due, which is being looked up from now on, or NULL. Forgets names that no
 * server has any more. */
static struct resolver_name *take_due(struct resolver *r)
{
    uint64_t now = now_us();
    struct resolver_name *name, *next, *due = NULL;
    pthread_mutex_lock(&r->lock);
    for (name = TAILQ_FIRST(&r->names); name != NULL && due == NULL; name = next) {
        next = TAILQ_NEXT(name, link);
        if (name->users == 0 && !name->asking) {
            TAILQ_REMOVE(&r->names, name, link);
            r->name_count--;
            free(name);
        } else if (is_due(r, name, now)) {
            name->asking = true;
            name->wanted = false;
            due = name;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return due;
}

/* --- SRV records ---------------------------------------------------------------------------- */

static void log_srv(struct resolver_srv *srv, const struct srv_records *records)
{
    const char *host = strstr(srv->name, "._tcp.") + 6;
    if (records == NULL && !srv->failure_logged) {
        log_warn("server name %s: its SRV records are not known: no answer; %s", srv->name,
                 srv->known ? "those told before stay in use" : host);
    } else if (records != NULL && records->count == 0 && (!srv->known || srv->failure_logged)) {
        log_info("server name %s: no SRV records: %s is asked itself", srv->name, host);
    } else if (records != NULL && (!srv->known || srv->failure_logged)) {
        log_info("server name %s: %zu SRV records", srv->name, records->count);
    }
    srv->failure_logged = records == NULL;
}

static void on_srv(void *arg, const struct srv_records *records)
{
    struct resolver_srv *srv = arg;
    struct resolver *r = srv->resolver;
    log_srv(srv, records);
    pthread_mutex_lock(&r->lock);
    srv->asking = false;
    srv->failed = records == NULL;
    srv->looked_us = now_us();
    srv->known = srv->known || records != NULL;
    if (records != NULL) {
        srv->records = *records;
    }
    tell_watchers(r);
    pthread_mutex_unlock(&r->lock);
    r->asking_count--;
}

/* The next one that is wanted, which is being looked up from now on, or NULL. */
static struct resolver_srv *take_wanted(struct resolver *r)
{
    struct resolver_srv *srv;
    pthread_mutex_lock(&r->lock);
    TAILQ_FOREACH(srv, &r->srvs, link)
    {
        if (srv->wanted && !srv->asking) {
            srv->wanted = false;
            srv->asking = true;
            break;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return srv;
}

static void open_dns(struct resolver *r)
{
    if (r->dns == NULL) {
        r->dns = dns_open(r->config, r->base);
    }
}

static void look_up_srvs(struct resolver *r)
{
    struct resolver_srv *srv;
    while ((srv = take_wanted(r)) != NULL) {
        open_dns(r);
        r->asking_count++;
        srv_free(&srv->lookup);
        srv->lookup =
            srv_look_up(r->base, r->dns, srv->name, r->config->resolve_timeout_ms, on_srv, srv);
    }
}

static void look_up_due(struct resolver *r)
{
    struct resolver_name *name;
    while ((name = take_due(r)) != NULL) {
        open_dns(r);
        r->asking_count++;
        look_up(name, AF_INET, on_ipv4);
    }
}

/* Not from within its own callbacks, therefore at the next event. */
static void close_dns(struct resolver *r)
{
    if (r->dns != NULL && r->asking_count == 0) {
        evdns_base_free(r->dns, 0);
        r->dns = NULL;
    }
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct resolver *r = arg;
    uint64_t count;
    (void)what;
    if (fd >= 0 && read(fd, &count, sizeof count) < 0) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    bool stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    if (stopping) {
        (void)event_base_loopbreak(r->base);
        return;
    }
    close_dns(r);
    look_up_due(r);
    look_up_srvs(r);
}

static void *work(void *arg)
{
    struct resolver *r = arg;
    (void)event_base_loop(r->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

/* --- start and end -------------------------------------------------------------------------- */

static struct resolver_name *find(const struct resolver *r, const char *host)
{
    struct resolver_name *name;
    TAILQ_FOREACH(name, &r->names, link)
    {
        if (strcasecmp(name->host, host) == 0) {
            return name;
        }
    }
    return NULL;
}

static struct resolver_name *add_name(struct resolver *r, const char *host)
{
    struct resolver_name *name = calloc(1, sizeof *name);
    CHECK(name != NULL);
    name->resolver = r;
    snprintf(name->host, sizeof name->host, "%s", host);
    name->of_nodes = true;
    TAILQ_INSERT_TAIL(&r->names, name, link);
    r->name_count++;
    return name;
}

static bool is_looked_up(const struct endpoint *endpoint)
{
    struct address address;
    return endpoint->port != 0 && !address_is_localhost(endpoint->host) &&
           !address_read(endpoint->host, endpoint->port, &address);
}

static void add_srv(struct resolver *r, const struct server_config *server)
{
    struct resolver_srv *srv = calloc(1, sizeof *srv);
    CHECK(srv != NULL);
    srv->resolver = r;
    (void)snprintf(srv->name, sizeof srv->name, "_couchbase%s._tcp.%s",
                   server->scheme == SCHEME_COUCHBASES ? "s" : "", server->endpoint.host);
    TAILQ_INSERT_TAIL(&r->srvs, srv, link);
}

static void collect_names(struct resolver *r)
{
    for (size_t p = 0; p < r->config->pool_count; p++) {
        const struct pool_config *pool = &r->config->pools[p];
        r->takes_names = r->takes_names || pool->type == POOL_COUCHBASE;
        for (size_t s = 0; s < pool->server_count; s++) {
            const struct endpoint *endpoint = &pool->servers[s].endpoint;
            if (pool->servers[s].by_srv && is_looked_up(endpoint)) {
                add_srv(r, &pool->servers[s]); /* the name itself only if they do not help */
            } else if (is_looked_up(endpoint)) {
                struct resolver_name *name = find(r, endpoint->host);
                name = name != NULL ? name : add_name(r, endpoint->host);
                name->users = 1;
                name->of_nodes = name->of_nodes && pool->type == POOL_COUCHBASE;
            }
        }
    }
}

static int start_thread(struct resolver *r, char error[CONFIG_ERROR_MAX])
{
    static const struct timeval tick = {0, TICK_US};
    r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->base = event_base_new();
    if (r->wake_fd < 0 || r->base == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot start the resolver: %s", strerror(errno));
        return -1;
    }
    r->wake_event = event_new(r->base, r->wake_fd, EV_READ | EV_PERSIST, on_event, r);
    r->tick_event = event_new(r->base, -1, EV_PERSIST, on_event, r);
    CHECK(r->wake_event != NULL && event_add(r->wake_event, NULL) == 0);
    CHECK(r->tick_event != NULL && event_add(r->tick_event, &tick) == 0);
    wake(r->wake_fd);
    int rc = pthread_create(&r->thread, NULL, work, r);
    if (rc != 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot start the resolver: %s", strerror(rc));
        return -1;
    }
    r->started = true;
    return 0;
}

struct resolver *resolver_create(const struct config *config, char error[CONFIG_ERROR_MAX])
{
    struct resolver *r = calloc(1, sizeof *r);
    CHECK(r != NULL);
    r->config = config;
    r->wake_fd = -1;
    CHECK(pthread_mutex_init(&r->lock, NULL) == 0);
    TAILQ_INIT(&r->names);
    TAILQ_INIT(&r->srvs);
    collect_names(r);
    if ((r->name_count > 0 || r->takes_names) && start_thread(r, error) != 0) {
        resolver_destroy(&r);
    }
    return r;
}

static void stop_thread(struct resolver *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_mutex_unlock(&r->lock);
    wake(r->wake_fd);
    pthread_join(r->thread, NULL);
    struct resolver_srv *srv;
    TAILQ_FOREACH(srv, &r->srvs, link)
    {
        srv_free(&srv->lookup);
    }
    struct evdns_base *dns = r->dns;
    r->dns = NULL; /* see is_ending */
    if (dns != NULL) {
        evdns_base_free(dns, 1);
        /* Each look-up under way is told, and frees what it holds; libevent defers that, and does
         * only some of it in one turn of the loop. */
        do {
            (void)event_base_loop(r->base, EVLOOP_NONBLOCK);
        } while (event_base_get_num_events(r->base, EVENT_BASE_COUNT_ACTIVE) > 0);
    }
}

void resolver_destroy(struct resolver **slot)
{
    struct resolver *r = *slot;
    *slot = NULL;
    if (r == NULL) {
        return;
    }
    if (r->started) {
        stop_thread(r);
    }
    if (r->wake_event != NULL) {
        event_free(r->wake_event);
        event_free(r->tick_event);
    }
    if (r->base != NULL) {
        event_base_free(r->base);
    }
    if (r->wake_fd >= 0) {
        close(r->wake_fd);
    }
    pthread_mutex_destroy(&r->lock);
    struct resolver_name *name;
    while ((name = TAILQ_FIRST(&r->names)) != NULL) {
        TAILQ_REMOVE(&r->names, name, link);
        free(name);
    }
    struct resolver_srv *srv;
    while ((srv = TAILQ_FIRST(&r->srvs)) != NULL) {
        TAILQ_REMOVE(&r->srvs, srv, link);
        free(srv);
    }
    free(r->watchers);
    free(r);
}

/* --- for workers ---------------------------------------------------------------------------- */

struct resolver_name *resolver_find(struct resolver *r, const struct endpoint *endpoint)
{
    if (r == NULL || endpoint->port == 0) {
        return NULL;
    }
    pthread_mutex_lock(&r->lock);
    struct resolver_name *name = find(r, endpoint->host);
    bool is_new = name == NULL && r->takes_names && is_looked_up(endpoint);
    if (is_new) {
        name = add_name(r, endpoint->host);
    }
    if (name != NULL) {
        name->users++;
    }
    pthread_mutex_unlock(&r->lock);
    if (is_new) {
        wake(r->wake_fd);
    }
    return name;
}

void resolver_release(struct resolver_name *name)
{
    pthread_mutex_lock(&name->resolver->lock);
    name->users--;
    pthread_mutex_unlock(&name->resolver->lock);
}

enum resolver_answer resolver_peek(struct resolver_name *name, struct location *out,
                                   uint64_t *version)
{
    struct resolver *r = name->resolver;
    pthread_mutex_lock(&r->lock);
    enum resolver_answer answer = name->known    ? RESOLVER_KNOWN
                                  : name->failed ? RESOLVER_UNKNOWN
                                                 : RESOLVER_WAIT;
    *out = name->location;
    *version = name->version;
    pthread_mutex_unlock(&r->lock);
    return answer;
}

enum resolver_answer resolver_ask(struct resolver_name *name, struct location *out,
                                  uint64_t *version)
{
    struct resolver *r = name->resolver;
    enum resolver_answer answer = resolver_peek(name, out, version);
    pthread_mutex_lock(&r->lock);
    bool fresh = name->looked_us != 0 && now_us() < name->looked_us + FRESH_US;
    bool ask = !fresh && !name->asking && !name->wanted;
    name->wanted |= ask;
    if (!fresh && !name->failed) {
        answer = RESOLVER_WAIT;
    }
    pthread_mutex_unlock(&r->lock);
    if (ask) {
        wake(r->wake_fd);
    }
    return answer;
}

struct resolver_srv *resolver_find_srv(struct resolver *r, const struct server_config *server)
{
    struct resolver_srv *srv = NULL;
    if (r != NULL && server->by_srv) {
        TAILQ_FOREACH(srv, &r->srvs, link)
        {
            bool is_tls = srv->name[sizeof "_couchbase" - 1] == 's';
            if (strcmp(strstr(srv->name, "._tcp.") + 6, server->endpoint.host) == 0 &&
                is_tls == (server->scheme == SCHEME_COUCHBASES)) {
                break;
            }
        }
    }
    return srv;
}

enum resolver_answer resolver_ask_srv(struct resolver_srv *srv, struct srv_records *out)
{
    struct resolver *r = srv->resolver;
    pthread_mutex_lock(&r->lock);
    bool fresh = srv->looked_us != 0 && now_us() < srv->looked_us + FRESH_US;
    bool ask = !fresh && !srv->asking && !srv->wanted;
    enum resolver_answer answer = srv->known    ? RESOLVER_KNOWN
                                  : srv->failed ? RESOLVER_UNKNOWN
                                                : RESOLVER_WAIT;
    srv->wanted |= ask;
    *out = srv->records;
    pthread_mutex_unlock(&r->lock);
    if (ask) {
        wake(r->wake_fd);
    }
    return answer;
}

void resolver_watch(struct resolver *r, int fd)
{
    pthread_mutex_lock(&r->lock);
    r->watchers = array_room(r->watchers, r->watcher_count, &r->watcher_cap, sizeof fd);
    r->watchers[r->watcher_count++] = fd;
    pthread_mutex_unlock(&r->lock);
}

void resolver_unwatch(struct resolver *r, int fd)
{
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->watcher_count; i++) {
        if (r->watchers[i] == fd) {
            r->watchers[i] = r->watchers[--r->watcher_count];
            break;
        }
    }
    pthread_mutex_unlock(&r->lock);
}
