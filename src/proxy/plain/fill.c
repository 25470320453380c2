/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of one key as operations, but for meta commands: a pure function. */
#include "proto/packet.h"
#include "proxy/plain/operation.h"

enum be_verb operation_verb(enum verb verb)
{
    switch (verb) {
    case VERB_ADD:
        return BE_ADD;
    case VERB_REPLACE:
        return BE_REPLACE;
    case VERB_APPEND:
        return BE_APPEND;
    case VERB_PREPEND:
        return BE_PREPEND;
    case VERB_CAS:
        return BE_CAS;
    case VERB_DELETE:
        return BE_DELETE;
    case VERB_INCR:
        return BE_INCR;
    case VERB_DECR:
        return BE_DECR;
    case VERB_TOUCH:
        return BE_TOUCH;
    default:
        return BE_SET;
    }
}

void operation_fill(const struct request *r, struct be_operation *op)
{
    op->verb = operation_verb(r->verb->verb);
    if (r->verb->shape == SHAPE_STORE || r->verb->shape == SHAPE_TOUCH) {
        op->exptime = operation_exptime(r->exptime);
    }
    if (r->verb->shape == SHAPE_STORE) {
        op->flags = r->flags;
        op->cas = r->cas;
    } else if (r->verb->shape == SHAPE_ARITH) {
        op->delta = r->delta;
    }
}

/* Is there another command for what the request stores than `ms`, the only one that tells the CAS
 * number? Of set, memcached deletes what is there in its own binary protocol, too. */
static bool needs_no_ms(const struct request *r, const struct be_operation *op)
{
    return r->verb->shape == SHAPE_STORE && r->binary.opcode != BINARY_SET &&
           r->binary.opcode != BINARY_SETQ && !op->odd_key &&
           (!op->with_cas || be_is_conditional(op->verb));
}

void operation_fill_binary(const struct request *r, struct be_operation *op)
{
    operation_fill(r, op);
    op->asks_cas = true;
    op->odd_key = r->binary.odd_key;
    op->cas = r->cas;
    op->with_cas = r->cas != 0;
    op->cas_optional = needs_no_ms(r, op);
    switch (r->verb->shape) {
    case SHAPE_KEYS:
        op->verb = BE_FETCH;
        break;
    case SHAPE_GAT:
        op->verb = BE_GAT;
        op->exptime = operation_exptime(r->exptime);
        break;
    case SHAPE_DELETE:
        op->verb = r->cas != 0 ? BE_CAS_DELETE : BE_DELETE;
        break;
    case SHAPE_ARITH:
        op->creates = r->binary.creates;
        op->initial = r->binary.initial;
        op->exptime = operation_exptime(r->exptime);
        break;
    default:
        break;
    }
}
