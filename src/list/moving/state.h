/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What moving.c and porter.c share: the lists, and how requests of their own go out.
 */
#ifndef LIST_MOVING_STATE_H
#define LIST_MOVING_STATE_H

#include "list/moving/moving.h"

struct mover;  /* moving.c */
struct porter; /* porter.c */

/* A list for which something is under way, or that was met lately. */
struct moved_list {
    struct moved_list *next; /* in the bucket */
    STAILQ_ENTRY(moved_list) ready;
    TAILQ_HEAD(, mover) waiting;
    struct list_request *asked; /* by the first of them, and not answered yet */
    size_t passing;             /* requests that go by */
    struct porter *porter;      /* or NULL */
    struct name_range *ported;  /* runs whose sublists are on the new server */
    size_t ported_count;
    const char *port_failed; /* why those of that run could not be copied, until it is told */
    struct name failed_run;
    bool known, on_new; /* where the list was seen last */
    bool old_is_gone;   /* moving_submit's */
    uint64_t epochs[2]; /* of the last answers of the old server and of the new one */
    uint8_t key_len;
    char key[KEY_BYTES_MAX];
};

struct moving {
    uint32_t pools[2];
    enum moving_step step;
    int64_t wall_s;
    size_t room_bytes;
    struct rng *rng;
    moving_done_fn *done;
    void *arg;
    struct metrics *metrics;
    struct moved_list **buckets;
    size_t bucket_count;
    STAILQ_HEAD(, moved_list) ready; /* the first mover of each has not begun */
    struct request_queue outbox;
    size_t bytes, bytes_max; /* of buckets and lists, with what is under way for them or without */
    size_t forget_next;
};

/* Its key is that of its head: with a '#'. */
static inline struct slice moved_list_name(const struct moved_list *list)
{
    return slice_make(list->key, list->key_len - 1u);
}

/* moving.c. Asks for the list's head by a request of its own; the value's reference goes to that.
 */
void moving_ask(struct moving *m, const struct moved_list *list, struct list_request *own,
                bool on_new, enum be_verb verb, struct block *value);

#endif
