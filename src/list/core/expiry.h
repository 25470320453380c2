/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing an item so that it expires in the second in which it, or another item, was to expire.
 *
 * memcached says how many seconds an item has left, and counts from the arrival of a write what is
 * sent as seconds: a time that is read and sent back grows with each rewriting. Only an absolute
 * time is stored exactly, in seconds of the server's own clock, so that clock has to be read:
 *
 *     mg mclistd#clock.0 v f c t       an item that holds the absolute second of its own expiry
 *     mg KEY# t c
 *     mg mclistd#clock.1 v f c t       another one, with another expiry
 *
 * Value less t is the server's clock before, and behind. Where both show the same second, KEY#
 * was read in it: that second + t of KEY# is what the write is to be sent with. No other clock
 * takes part. Two items, since a `touch` of a clock item makes it lie: with one that was touched,
 * or both, they do not agree any more, and are written anew.
 *
 * Any proxy makes the clock items where they are missing (new server, evicted, flushed), with ADD.
 * What stands there and is no clock item is left alone: the write is refused.
 *
 * Couchbase tells the second in which an item expires. It is asked for that alone, and there are no
 * clock items; the clock is the proxy's, by which the whole cluster is to go as well.
 */
#ifndef LIST_CORE_EXPIRY_H
#define LIST_CORE_EXPIRY_H

#include "list/core/op.h"

struct expiry;
struct list;
TAILQ_HEAD(expiries, expiry);

/* The clock items' keys end in "0" and "1" behind this. No list's head or sublist has such a name:
 * a head's ends in "#", a run's name has 13 letters. */
#define CLOCK_KEY_PREFIX "mclistd#clock."
#define CLOCK_COUNT 2
/* Their values: this, then the second since 1970 in which the item expires, in decimal. */
#define CLOCK_VALUE_PREFIX "mclistd-clock "

/* Longest time that memcached counts from the arrival of a write; a larger number is a second since
 * 1970. */
#define EXPTIME_RELATIVE_MAX_S (60 * 60 * 24 * 30)

/* The time to live that a write gives its item. */
struct life {
    enum life_kind {
        LIFE_KEPT,    /* what it has, or another item: see ttl_s and least_s */
        LIFE_GIVEN,   /* exptime, as memcached reads it; a negative one: the item is gone at once */
        LIFE_SECONDS, /* exptime, seconds from now on, however many; 0: no expiry */
    } kind;
    int64_t exptime;
    int64_t ttl_s;    /* what the item had left when it was read; -1: no expiry, and that stays */
    uint32_t least_s; /* it is to have at least so much left: where it has less, it is renewed */
    int64_t until_s;  /* no renewal goes beyond that second of the server's clock; 0: no bound */
    bool strict;      /* nothing is written where the item would live longer than until_s anyway */
    int64_t before_s; /* nothing is written from that second of the proxy's clock on; 0: no bound */
};

static inline struct life life_kept(int64_t ttl_s)
{
    return (struct life){.kind = LIFE_KEPT, .ttl_s = ttl_s};
}
static inline struct life life_given(int64_t exptime)
{
    return (struct life){.kind = LIFE_GIVEN, .exptime = exptime};
}
/* Of an item of that list, as it was read; of a list that is changed, or is read, by a prefix's
 * ttl_renew. */
struct life life_renewed(const struct list_policy *policy, int64_t ttl_s);
/* Is it time for that, without a write that does it anyway? Less than 7/8 of the policy's time are
 * left. */
bool life_is_due(const struct list_policy *policy, int64_t ttl_s);
/* Of a list that begins. */
static inline struct life life_new(const struct list_policy *policy)
{
    return (struct life){.kind = LIFE_SECONDS, .exptime = policy->ttl_s};
}
/* Does it end? (With LIFE_KEPT: as far as was read.) */
static inline bool life_ends(const struct life *life)
{
    return life->kind == LIFE_KEPT ? life->ttl_s >= 0 : life->exptime != 0;
}
/* Of a list that begins in the place of that absent head: life_new, but for ever where that would
 * have to wait (life_must_wait): a later change renews it, or none does. */
