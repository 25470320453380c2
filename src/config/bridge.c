/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/bridge.h"

#include "config/table.h"

/* The place for an error about a bridge and another key. */
static struct place place_of(const struct list_policy *policy, const struct place *place,
                             const char *other)
{
    return place_of_keys(place, policy->given_line, config_key_known(SECTION_LISTS, other),
                         config_key_known(SECTION_LISTS, "bridge"));
}

/* Behind an lpurge the list is empty: it has to be missing then, as behind any other delete. */
static int check_purge(const struct list_policy *policy, const struct place *place)
{
    if (policy->bridge_delete != BRIDGE_DELETE_PURGE || policy->on_missing == ON_MISSING_CREATE) {
        return 0;
    }
    struct place exact = place_of(policy, place, "bridge_delete");
    return refuse(&exact, "bridge_delete = purge leaves an empty list, which is there with "
                          "on_missing = refuse; expected on_missing = create");
}

/* append's +a-b is one change only where additions and deletions go the same way. */
static bool may_be_signed(const struct list_policy *policy)
{
    switch (policy->dialect) {
    case DIALECT_NATIVE:
    case DIALECT_SIGNED:
    case DIALECT_FLIP:
    case DIALECT_MARKER:
        return true;
    case DIALECT_SUBLISTS:
        return !list_policy_delimits_sublists(policy);
    default:
        return false;
    }
}

int bridge_check(const struct list_policy *policy, const struct place *place)
{
    if (policy->bridge == BRIDGE_NO) {
        return 0;
    }
    if (policy->prefix_len == 0) {
        struct place exact = place_of(policy, place, "bridge");
        return refuse(&exact, "bridge: every key without a prefix of its own would be a list, and "
                              "no client could store a plain value; expected in [lists PREFIX]");
    }
    if (policy->delimiter < 0) {
        struct place exact = place_of(policy, place, "delimiter");
        return refuse(&exact, "a bridge reads and writes items that a delimiter keeps apart, and "
                              "delimiter = none has none; expected a delimiter, or bridge = no");
    }
    if (check_purge(policy, place) != 0) {
        return -1;
    }
    if (policy->bridge != BRIDGE_SIGNED) {
        return 0;
    }
    if (!may_be_signed(policy)) {
        struct place exact = place_of(policy, place, "dialect");
        return refuse(&exact, "bridge = signed: additions and deletions are no single step in "
                              "lists of this dialect; expected bridge = yes");
    }
    if (policy->delimiter == policy->add_sign || policy->delimiter == policy->delete_sign) {
        struct place exact = place_of(policy, place, "delimiter");
        return refuse(&exact, "bridge = signed: the delimiter is one of the signs add_sign and "
                              "delete_sign; expected another");
    }
    return 0;
}
