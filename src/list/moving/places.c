/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "list/core/expiry.h"

#define VERSION "^1"
#define COPY_BEGIN VERSION " >"
#define MARK_BEGIN "^> "

static bool take_token(struct slice *value, struct slice begin, struct name *token)
{
    if (!slice_starts_with(*value, begin) || value->len <= begin.len + NAME_BYTES) {
        return false;
    }
    memcpy(token->text, value->p + begin.len, NAME_BYTES);
    (void)slice_take(value, begin.len + NAME_BYTES);
    return true;
}

static void take_kind(struct place *place)
{
    struct slice rest = place->reply.value;
    place->kind = PLACE_HEAD;
    if (take_token(&rest, SLICE_LIT(MARK_BEGIN), &place->token)) {
        place->kind = PLACE_MARK;
    } else if (take_token(&rest, SLICE_LIT(COPY_BEGIN), &place->token) && rest.p[0] == '.') {
        size_t digits = 0;
        (void)slice_take(&rest, 1);
        while (digits < rest.len && rest.p[digits] >= '0' && rest.p[digits] <= '9') {
            digits++;
        }
        if (slice_to_u64(slice_make(rest.p, digits), &place->copied_cas)) {
            place->kind = PLACE_COPY;
            place->copied_at = (size_t)(rest.p - place->reply.value.p) + digits;
        }
    }
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
    take_kind(place);
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

struct stay place_stay(const struct place *place, const struct head *head)
{
    if (head == NULL) {
        return (struct stay){.why = "what is stored there is no list that this release can read"};
    }
    if (place->reply.no_times) {
        return (struct stay){.why = "its server does not tell times to live"};
    }
    if (head->garbage_count > 0 || head->announcements.len > 0) {
        return (struct stay){.why = "sublists of it are being written or deleted", .for_now = true};
    }
    return (struct stay){.why = NULL};
}

bool place_counts(const struct place *copy, const struct place *mark)
{
    return copy->kind == PLACE_COPY && mark->kind == PLACE_MARK &&
           name_equal(&copy->token, &mark->token);
}

int32_t place_exptime(const struct be_reply *reply, int64_t wall_s)
{
    if (reply->ttl_s < 0) {
        return 0;
    }
    int64_t left_s = reply->ttl_s > 0 ? reply->ttl_s : 1; /* 0 would mean: for ever */
    int64_t exptime = left_s <= EXPTIME_RELATIVE_MAX_S ? left_s : wall_s + left_s;
    return exptime < INT32_MAX ? (int32_t)exptime : INT32_MAX;
}

int32_t place_exptime_beyond(const struct be_reply *reply, int64_t wall_s)
{
    struct be_reply longer = *reply;
    longer.ttl_s += longer.ttl_s < 0 ? 0 : SERVER_SKEW_S;
    return place_exptime(&longer, wall_s);
}

/* What stands behind the version, and in a copy behind what makes it one. */
static struct slice rest_of(const struct place *place)
{
    struct slice rest = place->reply.value;
    (void)slice_take(&rest, place->kind == PLACE_COPY ? place->copied_at : sizeof VERSION - 1);
    return rest;
}

bool place_is_copy_of(const struct place *copy, const struct place *head)
{
    return copy->kind == PLACE_COPY && copy->copied_cas == head->reply.cas &&
           slice_equal(rest_of(copy), rest_of(head));
}

static struct block *with_rest(struct slice begin, const struct place *place)
{
    struct slice rest = rest_of(place);
    struct block *b = block_new_exact(begin.len + rest.len + 1);
    block_append(&b, begin.p, begin.len);
    block_append(&b, rest.p, rest.len);
    return b;
}

struct block *place_copy(const struct place *head, const struct name *token)
{
    char begin[sizeof COPY_BEGIN + NAME_BYTES + 24];
    int len = snprintf(begin, sizeof begin, COPY_BEGIN "%.*s.%" PRIu64, NAME_BYTES, token->text,
                       head->reply.cas);
    return with_rest(slice_make(begin, (size_t)len), head);
}

struct block *place_head(const struct place *copy)
{
    return with_rest(SLICE_LIT(VERSION), copy);
}

/* The second that the head, or the one that the copy stands for, names for its sublists; 0: none.
 */
static int64_t sublists_until_of(const struct place *place, struct slice key)
{
    struct block *value = place_head(place);
    struct be_reply reply = place->reply;
    struct head *head = NULL;
    int64_t until_s = 0;
    reply.block = value;
    reply.value = slice_make(value->data, value->used);
    if (head_read(&reply, key, &head) == HEAD_OK) {
        until_s = head->marks.sublists_until_s;
    }
    head_unref(&head);
    block_unref(&value);
    return until_s;
}

int32_t place_exptime_of_head(const struct place *place, struct slice key, int64_t wall_s)
{
    int32_t exptime = place_exptime(&place->reply, wall_s);
    int64_t until_s = exptime > EXPTIME_RELATIVE_MAX_S ? sublists_until_of(place, key) : 0;
    return until_s != 0 && exptime > until_s ? (int32_t)until_s : exptime;
}

struct block *place_mark(const struct name *token)
{
    struct block *b = block_new_exact(sizeof MARK_BEGIN + NAME_BYTES + 1);
    block_append(&b, MARK_BEGIN, sizeof MARK_BEGIN - 1);
    block_append(&b, token->text, NAME_BYTES);
    block_append(&b, "\n", 1);
    return b;
}
