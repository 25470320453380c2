/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/couchbase/cluster_collection.h"

#include <stdio.h>

#include "pool/couchbase/cluster_waits.h"
#include "proto/server/binary.h"

/* How often it is looked whether a collection that is missing is there, and how soon again when
 * requests ask for it. */
#define ASK_INTERVAL_US ((uint64_t)2500000)
#define ASK_PAUSE_US ((uint64_t)100000)

void cluster_collection_init(struct cluster *c)
{
    const struct pool_config *config = c->context->config;
    struct collection *k = &c->collection;
    k->ask_us = UINT64_MAX;
    c->key_bytes_max = KEY_BYTES_MAX;
    if (!config_has_collection(config)) {
        k->state = COLLECTION_IS_THERE;
        return;
    }
    c->key_bytes_max = COLLECTION_KEY_BYTES_MAX;
    (void)snprintf(k->path, sizeof k->path, "%s.%s", config->scope, config->collection);
    c->login.collection = slice_of(k->path);
}

uint32_t cluster_collection_code(const struct cluster *c)
{
    return c->collection.state == COLLECTION_LACKS_SCOPE ? BINARY_STATUS_UNKNOWN_SCOPE
                                                         : BINARY_STATUS_UNKNOWN_COLLECTION;
}

static void log_news(const struct cluster *c, enum handshake_collection state, uint32_t id)
{
    const struct pool_config *config = c->context->config;
    const struct collection *k = &c->collection;
    if (state == COLLECTION_LACKS_SCOPE) {
        log_error("pool %s: bucket %s has no scope %s", config->name, config->bucket,
                  config->scope);
    } else if (state == COLLECTION_IS_MISSING) {
        log_error("pool %s: bucket %s has no collection %s, or user %s has no access to it",
                  config->name, config->bucket, k->path,
                  config->username[0] != '\0' ? config->username : "of tls_cert");
    } else if (k->id != 0) {
        log_warn("pool %s: collection %s was made anew: what the old one held is gone",
                 config->name, k->path);
    } else {
        log_info("pool %s: collection %s has the id 0x%x", config->name, k->path, id);
    }
}

/* Where no node can be asked any more, the bucket may have been made anew, and its manifests count
 * from one again. */
static void take(struct cluster *c, enum handshake_collection state, uint32_t id, uint64_t manifest)
{
    struct collection *k = &c->collection;
    if (manifest < k->manifest && cluster_has_contact(c)) {
        return;
    }
    k->manifest = manifest;
    if (state != k->state || (state == COLLECTION_IS_THERE && id != k->id)) {
        log_news(c, state, id);
        metric_inc(c->context->metrics, METRIC_cluster_collections);
        k->state = state;
        k->id = state == COLLECTION_IS_THERE ? id : k->id;
    }
    k->ask_us = cluster_collection_is_missing(c) ? k->asked_us + ASK_INTERVAL_US : UINT64_MAX;
    cluster_set_timer(c, k->ask_us);
}

static void tell(struct cluster *c)
{
    c->collection.told = true;
    cluster_set_timer(c, 0);
}

void cluster_collection_learn(struct cluster *c, const struct handshake *hs)
{
    if (hs->collection != COLLECTION_NOT_TOLD) {
        take(c, hs->collection, hs->collection_id, hs->manifest);
        tell(c);
    }
}

/* --- asking ------------------------------------------------------------------------------------
 */

static void on_answer(struct exchange *x, const struct be_reply *reply)
{
    struct cluster *c = x->owner;
    c->collection.asked = NULL;
    if (reply->status == BE_ANSWERED) {
        take(c, COLLECTION_IS_THERE, (uint32_t)reply->number, reply->cas);
    } else if (reply->status == BE_REFUSED && reply->code == BINARY_STATUS_UNKNOWN_COLLECTION) {
        take(c, COLLECTION_IS_MISSING, 0, reply->cas);
    } else if (reply->status == BE_REFUSED && reply->code == BINARY_STATUS_UNKNOWN_SCOPE) {
        take(c, COLLECTION_LACKS_SCOPE, 0, reply->cas);
    }
    tell(c);
}

static void ask(struct cluster *c)
{
    struct collection *k = &c->collection;
    struct upstream *u = cluster_contact(c, &k->doubted);
    k->asked_us = cluster_now_us(c);
    k->ask_us = k->asked_us + (u == NULL ? ASK_PAUSE_US : ASK_INTERVAL_US);
    if (u == NULL) {
        return;
    }
    k->asked = (struct node *)u->server;
    k->asking = (struct exchange){
        .op = {.verb = BE_COLLECTION, .opaque = ++c->opaque, .key = c->login.collection},
        .done = on_answer,
        .owner = c,
        .server = u->server,
        .is_internal = true};
    upstream_submit(u, &k->asking);
}

void cluster_collection_want(struct cluster *c, struct node *node)
{
    struct collection *k = &c->collection;
    uint64_t at_us = k->asked_us + ASK_PAUSE_US;
    k->doubted = node;
    if (k->asked == NULL && at_us < k->ask_us) {
        k->ask_us = at_us;
        cluster_set_timer(c, at_us);
    }
}

uint64_t cluster_collection_tend(struct cluster *c)
{
    struct collection *k = &c->collection;
    if (k->asked != NULL) {
        return UINT64_MAX;
    }
    if (k->ask_us <= cluster_now_us(c)) {
        ask(c);
    }
    return k->ask_us;
}
