/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists that are missing though they have a head: who has the lease, and what was appended in the
 * meantime, which is to stand behind what fills the list.
 */
#include "leases.h"

#include <stdlib.h>

#include "list/format/head.h"
#include "oracle.h"

void leases_fini(struct absence *a)
{
    free(a->pending);
    free(a->given);
    *a = (struct absence){0};
}

/* The head has gone, or says so no more. */
void leases_forget(struct oracle *o, unsigned list)
{
    struct absence *a = &o->list[list].absence;
    a->pending_count = 0;
    a->token = 0;
    a->until_s = 0;
    if (a->given_count > 0 && a->given[a->given_count - 1].over == 0) {
        a->given[a->given_count - 1].over = ++o->moment;
    }
}

static void pend(struct absence *a, struct sim_call *call)
{
    for (size_t i = 0; i < call->call.item_count; i++) {
        if (a->pending_count == a->pending_cap) {
            a->pending_cap = a->pending_cap * 2 + 16;
            a->pending = realloc(a->pending, a->pending_cap * sizeof *a->pending);
            CHECK(a->pending != NULL);
        }
        a->pending[a->pending_count++] =
            (struct pending){call, call->ids[i], list_call_deletes(&call->call, i), call->recent,
                             call->call.verb == LIST_ADDT ? call->call.until_s : 0};
    }
}

void leases_lay(const struct absence *a, struct ids *items)
{
    for (size_t i = 0; i < a->pending_count; i++) {
        const struct pending *p = &a->pending[i];
        if (p->deletes || p->recent || p->until_s != 0 || ids_until(items, p->id) != 0) {
            (void)ids_remove(items, p->id);
        }
        if (!p->deletes && !ids_has(items, p->id)) {
            ids_push_timed(items, p->id, p->until_s);
        }
    }
}

void leases_fill(struct oracle *o, unsigned list, struct ids *items)
{
    const struct absence *a = &o->list[list].absence;
    leases_lay(a, items);
    for (size_t i = 0; i < a->pending_count; i++) {
        a->pending[i].call->laid_version = o->list[list].count;
        a->pending[i].call->laid_order = (uint32_t)i;
    }
}

void leases_append(struct oracle *o, unsigned list, const struct purpose *purpose, bool *exists,
                   struct ids *items)
{
    struct absence *a = &o->list[list].absence;
    *exists = false;
    for (size_t i = 0; i < purpose->count; i++) {
        struct sim_call *call = purpose->calls[i];
        if (call->call.verb == LIST_SET) {
            leases_forget(o, list);
            *exists = true;
        }
        if (*exists) {
            oracle_apply_blind(items, call);
        } else {
            call->pends = true;
            /* An ldrop leaves a head for a moment where it meets a lease or transactions; and a
             * lease may end between the look at it and the append. */
            call->is_void = a->given_count == 0 && !a->decides;
            pend(a, call);
        }
    }
}

static bool under_way(const struct oracle *o, const struct absence *a, int64_t now_s)
{
    return a->token != 0 && !o->wrong_clocks && now_s + 2 * o->clock_skew_s < a->until_s;
}

void leases_check_over(const struct oracle *o, unsigned list, int64_t now_s, const char *what)
{
    const struct absence *a = &o->list[list].absence;
    if (under_way(o, a, now_s)) {
        sim_violation("L%u: %s, though a lease is under way for %lld s", list, what,
                      (long long)(a->until_s - now_s));
    }
}

static void note_given(struct oracle *o, struct absence *a, uint64_t token)
{
    for (size_t i = 0; i < a->given_count; i++) {
        if (a->given[i].token == token) {
            sim_violation("a lease's token was drawn twice");
        }
    }
    if (a->given_count == a->given_cap) {
        a->given_cap = a->given_cap * 2 + 16;
        a->given = realloc(a->given, a->given_cap * sizeof *a->given);
        CHECK(a->given != NULL);
    }
    a->given[a->given_count++] = (struct lease_mark){.token = token, .at = ++o->moment};
}

