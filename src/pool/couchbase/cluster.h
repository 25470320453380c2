/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool whose servers are the nodes of a Couchbase cluster. The cluster says which nodes there
 * are, and which of them has a key's vBucket; both change while requests are under way. For this
 * folder only. Files: cluster.c is about requests, cluster_waits.c about those that no node has,
 * change_turns.c about durable changes, cluster_nodes.c about maps and nodes, cluster_collection.c
 * about the collection.
 *
 *     pool_submit -> cluster_submit -> turn -> vBucket -> node -> server -> upstream
 *                                                 ^                  |
 *                                               hold <-- keeps(), of each answer ------> done
 *
 * A request that was refused for a reason that passes was not done. It is held, and so is all that
 * is submitted for its vBucket from then on, so that no request overtakes another of its key. The
 * requests of a hold go out again in their order, once none of its vBucket is under way.
 */
#ifndef POOL_COUCHBASE_CLUSTER_H
#define POOL_COUCHBASE_CLUSTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pool/couchbase/change_turns.h"
#include "pool/link/connections.h"
#include "pool/link/context.h"
#include "proto/server/cluster_map.h"

/* A server, which is its first member. */
struct node {
    struct server server;
    TAILQ_ENTRY(node) link;
    struct server_config config;
    bool in_map;
    bool leaving;      /* is given no more requests, and goes once it owes no answers */
    bool shut;         /* its connections are ended: the last step but one */
    uint64_t map_hash; /* of the map that it sent last */
    enum handshake_durability durability; /* as it said last */
    bool no_times;                        /* it has not told a time to live */
    uint64_t lost_us; /* since when it cannot be reached; 0: it can, or no request has met that */
    struct exchange asking; /* for its map */
    bool is_asked;
};
TAILQ_HEAD(node_list, node);

/* What answers call a node. It stays when the node has left: a list remembers who has answered for
 * it. So there are as many as there have been nodes of different names. */
struct node_name {
    SLIST_ENTRY(node_name) link;
    char text[];
};

/* The requests of a vBucket that wait. */
struct hold {
    TAILQ_ENTRY(hold) link;
    uint16_t vbucket;
    bool wants_map;              /* a newer map ends the wait */
    bool wants_collection;       /* what a node says of the collection ends it */
    uint64_t due_us;             /* not before */
    const struct server *server; /* which refused the first of them, or NULL */
    struct exchange_list back;   /* that were sent before; all older than */
    struct exchange_list fresh;  /* these */
};
TAILQ_HEAD(hold_list, hold);

struct vbucket {
    struct hold *hold;  /* or NULL */
    uint32_t in_flight; /* requests that were given to a node, and are not back */
};

/* See pool/couchbase/cluster_collection.h. */
struct collection {
    char path[2 * CONFIG_NAME_MAX + 2]; /* SCOPE.COLLECTION; empty: the default one */
    enum handshake_collection state;    /* of the default one: it is there */
    uint32_t id;                        /* the last one that was told; of the default one 0 */
    uint64_t manifest;                  /* by which that was told; 0 = not known */
    struct node *doubted;               /* that has refused the id, or NULL */
    struct exchange asking;
    struct node *asked; /* that has it, or NULL */
    bool told;          /* a node was asked, and what is held was not looked at since */
    uint64_t ask_us;    /* when a node is to be asked; UINT64_MAX: not at all */
    uint64_t asked_us;  /* when one was asked last */
};

struct cluster {
    struct pool_context *context;
    struct resolver *resolver;
    struct wire_login login;
    struct scram_cache scram_cache;

    pthread_mutex_t lock; /* of the list, for cluster_stats: only the worker changes it */
    struct node_list nodes;
    SLIST_HEAD(, node_name) names;
    bool durable;     /* no node lacks durable changes, as far as they have told */
    bool told_unsafe; /* the log says that nodes lack them */
    struct node *last_asked;
    struct node *news_from;            /* that has a newer map, and was not asked yet; or NULL */
    bool awaits_seeds;                 /* the resolver has not told yet which there are */
    struct cluster_map *map;           /* NULL: none yet */
    bool map_is_new;                   /* and what is held was not looked at since */
    bool is_other_bucket;              /* then: it has another number of vBuckets */
    size_t without_node;               /* vBuckets of the map that no node has */
    size_t told_without_node;          /* as the log says */
    struct node **of_map;              /* by the map's index of nodes; NULL: it shows no way */
    char map_error[CLUSTER_ERROR_MAX]; /* the last one in the log */
    struct collection collection;
    size_t key_bytes_max; /* in that collection */

