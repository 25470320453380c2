/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a configuration file. Errors name the file and a line that it has; what was taken
 * is within its limits, and a file with the settings as they are printed gives the same settings.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "config/config.h"
#include "input.h"

#define PRINTED_MAX ((size_t)1 << 20)

/* A file in memory, and the name to open it by. */
struct file {
    int fd;
    char path[64];
};

static void file_open(struct file *file, struct slice bytes)
{
    file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(file->fd >= 0);
    CHECK(write(file->fd, bytes.p, bytes.len) == (ssize_t)bytes.len);
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

static size_t count_lines(struct slice bytes)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes.len; i++) {
        lines += bytes.p[i] == '\n';
    }
    return lines;
}

static void check_text(const char *error)
{
    size_t len = strnlen(error, CONFIG_ERROR_MAX);
    CHECK(len > 0 && len < CONFIG_ERROR_MAX);
    for (size_t i = 0; i < len; i++) {
        CHECK(!iscntrl((unsigned char)error[i]));
    }
}

/* "FILE:LINE: what is wrong", of a line that is there. */
static void check_place(const char *error, const char *path, struct slice bytes)
{
    size_t len = strlen(path);
    char *end;
    check_text(error);
    CHECK(strncmp(error, path, len) == 0 && error[len] == ':' && isdigit(error[len + 1]));
    unsigned long line = strtoul(error + len + 1, &end, 10);
    CHECK(line >= 1 && line <= count_lines(bytes));
    CHECK(end[0] == ':' && end[1] == ' ' && end[2] != '\0');
}

/* The longest key goes into the template, and a number of ten digits behind it. */
static void check_name(const struct list_policy *policy, const char *name, size_t digits)
{
    const char *place = strstr(name, "%s");
    CHECK(place != NULL && strchr(place + 1, '%') == NULL && strchr(name, '%') == place);
    CHECK(strlen(name) - 2 + policy->key_bytes_max + digits <= 250);
}

static void check_dialect(const struct list_policy *policy)
{
    bool numbers = policy->dialect == DIALECT_SUBLISTS;
    bool logs = policy->dialect == DIALECT_FLIP || policy->dialect == DIALECT_MARKER;
    CHECK(policy->dialect < DIALECT_COUNT && policy->migrate <= MIGRATE_NATIVE);
    CHECK(policy->dialect != DIALECT_NATIVE || policy->migrate == MIGRATE_NO);
    CHECK(policy->dialect == DIALECT_NATIVE || policy->on_missing == ON_MISSING_CREATE);
    CHECK(policy->key_bytes_max >= 1 && policy->key_bytes_max <= CONFIG_PREFIX_MAX);
    CHECK(policy->prefix_len <= policy->key_bytes_max);
    CHECK(policy->add_sign >= 0 && policy->add_sign <= 255);
    CHECK(policy->capacity >= 1 && policy->capacity <= 1000000);
    if (policy->dialect == DIALECT_SIGNED || logs || numbers) {
        CHECK(policy->add_sign != policy->delete_sign && policy->add_sign != policy->delimiter);
        CHECK(!numbers || (!isdigit(policy->add_sign) && !isdigit(policy->delete_sign)));
    }
    if (policy->dialect == DIALECT_PAIRED) {
        check_name(policy, policy->add_name, 0);
        check_name(policy, policy->delete_name, 0);
        CHECK(strcmp(policy->add_name, policy->delete_name) != 0);
    } else if (logs) {
        check_name(policy, policy->a_name, 0);
        check_name(policy, policy->b_name, 0);
        CHECK(strcmp(policy->a_name, policy->b_name) != 0);
    } else if (numbers) {
        check_name(policy, policy->sublist_name, 10);
    } else if (policy->dialect == DIALECT_RING) {
        check_name(policy, policy->seq_name, 0);
        check_name(policy, policy->slot_name, 10);
    }
}

