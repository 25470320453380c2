/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/dialect.h"

#include <stdio.h>

#include "dialect/paired/pair.h"
#include "dialect/shared/grammar.h"
#include "dialect/two_logs/two_logs.h"

static const struct dialect *const by_number[DIALECT_COUNT] = {
    [DIALECT_SIMPLE] = &dialect_simple,     [DIALECT_TOMBSTONE] = &dialect_tombstone,
    [DIALECT_SIGNED] = &dialect_signed,     [DIALECT_PAIRED] = &dialect_paired,
    [DIALECT_FLIP] = &dialect_flip,         [DIALECT_MARKER] = &dialect_marker,
    [DIALECT_SUBLISTS] = &dialect_sublists, [DIALECT_RING] = &dialect_ring,
};

const char dialect_not_exact[] =
    "a list of several items has no place where it could be decided; use ladd or ldel";

const struct dialect *dialect_of(const struct list_policy *policy)
{
    return by_number[policy->dialect];
}

/* The bytes that an item must not hold, besides the delimiter of lget. */
static size_t meaning_bytes(const struct list_policy *policy, char out[4])
{
    size_t count = 0;
    switch (policy->dialect) {
    case DIALECT_TOMBSTONE:
        out[count++] = (char)policy->deleted_delimiter;
        break;
    case DIALECT_MARKER:
        out[count++] = (char)policy->closed_mark;
        __attribute__((fallthrough));
    case DIALECT_SIGNED:
    case DIALECT_FLIP:
    case DIALECT_SUBLISTS:
        out[count++] = (char)policy->add_sign;
        out[count++] = (char)policy->delete_sign;
        break;
    default:
        break;
    }
    return count;
}

static const char *item_refusal(const struct list_policy *policy, struct slice item,
                                char text[LIST_ERROR_MAX])
{
    char bytes[4];
    size_t count = meaning_bytes(policy, bytes);
    const char *name = dialect_of(policy)->name, *control = grammar_bad_byte(item);
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

static const char *verb_word(enum list_verb verb)
{
    static const char *const words[LIST_VERB_COUNT] = {
        [LIST_ADD] = "ladd",     [LIST_DEL] = "ldel",         [LIST_SET] = "lset",
        [LIST_ADDX] = "laddx",   [LIST_DELX] = "ldelx",       [LIST_CREATE] = "lcreate",
        [LIST_GET] = "lget",     [LIST_HAS] = "lhas",         [LIST_LEN] = "llen",
        [LIST_RANGE] = "lrange", [LIST_DROP] = "ldrop",       [LIST_COMPACT] = "lcompact",
        [LIST_STAT] = "lstat",   [LIST_CONVERT] = "lconvert",
    };
    return words[verb];
}

const char *dialect_refusal(const struct list_call *call, char text[LIST_ERROR_MAX])
{
    const struct list_policy *policy = call->policy;
    const struct dialect *dialect = dialect_of(policy);
    if (call->verb == LIST_CONVERT && policy->migrate != MIGRATE_NATIVE) {
        return "lconvert: this prefix has no migrate = native";
    }
    if (call->verb != LIST_CONVERT && dialect->lanes[call->verb] == LANE_NEVER) {
        snprintf(text, LIST_ERROR_MAX, "%s: %s", verb_word(call->verb), dialect->never);
        return text;
    }
    if (call->key.len > policy->key_bytes_max) {
        snprintf(text, LIST_ERROR_MAX, "key must have 1 to %u bytes for its items to have names",
                 policy->key_bytes_max);
        return text;
    }
    if (list_verb_reads(call->verb)) {
        return NULL;
    }
    bool has_logs = policy->dialect == DIALECT_FLIP || policy->dialect == DIALECT_MARKER;
    for (size_t i = 0; i < call->item_count; i++) {
        if (has_logs && !logs_item_allowed(call->items[i])) {
            return "item has the form of what a log says of itself (@BYTES:HASH)";
        }
        if (policy->dialect == DIALECT_PAIRED &&
            pair_is_mark(call->items[i], (char)policy->delimiter)) {
            return "item has the form of a mark that foldings leave (@ and 16 hexadecimal digits)";
        }
        const char *why = item_refusal(policy, call->items[i], text);
        if (why != NULL) {
            return why;
        }
    }
    return NULL;
}
