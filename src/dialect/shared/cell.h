/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cell is one of the stored items that a list of a dialect is made of: its role, its name, and
 * what was read of it. The key of a cell decides on which server it lies, as with clients by hand.
 */
#ifndef DIALECT_SHARED_CELL_H
#define DIALECT_SHARED_CELL_H

#include "list/core/engine_state.h"

enum cell_role {
    CELL_KEY,     /* the list's own key */
    CELL_ADDS,    /* paired */
    CELL_DELETES, /* paired */
    CELL_A,       /* flip, marker */
    CELL_B,       /* flip, marker */
    CELL_ACTIVE,  /* flip */
    CELL_SUBLIST, /* sublists; numbered */
    CELL_SEQ,     /* ring */
    CELL_SLOT,    /* ring; numbered */
};

enum cell_state { CELL_UNREAD, CELL_MISSING, CELL_THERE };

struct cell {
    enum cell_role role;
    uint32_t number;
    enum cell_state state;
    bool check;          /* to be checked: is it still what was read? */
    bool bare;           /* to be read without its value */
    bool listed;         /* sublists: the index lists it */
    bool proved;         /* what was read is of the format; see foreign.h */
    bool foreign;        /* it is not of the format and is left out: the value is not kept */
    uint32_t flags;      /* 0 where no item is */
    struct block *block; /* holds a reference when CELL_THERE */
    struct slice value;
    uint64_t cas, epoch;
    int64_t ttl_s;                /* -1: for ever, or nothing is there */
    const struct be_caps *server; /* the server that answered, or NULL: only to be compared */
};

/* Does a list have several cells of that role, each with a number? */
static inline bool cell_is_numbered(enum cell_role role)
{
    return role == CELL_SUBLIST || role == CELL_SLOT;
}
/* Writes the stored item's name. Returns its length: any name that the configuration allows fits.
 * */
uint8_t cell_name(const struct list *list, enum cell_role role, uint32_t number,
                  char out[KEY_BYTES_MAX]);
/* Is that the list's own key? */
bool cell_has_own_key(const struct list *list, enum cell_role role);
/* Forgets what was read. */
void cell_forget(struct cell *cell);
/* Takes the reply to a BE_GET with BE_HIT or BE_MISS. */
void cell_take(struct cell *cell, const struct be_reply *reply);

/* Emission, as in op.h: value is the block's filled part. */
void cell_send(struct engine *e, struct op *op, const struct cell *cell, enum be_verb verb,
               struct block *value, uint64_t tag);
/* An append or prepend that a failover may lose: see emit_append_blind. */
void cell_append_blind(struct engine *e, struct op *op, const struct cell *cell, enum be_verb verb,
                       struct block *value, uint64_t tag);
/* Replaces the cell as it was read, with its flags and its expiry; adds it where no item was, with
 * the prefix's time to live. */
void cell_write(struct engine *e, struct op *op, const struct cell *cell, struct block *value,
                uint64_t tag);
/* The same with another expiry (expiry.h). */
void cell_write_for(struct engine *e, struct op *op, const struct cell *cell,
                    const struct life *life, struct block *value, uint64_t tag);
/* The same with the expiry of another cell, which was read, too. */
void cell_write_as(struct engine *e, struct op *op, const struct cell *cell,
                   const struct cell *other, struct block *value, uint64_t tag);
/* Removes the cell, unless it has changed since it was read. */
void cell_remove(struct engine *e, struct op *op, const struct cell *cell);
void cell_incr(struct engine *e, struct op *op, const struct cell *cell, uint64_t delta,
               uint64_t tag);

#endif
