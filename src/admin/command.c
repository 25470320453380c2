/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/command.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/tracer.h"
#include "admin/where.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/table.h"
#include "os/inherited.h"
#include "os/notify.h"
#include "proto/client/request_parse.h"
#include "pool/pool.h"
#include "proto/key.h"
#include "proxy/client/client.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/figures.h"
#include "proxy/listen/listen_set.h"
#include "proxy/proxy.h"

#define BUSY "ERROR a worker has been busy for too long; try again\n"

typedef void command_handler(const struct command_context *context, struct slice args,
                             struct evbuffer *out);

/* Empty: there is none. */
static struct slice take_word(struct slice *line)
{
    struct slice word;
    (void)token_next(line, &word);
    return word;
}

/* Is there no more than what was taken? */
static bool is_over(struct slice args)
{
    return take_word(&args).len == 0;
}

/* The lines that workers have written, if all of them had the time. */
static void give_lines(struct evbuffer *out, int rc, struct evbuffer *lines)
{
    evbuffer_add_printf(out, rc == 0 ? "OK\n" : BUSY);
    if (rc == 0) {
        evbuffer_add_buffer(out, lines);
    }
}

static void run_reload(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    char error[CONFIG_ERROR_MAX];
    (void)args;
    if (x->hooks->reload(x->hooks->arg, error) == 0) {
        evbuffer_add_printf(out, "OK\n");
    } else {
        evbuffer_add_printf(out, "ERROR %s\n", error);
    }
}

static void run_log(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    const struct config_key *key = config_key_known(SECTION_PROXY, "log_level");
    unsigned level;
    (void)x;
    if (!config_word_find(key, take_word(&args), &level) || !is_over(args)) {
        evbuffer_add_printf(out, "ERROR usage: log error|warn|info|debug\n");
        return;
    }
    log_set_level((enum log_level)level);
    log_info("log level %s, by a command", key->words[level]);
    evbuffer_add_printf(out, "OK\n");
}

/* --- clients --- */

static void list_clients(struct worker *w, void *arg)
{
    struct evbuffer *out = arg;
    struct client *c;
    TAILQ_FOREACH(c, &w->clients, link)
    {
        char peer[CONFIG_NAME_MAX + 16];
        evbuffer_add_printf(out,
                            "id=%" PRIu64 " worker=%zu age_s=%" PRIu64 " idle_s=%" PRIu64
                            " unanswered=%zu unread_bytes=%zu memory_bytes=%zu peer=%s\n",
                            c->id, w->index, (w->now.mono_us - c->since_us) / 1000000,
                            (w->now.mono_us - c->active_us) / 1000000, c->window.unanswered,
                            c->out.bytes + c->window.parked_bytes, c->window.held_bytes,
                            client_peer(c, peer, sizeof peer));
    }
}

static void run_clients(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    struct evbuffer *list = evbuffer_new();
    (void)args;
    CHECK(list != NULL);
    give_lines(out, proxy_ask(x->proxy, list_clients, list), list);
    evbuffer_free(list);
}

struct kill {
    uint64_t id;
    bool met;
};

static void kill_client(struct worker *w, void *arg)
{
    struct kill *kill = arg;
    struct client *c;
    TAILQ_FOREACH(c, &w->clients, link)
    {
        if (c->id == kill->id) {
            char peer[CONFIG_NAME_MAX + 16];
            log_info("client %s closed by a command", client_peer(c, peer, sizeof peer));
            client_close(c);
            kill->met = true;
            return;
        }
    }
}

static void run_kill(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    struct kill kill = {0};
    if (!slice_to_u64(take_word(&args), &kill.id) || !is_over(args)) {
        evbuffer_add_printf(out, "ERROR usage: kill ID, as `clients` has it\n");
    } else if (proxy_ask(x->proxy, kill_client, &kill) != 0) {
        evbuffer_add_printf(out, BUSY);
    } else {
        evbuffer_add_printf(out, kill.met ? "OK\n"
                                          : "ERROR no client has that ID; `clients` shows them\n");
    }
}

/* --- servers --- */

struct drain {
    const char *server;
    bool drained;
};