static void compare_pending(const struct oracle *o, unsigned list, int64_t now_s, bool all)
{
    struct ids stored = {0}, expected = {0};
    for (unsigned id = 0; all && id < 64; id++) {
        ids_push(&stored, (uint16_t)id);
    }
    ids_copy(&expected, &stored);
    model_lay_log(&o->cluster, slice_of(o->list[list].key), now_s, &stored);
    leases_lay(&o->list[list].absence, &expected);
    struct ids before[2] = {stored, expected};
    stored = expected = (struct ids){0};
    ids_copy_at(&stored, &before[0], oracle_over_s(o, now_s));
    ids_copy_at(&expected, &before[1], oracle_over_s(o, now_s));
    ids_fini(&before[0]);
    ids_fini(&before[1]);
    if (!ids_equal(&stored, &expected)) {
        sim_violation("L%u: what was appended to the missing list is not kept as it was", list);
    }
    ids_fini(&stored);
    ids_fini(&expected);
}

void leases_compare(struct oracle *o, unsigned list, const struct stored *stored, bool gives,
                    int64_t now_s)
{
    struct absence *a = &o->list[list].absence;
    if (!stored->exists || !stored->absent || stored->cleared) {
        leases_forget(o, list);
        a->decides = false;
        return;
    }
    /* In a bucket a node also shows by such a head that it carries out changes (core/finish.c). */
    bool in_bucket = cluster_store(&o->cluster, slice_of(o->list[list].head_key))->vbuckets != NULL;
    bool proves = in_bucket && a->given_count == 0;
    a->decides = a->decides || proves || stored->intents + stored->decisions > 0;
    if (gives) {
        leases_check_over(o, list, now_s, "another lease is given");
        struct pending *pending = a->pending;
        size_t count = a->pending_count;
        leases_forget(o, list);
        a->pending = pending;
        a->pending_count = count;
        a->token = stored->token;
        a->until_s = stored->until_s;
        note_given(o, a, a->token);
    } else if (stored->token != a->token || stored->until_s != a->until_s) {
        sim_violation("L%u: the token of the lease has changed", list);
    }
    compare_pending(o, list, now_s, false);
    compare_pending(o, list, now_s, true);
}

/* Was there a lease at an instant of the call? */
static bool seen(const struct absence *a, const struct sim_call *call)
{
    for (size_t i = 0; i < a->given_count; i++) {
        const struct lease_mark *g = &a->given[i];
        if (g->at < call->answered && (g->over == 0 || g->over > call->asked)) {
            return true;
        }
    }
    return false;
}

bool leases_answered(struct oracle *o, const struct sim_call *call)
{
    struct absence *a = &o->list[call->list].absence;
    if (call->call.status != LIST_OK) {
        return call->call.status == LIST_EXISTS || seen(a, call);
    }
    if (call->call.number >> VERSION_BITS != 0) {
        sim_violation("L%u: a token that clients whose numbers are doubles cannot give back",
                      call->list);
    }
    for (size_t i = 0; i < a->given_count; i++) {
        struct lease_mark *g = &a->given[i];
        if (g->token == call->call.number && g->at > call->asked && g->at < call->answered &&
            !g->is_told) {
            g->is_told = true;
            return true;
        }
    }
    return false;
}

bool leases_refused(const struct oracle *o, const struct sim_call *call)
{
    const struct absence *a = &o->list[call->list].absence;
    for (size_t i = 0; i < a->given_count; i++) {
        const struct lease_mark *g = &a->given[i];
        if (g->token == call->call.expected) {
            return g->at > call->asked || (g->over != 0 && g->over < call->answered);
        }
    }
    return true;
}

void leases_note_refused(struct oracle *o, const struct sim_call *call)
{
    struct absence *a = &o->list[call->list].absence;
    for (size_t i = 0; i < a->given_count; i++) {
        a->given[i].is_old = a->given[i].is_old || a->given[i].at < call->asked;
    }
}

void leases_check_fill(const struct oracle *o, const struct sim_call *call)
{
    const struct absence *a = &o->list[call->list].absence;
    for (size_t i = 0; i < a->given_count; i++) {
        if (a->given[i].token == call->call.expected && a->given[i].is_old) {
            sim_violation("L%u: filled by a lease from before a change that was refused",
                          call->list);
        }
    }
}
