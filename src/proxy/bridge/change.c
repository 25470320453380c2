/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests with one key, which is a list: those that change it, and meta commands.
 */
#include <stdio.h>
#include <stdlib.h>

#include "list/core/expiry.h"
#include "proxy/bridge/part.h"
#include "proxy/bridge/text.h"
#include "proxy/lists/reply.h"

/* Items of longer values are counted before memory is taken for their places. */
#define LONG_VALUE_BYTES ((size_t)65536)

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
                                   .cas = r->cas};
}

static void read_request(const struct request *r, struct bridge_request *out)
{
    if (bridge_is_meta(r)) {
        bridge_meta_read(r, out);
    } else {
        classic_read(r, out);
    }
}

/* Where no item is shown, the first one says whether there is a list. */
static enum list_verb list_verb_of(const struct bridge_request *b)
{
    switch (b->verb) {
    case BRIDGE_ADD:
        return LIST_ADD;
    case BRIDGE_DELETE:
        return LIST_DEL;
    case BRIDGE_SET:
        return LIST_SET;
    case BRIDGE_CREATE:
        return LIST_CREATE;
    case BRIDGE_DROP:
        return LIST_DROP;
    case BRIDGE_TOUCH:
        return LIST_TOUCH;
    case BRIDGE_DEBUG:
        return LIST_STAT;
    default:
        return b->wants_value || b->wants_size ? LIST_GET : LIST_RANGE;
    }
}

static bool has_items(enum bridge_verb verb)
{
    return verb <= BRIDGE_CAS;
}

/* Does the verb leave a list as it is when its value has no items? Then only whether there is one
 * matters. */
static bool adds_nothing(enum bridge_verb verb)
{
    return verb == BRIDGE_ADD || verb == BRIDGE_DELETE;
}

static char delimiter_of(const struct list_policy *policy)
{
    return (char)policy->delimiter;
}

/* append with bridge = signed: additions and deletions. */
static bool takes_signs(const struct list_policy *policy, enum bridge_verb verb)
{
    return policy->bridge == BRIDGE_SIGNED && verb == BRIDGE_ADD;
}

static struct signs signs_in(const struct list_policy *policy)
{
    return (struct signs){(char)policy->add_sign, (char)policy->delete_sign};
}

/* --- refusals --- */

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
    char delimiter = delimiter_of(policy), shown[8];
    bool whole;
    size_t count;
    if (!flags_fit(policy, flags)) {
        bridge_refuse(client, r,
                      "CLIENT_ERROR value has flags %u: switch off serialisation and compression "
                      "for lists (bridge_flags_in)",
                      flags);
        return true;
    }
    if (takes_signs(policy, verb)) {
        count = bridge_signed_count(r->data, signs_in(policy), &whole);
    } else {
        count = bridge_count(bridge_text(r->data, delimiter), delimiter, &whole);
    }
    if (!whole && takes_signs(policy, verb)) {
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
    if (r->data.len > LONG_VALUE_BYTES && !call_part_has_room(client->worker, count)) {
        struct slice text = CALL_PART_NO_ROOM;
        bridge_refuse(client, r, "%.*s", (int)text.len - 2, text.p);
        return true;
    }
    return false;
}

static bool refuse_request(struct client *client, const struct request *r,
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
    bool sets_time = b->has_exptime && b->exptime != 0 && has_items(b->verb);
    if (b->verb == BRIDGE_REPLACE || b->verb == BRIDGE_CAS || sets_time ||
        (b->verb == BRIDGE_DROP && b->has_cas)) {
        bridge_refuse(client, r, "CLIENT_ERROR this version cannot do that to a list");
        return true;
    }
    if (b->unknown_flag != 0) {
        bridge_refuse(client, r, "CLIENT_ERROR %.*s of a list has no flag %c (bridge)",
                      SLICE_ARGS(r->verb->text), b->unknown_flag);
        return true;
    }
    return has_items(b->verb) && refuse_value(client, r, policy, b->verb, b->flags);
}

/* --- calls --- */

/* Items with a delimiter between them. */
static size_t set_joined_items(struct call_part *c, const struct request *r)
{
    char delimiter = delimiter_of(c->call.policy);
    struct slice text = bridge_text(r->data, delimiter);
    bool whole;
    size_t count = bridge_count(text, delimiter, &whole);
    call_part_reserve(c, count);
    for (size_t i = 0; i < count; i++) {
        c->items[i] = bridge_next(&text, delimiter);
    }
    return count;
}

