/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/bridge/bridge.h"

#include <stdio.h>
#include <stdlib.h>

#include "dialect/dialects.h"
#include "list/core/expiry.h"
#include "proxy/bridge/part.h"
#include "proxy/bridge/text.h"
#include "proxy/lists/reply.h"

/* ---- what a bridge does not do, and why ----
 *
 * The data block of a refused request was taken with it.
 */

/* Items of longer values are counted before memory is taken for their places. */
#define LONG_VALUE_BYTES ((size_t)65536)

static bool flags_fit(const struct list_policy *policy, uint32_t flags)
{
    for (uint32_t i = 0; i < policy->bridge_flags_in.count; i++) {
        if (policy->bridge_flags_in.flags[i] == flags) {
            return true;
        }
    }
    return false;
}

/* Is the value no text of items? Its data block was taken with it. */
static bool refuse_value(struct client *client, const struct request *r,
                         const struct list_policy *policy, enum bridge_verb verb, uint32_t flags)
{
    char delimiter = bridge_delimiter(policy), shown[8];
    bool whole;
    size_t count;
    if (!flags_fit(policy, flags)) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR value has flags %u: switch off serialisation and compression "
                      "for lists (bridge_flags_in)",
                      flags);
        return true;
    }
    if (bridge_takes_signs(policy, verb)) {
        count = bridge_signed_count(r->data, bridge_signs(policy), &whole);
    } else {
        count = bridge_joined_count(r->data, delimiter, &whole);
    }
    if (!whole && bridge_takes_signs(policy, verb)) {
        bridge_refuse(
            client, r,
            "CLIENT_ERROR value holds no signed items, each with a sign in front: %cadd%cdelete "
            "(bridge = signed)",
            policy->add_sign, policy->delete_sign);
        return true;
    }
    if (!whole) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR value holds an empty item: items are joined by one '%s'",
                      slice_escape(slice_make(&delimiter, 1), shown, sizeof shown));
        return true;
    }
    if (r->data.len > LONG_VALUE_BYTES && !call_part_has_room(client->worker, count, 0)) {
        struct slice text = CALL_PART_NO_ROOM;
        bridge_refuse(client, r, "%.*s", (int)text.len - 2, text.p);
        return true;
    }
    return false;
}

/* Lists of several items have no place where a condition could be looked at in the step of the
 * change, nor one for a time to live. */
static bool refuse_exactness(struct client *client, const struct request *r,
                             const struct list_policy *policy, const struct bridge_request *b)
{
    bool native = policy->dialect == DIALECT_NATIVE, one_item = dialects_one_item(policy);
    bool exact = b->verb == BRIDGE_REPLACE || b->verb == BRIDGE_CAS;
    bool conditional = exact || b->verb == BRIDGE_CREATE;
    if (exact && !one_item) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s: lists of several items have no such step (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    if (conditional && b->has_exptime && bridge_is_over(b)) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s: EXPTIME is over already: delete removes a list",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    if ((b->verb == BRIDGE_SET || b->verb == BRIDGE_CREATE) && b->exptime > 0 && !one_item) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s: lists of several items have no EXPTIME (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    /* An empty list would be left of it, and a purge takes several steps. */
    bool drops_at_once = native && policy->on_missing == ON_MISSING_CREATE &&
                         policy->bridge_delete == BRIDGE_DELETE_DROP;
    if (b->verb == BRIDGE_DROP && b->has_cas && !drops_at_once) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s of this list has no flag C (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    return false;
}

/* Has the request, which was read into b, been refused? */
static bool refuses(struct client *client, const struct request *r,
                    const struct list_policy *policy, const struct bridge_request *b)
{
    if (b->verb == BRIDGE_NONE) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s is not for lists, and this key is one (bridge)",
                      SLICE_ARGS(r->verb->text));
        return true;
    }
    if (policy->bridge == BRIDGE_SIGNED && b->verb == BRIDGE_DELETE) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR %.*s is not for these lists: append %cITEM to delete (bridge = "
                      "signed)",
                      SLICE_ARGS(r->verb->text), policy->delete_sign);
        return true;
    }
    if (b->unknown_flag != 0) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s of a list has no flag %c (bridge)",
                      SLICE_ARGS(r->verb->text), b->unknown_flag);
        return true;
    }
    if (refuse_exactness(client, r, policy, b)) {
        return true;
    }
    return bridge_has_items(b->verb) && refuse_value(client, r, policy, b->verb, b->flags);
}

/* ---- requests with one key: those that change the list, and meta commands ---- */