struct life life_filling(const struct list_policy *policy, const struct head *head);
/* Would the head end by that, and with it what a primary keeps of transactions that are not done? A
 * reader of another of their lists would take them for aborted. */
static inline bool life_must_wait(const struct life *life, const struct head *head)
{
    return head != NULL && head->residue != NULL && life->kind != LIFE_KEPT && life->exptime != 0;
}
/* For calls that waited for that, and not long enough. */
#define LIFE_BUSY_TEXT \
    "busy, nothing done: a change of several lists that this list decides is not finished"
/* The second in which an item of that life expires that is written in the second now_s, both by the
 * server's clock; 0: never. (With LIFE_KEPT: as far as was read.) */
int64_t life_end_s(const struct life *life, int64_t now_s);
/* What a call asks for: its EXPTIME, else life_new where no list is (head is NULL), else
 * life_renewed. */
struct life life_of_call(const struct list_call *call, const struct head *head);

/*
 * Sends request, a BE_CAS or BE_ADD of an item of list, as op_send does, with the exptime that
 * gives the item that life. Where that is known at once, nothing is asked. source: the key of the
 * item whose expiry is to be taken over, when that is not request's own; else SLICE_NONE. Requests
 * that are sent behind it may be carried out before it, since it waits for the clock: what is to be
 * read behind it is read when it has been answered.
 *
 * The operation gets one event, as from op_send. Besides what the server answers to the write:
 * BE_EXISTS when request's own item has changed meanwhile, or it is too late; BE_NOT_FOUND when
 * that or source has gone; BE_DOWN, BE_REFUSED or BE_NO_MEMORY, with a text, when the server's
 * clock cannot be read. Nothing was written then.
 */
void expiry_send(struct engine *e, struct op *op, struct list *list, struct list_request *request,
                 const struct life *life, struct slice source, struct block *value, uint64_t tag);

/* Asks for the clock of the head's server. The operation gets one event: BE_HIT with the second in
 * reply.number, and what the head has left in reply.ttl_s; BE_MISS with the second, when there is
 * no head; or an error as above. The list's clock_lead_s is noted. */
void expiry_look(struct engine *e, struct op *op, uint64_t tag);

/* Until when an ltouch wants the list's sublists to live: a second of the head's server's clock;
 * INT64_MAX: for ever; 0: none waits. */
int64_t list_wanted_until_s(const struct engine *e, const struct list *list);
/* Sublists live so much longer than their list, at least. */
#define SUBLISTS_STEP_MIN_S (60 * 60)
/* What the clocks of two servers may differ by. */
#define SERVER_SKEW_S (60 * 60 * 24)
/* The second until which the sublists of a list are to live that expires in the second end_s, when
 * now it is now_s, all by the clock of the head's server. 0: for ever, since memcached cannot read
 * so late a second. */
int64_t sublists_until_s(int64_t now_s, int64_t end_s);
/* Are the sublists that the head names to be written anew, so that they live longer, or not for
 * ever? As far as the server's clock is known. */
bool list_is_short_lived(const struct engine *e, const struct list *list, const struct head *head);

/* The list has sublists that live for ever, and was given that life: asks for a compaction that
 * writes them anew, so that they end with it, where the policy's format can say so. */
void list_wish_for_end(struct engine *e, struct list *list, const struct life *life);

/* Takes the reply to a request of this file's: one with list_request.expiry. */
void expiry_reply(struct engine *e, const struct list_request *request,
                  const struct be_reply *reply);

/* The writes that wait for the clock, one after the other: the first, or the one behind last; NULL
 * behind the last of them. For traces. */
const struct list_request *expiries_next(const struct engine *e, const struct list_request *last);

/* Drops what is under way, as a crash would. */
void expiries_fini(struct engine *e);

/* Is that the key of a clock item? */
bool clock_key_is(struct slice key);
/* Reads a clock item's value: the second of its expiry; 0 when it is no such value. */
int64_t clock_value_read(struct slice value, uint32_t flags);

#endif
