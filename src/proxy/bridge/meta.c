/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers to mg, ms, md and me on lists, as memcached 1.6.18 gives them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "list/core/expiry.h"
#include "proxy/bridge/part.h"

static void add_number(struct chain *out, char flag, uint64_t number)
{
    char text[32];
    int len = snprintf(text, sizeof text, " %c%" PRIu64, flag, number);
    chain_copy(out, text, (size_t)len);
}

static void add_key(const struct request *r, struct chain *out)
{
    chain_copy_slice(out, SLICE_LIT(" k"));
    chain_copy_slice(out, r->key);
    if (r->base64) {
        chain_copy_slice(out, SLICE_LIT(" b"));
    }
}

/* Seconds until the list expires, negative when it has by this very request; -1 with *never. */
static int64_t ttl_of(const struct call_part *c, bool *never)
{
    const struct list_call *second = &c->more->second;
    int64_t now_s = c->part.pending->client->worker->now.wall_s;
    *never = second->verb == LIST_TTL ? second->stat.ttl_s < 0 : second->exptime == 0;
    if (*never) {
        return -1;
    }
    if (second->verb == LIST_TTL) {
        return second->stat.ttl_s;
    }
    return second->exptime <= EXPTIME_RELATIVE_MAX_S ? second->exptime : second->exptime - now_s;
}

static void add_ttl(const struct call_part *c, struct chain *out)
{
    bool never;
    int64_t ttl_s = ttl_of(c, &never);
    if (never) {
        chain_copy_slice(out, SLICE_LIT(" t-1"));
    } else {
        add_number(out, 't', (uint32_t)ttl_s); /* of 32 bits without a sign, as memcached's */
    }
}

/* Those that say something of the list are not there when there is none, as with memcached, but for
 * the c of ms. */
static void add_flags(const struct call_part *c, bool found, struct chain *out)
{
    const struct request *r = &c->part.pending->request;
    bool is_read = r->verb->verb == VERB_MG;
    struct slice args = r->args, token;
    if (r->verb->verb == VERB_MS) {
        (void)token_next(&args, &token);
    }
    while (token_next(&args, &token)) {
        switch (token.p[0]) {
        case 'O':
            chain_copy_slice(out, SLICE_LIT(" "));
            chain_copy_slice(out, token);
            break;
        case 'k':
            add_key(r, out);
            break;
        case 'c':
            if (found || !is_read) {
                add_number(out, 'c', c->call.version);
            }
            break;
        case 'f':
            if (found && is_read) {
                add_number(out, 'f', bridge_flags(c));
            }
            break;
        case 's':
            if (found && is_read) {
                add_number(out, 's', c->call.answer.bytes);
            }
            break;
        case 't':
            if (found && is_read) {
                add_ttl(c, out);
            }
            break;
        default:
            break;
        }
    }
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

static void answer_read(struct call_part *c, const struct bridge_request *b, bool found,
                        struct chain *out)
{
    const struct request *r = &c->part.pending->request;
    metric_inc(&c->part.pending->client->worker->metrics,
               found ? METRIC_get_hits : METRIC_get_misses);
    if (!found) {
        if (!r->quiet) {
            chain_copy_slice(out, SLICE_LIT("EN"));
            add_flags(c, false, out);
        }
        return;
    }
    bridge_complete(c);
    if (!b->wants_value) {
        chain_copy_slice(out, SLICE_LIT("HD"));
        add_flags(c, true, out);
        return;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "VA %zu", c->call.answer.bytes);
    chain_copy(out, text, (size_t)len);
    add_flags(c, true, out);
    chain_move(out, &c->call.answer);
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

/* As memcached's me, a line for people. */
static void answer_debug(const struct call_part *c, bool found, struct chain *out)
{
    const struct list_stat *s = &c->call.stat;
    char text[200];
    if (!found) {
        chain_copy_slice(out, SLICE_LIT("EN\r\n"));
        return;
    }
    chain_copy_slice(out, SLICE_LIT("ME "));
    chain_copy_slice(out, c->part.pending->request.key);
    int len =
        snprintf(text, sizeof text,
                 " exp=%" PRId64 " cas=%" PRIu64 " items=%" PRIu64 " log_bytes=%" PRIu64
                 " sublists=%" PRIu64 " sublist_bytes=%" PRIu64 "\r\n",
                 s->ttl_s, s->head_cas, s->items, s->log_bytes, s->sublists, s->sublist_bytes);
    chain_copy(out, text, (size_t)len);
}

void bridge_meta_answer(struct call_part *c, const struct bridge_request *b,
                        enum bridge_outcome outcome, struct chain *out)
{
    static const struct slice words[] = {[BRIDGE_DONE] = {"HD", 2},
                                         [BRIDGE_NOT_STORED] = {"NS", 2},
                                         [BRIDGE_EXISTS] = {"EX", 2},
                                         [BRIDGE_NOT_FOUND] = {"NF", 2}};
    bool found = outcome == BRIDGE_DONE;
    if (b->verb == BRIDGE_READ) {
        answer_read(c, b, found, out);
    } else if (b->verb == BRIDGE_DEBUG) {
        answer_debug(c, found, out);
    } else if (!found || !c->part.pending->request.quiet) {
        chain_copy_slice(out, words[outcome]);
        add_flags(c, found, out);
    }
}
