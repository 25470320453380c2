/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a bridge does not do, and why. The data block of a refused request was taken with it.
 */
#include "dialect/dialects.h"
#include "proxy/bridge/part.h"
#include "proxy/bridge/text.h"

/* Items of longer values are counted before memory is taken for their places. */
#define LONG_VALUE_BYTES ((size_t)65536)

static bool flags_fit(const struct list_policy *policy, uint32_t flags)
{
    for (uint32_t i = 0; i < policy->bridge_flags_in.count; i++) {
        if (policy->bridge_flags_in.flags[i] == flags) {
            return true;
        }
    }
    return false;
}

/* Is the value no text of items? Its data block was taken with it. */
static bool refuse_value(struct client *client, const struct request *r,
                         const struct list_policy *policy, enum bridge_verb verb, uint32_t flags)
{
    char delimiter = bridge_delimiter(policy), shown[8];
    bool whole;
    size_t count;
    if (!flags_fit(policy, flags)) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR value has flags %u: switch off serialisation and compression "
                      "for lists (bridge_flags_in)",
                      flags);
        return true;
    }
    if (bridge_takes_signs(policy, verb)) {
        count = bridge_signed_count(r->data, bridge_signs(policy), &whole);
    } else {
        count = bridge_joined_count(r->data, delimiter, &whole);
    }
    if (!whole && bridge_takes_signs(policy, verb)) {
        bridge_refuse(
            client, r,
            "CLIENT_ERROR value holds no signed items, each with a sign in front: %cadd%cdelete "
            "(bridge = signed)",
            policy->add_sign, policy->delete_sign);
        return true;
    }
    if (!whole) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR value holds an empty item: items are joined by one '%s'",
                      slice_escape(slice_make(&delimiter, 1), shown, sizeof shown));
        return true;
    }
    if (r->data.len > LONG_VALUE_BYTES && !call_part_has_room(client->worker, count, 0)) {
        struct slice text = CALL_PART_NO_ROOM;
        bridge_refuse(client, r, "%.*s", (int)text.len - 2, text.p);
        return true;
    }
    return false;
}

/* Lists of several items have no place where a condition could be looked at in the step of the
 * change, nor one for a time to live. */
static bool refuse_exactness(struct client *client, const struct request *r,
                             const struct list_policy *policy, const struct bridge_request *b)
{
    bool native = policy->dialect == DIALECT_NATIVE, one_item = dialects_one_item(policy);
    bool exact = b->verb == BRIDGE_REPLACE || b->verb == BRIDGE_CAS;
    bool conditional = exact || b->verb == BRIDGE_CREATE;
    if (exact && !one_item) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s: lists of several items have no such step (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    if (conditional && b->has_exptime && bridge_is_over(b)) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s: EXPTIME is over already: delete removes a list",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    if ((b->verb == BRIDGE_SET || b->verb == BRIDGE_CREATE) && b->exptime > 0 && !one_item) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s: lists of several items have no EXPTIME (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    /* An empty list would be left of it, and a purge takes several steps. */
    bool drops_at_once = native && policy->on_missing == ON_MISSING_CREATE &&
                         policy->bridge_delete == BRIDGE_DELETE_DROP;
    if (b->verb == BRIDGE_DROP && b->has_cas && !drops_at_once) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s of this list has no flag C (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    return false;
}

bool bridge_refuses(struct client *client, const struct request *r,
                    const struct list_policy *policy, const struct bridge_request *b)
{
    if (b->verb == BRIDGE_NONE) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s is not for lists, and this key is one (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    if (policy->bridge == BRIDGE_SIGNED && b->verb == BRIDGE_DELETE) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s is not for these lists: append %cITEM to delete (bridge = "
                      "signed)",
                      SLICE_ARGS(r->verb->text), policy->delete_sign);
        return true;
    }
    if (b->unknown_flag != 0) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s of a list has no flag %c (bridge)",
                      SLICE_ARGS(r->verb->text), b->unknown_flag);
        return true;
    }
    if (refuse_exactness(client, r, policy, b)) {
        return true;
    }
    return bridge_has_items(b->verb) && refuse_value(client, r, policy, b->verb, b->flags);
}
