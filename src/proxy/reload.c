/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/reload.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "config/reload.h"
#include "config/text.h"
#include "os/descriptors.h"
#include "proxy/core/shared.h"
#include "proxy/proxy.h"
#include "tls/trust.h"

/* Changes that are logged one by one. */
#define LOGGED_MAX 20

struct differences {
    bool embedded;
    size_t live, fixed;
    char fixed_text[CONFIG_ERROR_MAX / 2]; /* those that cannot be, as many as there is room for */
};

/* An embedded memcached has got some limits at its start. */
static bool is_live(const struct differences *d, const struct config_change *change)
{
    return change->live &&
           (!d->embedded || change->key == NULL || strcmp(change->key, "max_value_bytes") != 0);
}

static void note_fixed(struct differences *d, const struct config_change *change)
{
    size_t n = strlen(d->fixed_text), room = sizeof d->fixed_text - n;
    const char *before = d->fixed++ == 0 ? "" : "; ";
    int len = change->key == NULL
                  ? snprintf(d->fixed_text + n, room, "%s[%s] is %s", before, change->section,
                             change->next[0] == 'm' ? "missing" : "new")
                  : snprintf(d->fixed_text + n, room, "%s[%s] %s (%s -> %s)", before,
                             change->section, change->key, change->now, change->next);
    if (len < 0 || (size_t)len >= room) {
        d->fixed_text[n] = '\0'; /* nothing is cut in its middle */
    }
}

static void note(void *arg, const struct config_change *change)
{
    struct differences *d = arg;
    if (is_live(d, change)) {
        d->live++;
    } else {
        note_fixed(d, change);
    }
}

static void log_change(void *arg, const struct config_change *change)
{
    size_t *logged = arg;
    if ((*logged)++ < LOGGED_MAX) {
        log_info("[%s] %s: %s -> %s", change->section, change->key, change->now, change->next);
    }
}

/* path: of the file, which was read before; at the start it may have been a pipe. */
static int read_next(struct config *next, const char *path, const struct reload_source *source,
                     char *error)
{
    const char *why = path[0] == '\0' ? NULL : file_problem(path);
    if (why != NULL) {
        return config_fail(error, "%s: cannot be opened: %s", path, why);
    }
    if (options_read_config(source->options, next, error) != EX_OK) {
        return -1;
    }
    if (source->embedded_server != NULL) {
        if (next->pool_count > 0) {
            return config_fail(error, "the configuration has got a pool; the embedded memcached is "
                                      "given up at a restart only");
        }
        if (config_add_embedded(next, source->embedded_server, error) != 0) {
            return -1;
        }
    } else if (next->pool_count == 0) {
        return config_fail(error,
                           "the configuration has no pool any more; an embedded memcached is "
                           "started at a restart only");
    }
    return descriptors_prepare(next, error);
}

static int check_changes(struct config *now, struct config *next, struct differences *d,
                         char *error)
{
    config_compare(now, next, note, d);
    if (d->fixed == 0) {
        return 0;
    }
    return config_fail(error, "cannot change without a restart: %s%s", d->fixed_text,
                       d->fixed_text[0] == '\0' ? "servers" : "");
}

struct swap {
    struct config *now, *next;
};

static void swap(void *arg)
{
    struct swap *s = arg;
    config_adopt(s->now, s->next);
}

static int swap_config(struct proxy *proxy, struct config *now, struct config *next, char *error)
{
    struct swap s = {now, next};
    size_t logged = 0;
    config_compare(now, next, log_change, &logged);
    if (proxy_change(proxy, swap, &s) != 0) {
        return config_fail(error, "a worker has been busy for too long; try again");
    }
    log_set_level(now->log_level);
    log_set_format(now->log_format);
    return 0;
}

static void note_result(struct reloads *r, const char *error)
{
    pthread_mutex_lock(&r->lock);
    (void)snprintf(r->last.error, sizeof r->last.error, "%s", error);
    if (error[0] == '\0') {
        r->last.good++;
        r->last.last_good_s = clock_now().wall_s;
    } else {
        r->last.failed++;
    }
    pthread_mutex_unlock(&r->lock);
}

int reload(struct proxy *proxy, struct config *config, const struct reload_source *source,
           char error[CONFIG_ERROR_MAX])
{
    struct differences d = {.embedded = source->embedded_server != NULL};
    struct config *next = config_create();
    error[0] = '\0';
    int rc = read_next(next, config->path, source, error);
    rc = rc != 0 ? rc : check_changes(config, next, &d, error);
    rc = rc != 0 ? rc : tls_trust_load_anew(error);
    rc = rc != 0 ? rc : swap_config(proxy, config, next, error);
    note_result(&proxy_shared(proxy)->reloads, rc == 0 ? "" : error);
    if (rc != 0) {
        log_error("reload refused, the configuration stays as it was: %s", error);
    } else {
        log_info("configuration read anew: %zu setting%s changed", d.live, d.live == 1 ? "" : "s");
    }
    config_destroy(&next);
    return rc;
}