/* Items with signs, each of which is an op. */
static size_t set_signed_items(struct call_part *c, const struct request *r)
{
    struct signs signs = signs_in(c->call.policy);
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
    bool is_signed = takes_signs(c->call.policy, verb);
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
    CHECK(len <= LIST_KEY_BYTES_MAX); /* bridge_key_fits */
    return slice_make(memcpy(call_part_more(c)->key, decoded, len), len);
}

void bridge_add_touch(struct call_part *c, int64_t exptime)
{
    struct list_call *touch = &call_part_more(c)->second;
    call_part_fill(c, touch, LIST_TOUCH, c->call.key);
    touch->has_exptime = true;
    touch->exptime = exptime;
    c->left = 2;
    /* A touch changes the version, so the one that is answered is that behind it; but a list that
     * it lets expire is shown once more, as memcached does it. */
    int64_t now_s = c->part.pending->client->worker->now.wall_s;
    bool is_over = exptime < 0 || (exptime > EXPTIME_RELATIVE_MAX_S && exptime <= now_s);
    call_part_more(c)->second_is_first = !is_over;
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

static void start_single(struct pending *p)
{
    struct worker *w = p->client->worker;
    struct bridge_request b;
    read_request(&p->request, &b);
    p->all_started = true;
    struct call_part *c = call_part_new(p, p->request.key);
    call_part_fill(c, &c->call, list_verb_of(&b), key_of(c, &p->request));
    c->call.wants_version = b.wants_version;
    if (has_items(b.verb)) {
        set_items(c, &p->request, b.verb);
    }
    if (b.verb == BRIDGE_READ) {
        add_second(c, &b);
    } else if (b.verb == BRIDGE_TOUCH) {
        c->call.has_exptime = true;
        c->call.exptime = b.exptime;
    }
    metric_inc(&w->metrics, call_part_metric(c->call.verb));
    call_part_submit(c);
}

/* --- answers --- */

static enum bridge_outcome outcome_of(const struct list_call *call, enum bridge_verb verb)
{
    switch (call->status) {
    case LIST_OK:
        return BRIDGE_DONE;
    case LIST_EXISTS:
        return BRIDGE_EXISTS;
    case LIST_MISSING:
        if (adds_nothing(verb) && call->policy->on_missing == ON_MISSING_CREATE) {
            return BRIDGE_DONE;
        }
        return verb < BRIDGE_CAS ? BRIDGE_NOT_STORED : BRIDGE_NOT_FOUND;
    default:
        return BRIDGE_NOT_STORED;
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

bool bridge_failed(struct call_part *c, char line[CALL_PART_LINE_MAX])
{
    char own[32], text[CALL_PART_LINE_MAX];
    const struct pending *p = c->part.pending;
    const struct list_call *call = &c->call;
    if (!list_reply_failed(call)) {
        if (c->more == NULL || c->more->second.owner == NULL ||
            !list_reply_failed(&c->more->second)) {
            return false;
        }
        call = &c->more->second;
    }
    call_part_failure(p->client->worker, call, line);
    /* What a dialect refuses it calls by the list's verb; the client knows its own. */
    int len = snprintf(own, sizeof own, "CLIENT_ERROR %s: ", list_verb_word(call->verb));
    if (strncmp(line, own, (size_t)len) == 0) {
        snprintf(text, sizeof text, "CLIENT_ERROR %.*s: %s", SLICE_ARGS(p->request.verb->text),
                 line + len);
        memcpy(line, text, sizeof text);
    }
    return true;
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
    if (bridge_is_meta(r)) {
        bridge_meta_answer(c, &b, outcome, out);
    } else if (!r->noreply) {
        chain_copy_slice(out, classic_answer(b.verb, outcome));
    }
}

static const struct handler single_handler = {
    .start = start_single, .park = call_part_park, .emit = emit_single, .free = call_part_free};

static enum proxy_metric metric_of(const struct request *r)
{
    return bridge_is_meta(r)               ? METRIC_cmd_meta
           : r->verb->shape == SHAPE_STORE ? METRIC_cmd_set
                                           : METRIC_cmd_other;
}

void bridge_single(struct client *client, const struct request *r, struct block *block,
                   const struct list_policy *policy)
{
    struct bridge_request b;
    read_request(r, &b);
    metric_inc(&client->worker->metrics, metric_of(r));
    if (!refuse_request(client, r, policy, &b)) {
        (void)pending_add(client, &single_handler, r, block);
    }
}