static void check_policy(const struct config *config, size_t at)
{
    const struct list_policy *policy = &config->lists[at];
    CHECK(policy->index == at && policy->prefix_len == strlen(policy->prefix));
    CHECK((at == 0) == (policy->prefix_len == 0) && policy->prefix_len <= CONFIG_PREFIX_MAX);
    CHECK(policy->pool_index < config->pool_count || config->pool_count == 0);
    CHECK(policy->delimiter >= -1 && policy->delimiter <= 255);
    CHECK(policy->log_limit_bytes >= 256 && policy->log_limit_bytes <= 450000);
    CHECK(policy->log_hard_limit_bytes >= 512 && policy->log_hard_limit_bytes <= 900000);
    CHECK(policy->sublist_limit_bytes >= 512 && policy->sublist_limit_bytes <= 900000);
    CHECK(policy->max_item_bytes >= 1 && policy->max_item_bytes <= 64 << 10);
    CHECK(policy->log_limit_bytes <= policy->log_hard_limit_bytes);
    CHECK(policy->announcement_grace_s > 0);
    check_dialect(policy);
    struct slice key = slice_make(policy->prefix, policy->prefix_len);
    CHECK(config_list_policy(config, key) == policy);
}

static void check_config(const struct config *config)
{
    CHECK(config->listeners[0].listen.count >= 1 &&
          config->listeners[0].listen.count <= CONFIG_LISTEN_MAX);
    CHECK(config->threads >= 1 && config->threads <= 64);
    CHECK(config->pool_count <= CONFIG_POOLS_MAX && config->list_count <= CONFIG_LISTS_MAX);
    CHECK(config->list_count >= 1);
    CHECK(config->pool_index < config->pool_count || config->pool_count == 0);
    for (size_t i = 0; i < config->pool_count; i++) {
        const struct pool_config *pool = &config->pools[i];
        CHECK(pool->server_count >= 1 && pool->server_count <= CONFIG_SERVERS_MAX);
        CHECK(pool->retry_min_ms <= pool->retry_max_ms);
        for (size_t n = 0; n < pool->server_count; n++) {
            struct endpoint again;
            char error[CONFIG_ERROR_MAX];
            const struct server_config *server = &pool->servers[n];
            const char *scheme = strstr(server->name, "://");
            const char *address =
                server->scheme == SCHEME_NONE || scheme == NULL ? server->name : scheme + 3;
            CHECK(server->weight > 0);
            if (server->by_srv) {
                CHECK(strcmp(address, server->endpoint.host) == 0 && !server->port_given);
                continue;
            }
            CHECK(endpoint_parse(slice_of(address), 0, &again, error) == 0);
            CHECK(strcmp(again.host, server->endpoint.host) == 0);
            CHECK(again.port == server->endpoint.port);
        }
    }
    for (size_t i = 0; i < config->list_count; i++) {
        check_policy(config, i);
    }
}

struct printed {
    char section[4 * CONFIG_NAME_MAX + 16];
    char *text;
    size_t len;
};

/* The settings as a file, one section after the other. */
static void print_setting(void *arg, const char *section, const char *key, const char *value,
                          const char *origin)
{
    (void)origin;
    struct printed *out = arg;
    if (strcmp(section, out->section) != 0) {
        snprintf(out->section, sizeof out->section, "%s", section);
        out->len +=
            (size_t)snprintf(out->text + out->len, PRINTED_MAX - out->len, "[%s]\n", section);
        CHECK(out->len < PRINTED_MAX);
    }
    out->len +=
        (size_t)snprintf(out->text + out->len, PRINTED_MAX - out->len, "%s = %s\n", key, value);
    CHECK(out->len < PRINTED_MAX);
}

static struct printed print_all(const struct config *config)
{
    struct printed out = {.text = malloc(PRINTED_MAX)};
    CHECK(out.text != NULL);
    config_print(config, print_setting, &out);
    return out;
}

/* What was printed is a file that says the same. */
static void check_printed(const struct config *config)
{
    struct printed first = print_all(config);
    struct file file;
    char error[CONFIG_ERROR_MAX];
    file_open(&file, slice_make(first.text, first.len));
    struct config *again = config_create();
    CHECK(config_load(again, file.path, error) == 0 && config_finish(again, error) == 0);
    struct printed second = print_all(again);
    CHECK(slice_equal(slice_make(first.text, first.len), slice_make(second.text, second.len)));
    config_destroy(&again);
    close(file.fd);
    free(first.text);
    free(second.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = slice_make((const char *)data, size);
    struct file file;
    char error[CONFIG_ERROR_MAX];
    file_open(&file, bytes);
    struct config *config = config_create();
    if (config_load(config, file.path, error) != 0) {
        check_place(error, file.path, bytes);
    } else if (config_finish(config, error) != 0) {
        check_text(error);
        CHECK(strncmp(error, file.path, strlen(file.path)) == 0);
    } else {
        check_config(config);
        check_printed(config);
    }
    config_destroy(&config);
    close(file.fd);
    return 0;
}
