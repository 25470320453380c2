/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A part is one of the stored items that a list of a dialect is made of: its role, its name, and
 * what was read of it. The key of a part decides on which server it lies, as with clients by hand.
 */
#ifndef DIALECT_SHARED_PART_H
#define DIALECT_SHARED_PART_H

#include "list/core/engine_state.h"

enum part_role {
    PART_KEY,     /* the list's own key */
    PART_ADDS,    /* paired */
    PART_DELETES, /* paired */
    PART_A,       /* flip, marker */
    PART_B,       /* flip, marker */
    PART_ACTIVE,  /* flip */
    PART_SUBLIST, /* sublists; numbered */
    PART_SEQ,     /* ring */
    PART_SLOT,    /* ring; numbered */
};

enum part_state { PART_UNREAD, PART_MISSING, PART_THERE };

struct part {
    enum part_role role;
    uint32_t number;
    enum part_state state;
    bool check;          /* to be checked: is it still what was read? */
    bool bare;           /* to be read without its value */
    bool listed;         /* sublists: the index lists it */
    bool proved;         /* what was read is of the format; see foreign.h */
    bool foreign;        /* it is not of the format and is left out: the value is not kept */
    uint32_t flags;      /* 0 where no item is */
    struct block *block; /* holds a reference when PART_THERE */
    struct slice value;
    uint64_t cas, epoch;
    int64_t ttl_s;                /* -1: for ever, or nothing is there */
    const struct be_caps *server; /* the server that answered, or NULL: only to be compared */
};

/* Does a list have several parts of that role, each with a number? */
static inline bool part_is_numbered(enum part_role role)
{
    return role == PART_SUBLIST || role == PART_SLOT;
}
/* Writes the stored item's name. Returns its length: any name that the configuration allows fits.
 * */
uint8_t part_name(const struct list *list, enum part_role role, uint32_t number,
                  char out[KEY_BYTES_MAX]);
/* Is that the list's own key? */
bool part_has_own_key(const struct list *list, enum part_role role);
/* Forgets what was read. */
void part_forget(struct part *part);
/* Takes the reply to a BE_GET with BE_HIT or BE_MISS. */
void part_take(struct part *part, const struct be_reply *reply);

/* Emission, as in op.h: value is the block's filled part. */
void part_send(struct engine *e, struct op *op, const struct part *part, enum be_verb verb,
               struct block *value, uint64_t tag);
/* An append or prepend that a failover may lose: see emit_append_blind. */
void part_append_blind(struct engine *e, struct op *op, const struct part *part, enum be_verb verb,
                       struct block *value, uint64_t tag);
/* Replaces the part as it was read, with its flags and its expiry; adds it where no item was, with
 * the prefix's time to live. */
void part_write(struct engine *e, struct op *op, const struct part *part, struct block *value,
                uint64_t tag);
/* The same with another expiry (expiry.h). */
void part_write_for(struct engine *e, struct op *op, const struct part *part,
                    const struct life *life, struct block *value, uint64_t tag);
/* The same with the expiry of another part, which was read, too. */
void part_write_as(struct engine *e, struct op *op, const struct part *part,
                   const struct part *other, struct block *value, uint64_t tag);
/* Removes the part, unless it has changed since it was read. */
void part_remove(struct engine *e, struct op *op, const struct part *part);
void part_incr(struct engine *e, struct op *op, const struct part *part, uint64_t delta,
               uint64_t tag);

#endif