static void classic_read(const struct request *r, struct bridge_request *out)
{
    static const enum bridge_verb verbs[] = {
        [VERB_SET] = BRIDGE_SET,         [VERB_ADD] = BRIDGE_CREATE,
        [VERB_REPLACE] = BRIDGE_REPLACE, [VERB_APPEND] = BRIDGE_ADD,
        [VERB_PREPEND] = BRIDGE_DELETE,  [VERB_CAS] = BRIDGE_CAS,
        [VERB_DELETE] = BRIDGE_DROP,     [VERB_TOUCH] = BRIDGE_TOUCH,
        [VERB_INCR] = BRIDGE_NONE,       [VERB_DECR] = BRIDGE_NONE,
    };
    enum verb verb = r->verb->verb;
    *out = (struct bridge_request){.verb = verbs[verb],
                                   .has_exptime = true,
                                   .exptime = r->exptime,
                                   .flags = r->flags,
                                   .has_cas = r->cas != 0 && verb == VERB_DELETE,
                                   .cas = r->cas};
    /* Which only the binary protocol can say. */
    bool extends = verb == VERB_APPEND || verb == VERB_PREPEND;
    out->unknown_flag = extends && r->cas != 0 ? 'C' : 0;
}

static void read_request(const struct request *r, struct bridge_request *out)
{
    if (request_is_meta(r)) {
        bridge_meta_read(r, out);
    } else {
        classic_read(r, out);
    }
}

/* The list verb that does it. An mg that shows no items reads the first one, which says whether
 * there is a list. */
static enum list_verb list_verb_of(const struct bridge_request *b, const struct list_policy *policy)
{
    bool native = policy->dialect == DIALECT_NATIVE;
    switch (b->verb) {
    case BRIDGE_ADD:
        return LIST_ADD;
    case BRIDGE_DELETE:
        return LIST_DEL;
    case BRIDGE_SET:
        return bridge_is_over(b) ? LIST_DROP : native ? LIST_PUT : LIST_SET;
    case BRIDGE_CREATE:
        return native ? LIST_PUT : dialects_one_item(policy) ? LIST_SET : LIST_CREATE;
    case BRIDGE_REPLACE:
    case BRIDGE_CAS:
        return native ? LIST_PUT : LIST_SET;
    case BRIDGE_DROP:
        if (policy->bridge_delete == BRIDGE_DELETE_PURGE) {
            return LIST_PURGE;
        }
        /* An ldrop does not look whether there is anything: it appends, or a dialect looks. */
        return b->has_cas || (native && policy->on_missing == ON_MISSING_CREATE) ? LIST_PUT
                                                                                 : LIST_DROP;
    case BRIDGE_TOUCH:
        return LIST_TOUCH;
    case BRIDGE_DEBUG:
        return LIST_STAT;
    default:
        return b->wants_value || b->wants_size ? LIST_GET : LIST_RANGE;
    }
}

/* Does the verb leave a list as it is when its value has no items? Then only whether there is one
 * matters. */
static bool adds_nothing(enum bridge_verb verb)
{
    return verb == BRIDGE_ADD || verb == BRIDGE_DELETE;
}

/* ---- their calls ---- */

/* Items with a delimiter between them. */
static size_t set_joined_items(struct call_part *c, const struct request *r)
{
    char delimiter = bridge_delimiter(c->call.policy);
    struct item_block block;
    bool whole;
    size_t count = bridge_joined_count(r->data, delimiter, &whole);
    call_part_reserve(c, count);
    item_block_begin(&block, r->data, delimiter);
    for (size_t i = 0; i < count; i++) {
        CHECK(item_block_next(&block, &c->items[i]));
    }
    return count;
}

/* Items with signs, each of which is an op. */
static size_t set_signed_items(struct call_part *c, const struct request *r)
{
    struct signs signs = bridge_signs(c->call.policy);
    struct slice text = r->data;
    bool whole;
    size_t count = bridge_signed_count(text, signs, &whole);
    char *ops = malloc(count + 1);
    CHECK(ops != NULL);
    call_part_reserve(c, count);
    for (size_t i = 0; i < count; i++) {
        enum entry_op op;
        CHECK(signed_next(&text, signs, &op, &c->items[i]));
        ops[i] = (char)op;
    }
    c->call.ops = call_part_more(c)->ops = ops;
    return count;
}

static void set_items(struct call_part *c, const struct request *r, enum bridge_verb verb)
{
    bool is_signed = bridge_takes_signs(c->call.policy, verb);
    size_t count = is_signed ? set_signed_items(c, r) : set_joined_items(c, r);
    call_part_set_items(c, count);
    if (count == 0 && adds_nothing(verb)) {
        c->call.verb = LIST_RANGE;
    }
}

