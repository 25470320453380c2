/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/bridge/bridge.h"

#include <stdarg.h>
#include <stdio.h>

#include "proxy/bridge/part.h"
#include "proxy/plain/protect.h"

const struct list_policy *bridge_policy(const struct config *config, struct slice key)
{
    const struct list_policy *policy = config_prefix_policy(config, key);
    return policy->bridge == BRIDGE_NO || protect_is_item(config, key) ? NULL : policy;
}

void bridge_refuse(struct client *client, const struct request *r, const char *format, ...)
{
    char line[CONFIG_ERROR_MAX];
    struct chain text;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bool ours = line[0] == 'S';
    metric_inc(&client->worker->metrics, ours ? METRIC_server_errors : METRIC_client_errors);
    if (r->noreply) {
        return;
    }
    chain_init(&text);
    chain_copy_slice(&text, slice_of(line));
    chain_copy_slice(&text, SLICE_LIT("\r\n"));
    pending_answer_text(client, &text);
    chain_fini(&text);
}

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
    if (r->verb->shape == SHAPE_KEYS || r->verb->shape == SHAPE_GAT) {
        return take_keys(client, r, block);
    }
    struct slice key = only_key(r, decoded);
    const struct list_policy *policy = bridge_policy(client->worker->config, key);
    if (policy == NULL) {
        return false;
    }
    if (!refuses_key(client, r, key)) {
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
