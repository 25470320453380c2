/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/tls_files.h"

#include <stdio.h>

_Static_assert(TLS_ERROR_MAX == CONFIG_ERROR_MAX, "errors are handed through");
_Static_assert(TLS_OWNER_MAX == CONFIG_LISTENER_TEXT_MAX, "so are names of listeners");

struct tls_files tls_files_of_pool(const struct pool_config *pool, char owner[TLS_OWNER_MAX])
{
    (void)snprintf(owner, TLS_OWNER_MAX, "[pool %s]", pool->name);
    return (struct tls_files){
        .owner = owner, .cert = pool->tls_cert, .key = pool->tls_key, .ca = pool->tls_ca};
}

struct tls_files tls_files_of_listener(const struct listener_config *listener,
                                       char owner[TLS_OWNER_MAX])
{
    return (struct tls_files){.owner = config_listener_text(listener, owner),
                              .accepts = true,
                              .cert = listener->tls_cert,
                              .key = listener->tls_key,
                              .ca = listener->tls_client_ca};
}

static int check(const struct tls_files *files, char error[CONFIG_ERROR_MAX])
{
    struct tls_trust *trust = tls_trust_take(files, error);
    if (trust == NULL) {
        return -1;
    }
    tls_trust_give(&trust);
    return 0;
}

int tls_files_check(const struct config *config, char error[CONFIG_ERROR_MAX])
{
    char owner[TLS_OWNER_MAX];
    for (size_t i = 0; i < config->pool_count; i++) {
        const struct pool_config *pool = &config->pools[i];
        struct tls_files files = tls_files_of_pool(pool, owner);
        if (pool->tls && check(&files, error) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        const struct listener_config *listener = &config->listeners[i];
        struct tls_files files = tls_files_of_listener(listener, owner);
        if (listener->tls_cert[0] != '\0' && check(&files, error) != 0) {
            return -1;
        }
    }
    return 0;
}
