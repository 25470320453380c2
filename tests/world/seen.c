/* SPDX-License-Identifier: BSD-3-Clause */
#include "seen.h"

uint64_t world_hash(const struct world *w)
{
    uint64_t hash = (uint64_t)world_now(w).wall_s;
    const struct item *item;
    for (unsigned s = 0; s < w->cluster.count; s++) {
        TAILQ_FOREACH(item, &w->stores[s].items, link)
        {
            hash = hash_bytes(item->key, item->key_len, hash + s);
            hash = hash_bytes(item->value->data, item->value->used,
                              hash ^ (uint64_t)item->expires_s ^ (uint64_t)item->flags << 40);
        }
    }
    return hash;
}

/* Where it is, or the empty place where it belongs; 0 is what an empty place holds. */
static size_t place_of(const struct seen *seen, uint64_t hash)
{
    size_t at = hash % SEEN_SLOTS;
    while (seen->slots[at] != 0 && seen->slots[at] != hash) {
        at = (at + 1) % SEEN_SLOTS;
    }
    return at;
}

bool seen_has(const struct seen *seen, uint64_t hash)
{
    return hash != 0 && seen->slots[place_of(seen, hash)] == hash;
}

void seen_add(struct seen *seen, uint64_t hash)
{
    size_t at = place_of(seen, hash);
    if (seen->slots[at] == 0 && seen->count < SEEN_SLOTS / 2) {
        seen->slots[at] = hash;
        seen->count += hash != 0;
    }
}
