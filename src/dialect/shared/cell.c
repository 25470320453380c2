/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/cell.h"

static const char *template_of(const struct list_policy *policy, enum cell_role role)
{
    switch (role) {
    case CELL_KEY:
        return "%s";
    case CELL_ADDS:
        return policy->add_name;
    case CELL_DELETES:
        return policy->delete_name;
    case CELL_A:
        return policy->a_name;
    case CELL_B:
        return policy->b_name;
    case CELL_ACTIVE:
        return policy->active_name;
    case CELL_SUBLIST:
        return policy->sublist_name;
    case CELL_SEQ:
        return policy->seq_name;
    case CELL_SLOT:
        return policy->slot_name;
    }
    CHECK(!"a role without a name");
    return NULL;
}

bool cell_has_own_key(const struct list *list, enum cell_role role)
{
    return !cell_is_numbered(role) && strcmp(template_of(list->policy, role), "%s") == 0;
}

uint8_t cell_name(const struct list *list, enum cell_role role, uint32_t number,
                  char out[KEY_BYTES_MAX])
{
    const char *template = template_of(list->policy, role);
    const char *rest = strstr(template, "%s");
    CHECK(rest != NULL);
    size_t before = (size_t)(rest - template), after = strlen(rest += 2);
    char digits[24];
    size_t digit_count = cell_is_numbered(role) ? format_u64(digits, number) : 0;
    size_t len = before + list->key_len + after + digit_count;
    CHECK(len <= KEY_BYTES_MAX);
    memcpy(out, template, before);
    memcpy(out + before, list->key, list->key_len);
    memcpy(out + before + list->key_len, rest, after);
    memcpy(out + len - digit_count, digits, digit_count);
    return (uint8_t)len;
}

void cell_forget(struct cell *cell)
{
    block_unref(&cell->block);
    cell->value = SLICE_NONE;
    cell->state = CELL_UNREAD;
}

void cell_take(struct cell *cell, const struct be_reply *reply)
{
    cell_forget(cell);
    cell->state = CELL_MISSING;
    cell->proved = cell->foreign = false;
    cell->flags = 0;
    cell->server = reply->caps;
    cell->ttl_s = -1;
    if (reply->status == BE_HIT) {
        cell->state = CELL_THERE;
        cell->block = reply->block != NULL ? block_ref(reply->block) : NULL;
        cell->value = reply->value;
        cell->cas = reply->cas;
        cell->epoch = reply->epoch;
        cell->flags = reply->flags;
        cell->ttl_s = reply->ttl_s;
    }
}

static struct list_request *request_for(struct engine *e, struct op *op, const struct cell *cell,
                                        enum be_verb verb)
{
    struct list_request *r = request_new(e, op->list, verb);
    request_set_key(r, cell_name(op->list, cell->role, cell->number, r->key));
    return r;
}

void cell_append_blind(struct engine *e, struct op *op, const struct cell *cell, enum be_verb verb,
                       struct block *value, uint64_t tag)
{
    struct list_request *r = request_for(e, op, cell, verb);
    r->be.durable = false;
    op_send(e, op, r, value, tag);
}

void cell_send(struct engine *e, struct op *op, const struct cell *cell, enum be_verb verb,
               struct block *value, uint64_t tag)
{
    op_send(e, op, request_for(e, op, cell, verb), value, tag);
}

static void write_cell(struct engine *e, struct op *op, const struct cell *cell,
                       const struct life *life, struct slice source, struct block *value,
                       uint64_t tag)
{
    struct list_request *r = request_for(e, op, cell, cell->state == CELL_THERE ? BE_CAS : BE_ADD);
    if (r->be.verb == BE_CAS) {
        r->be.cas = cell->cas;
        r->be.epoch = cell->epoch;
    }
    r->be.flags = cell->flags;
    expiry_send(e, op, op->list, r, life, source, value, tag);
}

void cell_write_for(struct engine *e, struct op *op, const struct cell *cell,
                    const struct life *life, struct block *value, uint64_t tag)
{
    write_cell(e, op, cell, life, SLICE_NONE, value, tag);
}

void cell_write_as(struct engine *e, struct op *op, const struct cell *cell,
                   const struct cell *other, struct block *value, uint64_t tag)
{
    char name[KEY_BYTES_MAX];
    struct slice source = slice_make(name, cell_name(op->list, other->role, other->number, name));
    struct life life = life_kept(other->state == CELL_THERE ? other->ttl_s : -1);
    write_cell(e, op, cell, &life, other == cell ? SLICE_NONE : source, value, tag);
}

void cell_write(struct engine *e, struct op *op, const struct cell *cell, struct block *value,
                uint64_t tag)
{
    bool there = cell->state == CELL_THERE;
    struct life life = there ? life_kept(cell->ttl_s) : life_new(op->list->policy);
    cell_write_for(e, op, cell, &life, value, tag);
}

void cell_remove(struct engine *e, struct op *op, const struct cell *cell)
{
    CHECK_SLOW(cell->state == CELL_THERE);
    struct list_request *r = request_for(e, op, cell, BE_CAS_DELETE);
    r->be.cas = cell->cas;
    r->be.epoch = cell->epoch;
    op_send(e, op, r, NULL, 0);
}

void cell_incr(struct engine *e, struct op *op, const struct cell *cell, uint64_t delta,
               uint64_t tag)
{
    struct list_request *r = request_for(e, op, cell, BE_INCR);
    r->be.delta = delta;
    op_send(e, op, r, NULL, tag);
}
