/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/protect.h"

#include "list/core/plain.h"

bool plain_changes_items(const struct request *r)
{
    switch (r->verb->verb) {
    case VERB_MG: /* N makes an item where none is, T sets the time to live */
        return (r->meta_flags & (letter_bit('N') | letter_bit('T'))) != 0;
    case VERB_GET:
    case VERB_GETS:
    case VERB_ME:
        return false;
    default:
        return true;
    }
}

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
    if (!plain_changes_items(r)) {
        return false;
    }
    struct slice key = r->key;
    if (r->base64) {
        key = slice_make(decoded, key_decode_base64(r->key, decoded));
    }
    return plain_is_protected(config, key);
}
