/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/part.h"

static const char *template_of(const struct list_policy *policy, enum part_role role)
{
    switch (role) {
    case PART_KEY:
        return "%s";
    case PART_ADDS:
        return policy->add_name;
    case PART_DELETES:
        return policy->delete_name;
    case PART_A:
        return policy->a_name;
    case PART_B:
        return policy->b_name;
    case PART_ACTIVE:
        return policy->active_name;
    case PART_SUBLIST:
        return policy->sublist_name;
    case PART_SEQ:
        return policy->seq_name;
    case PART_SLOT:
        return policy->slot_name;
    }
    CHECK(!"a role without a name");
    return NULL;
}

bool part_has_own_key(const struct list *list, enum part_role role)
{
    return !part_is_numbered(role) && strcmp(template_of(list->policy, role), "%s") == 0;
}

uint8_t part_name(const struct list *list, enum part_role role, uint32_t number,
                  char out[KEY_BYTES_MAX])
{
    const char *template = template_of(list->policy, role);
    const char *rest = strstr(template, "%s");
    CHECK(rest != NULL);
    size_t before = (size_t)(rest - template), after = strlen(rest += 2);
    char digits[24];
    size_t digit_count = part_is_numbered(role) ? format_u64(digits, number) : 0;
    size_t len = before + list->key_len + after + digit_count;
    CHECK(len <= KEY_BYTES_MAX);
    memcpy(out, template, before);
    memcpy(out + before, list->key, list->key_len);
    memcpy(out + before + list->key_len, rest, after);
    memcpy(out + len - digit_count, digits, digit_count);
    return (uint8_t)len;
}

void part_forget(struct part *part)
{
    block_unref(&part->block);
    part->value = SLICE_NONE;
    part->state = PART_UNREAD;
}

void part_take(struct part *part, const struct be_reply *reply)
{
    part_forget(part);
    part->state = PART_MISSING;
    part->proved = part->foreign = false;
    part->flags = 0;
    part->server = reply->caps;
    part->ttl_s = -1;
    if (reply->status == BE_HIT) {
        part->state = PART_THERE;
        part->block = reply->block != NULL ? block_ref(reply->block) : NULL;
        part->value = reply->value;
        part->cas = reply->cas;
        part->epoch = reply->epoch;
        part->flags = reply->flags;
        part->ttl_s = reply->ttl_s;
    }
}

static struct be_request *request_for(struct engine *e, struct op *op, const struct part *part,
                                      enum be_verb verb)
{
    struct be_request *r = request_new(e, op->list, verb);
    r->key_len = r->placement_len = part_name(op->list, part->role, part->number, r->key);
    return r;
}

void part_append_blind(struct engine *e, struct op *op, const struct part *part, enum be_verb verb,
                       struct block *value, uint64_t tag)
{
    struct be_request *r = request_for(e, op, part, verb);
    r->durable = false;
    op_send(e, op, r, value, tag);
}

void part_send(struct engine *e, struct op *op, const struct part *part, enum be_verb verb,
               struct block *value, uint64_t tag)
{
    op_send(e, op, request_for(e, op, part, verb), value, tag);
}

static void write_part(struct engine *e, struct op *op, const struct part *part,
                       const struct life *life, struct slice source, struct block *value,
                       uint64_t tag)
{
    struct be_request *r = request_for(e, op, part, part->state == PART_THERE ? BE_CAS : BE_ADD);
    r->cas = part->cas;
    r->epoch = part->epoch;
    r->flags = part->flags;
    expiry_send(e, op, op->list, r, life, source, value, tag);
}

void part_write_for(struct engine *e, struct op *op, const struct part *part,
                    const struct life *life, struct block *value, uint64_t tag)
{
    write_part(e, op, part, life, SLICE_NONE, value, tag);
}

void part_write_as(struct engine *e, struct op *op, const struct part *part,
                   const struct part *other, struct block *value, uint64_t tag)
{
    char name[KEY_BYTES_MAX];
    struct slice source = slice_make(name, part_name(op->list, other->role, other->number, name));
    struct life life = life_kept(other->state == PART_THERE ? other->ttl_s : -1);
    write_part(e, op, part, &life, other == part ? SLICE_NONE : source, value, tag);
}

void part_write(struct engine *e, struct op *op, const struct part *part, struct block *value,
                uint64_t tag)
{
    bool there = part->state == PART_THERE;
    struct life life = there ? life_kept(part->ttl_s) : life_new(op->list->policy);
    part_write_for(e, op, part, &life, value, tag);
}

void part_remove(struct engine *e, struct op *op, const struct part *part)
{
    CHECK_SLOW(part->state == PART_THERE);
    struct be_request *r = request_for(e, op, part, BE_CAS_DELETE);
    r->cas = part->cas;
    r->epoch = part->epoch;
    op_send(e, op, r, NULL, 0);
}

void part_incr(struct engine *e, struct op *op, const struct part *part, uint64_t delta,
               uint64_t tag)
{
    struct be_request *r = request_for(e, op, part, BE_INCR);
    r->delta = delta;
    op_send(e, op, r, NULL, tag);
}
