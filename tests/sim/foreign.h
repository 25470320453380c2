/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that are no lists: clients of the same servers put them under the names of lists and of
 * their parts. These lists are apart from the others, and outside the model of contents: what is
 * checked is that such a value stays as it is, and is refused.
 */
#ifndef SIM_FOREIGN_H
#define SIM_FOREIGN_H

#include "format.h"
#include "list/engine.h"

/* Numbers of these lists: far from those of others. */
#define FOREIGN_FIRST 100
#define FOREIGN_DROPS_MAX 8

struct sim_world;
struct sim_proxy;
struct message;
struct sim_call;

/* What one life of a proxy can know of such a list, as docs/dialects.md says. */
struct acquaintance {
    uint32_t parts;              /* a bit for each that it has read, when it was the list's */
    bool numbered[CAPACITY_MAX]; /* the same for sublists and slots, by their numbers modulo that */
    bool nothing;                /* native: its last look at the head found none */
    bool slots; /* of a ring: since it met something foreign it may add without a look */
    bool met;   /* it has read the value that stands now */
    bool alone; /* when its last call was asked, nothing was under way; */
    uint64_t last_call;
};

struct foreign_list {
    struct sim_world *world;
    unsigned list;
    struct rng rng;
    bool stands; /* a value that is not the list's: */
    char key[KEY_BYTES_MAX + 1];
    uint8_t key_len;
    enum format_part part; /* FORMAT_KEY for native heads */
    uint64_t number;
    struct store *store; /* where it was put */
    struct block *value;
    uint32_t flags;
    uint64_t cas, since;                       /* the latter a moment of foreign_world */
    struct sim_call *drops[FOREIGN_DROPS_MAX]; /* ldrop that may still take effect */
    struct acquaintance of[PROXIES_MAX];
};

/* Asks one proxy for such lists. */
struct asker {
    struct sim_proxy *proxy;
    struct rng rng;
    struct list_session session;
};

struct foreign_world {
    struct foreign_list lists[FOREIGN_MAX];
    struct asker askers[PROXIES_MAX];
    uint64_t moment; /* counts what happened */
};

static inline bool is_foreign_list(int list)
{
    return list >= FOREIGN_FIRST;
}

/* foreign_value.c: what is of the format of no part, with its flags; the reference is the caller's.
 */
struct block *foreign_value(struct foreign_list *f, uint32_t *flags);

void foreign_start(struct sim_world *w);
void foreign_fini(struct sim_world *w);
/* A proxy has started: it knows nothing, and is asked. */
void foreign_proxy_started(struct sim_proxy *p);
/* What comes next of a client that puts such values; and of one that asks for such lists. */
void foreign_act(struct foreign_list *f);
void foreign_ask(struct asker *a);

/* A request is about to be executed: values that servers have lost by then are out of account. */
void foreign_before(struct sim_world *w);
/* A request about such a list is sent, and was executed. */
void foreign_sent(struct sim_world *w, struct message *m);
void foreign_executed(struct sim_world *w, const struct message *m);
/* A call of such a list is answered. */
void foreign_done(struct sim_world *w, struct sim_call *call);
/* All is quiet: what stands is refused, and gone for good when it is dropped. */
void foreign_finish(struct sim_world *w);

#endif