/* The list's key, as the request has it or decoded. */
static struct slice key_of(struct call_part *c, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    if (!r->base64) {
        return r->key;
    }
    size_t len = key_decode_base64(r->key, decoded);
    CHECK(len <= LIST_KEY_BYTES_MAX); /* list_key_fault */
    return slice_make(memcpy(call_part_more(c)->key, decoded, len), len);
}

/* Of mg. With both T and t what is shown follows from T. */
static void add_second(struct call_part *c, const struct bridge_request *b)
{
    if (b->has_exptime) {
        bridge_add_touch(c, b->exptime);
    } else if (b->wants_ttl) {
        call_part_fill(c, &call_part_more(c)->second, LIST_TTL, c->call.key);
        c->left = 2;
    }
}

/* What has to be so. */
static enum list_condition condition_of(const struct bridge_request *b)
{
    static const enum list_condition conditions[] = {
        [BRIDGE_SET] = LIST_ALWAYS,         [BRIDGE_CREATE] = LIST_IF_MISSING,
        [BRIDGE_REPLACE] = LIST_IF_PRESENT, [BRIDGE_CAS] = LIST_IF_VERSION,
        [BRIDGE_DROP] = LIST_IF_PRESENT,
    };
    return b->has_cas ? LIST_IF_VERSION : conditions[b->verb];
}

/* The time to live: stock clients always send one, so 0 is the prefix's own. */
static void fill_put(struct call_part *c, const struct bridge_request *b)
{
    struct list_call *call = &c->call;
    const struct worker *w = c->part.pending->client->worker;
    int64_t ttl_s = call->policy->ttl_s;
    if (ttl_s > EXPTIME_RELATIVE_MAX_S) {
        ttl_s += w->now.wall_s;
    }
    call->condition = condition_of(b);
    call->expected = b->cas;
    call->has_exptime = true;
    call->exptime = b->exptime != 0 ? b->exptime : ttl_s;
}

/* Does the call have long_timeout_ms? A content that is written in one step does not. */
static bool takes_long(const struct call_part *c)
{
    size_t bytes = c->part.pending->request.data.len;
    bool in_one_step =
        c->call.verb == LIST_PUT && bytes <= c->call.policy->log_hard_limit_bytes / 2;
    return list_verb_has(c->call.verb, LIST_LONG) && !in_one_step;
}

static void start_single(struct pending *p)
{
    struct worker *w = p->client->worker;
    struct bridge_request b;
    read_request(&p->request, &b);
    p->all_started = true;
    struct call_part *c = call_part_new(p, p->request.key);
    call_part_fill(c, &c->call, LIST_GET, key_of(c, &p->request));
    c->call.verb = list_verb_of(&b, c->call.policy);
    c->call.wants_version = b.wants_version;
    if (bridge_has_items(b.verb) && c->call.verb != LIST_DROP) {
        set_items(c, &p->request, b.verb);
    }
    if (c->call.verb == LIST_PUT) {
        fill_put(c, &b);
    } else if (c->call.verb == LIST_SET) {
        c->call.condition = condition_of(&b);
        c->call.expected = b.cas;
        c->call.has_exptime = b.exptime > 0; /* 0 leaves a list the time that it has */
        c->call.exptime = b.exptime;
    } else if (b.verb == BRIDGE_DROP && c->call.policy->on_missing == ON_MISSING_CREATE) {
        c->call.condition = condition_of(&b);
    } else if (b.verb == BRIDGE_READ) {
        add_second(c, &b);
    } else if (b.verb == BRIDGE_TOUCH) {
        c->call.has_exptime = true;
        c->call.exptime = b.exptime;
    }
    if (takes_long(c)) {
        c->call.deadline_us = pending_since_us(p) + (uint64_t)w->config->long_timeout_ms * 1000;
    }
    metric_inc(&w->metrics, call_part_metric(c->call.verb));
    call_part_submit(c);
}

/* ---- their answers ---- */

static enum bridge_outcome outcome_of(const struct list_call *call, enum bridge_verb verb)
{
    switch (call->status) {
    case LIST_OK:
        return BRIDGE_DONE;
    case LIST_EXISTS:
        return BRIDGE_EXISTS;
    case LIST_MISSING:
        if (verb == BRIDGE_SET) {
            return BRIDGE_DONE; /* what was to be gone at once was not there */
        }
        if (adds_nothing(verb) && call->policy->on_missing == ON_MISSING_CREATE) {
            return BRIDGE_DONE;
        }
        return verb < BRIDGE_CAS ? BRIDGE_NOT_STORED : BRIDGE_NOT_FOUND;
    default:
        return verb == BRIDGE_DROP ? BRIDGE_NOT_FOUND : BRIDGE_NOT_STORED;
    }
}

