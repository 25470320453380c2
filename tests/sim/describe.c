/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls as text, for people. */
#include <stdio.h>

#include "joint.h"
#include "txs.h"

static const char *status_name(enum list_status status)
{
    static const char *const names[] = {"OK",     "MISSING",      "NOT_STORED",
                                        "EXISTS", "CLIENT_ERROR", "SERVER_ERROR"};
    return names[status];
}

void call_describe(const struct sim_call *call, char *out, size_t cap)
{
    int n = snprintf(out, cap, "call %llu p%u c%u %s %s", (unsigned long long)call->number,
                     call->proxy, call->session, list_verb_word(call->call.verb), call->key);
    if (is_tx(call) && (size_t)n < cap) {
        n += (int)txs_describe(call, out + n, cap - (size_t)n);
    }
    for (unsigned i = !joint_call_stores(call);
         !is_tx(call) && i < call->list_count && (size_t)n < cap; i++) {
        n += snprintf(out + n, cap - (size_t)n, " L%u", call->lists[i]);
    }
    for (size_t i = 0; i < call->call.item_count && (size_t)n < cap; i++) {
        const char *sign = call->call.ops == NULL              ? ""
                           : list_call_deletes(&call->call, i) ? "-"
                                                               : "+";
        n += snprintf(out + n, cap - (size_t)n, " %s%u", sign, (unsigned)call->ids[i]);
    }
    static const char *const conditions[] = {"", " if missing", " if present", " if version",
                                             " if leased"};
    if ((size_t)n < cap) {
        n += snprintf(out + n, cap - (size_t)n, "%s", conditions[call->call.condition]);
    }
    if ((size_t)n < cap && list_verb_has(call->call.verb, LIST_RANGES)) {
        n += snprintf(out + n, cap - (size_t)n, " %lld %lld", (long long)call->call.from,
                      (long long)call->call.to);
    }
    if ((size_t)n < cap && list_verb_has(call->call.verb, LIST_PICKS | LIST_TAKES)) {
        n += snprintf(out + n, cap - (size_t)n, " (%lld)", (long long)call->call.count);
    }
    if ((size_t)n < cap && call->done && !call->abandoned) {
        snprintf(out + n, cap - (size_t)n, " -> %s %llu %s", status_name(call->call.status),
                 (unsigned long long)call->call.number, call->call.error);
    }
}
