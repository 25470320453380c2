/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/protect.h"

#include "list/format/name.h"

/* What a verb does to the items that it names. */
enum access {
    ACCESS_READS,
    ACCESS_TOUCHES, /* their time to live */
    ACCESS_WRITES,
};

/* mg: N makes an item where none is, T sets the time to live. */
static enum access meta_get_access(const struct request *r)
{
    enum access access = ACCESS_READS;
    struct slice args = r->args, flag;
    while (token_next(&args, &flag)) {
        if (flag.p[0] == 'N') {
            return ACCESS_WRITES;
        }
        access = flag.p[0] == 'T' ? ACCESS_TOUCHES : access;
    }
    return access;
}

static enum access access_of(const struct request *r)
{
    switch (r->verb->verb) {
    case VERB_MG:
        return meta_get_access(r);
    case VERB_GAT:
    case VERB_GATS:
    case VERB_TOUCH:
        return ACCESS_TOUCHES;
    case VERB_GET:
    case VERB_GETS:
    case VERB_ME:
        return ACCESS_READS;
    default:
        return ACCESS_WRITES;
    }
}

/* Where sublists end, no touch takes a head beyond them: ltouch does. */
static enum access access_refused(const struct list_policy *policy, bool head)
{
    return head && policy->format < 2 ? ACCESS_WRITES : ACCESS_TOUCHES;
}

static bool protects(const struct config *config, struct slice key, enum access access)
{
    struct slice list_key;
    bool head;
    if (access < ACCESS_TOUCHES || !plain_is_protected(config, key)) {
        return false;
    }
    return !list_item_key(key, &list_key, &head) ||
           access >= access_refused(config_list_policy(config, list_key), head);
}

bool protect_forbids(const struct config *config, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    if (r->verb->shape == SHAPE_GAT) {
        struct slice keys = r->args, key;
        while (item_next(&keys, &key)) {
            if (protects(config, key, ACCESS_TOUCHES)) {
                return true;
            }
        }
        return false;
    }
    struct slice key = r->key;
    if (r->base64) {
        key = slice_make(decoded, key_decode_base64(r->key, decoded));
    }
    return protects(config, key, access_of(r));
}
