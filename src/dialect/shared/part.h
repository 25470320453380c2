/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A part: one of the stored items that a list of a dialect is made of, by its role; its name, and
 * what was read of it. Each part lives where its own name belongs, as clients by hand have it.
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
    PART_CHUNK,   /* sublists; numbered */
    PART_SEQ,     /* ring */
    PART_SLOT,    /* ring; numbered */
};

enum part_state { PART_UNREAD, PART_MISSING, PART_THERE };

struct part {
    enum part_role role;
    uint32_t number;
    enum part_state state;
    bool check;          /* is it still what was read? */
    bool bare;           /* to be read without its value */
    bool listed;         /* sublists: the index has it */
    bool proved;         /* what was read is of the format; see foreign.h */
    bool foreign;        /* it is not, and is to be left out: the value is not kept */
    uint32_t flags;      /* 0 where nothing is */
    struct block *block; /* holds a reference when PART_THERE */
    struct slice value;
    uint64_t cas, epoch;
    int64_t ttl_s;                /* -1: for ever, or nothing is there */
    const struct be_caps *server; /* of the one that answered, or NULL: to be compared only */
};

/* Does a list have several parts of that role, each with a number? */
static inline bool part_is_numbered(enum part_role role)
{
    return role == PART_CHUNK || role == PART_SLOT;
}
/* Writes the stored item's name. Returns its length; what the policy allows always fits. */
uint8_t part_name(const struct list *list, enum part_role role, uint32_t number,
                  char out[KEY_BYTES_MAX]);
/* Drops what was read. */
void part_forget(struct part *part);
/* Takes the reply to a BE_GET with BE_HIT or BE_MISS. */
void part_take(struct part *part, const struct be_reply *reply);

/* Emission, as in op.h: value is the block's filled part. */
void part_send(struct engine *e, struct op *op, const struct part *part, enum be_verb verb,
               struct block *value, uint64_t tag);
/* Replaces what was read, with the part's flags, and its expiry (expiry.h); where nothing was,
 * adds.
 */
void part_write(struct engine *e, struct op *op, const struct part *part, struct block *value,
                uint64_t tag);
/* The same with the expiry of another part, which was read. */
void part_write_as(struct engine *e, struct op *op, const struct part *part,
                   const struct part *other, struct block *value, uint64_t tag);
/* Removes what was read, unless it has changed. */
void part_remove(struct engine *e, struct op *op, const struct part *part, uint64_t tag);
void part_incr(struct engine *e, struct op *op, const struct part *part, uint64_t delta,
               uint64_t tag);

#endif
