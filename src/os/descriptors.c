/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/descriptors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

/* Standard streams, log file, the main thread's event loop and pipes, the lock and socket of an
 * embedded memcached, and files that a look-up of names opens for a moment: about 20 counted under
 * /proc, and some to spare. */
#define PROCESS_DESCRIPTORS 24
/* Of a worker: its event loop (two), its wake-up, a connection that is accepted only to be refused,
 * and to spare. */
#define WORKER_DESCRIPTORS 6
/* Of a pool with names to look up, in each worker: what the resolver wakes it with. */
#define POOL_DESCRIPTORS 1
/* A bucket may have more nodes than the file names: so many are reckoned with, where the limit lets
 * us. */
#define CLUSTER_NODES 32
/* Of the admin listener: its event loop (two), its wake-up, and one that is accepted before an
 * older one is closed. */
#define ADMIN_DESCRIPTORS 4
/* A listening address may be a name with an IPv4 and an IPv6 address. */
#define ADDRESS_SOCKETS 2

void descriptors_fill_standard(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static uint64_t of_pool(const struct pool_config *pool, size_t cluster_nodes)
{
    bool is_cluster = pool->type == POOL_COUCHBASE;
    size_t nodes =
        is_cluster && pool->server_count < cluster_nodes ? cluster_nodes : pool->server_count;
    return (uint64_t)nodes * pool->connections + POOL_DESCRIPTORS;
}

static uint64_t of_admin(const struct admin_config *admin)
{
    return admin->listen.count == 0 ? 0
                                    : ADMIN_DESCRIPTORS + admin->max_connections +
                                          (uint64_t)admin->listen.count * ADDRESS_SOCKETS;
}

/* Descriptors that the daemon needs besides those of its clients: connections to all servers, and
 * to so many nodes of each bucket at least, listening sockets, event loops, log, name look-ups. */
static uint64_t descriptors_reserved(const struct config *config, size_t cluster_nodes)
{
    uint64_t each = WORKER_DESCRIPTORS;
    for (size_t i = 0; i < config->listener_count; i++) {
        each += (uint64_t)config->listeners[i].listen.count * ADDRESS_SOCKETS;
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        each += of_pool(&config->pools[i], cluster_nodes);
    }
    if (config->pool_count == 0) {
        each++; /* to the embedded memcached */
    }
    return PROCESS_DESCRIPTORS + of_admin(&config->admin) + config->reserved_connections +
           config->threads * (each + 1);
}

/* Returns the limit in force afterwards: wanted, or as near to it as the system lets us. */
static rlim_t raise_limit(rlim_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return wanted;
    }
    struct rlimit raised = {wanted, limit.rlim_max < wanted ? wanted : limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        return wanted;
    }
    raised.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    raised.rlim_max = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

int descriptors_prepare(struct config *config, char error[CONFIG_ERROR_MAX])
{
    uint64_t least = descriptors_reserved(config, 1) + config->threads;
    uint64_t reserved = descriptors_reserved(config, CLUSTER_NODES);
    uint64_t wanted = reserved + config->max_connections;
    uint64_t limit = raise_limit((rlim_t)wanted);
    if (limit >= wanted) {
        return 0;
    }
    if (limit < least) {
        (void)snprintf(error, CONFIG_ERROR_MAX,
                       "the limit of open files is %" PRIu64 ", of which this configuration needs "
                       "%" PRIu64 " besides clients: raise it (ulimit -n, LimitNOFILE=)",
                       limit, least - config->threads);
        return -1;
    }
    if (reserved + config->threads > limit) {
        reserved = limit - config->threads;
    }
    log_warn("max_connections is lowered from %" PRIu32 " to %" PRIu64 ": the limit of open files "
             "is %" PRIu64 ", and %" PRIu64 " are needed besides clients; raise it (ulimit -n, "
             "LimitNOFILE=)",
             config->max_connections, limit - reserved, limit, reserved);
    config->max_connections = (uint32_t)(limit - reserved);
    return 0;
}
