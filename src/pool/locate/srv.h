/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRV records (RFC 2782): which machines, by name and port, offer a service. libevent's DNS asks
 * for addresses only; this asks its DNS servers, over UDP, for SRV records. For
 * pool/locate/resolver.c.
 */
#ifndef POOL_LOCATE_SRV_H
#define POOL_LOCATE_SRV_H

#include "config/config.h"

struct event_base;
struct evdns_base;

/* Records of one name that are used; further ones are not. */
#define SRV_RECORDS_MAX 64
#define SRV_NAME_MAX (CONFIG_NAME_MAX + 32)
#define SRV_QUESTION_MAX (SRV_NAME_MAX + 32)
/* The largest answer that is asked for: one that no network cuts in pieces. */
#define SRV_ANSWER_MAX 1232

struct srv_records {
    size_t count;
    struct endpoint at[SRV_RECORDS_MAX]; /* names, not looked up; those that go first stand first */
};

/* Writes the question for that name's records; returns its length, or 0 when it is no name. */
size_t srv_write_question(char out[SRV_QUESTION_MAX], uint16_t id, const char *name);

enum srv_result {
    SRV_NO_ANSWER, /* to this question: it is to be overlooked */
    SRV_FAILED,    /* the DNS server cannot tell, or not in one packet */
    SRV_FOUND,     /* records: none where there is no such name */
};
/* Reads an answer to that question. */
enum srv_result srv_read_answer(struct slice answer, struct slice question,
                                struct srv_records *records);

struct srv_lookup;
/* records: NULL when no DNS server has told. May free the lookup, and not dns. */
typedef void srv_done_fn(void *arg, const struct srv_records *records);
/* Asks the DNS servers one after the other, each for an equal part of the time. done is called
 * once, never from within, unless srv_free comes first. Owned by the caller. */
struct srv_lookup *srv_look_up(struct event_base *base, struct evdns_base *dns, const char *name,
                               uint32_t timeout_ms, srv_done_fn *done, void *arg);
void srv_free(struct srv_lookup **lookup);

#endif
