/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all proxies of a pool must agree on, as a text that each server of the pool holds in a small
 * item (proxy/core/gate.h): where keys go, and how the lists of each prefix are stored.
 *
 *     mclistd gate 1
 *     server = 0                            which of the servers holds this copy
 *     change = 7                            the pool's setting; a higher one wins
 *     places = 5d0c3fa1e97b2240             where 4,096 keys go, as a number
 *     next = 03b1c84d7720aa19 move 1        only while lists move: where they go, how far that has
 *                                           come, and how often an operator has taken a step
 *     dead = 10.0.0.2:11211                 only with next: that server is not asked any more
 *     distribution = ketama_weighted        these three: of a pool of memcacheds
 *     hash = default
 *     servers = 10.0.0.1:11211, 10.0.0.2:11211 3
 *     lists "" placement=head on_missing=create dialect=native
 *     lists "f:" elsewhere                  the lists of that prefix are in another pool
 *     end
 *
 * A server is known by its place in the list, which is sorted by name except for `modula`: so
 * proxies may call the servers of `modula`, or a single one, by different names. A prefix with
 * `migrate = native` has two lines, one for each layout that its lists may be in.
 */
#ifndef POOL_GATE_ITEM_H
#define POOL_GATE_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "config/config.h"
#include "proto/key.h"

/* Longest text of an item that is written; a longer one is not read, either. */
#define GATE_ITEM_BYTES_MAX (256 * 1024)
/* Room for what differs. */
#define GATE_WHY_MAX 1400
/* A place that is not known. */
#define GATE_NO_PLACE SIZE_MAX

struct gate_item;

/* How far a change of servers has come. Of two the one with the higher turn is right: it was taken
 * later. turn 0: the file's, no step was taken yet. */
struct gate_step {
    enum pool_step step;
    uint32_t turn;
};

/* The item's key on each server of the pool: mclistd#pool.NAME, where NAME is a hash if it has
 * bytes that a key cannot have, or too many. Writes a text of up to KEY_BYTES_MAX bytes to out. */
void gate_item_key(const struct pool_config *pool, char out[KEY_BYTES_MAX + 1]);
/* What the texts of the pool have in common, all behind `server`, while it is in that step; the
 * caller's, who frees it. Takes some milliseconds, of many servers. */
char *gate_item_body(const struct config *config, size_t pool_index, struct gate_step step);
/* The text for the server in that place; the caller's, who frees it. */
char *gate_item_write(const char *body, size_t place);
/* Place of the pool's server with that index. */
size_t gate_item_place(const struct pool_config *pool, size_t server_index);

enum gate_kind {
    GATE_ITEM,
    GATE_NEWER,   /* of a later release, or cut short */
    GATE_FOREIGN, /* no item of a proxy */
};
/* Reads a text. GATE_ITEM: *item is the caller's until gate_item_destroy. */
enum gate_kind gate_item_read(struct slice text, struct gate_item **item);
void gate_item_destroy(struct gate_item **item);
/* Of two that differ, the higher one is right: the pool's change, and in it the step of lists that
 * move. */
uint64_t gate_item_change(const struct gate_item *item);
const char *gate_step_name(struct gate_step step);
/* The item's step, if it speaks of the same change of servers as `mine` and has come further; else
 * that of `mine`. */
struct gate_step gate_item_later_step(const struct gate_item *mine, const struct gate_item *item);
size_t gate_item_server(const struct gate_item *item);
/* Is a server of that name one of those of who wrote the item? */
bool gate_item_has_server(const struct gate_item *item, const char *name);
/* Do two items put keys in the same places? */
bool gate_item_same_places(const struct gate_item *a, const struct gate_item *b);

/* Does the proxy with the item `mine` agree with the one that wrote `other`? place: of the server
 * that other was read on. If not, and why is not NULL, it says what differs, in one line that can
 * be logged. */
bool gate_item_agrees(const struct gate_item *mine, const struct gate_item *other, size_t place,
                      char why[GATE_WHY_MAX]);
/* Is the list of that key kept elsewhere, or in another way, by who wrote `other`? other_places has
 * for each place of mine which one it is to the other, as far as its server said so, or
 * GATE_NO_PLACE. For one thread at a time. */
bool gate_item_moves(struct gate_item *mine, struct gate_item *other, const size_t *other_places,
                     struct slice key);

#endif
