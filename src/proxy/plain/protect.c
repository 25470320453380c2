/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/protect.h"

#include "list/core/plain.h"

/* mg: N makes an item where none is, T sets the time to live. */
static bool meta_get_changes(const struct request *r)
{
    struct slice args = r->args, flag;
    while (token_next(&args, &flag)) {
        if (flag.p[0] == 'N' || flag.p[0] == 'T') {
            return true;
        }
    }
    return false;
}

/* Does the verb change the items that it names, or their time to live? */
static bool changes_items(const struct request *r)
{
    switch (r->verb->verb) {
    case VERB_MG:
        return meta_get_changes(r);
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
    if (!changes_items(r)) {
        return false;
    }
    struct slice key = r->key;
    if (r->base64) {
        key = slice_make(decoded, key_decode_base64(r->key, decoded));
    }
    return plain_is_protected(config, key);
}
