/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/dialects.h"

#include "dialect/sublists/sublists.h"
#include "dialect/migrate/migrate.h"
#include "dialect/paired/paired.h"
#include "dialect/ring/ring.h"
#include "dialect/single/single.h"
#include "dialect/two_logs/two_logs.h"

/* The one place that names them all; native lists have no entry. */
static const struct dialect *const table[DIALECT_COUNT] = {
    [DIALECT_SIMPLE] = &dialect_simple,         [DIALECT_TOMBSTONE] = &dialect_tombstone,
    [DIALECT_SIGNED] = &dialect_signed,         [DIALECT_PAIRED] = &dialect_paired,
    [DIALECT_FLIP] = &dialect_two_logs_pointer, [DIALECT_MARKER] = &dialect_two_logs_mark,
    [DIALECT_SUBLISTS] = &dialect_sublists,     [DIALECT_RING] = &dialect_ring,
};

static const struct dialect *table_of(const struct list_policy *policy)
{
    return list_policy_delimits_sublists(policy) ? &dialect_sublists_delimited
                                                 : table[policy->dialect];
}

static const char *refusal(const struct list_call *call, char text[LIST_ERROR_MAX])
{
    return dialect_refusal(table_of(call->policy), call, text);
}

static const char *joint_refusal(const struct list_policy *policy, struct slice key)
{
    if (!table_of(policy)->one_item) {
        return dialect_not_joint;
    }
    return key.len > policy->key_bytes_max ? "a key is too long for the dialect of its list" : NULL;
}

static size_t list_bytes(const struct list_policy *policy)
{
    return sizeof(struct known) + table_of(policy)->list_bytes;
}

static void list_init(struct list *list)
{
    struct known *known = known_of(list);
    known->dialect = table_of(list->policy);
    known->migration = list->policy->migrate == MIGRATE_NATIVE ? &migration_native : NULL;
}

bool dialects_one_item(const struct list_policy *policy)
{
    const struct dialect *dialect = table_of(policy);
    return dialect == NULL || dialect->one_item;
}

const struct list_plugin dialects = {.refusal = refusal,
                                     .joint_refusal = joint_refusal,
                                     .list_bytes = list_bytes,
                                     .list_init = list_init,
                                     .schedule = dialect_schedule};
