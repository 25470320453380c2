/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A backend for the list engine that is honest or lies, as the input says: a virtual memcached
 * (tests/world/store.c), strangers who write into it, and answers that are not true.
 */
#ifndef FUZZ_LIAR_H
#define FUZZ_LIAR_H

#include "../world/store.h"
#include "audit.h"
#include "base/clock.h"
#include "input.h"

struct liar {
    struct input *in;
    struct store store;
    struct audit *audit;
    uint64_t epoch;
    uint64_t lies;  /* CAS numbers of heads that were made up */
    char text[160]; /* of the last refusal */
};

void liar_init(struct liar *liar, struct input *in, struct audit *audit, uint64_t item_size_max);
void liar_fini(struct liar *liar);

/* How a request is answered when it is not answered truly. */
enum lie {
    LIE_DOWN,        /* not sent */
    LIE_LOST,        /* not done, and the outcome is unknown */
    LIE_LOST_DONE,   /* done, and the outcome is unknown */
    LIE_STATUS,      /* another answer that fits the verb; not done */
    LIE_STATUS_DONE, /* the same, but done */
    LIE_VALUE,       /* a value from the input */
    LIE_HEAD,        /* a head that is made up */
    LIE_WIRE,        /* bytes as they come from a socket */
    LIES
};

/* Answers the request; *reply->block holds a reference, the caller's. */
void liar_answer(struct liar *liar, const struct list_request *r, struct now now,
                 struct be_reply *reply);
void liar_lie(struct liar *liar, enum lie lie, const struct list_request *r, struct now now,
              struct be_reply *reply);

/* Another client changes what is stored for that list. */
void liar_stranger(struct liar *liar, struct slice list_key, struct now now);

/* Items are chosen by a byte; some look like the format's own syntax, the last are not valid. */
struct slice fuzz_item(uint8_t which);

#endif