static struct slice classic_answer(enum bridge_verb verb, enum bridge_outcome outcome)
{
    switch (outcome) {
    case BRIDGE_NOT_STORED:
        return SLICE_LIT("NOT_STORED\r\n");
    case BRIDGE_EXISTS:
        return SLICE_LIT("EXISTS\r\n");
    case BRIDGE_NOT_FOUND:
        return SLICE_LIT("NOT_FOUND\r\n");
    default:
        break;
    }
    return verb == BRIDGE_DROP    ? SLICE_LIT("DELETED\r\n")
           : verb == BRIDGE_TOUCH ? SLICE_LIT("TOUCHED\r\n")
                                  : SLICE_LIT("STORED\r\n");
}

static void emit_single(struct part *part, struct chain *out)
{
    struct call_part *c = call_part_of(part);
    struct pending *p = part->pending;
    const struct request *r = &p->request;
    struct bridge_request b;
    char line[CALL_PART_LINE_MAX];
    if (bridge_failed(c, line)) {
        pending_fail(p, line);
        return;
    }
    read_request(r, &b);
    enum bridge_outcome outcome = outcome_of(&c->call, b.verb);
    if (request_is_meta(r)) {
        bridge_meta_answer(c, &b, outcome, out);
    } else if (!r->noreply) {
        pending_emit_line(p, classic_answer(b.verb, outcome), out);
    }
}

static const struct handler single_handler = {
    .kinds = ABOUT_LISTS, .start = start_single, .emit = emit_single};

/* Queues a request with one key, which is a list. */
static void take_single(struct client *client, const struct request *r, struct block *block,
                        const struct list_policy *policy)
{
    struct bridge_request b;
    read_request(r, &b);
    if (refuses(client, r, policy, &b)) {
        metric_inc(&client->worker->metrics, pending_metric(r));
        return;
    }
    struct pending *p = pending_add(client, &single_handler, r, block);
    if (list_verb_of(&b, policy) == LIST_PURGE) {
        p->turn = TURN_ALONE; /* it deletes plain items */
    }
    pending_count(p, pending_metric(r), 1);
}

/* ---- which requests ---- */

/* Has the request been refused for a key that no list can have? */
static bool refuses_key(struct client *client, const struct request *r, struct slice key)
{
    struct slice fault = list_key_fault(key);
    if (fault.len > 0) {
        bridge_refuse(client, r, "%.*s", (int)fault.len - 2, fault.p);
    }
    return fault.len > 0;
}

static bool take_keys(struct client *client, const struct request *r, struct block *block)
{
    struct slice keys = r->args, key;
    bool any = false;
    while (item_next(&keys, &key)) {
        if (bridge_policy(client->worker->config, key) != NULL) {
            any = true;
            if (refuses_key(client, r, key)) {
                return true;
            }
        }
    }
    if (any) {
        bridge_keys(client, r, block);
    }
    return any;
}

/* The key of a request that has one; decoded has KEY_BYTES_MAX bytes. */
static struct slice only_key(const struct request *r, char *decoded)
{
    return r->base64 ? slice_make(decoded, key_decode_base64(r->key, decoded)) : r->key;
}

bool bridge_take(struct client *client, const struct request *r, struct block *block)
{
    char decoded[KEY_BYTES_MAX];
    bool names_many = r->verb->shape == SHAPE_KEYS || r->verb->shape == SHAPE_GAT;
    if (names_many && !client_is_binary(client)) {
        return take_keys(client, r, block);
    }
    struct slice key = only_key(r, decoded);
    const struct list_policy *policy = bridge_policy(client->worker->config, key);
    if (policy == NULL) {
        return false;
    }
    if (refuses_key(client, r, key)) {
        return true;
    }
    if (names_many) {
        bridge_keys(client, r, block);
    } else {
        take_single(client, r, block, policy);
    }
    return true;
}

bool bridge_take_large(struct client *client, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    const struct config *config = client->worker->config;
    if (!config->has_bridge || bridge_policy(config, only_key(r, decoded)) == NULL) {
        return false;
    }
    bridge_refuse(
        client, r,
        "SERVER_ERROR object too large for cache: above max_value_bytes (%u), the list is "
        "as it was",
        config->max_value_bytes);
    return true;
}
