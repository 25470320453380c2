/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/places.h"

#include <string.h>

#include "list/format/entry.h"

#define VERSION "^1"
#define COPY_BEGIN VERSION " >"
#define MARK_BEGIN "^> "

static bool begins(struct slice value, struct slice with)
{
    return value.len >= with.len && memcmp(value.p, with.p, with.len) == 0;
}

static bool take_token(struct slice value, struct slice begin, struct name *token)
{
    if (!begins(value, begin) || value.len <= begin.len + NAME_BYTES) {
        return false;
    }
    memcpy(token->text, value.p + begin.len, NAME_BYTES);
    return true;
}

static enum place_kind kind_of(struct slice value, struct name *token)
{
    if (take_token(value, SLICE_LIT(MARK_BEGIN), token)) {
        return PLACE_MARK;
    }
    return take_token(value, SLICE_LIT(COPY_BEGIN), token) ? PLACE_COPY : PLACE_HEAD;
}

void place_forget(struct place *place)
{
    block_unref(&place->block);
    *place = (struct place){0};
}

void place_read(struct place *place, const struct be_reply *reply)
{
    place_forget(place);
    if (reply->status != BE_HIT) {
        place->epoch = reply->epoch;
        return;
    }
    *place = (struct place){.block = block_ref(reply->block),
                            .value = reply->value,
                            .cas = reply->cas,
                            .epoch = reply->epoch,
                            .flags = reply->flags,
                            .ttl_s = reply->ttl_s,
                            .no_times = reply->no_times};
    place->kind = kind_of(place->value, &place->token);
}

bool place_same(const struct place *a, const struct place *b)
{
    return a->kind == b->kind && a->cas == b->cas && a->epoch == b->epoch;
}

struct head *place_open(const struct place *place, struct slice key)
{
    struct be_reply reply = {.status = BE_HIT,
                             .flags = place->flags,
                             .ttl_s = place->ttl_s,
                             .cas = place->cas,
                             .epoch = place->epoch,
                             .size_bytes = place->value.len,
                             .value = place->value,
                             .block = place->block};
    struct head *head = NULL;
    if (place->kind != PLACE_HEAD || place->flags != 0 ||
        head_read(&reply, key, &head) != HEAD_OK) {
        return NULL;
    }
    return head;
}

/* The log that begins behind the header: does it announce sublists? */
static bool announces(struct slice log)
{
    struct entry entry;
    enum entry_status status;
    while ((status = entry_next(&log, &entry)) == ENTRY_OK) {
        if (entry.op == ENTRY_ANNOUNCE) {
            return true;
        }
    }
    return status != ENTRY_END;
}

bool place_movable(const struct place *place, const struct head *head)
{
    const char *end = memchr(place->value.p, '\n', place->value.len);
    size_t header = (size_t)(end - place->value.p) + 1;
    return place->ttl_s < 0 && !place->no_times && head->garbage_count == 0 &&
           !head->marks.absent && head->marks.sublists_until_s == 0 &&
           !announces(slice_make(end + 1, place->value.len - header));
}

bool place_is_copy_of(const struct place *copy, const struct place *head)
{
    size_t skip = sizeof COPY_BEGIN - 1 + NAME_BYTES, same = sizeof VERSION - 1;
    return copy->kind == PLACE_COPY && copy->value.len - skip == head->value.len - same &&
           memcmp(copy->value.p + skip, head->value.p + same, head->value.len - same) == 0;
}

struct block *place_copy(const struct place *head, const struct name *token)
{
    size_t same = sizeof VERSION - 1;
    struct block *b = block_new_exact(head->value.len + sizeof COPY_BEGIN + NAME_BYTES);
    block_append(&b, COPY_BEGIN, sizeof COPY_BEGIN - 1);
    block_append(&b, token->text, NAME_BYTES);
    block_append(&b, head->value.p + same, head->value.len - same);
    return b;
}

struct block *place_head(const struct place *copy)
{
    size_t skip = sizeof COPY_BEGIN - 1 + NAME_BYTES;
    struct block *b = block_new_exact(copy->value.len);
    block_append(&b, VERSION, sizeof VERSION - 1);
    block_append(&b, copy->value.p + skip, copy->value.len - skip);
    return b;
}

struct block *place_mark(const struct name *token)
{
    struct block *b = block_new_exact(sizeof MARK_BEGIN + NAME_BYTES + 1);
    block_append(&b, MARK_BEGIN, sizeof MARK_BEGIN - 1);
    block_append(&b, token->text, NAME_BYTES);
    block_append(&b, "\n", 1);
    return b;
}