static void drain_server(struct worker *w, void *arg)
{
    const struct drain *drain = arg;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        pool_drain(w->pools[i], drain->server, drain->drained);
    }
}

/* Is there such a server, in a pool whose servers the proxy chooses? Else says why not. */
static bool can_drain(const struct shared *s, const char *server, struct evbuffer *out)
{
    size_t count;
    struct server_figures *all = figures_of_servers(s, &count);
    bool met = false, of_cluster = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].stats.name, server) == 0) {
            met = true;
            of_cluster = of_cluster || s->config->pools[all[i].pool_index].type == POOL_COUCHBASE;
        }
    }
    free(all);
    if (!met || of_cluster) {
        evbuffer_add_printf(out, "ERROR %s\n",
                            met ? "it is a node of a Couchbase cluster: fail it over there"
                                : "no server has that name; `stats backends` shows them");
    }
    return met && !of_cluster;
}

static void show_servers(const struct shared *s, const char *server, struct evbuffer *out)
{
    size_t count;
    struct server_figures *all = figures_of_servers(s, &count);
    evbuffer_add_printf(out, "OK\n");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].stats.name, server) == 0) {
            evbuffer_add_printf(out, "server=%s pool=%s state=%s pending=%" PRIu64 "\n", server,
                                s->config->pools[all[i].pool_index].name,
                                server_state(&all[i].stats), all[i].stats.pending);
        }
    }
    free(all);
}

static void set_drained(const struct command_context *x, struct slice args, bool drained,
                        struct evbuffer *out)
{
    const struct shared *s = proxy_shared(x->proxy);
    struct slice name = take_word(&args);
    char server[SERVER_NAME_MAX];
    struct drain drain = {server, drained};
    if (name.len == 0 || name.len >= sizeof server || !is_over(args)) {
        evbuffer_add_printf(out, "ERROR usage: %s SERVER, as `stats backends` has its name\n",
                            drained ? "drain" : "undrain");
        return;
    }
    (void)snprintf(server, sizeof server, "%.*s", SLICE_ARGS(name));
    if (!can_drain(s, server, out)) {
        return;
    }
    if (proxy_ask(x->proxy, drain_server, &drain) != 0) {
        evbuffer_add_printf(out, BUSY);
        return;
    }
    log_warn(drained ? "backend %s: drained by a command: it gets no more requests before undrain"
                     : "backend %s: in use again, by a command",
             server);
    show_servers(s, server, out);
}

static void run_drain(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    set_drained(x, args, true, out);
}

static void run_undrain(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    set_drained(x, args, false, out);
}

static void run_where(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    struct slice key = take_word(&args);
    struct evbuffer *lines = evbuffer_new();
    CHECK(lines != NULL);
    if (key.len == 0 || key.len > KEY_BYTES_MAX || !is_over(args)) {
        evbuffer_add_printf(out, "ERROR usage: where KEY, of %d bytes at most\n", KEY_BYTES_MAX);
    } else {
        give_lines(out, where_print(x->proxy, key, lines), lines);
    }
    evbuffer_free(lines);
}

/* A trace ends by itself, also where an operator forgets it. N is the operator's to choose. */
#define TRACE_REQUESTS 20
#define TRACE_REQUESTS_MAX 1000

static void run_trace(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    struct slice key = take_word(&args), word = take_word(&args);
    uint64_t requests = TRACE_REQUESTS;
    bool is_number = word.len == 0 || slice_to_u64(word, &requests);
    if (key.len == 0 || key.len > KEY_BYTES_MAX || !is_over(args) || !is_number || requests == 0 ||
        requests > TRACE_REQUESTS_MAX) {
        evbuffer_add_printf(out, "ERROR usage: trace KEY [N], 1 to %d requests\n",
                            TRACE_REQUESTS_MAX);
        return;
    }
    const char *why = tracer_begin(x->tracer, x->peer, key, (unsigned)requests);
    evbuffer_add_printf(out, why == NULL ? "OK\n" : "ERROR %s\n", why);
}

/* --- another process takes this one's place: os/inherited.h --- */

static int pack(void *arg, int fd, char kind)
{
    return inherited_pack(arg, fd, kind);
}

