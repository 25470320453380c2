/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client by hand beside the proxies, for pairs: it appends, and it subtracts all deletions from
 * all additions.
 */
#include "base/check.h"
#include "dialects.h"

#define WORDS_MAX 256

static enum be_status execute(struct dialect_world *w, enum be_verb verb, const char *key,
                              const char *text)
{
    struct be_operation r = {.verb = verb, .key = slice_of(key)};
    struct be_reply reply = {0};
    r.block = block_new(16);
    block_append(&r.block, text, strlen(text));
    r.value = slice_make(r.block->data, r.block->used);
    store_execute(&w->base.stores[0], &r, world_now(&w->base).wall_s, &reply);
    block_unref(&r.block);
    block_unref(&reply.block);
    trace(&w->base, "by hand: %s %s %s -> %s", be_verb_name(verb), key, text,
          be_status_name(reply.status));
    return reply.status;
}

void hand_append(struct dialect_world *w, const char *key, const char *text)
{
    if (execute(w, BE_APPEND, key, text) != BE_STORED) {
        CHECK(execute(w, BE_ADD, key, text) == BE_STORED);
    }
}

const char *hand_adds(const struct dialect_world *w)
{
    bool own = strcmp(w->config->lists[0].add_name, "%s") == 0;
    return own ? LIST_KEY : "follow-" LIST_KEY;
}

static unsigned split(struct dialect_world *w, const char *key, struct slice words[WORDS_MAX])
{
    const struct item *item =
        store_find(&w->base.stores[0], slice_of(key), world_now(&w->base).wall_s);
    struct slice text = item == NULL ? SLICE_NONE : item_value(item);
    unsigned count = 0;
    for (size_t i = 0, from = 0; i < text.len; i++) {
        if (text.p[i] == ',') {
            CHECK(count < WORDS_MAX);
            words[count] = slice_make(text.p + from, i - from);
            count += i > from;
            from = i + 1;
        }
    }
    return count;
}

letters hand_sees(struct dialect_world *w, bool *strange)
{
    struct slice adds[WORDS_MAX], deletes[WORDS_MAX];
    unsigned add_count = split(w, hand_adds(w), adds);
    unsigned delete_count = split(w, "unfollow-" LIST_KEY, deletes);
    letters seen = 0;
    *strange = false;
    for (unsigned a = 0; a < add_count; a++) {
        unsigned d = 0;
        while (d < delete_count && !slice_equal(adds[a], deletes[d])) {
            d++;
        }
        if (d < delete_count) {
            deletes[d] = deletes[--delete_count];
        } else if (adds[a].len == 1) {
            seen |= (letters)1 << (*adds[a].p - 'a');
        } else {
            *strange = true;
        }
    }
    return seen;
}
