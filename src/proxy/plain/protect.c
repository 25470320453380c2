/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/protect.h"

#include "list/core/plain.h"

bool protect_forbids(const struct config *config, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    if (r->verb->shape == SHAPE_GAT) {
        struct slice keys = r->args, key;
        while (item_next(&keys, &key)) {
            if (plain_is_protected(config, key)) {
                return true;
            }
        }
        return false;
    }
    if (!request_changes(r)) {
        return false;
    }
    struct slice key = r->key;
    if (r->base64) {
        key = slice_make(decoded, key_decode_base64(r->key, decoded));
    }
    return plain_is_protected(config, key);
}
