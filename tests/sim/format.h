/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of a dialect as a client by hand knows them: what their stored items are called, which
 * bytes have a meaning, and what they amount to. Slowly, simply, and without the engine's code.
 */
#ifndef SIM_FORMAT_H
#define SIM_FORMAT_H

#include "../world/model.h"
#include "config/config.h"
#include "params.h"

/* Templates of a ring's slots; the first ones have numbers. */
#define FORMAT_SLOTS 6
#define FORMAT_SLOTS_NUMBERED 3
#define FORMAT_SLOT_BARE 4

enum format_part {
    FORMAT_KEY,
    FORMAT_ADDS,
    FORMAT_DELETES,
    FORMAT_A,
    FORMAT_B,
    FORMAT_ACTIVE,
    FORMAT_SUBLIST, /* numbered */
    FORMAT_SEQ,
    FORMAT_SLOT, /* numbered */
    FORMAT_PARTS
};

struct format {
    enum list_dialect dialect;
    char bar, plus, minus, mark;
    const char *const *names; /* with %s for the list's key, by part */
    uint32_t capacity;
    bool counter_wraps;
    bool numbered, timed; /* a ring's entries hold their numbers, and times */
    unsigned slot;        /* the template of a ring's entries */
    bool blind;           /* proxies change counted items without a look */
    bool delimited;       /* sublists, and the index, have delimiters in place of signs */
    const struct cluster *cluster;
};

/* What a list amounts to. */
struct decoded {
    bool exists; /* anything of it */
    const char *malformed;
    struct ids items;         /* what a reader sees */
    struct ids adds, deletes; /* as they are stored */
    unsigned parts;           /* stored items that hold content */
    bool second_active;       /* of two logs */
    uint64_t counter;         /* of a ring; 0 = missing */
};

void decoded_fini(struct decoded *content);

/* Not for the native one. */
void format_init(struct format *format, const struct params *params, const struct cluster *cluster);
/* Tells a proxy. */
void format_configure(const struct format *format, struct list_policy *policy);

/* The number of the list that a stored item belongs to, and of which part it is; -1 = none. */
int format_list(const struct format *format, struct slice key, enum format_part *part,
                uint64_t *number);
/* Returns the key's length. */
size_t format_key(const struct format *format, unsigned list, enum format_part part,
                  uint64_t number, char out[KEY_BYTES_MAX + 1]);
/* NULL: it is not there. */
const struct item *format_find(const struct format *format, unsigned list, enum format_part part,
                               uint64_t number, int64_t now_s);
/* Its value; of length 0 and with NULL when it is not there. */
struct slice format_value(const struct format *format, unsigned list, enum format_part part,
                          uint64_t number, int64_t now_s);

/* Reads what is stored; content is kept from call to call for its memory. */
void format_decode(const struct format *format, unsigned list, int64_t now_s,
                   struct decoded *content);
/* The same for a pair; a part of format_decode. */
void decode_paired(const struct format *format, unsigned list, int64_t now_s,
                   struct decoded *content);
/* What items amount to that were added and deleted so often. */
void count_items(const struct ids *adds, const struct ids *deletes, struct ids *out);

/* An entry of a ring: "SEQ ITEM", "ITEM SECONDS" and the like. False: it is none. */
struct ring_entry {
    uint64_t number; /* where the template has none: that of its slot */
    uint16_t id;
};
bool entry_take(const struct format *format, struct slice value, struct ring_entry *entry);
/* Takes the time away from an entry as readers are shown it. */
bool entry_take_time(const struct format *format, struct slice *shown);
/* Writes an entry; returns its length. */
size_t entry_make(const struct format *format, uint64_t number, struct slice item, int64_t now_s,
                  char *out, size_t cap);
/* Logs with signs: "+item-item". With delimiters: as if each item were added. */
bool signed_take(const struct format *format, struct slice *rest, char *sign, struct slice *item);
/* An index "+0+1", or "0,1,": false when it names no sublist; else the largest that it names. */
bool index_newest(const struct format *format, struct slice index, uint64_t *newest);
/* The smallest from *number on. False: there is none. */
bool index_next(const struct format *format, struct slice index, uint64_t *number);

const char *dialect_name(enum list_dialect dialect);
/* False: there is none of that name. */
bool dialect_of_name(const char *name, enum list_dialect *dialect);

#endif