static void run_takeover(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    struct parcel parcel = {.peer = x->peer->fd};
    (void)args;
    if (x->draining || x->hooks->has_embedded) {
        evbuffer_add_printf(out, "ERROR %s\n",
                            x->draining ? "the proxy ends"
                                        : "the embedded memcached would end with this process");
    } else if (listen_set_each(proxy_shared(x->proxy)->listen, pack, &parcel) != 0 ||
               listen_set_each(x->listen, pack, &parcel) != 0 ||
               inherited_send_parcel(&parcel) != 0) {
        log_error("sockets cannot be handed over: %s", strerror(errno));
        evbuffer_add_printf(out, "ERROR the sockets cannot be sent\n");
    } else {
        x->peer->has_sockets = x->peer->stays = true;
        evbuffer_add_printf(out, "%s\n", notify_describe());
    }
}

static void run_taken(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    struct ucred peer = {.pid = 0};
    socklen_t len = sizeof peer;
    (void)args;
    struct shared *s = proxy_shared(x->proxy);
    bool ends = x->draining || atomic_load(&s->heir) >= 0;
    if (!x->peer->has_sockets || ends) {
        evbuffer_add_printf(out, "ERROR %s\n",
                            ends ? "the proxy ends" : "expected behind takeover");
        return;
    }
    (void)getsockopt(x->peer->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    /* Clients go over it until this process ends. */
    int heir = fcntl(x->peer->fd, F_DUPFD_CLOEXEC, 0);
    /* At once: this process may end before the loop comes to it. If the other one has given up or
     * was killed while this one was busy, all stays as it was. */
    if (heir < 0 || send(heir, "OK\n", 3, MSG_NOSIGNAL) != 3) {
        log_error("process %d does not take this one's place: %s", (int)peer.pid, strerror(errno));
        evbuffer_add_printf(out, "ERROR it cannot be told\n");
        (void)(heir < 0 ? 0 : close(heir));
        return;
    }
    listen_set_share(s->listen, true);
    listen_set_share(x->listen, true);
    http_leave(x->http);
    atomic_store(&s->heir, heir);
    x->hooks->leave(x->hooks->arg, peer.pid);
}

/* --- which there are --- */

static void run_help(const struct command_context *x, struct slice args, struct evbuffer *out);

static const struct {
    const char *name, *args, *help;
    command_handler *run;
} commands[] = {
    {"reload", "", "read the configuration anew", run_reload},
    {"log", "LEVEL", "log error, warn, info or debug, until the next reload", run_log},
    {"clients", "", "all clients: who, since when, what they leave unread", run_clients},
    {"kill", "ID", "close a client", run_kill},
    {"drain", "SERVER", "take a server out of use, for maintenance", run_drain},
    {"undrain", "SERVER", "use it again", run_undrain},
    {"where", "KEY", "which servers have the items of a key", run_where},
    {"trace", "KEY [N]", "the next N requests that name the key, and what they cause", run_trace},
    {"help", "", "these commands", run_help},
    /* Not for people: mclistd --takeover. */
    {"takeover", "", NULL, run_takeover},
    {"taken", "", NULL, run_taken},
};

static void run_help(const struct command_context *x, struct slice args, struct evbuffer *out)
{
    (void)x;
    (void)args;
    evbuffer_add_printf(out, "OK\n");
    for (size_t i = 0; commands[i].help != NULL; i++) {
        evbuffer_add_printf(out, "%-8s %-8s %s\n", commands[i].name, commands[i].args,
                            commands[i].help);
    }
}

void command_run(const struct command_context *context, struct slice line, struct evbuffer *out)
{
    struct slice name = take_word(&line);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (slice_equal(name, slice_of(commands[i].name))) {
            bool takes_none = commands[i].help != NULL && commands[i].args[0] == '\0';
            if (takes_none && !is_over(line)) {
                evbuffer_add_printf(out, "ERROR usage: %s\n", commands[i].name);
                return;
            }
            commands[i].run(context, line, out);
            return;
        }
    }
    evbuffer_add_printf(out, "ERROR no such command; help shows them\n");
}
