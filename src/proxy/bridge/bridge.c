/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/bridge/bridge.h"

#include "proxy/bridge/part.h"

/* Has the request been refused for a key that no list can have? */
static bool refuses_key(struct client *client, const struct request *r, struct slice key)
{
    struct slice fault = list_key_fault(key);
    if (fault.len > 0) {
        bridge_refuse(client, r, "%.*s", (int)fault.len - 2, fault.p);
    }
    return fault.len > 0;
}

static bool take_keys(struct client *client, const struct request *r, struct block *block)
{
    struct slice keys = r->args, key;
    bool any = false;
    while (item_next(&keys, &key)) {
        if (bridge_policy(client->worker->config, key) != NULL) {
            any = true;
            if (refuses_key(client, r, key)) {
                return true;
            }
        }
    }
    if (any) {
        bridge_keys(client, r, block);
    }
    return any;
}

/* The key of a request that has one; decoded has KEY_BYTES_MAX bytes. */
static struct slice only_key(const struct request *r, char *decoded)
{
    return r->base64 ? slice_make(decoded, key_decode_base64(r->key, decoded)) : r->key;
}

bool bridge_take(struct client *client, const struct request *r, struct block *block)
{
    char decoded[KEY_BYTES_MAX];
    bool names_many = r->verb->shape == SHAPE_KEYS || r->verb->shape == SHAPE_GAT;
    if (names_many && !client_is_binary(client)) {
        return take_keys(client, r, block);
    }
    struct slice key = only_key(r, decoded);
    const struct list_policy *policy = bridge_policy(client->worker->config, key);
    if (policy == NULL) {
        return false;
    }
    if (refuses_key(client, r, key)) {
        return true;
    }
    if (names_many) {
        bridge_keys(client, r, block);
    } else {
        bridge_single(client, r, block, policy);
    }
    return true;
}

bool bridge_take_large(struct client *client, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    const struct config *config = client->worker->config;
    if (!config->has_bridge || bridge_policy(config, only_key(r, decoded)) == NULL) {
        return false;
    }
    bridge_refuse(
        client, r,
        "SERVER_ERROR object too large for cache: above max_value_bytes (%u), the list is "
        "as it was",
        config->max_value_bytes);
    return true;
}
