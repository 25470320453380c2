/* SPDX-License-Identifier: BSD-3-Clause */
/* What operations send. */
#include "list/core/engine_state.h"
#include "list/format/layout.h"

static struct list_request *head_request_of(struct engine *e, const struct list *list,
                                            enum be_verb verb)
{
    struct list_request *r = request_new(e, list, verb);
    request_set_key(r, head_key(r->key, list_key(list)));
    r->appended_bytes = list->appended_total;
    return r;
}

static struct list_request *head_request(struct engine *e, struct op *op, enum be_verb verb)
{
    return head_request_of(e, op->list, verb);
}

static struct list_request *sublist_request(struct engine *e, struct op *op, enum be_verb verb,
                                            const struct name *name, uint32_t number)
{
    struct list_request *r = request_new(e, op->list, verb);
    request_set_key(r, sublist_key(r->key, list_key(op->list), name, number));
    if (op->list->policy->placement != PLACEMENT_SPREAD) {
        r->placement_len = (uint8_t)(op->list->key_len + 1);
    }
    return r;
}

void emit_get(struct engine *e, struct op *op, uint64_t tag)
{
    emit_get_of(e, op, op->list, tag);
}

static struct list_request *head_read_of(struct engine *e, const struct list *list)
{
    struct list_request *r = head_request_of(e, list, BE_GET);
    metric_inc(e->metrics, METRIC_list_head_reads);
    /* Its operation keeps it until the answer is there. */
    r->list = (struct list *)list;
    return r;
}

void emit_get_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    op_send(e, op, head_read_of(e, list), NULL, tag);
}

void emit_get_raw_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    struct list_request *r = head_read_of(e, list);
    r->is_raw = true;
    op_send(e, op, r, NULL, tag);
}

void emit_get_unread_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    metric_inc(e->metrics, METRIC_list_head_reads);
    op_send(e, op, head_request_of(e, list, BE_GET), NULL, tag);
}

void emit_get_again(struct engine *e, struct op *op, const struct list *list, uint64_t tag,
                    uint8_t rounds)
{
    struct list_request *r = head_read_of(e, list);
    r->rounds = rounds;
    op_prepare(op, r, NULL, tag);
    op->outstanding--; /* as one answer it counts already */
    op->due--;
    request_send(e, r);
}

void emit_size(struct engine *e, struct op *op, uint64_t tag)
{
    emit_size_of(e, op, op->list, tag);
}

void emit_size_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    op_send(e, op, head_request_of(e, list, BE_SIZE), NULL, tag);
}

void emit_probe(struct engine *e, struct op *op, uint64_t tag)
{
    op_send(e, op, head_request(e, op, BE_PROBE), NULL, tag);
}

void emit_append(struct engine *e, struct op *op, struct block *value, uint64_t tag)
{
    emit_append_to(e, op, op->list, value, tag);
}

static void send_append(struct engine *e, struct op *op, struct list *list, bool is_durable,
                        struct block *value, uint64_t tag)
{
    struct list_request *r = head_request_of(e, list, BE_APPEND);
    r->be.durable = is_durable;
    r->needs_list = !is_durable && list->policy->on_missing == ON_MISSING_REFUSE;
    metric_inc(e->metrics, METRIC_list_appends);
    op_send(e, op, r, value, tag);
    list->appended_bytes += value->used;
    list->appended_total += value->used;
}

void emit_append_blind(struct engine *e, struct op *op, struct block *value, uint64_t tag)
{
    send_append(e, op, op->list, false, value, tag);
}

void emit_append_to(struct engine *e, struct op *op, struct list *list, struct block *value,
                    uint64_t tag)
{
    send_append(e, op, list, true, value, tag);
}

/* Takes over the value. */
static void send_cas_to(struct engine *e, struct op *op, struct list *list, const struct head *read,
                        struct block *value, uint64_t tag)
{
    struct list_request *r = head_request_of(e, list, BE_CAS);
    struct life life = life_kept(read->ttl_s);
    r->be.cas = read->cas;
    r->be.epoch = read->epoch;
    r->be.flags = read->flags;
    expiry_send(e, op, list, r, &life, SLICE_NONE, value, tag);
    block_unref(&value);
}

void emit_cas_appending(struct engine *e, struct op *op, struct list *list, const struct head *read,
                        const struct block *entries, uint64_t tag)
{
    struct slice added = slice_make(entries->data, entries->used);
    send_cas_to(e, op, list, read, head_with_entries(read, added), tag);
}

void emit_cas_deciding(struct engine *e, struct op *op, struct list *list, const struct head *read,
                       const struct block *decisions, uint64_t tag)
{
    struct slice entries = slice_make(decisions->data, decisions->used);
    send_cas_to(e, op, list, read, layout_decided(read, list_key(list), entries), tag);
}

void emit_add_head_to(struct engine *e, struct op *op, struct list *list, const struct life *life,
                      struct block *value, uint64_t tag)
{
    expiry_send(e, op, list, head_request_of(e, list, BE_ADD), life, SLICE_NONE, value, tag);
}

/* The list is not looked at again before its first blind change. */
static void note_life(const struct engine *e, struct list *list, const struct life *life)
{
    list->expires_us = mono_us_in(e, life->exptime > 0 ? life->exptime : -1);
}

void emit_add_head(struct engine *e, struct op *op, struct block *value, uint64_t tag)
{
    struct life life = life_new(op->list->policy);
    note_life(e, op->list, &life);
    emit_add_head_for(e, op, &life, value, tag);
}

void emit_cas_for(struct engine *e, struct op *op, const struct head *read, const struct life *life,
                  struct block *value, uint64_t tag)
{
    struct list_request *r = head_request(e, op, BE_CAS);
    r->be.cas = read->cas;
    r->be.epoch = read->epoch;
    r->be.flags = read->flags;
    expiry_send(e, op, op->list, r, life, SLICE_NONE, value, tag);
}

void emit_cas(struct engine *e, struct op *op, const struct head *read, struct block *value,
              uint64_t tag)
{
    /* That of a missing list is its lease's. */
    struct life life =
        read->marks.absent ? life_kept(read->ttl_s) : life_renewed(op->list->policy, read->ttl_s);
    life.until_s = read->marks.sublists_until_s;
    if (read->ttl_s >= 0 && read->ttl_s < (int64_t)life.least_s) {
        op->list->expires_us = mono_us_in(e, life.least_s);
    }
    emit_cas_for(e, op, read, &life, value, tag);
}

void emit_cas_new(struct engine *e, struct op *op, const struct head *read, struct block *value,
                  uint64_t tag)
{
    struct life life = life_filling(op->list->policy, read);
    note_life(e, op->list, &life);
    emit_cas_for(e, op, read, &life, value, tag);
}

void emit_cas_delete(struct engine *e, struct op *op, const struct head *read, uint64_t tag)
{
    struct list_request *r = head_request(e, op, BE_CAS_DELETE);
    r->be.cas = read->cas;
    r->be.epoch = read->epoch;
    op_send(e, op, r, NULL, tag);
}

void emit_add_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                      int32_t exptime, struct block *value, uint64_t tag)
{
    struct list_request *r = sublist_request(e, op, BE_ADD, name, number);
    r->be.exptime = exptime;
    op_send(e, op, r, value, tag);
}

void emit_delete_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                         uint64_t tag)
{
    op_send(e, op, sublist_request(e, op, BE_DELETE, name, number), NULL, tag);
}

void emit_probe_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                        uint64_t tag)
{
    op_send(e, op, sublist_request(e, op, BE_PROBE, name, number), NULL, tag);
}
