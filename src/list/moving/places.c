/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/places.h"

#include <string.h>

#include "list/format/entry.h"

#define VERSION "^1"
#define COPY_BEGIN VERSION " >"
#define MARK_BEGIN "^> "

static bool take_token(struct slice value, struct slice begin, struct name *token)
{
    if (!slice_starts_with(value, begin) || value.len <= begin.len + NAME_BYTES) {
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
    block_unref(&place->reply.block);
    *place = (struct place){0};
}

void place_read(struct place *place, const struct be_reply *reply)
{
    place_forget(place);
    if (reply->status != BE_HIT) {
        place->reply.epoch = reply->epoch;
        return;
    }
    place->reply = *reply;
    (void)block_ref(reply->block);
    place->kind = kind_of(reply->value, &place->token);
}

bool place_same(const struct place *a, const struct place *b)
{
    return a->kind == b->kind && a->reply.cas == b->reply.cas && a->reply.epoch == b->reply.epoch;
}

struct head *place_open(const struct place *place, struct slice key)
{
    struct head *head = NULL;
    if (place->kind != PLACE_HEAD || place->reply.flags != 0 ||
        head_read(&place->reply, key, &head) != HEAD_OK) {
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

struct stay place_stay(const struct place *place, const struct head *head)
{
    if (head == NULL) {
        return (struct stay){.why = "what is stored there is no list that this release can read"};
    }
    if (place->reply.no_times) {
        return (struct stay){.why = "its server does not tell times to live"};
    }
    if (place->reply.ttl_s >= 0 || head->marks.sublists_until_s != 0) {
        return (struct stay){.why = "it has a time to live"};
    }
    if (head->marks.absent) {
        return (struct stay){.why = "it is missing, and a client has the lease to fill it"};
    }
    struct slice value = place->reply.value;
    const char *end = memchr(value.p, '\n', value.len);
    size_t header = (size_t)(end - value.p) + 1;
    if (head->garbage_count > 0 || announces(slice_make(end + 1, value.len - header))) {
        return (struct stay){.why = "sublists of it are being written or deleted", .for_now = true};
    }
    return (struct stay){.why = NULL};
}

bool place_counts(const struct place *copy, const struct place *mark)
{
    return copy->kind == PLACE_COPY && mark->kind == PLACE_MARK &&
           name_equal(&copy->token, &mark->token);
}

bool place_is_copy_of(const struct place *copy, const struct place *head)
{
    size_t skip = sizeof COPY_BEGIN - 1 + NAME_BYTES, same = sizeof VERSION - 1;
    struct slice a = copy->reply.value, b = head->reply.value;
    return copy->kind == PLACE_COPY && a.len - skip == b.len - same &&
           memcmp(a.p + skip, b.p + same, b.len - same) == 0;
}

struct block *place_copy(const struct place *head, const struct name *token)
{
    size_t same = sizeof VERSION - 1;
    struct slice value = head->reply.value;
    struct block *b = block_new_exact(value.len + sizeof COPY_BEGIN + NAME_BYTES);
    block_append(&b, COPY_BEGIN, sizeof COPY_BEGIN - 1);
    block_append(&b, token->text, NAME_BYTES);
    block_append(&b, value.p + same, value.len - same);
    return b;
}

struct block *place_head(const struct place *copy)
{
    size_t skip = sizeof COPY_BEGIN - 1 + NAME_BYTES;
    struct slice value = copy->reply.value;
    struct block *b = block_new_exact(value.len);
    block_append(&b, VERSION, sizeof VERSION - 1);
    block_append(&b, value.p + skip, value.len - skip);
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
