/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/dialect.h"

#include <stdio.h>

const char dialect_not_exact[] =
    "a list of several items has no place where it could be decided; use ladd or ldel";

const char dialect_not_joint[] = "a list of several items has no number that tells whether all of "
                                 "it is as it was; convert it to "
                                 "the native layout";

bool dialect_keeps_key(const struct list *list)
{
    uint32_t essential = dialect_of(list)->essential;
    bool keeps = false;
    for (unsigned role = CELL_KEY; !keeps && essential >> role != 0; role++) {
        keeps = (essential >> role & 1) != 0 && cell_has_own_key(list, (enum cell_role)role);
    }
    return keeps;
}

void dialect_forget(struct list *list)
{
    const struct dialect *dialect = dialect_of(list);
    if (dialect->forget != NULL) {
        dialect->forget(list);
    }
}

enum lane dialect_lane(const struct dialect *dialect, enum list_verb verb)
{
    switch (list_verb_kind(verb)) {
    case LIST_KIND_READ:
        return LANE_READ;
    case LIST_KIND_COMPACTION:
    case LIST_KIND_CONVERSION:
        return LANE_ALONE;
    default:
        return dialect->lanes[verb];
    }
}

static const char *item_refusal(const struct dialect *dialect, const struct list_policy *policy,
                                struct slice item, char text[LIST_ERROR_MAX])
{
    char bytes[RESERVED_MAX];
    size_t count = dialect->reserved != NULL ? dialect->reserved(policy, bytes) : 0;
    const char *why = dialect->refusal != NULL ? dialect->refusal(policy, item) : NULL;
    const char *name = dialect->name, *control = grammar_bad_byte(item);
    if (why != NULL) {
        return why;
    }
    for (size_t b = 0; b < count; b++) {
        if (memchr(item.p, bytes[b], item.len) != NULL) {
            snprintf(text, LIST_ERROR_MAX,
                     "item holds the byte \\x%02x, which has a meaning in lists of dialect %s",
                     (unsigned char)bytes[b], name);
            return text;
        }
    }
    if (control != NULL) {
        snprintf(text, LIST_ERROR_MAX,
                 "item holds the byte \\x%02x, and lists of dialect %s hold text",
                 (unsigned char)*control, name);
        return text;
    }
    return NULL;
}

const char *dialect_refusal(const struct dialect *dialect, const struct list_call *call,
                            char text[LIST_ERROR_MAX])
{
    const struct list_policy *policy = call->policy;
    if (call->verb == LIST_CONVERT && policy->migrate != MIGRATE_NATIVE) {
        return "lconvert: this prefix has no migrate = native";
    }
    if (call->verb == LIST_TOUCH && !dialect->one_item) {
        return "ltouch: a list of several items would lose them one by one, not at once";
    }
    if (call->verb == LIST_TTL && call->item_count > 0) {
        return "lttl: only lists of dialect native have items with a time of their own";
    }
    if (list_verb_has(call->verb, LIST_PAGES) && dialect->newest_first) {
        snprintf(text, LIST_ERROR_MAX,
                 "%s: a list of dialect %s may hold an item in several places: use lrange",
                 list_verb_word(call->verb), dialect->name);
        return text;
    }
    if (call->verb == LIST_PURGE && !dialect->one_item) {
        return "lpurge: a list of several items has no place where it could be decided which "
               "names were added again";
    }
    if (dialect_lane(dialect, call->verb) == LANE_UNSUPPORTED) {
        snprintf(text, LIST_ERROR_MAX, "%s: %s", list_verb_word(call->verb),
                 dialect->unsupported_reason);
        return text;
    }
    if (call->key.len > policy->key_bytes_max) {
        snprintf(text, LIST_ERROR_MAX,
                 "key must have 1 to %u bytes, or the names of its items are too long",
                 policy->key_bytes_max);
        return text;
    }
    if (list_verb_reads(call->verb)) {
        return NULL;
    }
    for (size_t i = 0; i < call->item_count; i++) {
        const char *why = item_refusal(dialect, policy, call->items[i], text);
        if (why != NULL) {
            return why;
        }
    }
    return NULL;
}