    struct vbucket *vbuckets;   /* as many as there may ever be */
    struct change_turns turns;  /* of durable changes */
    struct hold_list holds;     /* those that have requests */
    struct exchange_list early; /* requests from before the first map */
    struct exchange_list ended; /* requests whose end the submitter is to be told */
    size_t waiting;             /* requests in turns, holds and early, and bytes of their values */
    uint64_t waiting_bytes;
    uint32_t opaque;
    uint16_t durability_ms;
    uint64_t order;

    struct event *timer;
    uint64_t timer_us; /* when it fires; UINT64_MAX: it is not set */
    uint64_t ask_us;   /* when a node is to be asked for its map */
    uint64_t asked_us; /* when one was asked last */
    uint64_t told_us;  /* the same of one that has answered */
};

/* Makes the nodes that the file names. Returns NULL with the reason in error. The context's wire
 * must be set; its login and cluster are set here. */
struct cluster *cluster_create(struct pool_context *context, struct resolver *resolver,
                               char error[CONFIG_ERROR_MAX]);
/* The configuration of its pool has changed. */
void cluster_take_config(struct cluster *cluster);
void cluster_connect(struct cluster *cluster);
/* Ends all connections; what waits is ended in the same way. done() is called by cluster_deliver
 * and server_deliver_finished. */
void cluster_shutdown(struct cluster *cluster);
/* Nothing may wait any more. */
void cluster_destroy(struct cluster **cluster);
/* The resolver has decided something. */
void cluster_relocate(struct cluster *cluster);
/* As pool_stats. Thread-safe. */
size_t cluster_stats(struct cluster *cluster, struct server_stats *out, size_t max);

void cluster_submit(struct cluster *cluster, struct exchange *exchange);
/* See pool_withdraw: of an exchange that no server has. */
bool cluster_withdraw(struct exchange *exchange);
/* The node that has the key by the map; NULL: none has it, or there is no map yet. *vbucket is
 * the key's; -1: there is no map. */
const struct node *cluster_find(const struct cluster *cluster, struct slice key, int *vbucket);
/* Hands back what has ended; true if there was any. */
bool cluster_deliver(struct cluster *cluster);

/* Between the files. */
/* Makes a node of each server that the file names, where there is none. Returns 0, or -1 with the
 * reason in error. */
MUST_CHECK int cluster_add_seeds(struct cluster *cluster, char error[CONFIG_ERROR_MAX]);
void cluster_end_nodes(struct cluster *cluster);
/* The node of the vBucket by the map, or NULL; forward: the one that it moves to. */
struct node *cluster_owner(const struct cluster *cluster, uint16_t vbucket, bool forward);
/* The node cannot be reached: may it be that the cluster has let it go, and that no other node has
 * been asked since? */
bool cluster_may_leave(struct cluster *cluster, struct server *server);
/* How durable the change is to be: what must last has a majority, whatever the file says. */
enum be_durability cluster_durability(struct cluster *cluster, const struct be_operation *op);
/* Asks a node for its map, soon. */
void cluster_want_map(struct cluster *cluster);
/* Is there a node of the map that can be asked? */
bool cluster_has_contact(const struct cluster *cluster);
/* A connection on which a node can be asked: the preferred one, which may be NULL, else the next
 * one behind it, which is preferred then. NULL: there is none. */
struct upstream *cluster_contact(const struct cluster *cluster, struct node **preferred);
/* What the timer does for maps and nodes; returns when it is to come again. */
uint64_t cluster_tend_nodes(struct cluster *cluster);
/* See struct cluster_hooks; what a handshake tells of a node's durable changes. */
void cluster_learn(struct cluster *cluster, struct server *from, const struct handshake *hs);
/* Also of a refusal, or asked for. */
void cluster_take_map(struct cluster *cluster, struct server *from, struct slice json);
void cluster_hear(struct cluster *cluster, struct server *from, const struct wire_news *news);

#endif
