/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/moving.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "list/core/co.h"
#include "list/core/expiry.h"
#include "list/moving/append.h"
#include "list/moving/places.h"
#include "list/moving/porter.h"
#include "list/moving/state.h"

#define TRIES_MAX 32
/* memcached's flags of marks and copies: so who looks at flags alone tells them from heads. */
#define MARK_FLAGS 0x6d76u

struct mover {
    TAILQ_ENTRY(mover) link;
    struct moved_list *list;
    struct list_request *request; /* the engine's */
    struct moved_append append;
    struct co co;
    unsigned tries;
    struct stay stay;                   /* why its head cannot be moved now */
    bool founds, on_new;                /* it was found, and where */
    bool marked;                        /* it has put the mark */
    bool missed;                        /* what is asked for is not on the old server any more */
    struct place old, new, again, left; /* left: the head that it has marked */
    struct name token;
    const struct be_reply *reply; /* of what was asked last, during a step */
    struct list_request own; /* last: what it asks for itself; the carrier's room is behind it */
};

/* --- lists ---------------------------------------------------------------------------------- */

static void free_list(struct moving *m, struct moved_list *list)
{
    porter_forget(m, list);
    m->bytes -= sizeof *list;
    free(list);
}

static struct moved_list **find_list(struct moving *m, struct slice key)
{
    struct moved_list **at = &m->buckets[hash_bytes(key.p, key.len, 3) % m->bucket_count];
    while (*at != NULL && !slice_equal(slice_make((*at)->key, (*at)->key_len), key)) {
        at = &(*at)->next;
    }
    return at;
}

/* Lists with nothing under way, of one bucket after the other, each once at most. */
static void forget_some(struct moving *m)
{
    for (size_t i = 0; i < m->bucket_count && m->bytes > m->bytes_max; i++) {
        struct moved_list **at = &m->buckets[m->forget_next++ % m->bucket_count];
        while (*at != NULL) {
            struct moved_list *list = *at;
            if (TAILQ_EMPTY(&list->waiting) && list->passing == 0 && list->porter == NULL) {
                *at = list->next;
                free_list(m, list);
            } else {
                at = &list->next;
            }
        }
    }
}

static struct moved_list *list_of(struct moving *m, struct slice key)
{
    struct moved_list **at = find_list(m, key);
    if (*at == NULL) {
        forget_some(m);
        at = find_list(m, key);
        struct moved_list *list = calloc(1, sizeof *list);
        CHECK(list != NULL);
        m->bytes += sizeof *list;
        TAILQ_INIT(&list->waiting);
        list->key_len = (uint8_t)key.len;
        memcpy(list->key, key.p, key.len);
        *at = list;
    }
    return *at;
}

/* --- asking --------------------------------------------------------------------------------- */

void moving_ask(struct moving *m, const struct moved_list *list, struct list_request *own,
                bool on_new, enum be_verb verb, struct block *value)
{
    block_unref(&own->be.block);
    *own = (struct list_request){.is_own = true,
                                 .pool_index = m->pools[on_new],
                                 .be = {.verb = verb, .time_optional = true}};
    request_set_key(own, list->key_len);
    memcpy(own->key, list->key, list->key_len);
    own->be.block = value;
    own->be.value = value == NULL ? SLICE_NONE : slice_make(value->data, value->used);
    STAILQ_INSERT_TAIL(&m->outbox, own, link);
}

static void ask_get(struct moving *m, struct mover *x, bool on_new)
{
    x->list->asked = &x->own;
    moving_ask(m, x->list, &x->own, on_new, BE_GET, NULL);
}

/* Writes the block, whose reference it takes over. where: what was read there, which a BE_CAS
 * replaces. */
static void ask_write(struct moving *m, struct mover *x, bool on_new, enum be_verb verb,
                      const struct place *where, struct block *value, uint32_t flags)
{
    x->list->asked = &x->own;
    moving_ask(m, x->list, &x->own, on_new, verb, value);
    x->own.be.flags = flags;
    if (verb != BE_ADD) {
        x->own.be.cas = where->reply.cas;
        x->own.be.epoch = where->reply.epoch;
    }
}

/* The engine's own request goes to that server as it is. */
static void forward(struct moving *m, struct mover *x, bool on_new)
{
    x->request->pool_index = m->pools[on_new];
    x->list->asked = x->request;
    STAILQ_INSERT_TAIL(&m->outbox, x->request, link);
}

static bool failed(const struct mover *x)
{
    return x->reply->status > BE_ANSWERED;
}

/* --- answers to the engine ------------------------------------------------------------------ */

/* Gives the engine's request back as it came. */
static void give_back(struct moving *m, struct list_request *request, const struct be_reply *reply)
{
    request->pool_index = m->pools[0];
    request->moves = NULL;
    request->may_move = true;
    m->done(m->arg, request, reply);
}

static void answer(struct moving *m, struct mover *x, const struct be_reply *reply)
{
    struct list_request *request = x->request;
    append_end(&x->append, request);
    x->request = NULL;
    give_back(m, request, reply);
}

static void answer_status(struct moving *m, struct mover *x, enum be_status status,
                          const char *text)
{
    struct be_reply reply = {.status = status, .text = text, .ttl_s = -1};
    reply.epoch = x->list->epochs[x->list->on_new];
    answer(m, x, &reply);
}

/* A head that has gone from where it was read says only that it is no more what was read: it may
 * have moved, and its mark been lost since. Whether there is a list says a look at both servers. */
static void answer_changed(struct moving *m, struct mover *x)
{
    struct be_reply reply = *x->reply;
    reply.status = reply.status == BE_NOT_FOUND ? BE_EXISTS : reply.status;
    answer(m, x, &reply);
}

/* A server did not answer where the list is: what the engine wants was not done. */
static void answer_failed(struct moving *m, struct mover *x)
{
    struct be_reply reply = *x->reply;
    if (be_changes(x->request->be.verb) && reply.status == BE_LOST) {
        reply.status = BE_DOWN;
    }
    answer(m, x, &reply);
}

/* --- where the list is ---------------------------------------------------------------------- */

/* Keeps what that server has answered; false, and the engine is answered, when it did not. */
static bool look(struct moving *m, struct mover *x, bool on_new, struct place *place)
{
    if (failed(x)) {
        answer_failed(m, x);
        return false;
    }
    place_read(place, x->reply);
    if (x->reply->epoch != 0) {
        x->list->epochs[on_new] = x->reply->epoch;
    }
    return true;
}

/* What the old server holds: if it is gone for good, a mark that no copy names. PROGRESS_DONE:
 * x->request is NULL if it has been answered: the server was not to be reached. */
static enum progress look_at_old(struct moving *m, struct mover *x, struct place *place)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    place_forget(place);
    place->kind = PLACE_MARK;
    if (!x->list->old_is_gone) {
        ask_get(m, x, false);
        CO_AWAIT(co, "looking at the old server");
        (void)look(m, x, false, place);
    }
    CO_END(co);
}

/* PROGRESS_DONE: x->founds says whether there is a list, x->on_new where; x->request is NULL if it
 * has been answered: a server was not to be reached. */
static enum progress find(struct moving *m, struct mover *x)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    for (;;) {
        if (x->tries++ == TRIES_MAX) {
            answer_status(m, x, BE_DOWN,
                          "others change this list all the time while it moves, nothing done");
            CO_RETURN(co);
        }
        CO_CALL(co, look_at_old(m, x, &x->old));
        if (x->request == NULL) {
            CO_RETURN(co);
        }
        x->on_new = x->old.kind != PLACE_HEAD && x->old.kind != PLACE_COPY;
        x->founds = !x->on_new;
        if (x->founds) {
            CO_RETURN(co);
        }
        ask_get(m, x, true);
        CO_AWAIT(co, "looking at the new server");
        if (!look(m, x, true, &x->new)) {
            CO_RETURN(co);
        }
        x->founds = x->new.kind == PLACE_HEAD;
        if (x->founds || x->new.kind == PLACE_NOTHING) {
            CO_RETURN(co);
        }
        /* The copy is judged by what the old server holds behind it. A mark means nothing there: it
         * is left from an earlier move, off this server. */
        CO_CALL(co, look_at_old(m, x, &x->again));
        if (x->request == NULL) {
            CO_RETURN(co);
        }
        if (!place_same(&x->old, &x->again)) {
            continue;
        }
        if (place_counts(&x->new, &x->old)) {
            ask_write(m, x, true, BE_CAS, &x->new, place_head(&x->new), 0);
            x->own.be.exptime = place_exptime_of_head(&x->new, moved_list_name(x->list), m->wall_s);
        } else { /* its mover may not know yet that it counts for nothing */
            ask_write(m, x, true, BE_CAS_DELETE, &x->new, NULL, 0);
        }
        CO_AWAIT(co, "making a head of a copy");
    }
    CO_END(co);
}

/* --- moving it ------------------------------------------------------------------------------ */

/* The new server has not done what the move needs. */
static void note_refusal(struct mover *x)
{
    enum be_status status = x->reply->status;
    x->stay.why = status == BE_NO_MEMORY   ? "its new server is out of memory"
                  : status == BE_TOO_LARGE ? "its new server takes no item of that size"
                  : status == BE_REFUSED   ? "its new server refuses it"
                                           : "its new server does not answer";
    x->stay.for_now = status == BE_TOO_LARGE; /* a head that is full is shorter once compacted */
}

/* The head that was found on the old server goes to the new one, if it can. Behind it the list is
 * to be found anew, but if it stays. */
static enum progress move(struct moving *m, struct mover *x)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    ask_get(m, x, true);
    CO_AWAIT(co, "looking for a copy");
    if (failed(x)) {
        note_refusal(x);
        CO_RETURN(co);
    }
    place_read(&x->new, x->reply);
    x->token = x->new.token;
    if (!place_is_copy_of(&x->new, &x->old)) {
        if (x->new.kind != PLACE_NOTHING) {
            ask_get(m, x, false);
            CO_AWAIT(co, "looking at the old server behind a copy");
            if (failed(x)) {
                x->stay.why = "its old server does not answer";
                CO_RETURN(co);
            }
            place_read(&x->again, x->reply);
            if (!place_same(&x->old, &x->again)) {
                CO_RETURN(co);
            }
        }
        if (x->new.kind == PLACE_HEAD) {
            metric_inc(m->metrics, METRIC_list_moves_double);
            x->stay.why = "its new server has a list of that name, too";
            CO_RETURN(co);
        }
        name_fresh(&x->token, m->rng);
        ask_write(m, x, true, x->new.kind == PLACE_NOTHING ? BE_ADD : BE_CAS, &x->new,
                  place_copy(&x->old, &x->token), MARK_FLAGS);
        x->own.be.exptime = place_exptime_of_head(&x->old, moved_list_name(x->list), m->wall_s);
        CO_AWAIT(co, "writing the copy");
        if (failed(x)) {
            note_refusal(x);
        }
        if (x->reply->status != BE_STORED) {
            CO_RETURN(co);
        }
    }
    ask_write(m, x, false, BE_CAS, &x->old, place_mark(&x->token), MARK_FLAGS);
    CO_AWAIT(co, "marking the old head");
    x->marked = x->reply->status == BE_STORED;
    if (x->marked) {
        place_forget(&x->left);
        x->left = x->old;
        x->old = (struct place){0};
    }
    metric_add(m->metrics, METRIC_list_moves, x->marked);
    CO_END(co);
}

/* The head that was found on the old server: can it go now? If sublists have to go first, they
 * begin to. */
static void consider(struct moving *m, struct mover *x)
{
    struct head *head = place_open(&x->old, moved_list_name(x->list));
    x->stay = place_stay(&x->old, head);
    bool all = true;
    if (head != NULL) {
        porter_keep(m, x->list, head);
    }
    for (size_t i = 0; x->stay.why == NULL && i < head->run_count; i++) {
        all = all && porter_has(x->list, &head->runs[i].range.name);
    }
    if (!all) {
        x->stay = (struct stay){.why = porter_failure(x->list, head)};
        if (x->stay.why == NULL) {
            x->stay = (struct stay){.why = "its sublists are being copied", .for_now = true};
            porter_begin(m, x->list, head, false);
        }
    }
    head_unref(&head);
}

/* The old head has been marked. */
static void leave_old(struct moving *m, struct mover *x)
{
    struct head *head = place_open(&x->left, moved_list_name(x->list));
    porter_forget(m, x->list);
    if (head != NULL) {
        porter_begin(m, x->list, head, true);
    }
    head_unref(&head);
}

/* --- what the engine has asked for ---------------------------------------------------------- */

/* Not of a sublist, or of another item that lies where the list does. */
static bool is_head_request(const struct list_request *request)
{
    return request->placement_at == 0 && request->be.key.len == request->placement_len;
}

/* There is no list. */
static enum progress make(struct moving *m, struct mover *x)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    if (x->request->be.verb != BE_ADD) {
        answer_status(m, x, x->request->be.verb == BE_APPEND ? BE_NOT_STORED : BE_MISS, NULL);
        CO_RETURN(co);
    }
    if (x->old.kind == PLACE_NOTHING && m->step == MOVING_MOVE) {
        name_fresh(&x->token, m->rng);
        ask_write(m, x, false, BE_ADD, NULL, place_mark(&x->token), MARK_FLAGS);
        CO_AWAIT(co, "marking where no list is");
        if (failed(x)) {
            answer_failed(m, x);
            CO_RETURN(co);
        }
        if (x->reply->status != BE_STORED) {
            CO_RETURN(co); /* to be found anew */
        }
        x->old.kind = PLACE_MARK;
    }
    x->list->on_new = x->old.kind == PLACE_MARK;
    forward(m, x, x->list->on_new);
    CO_AWAIT(co, "making the list");
    if (x->reply->status != BE_NOT_STORED) {
        answer(m, x, x->reply);
    }
    CO_END(co);
}

/* The list is there: who asks whether it is on its new server hears that. */
static void answer_with(struct moving *m, struct mover *x, const struct place *found)
{
    if (x->request->be.verb == BE_PROBE && !x->on_new) {
        x->request->stays = x->stay.why;
        x->request->stays_for_now = x->stay.for_now;
        if (m->step == MOVING_LEARN) {
            x->request->stays = "this proxy does not move lists yet: the step is learn, or move "
                                "has just begun";
        }
    }
    answer(m, x, &found->reply);
}

/* A sublist may have gone to the new server with its list: then it is asked for where that is. A
 * clock item may not: it has to be read before what was asked for behind it (expiry.h). */
static bool may_have_moved(const struct moving *m, const struct list_request *request,
                           const struct be_reply *reply)
{
    return (request->be.verb == BE_GET || request->be.verb == BE_PROBE) &&
           reply->status == BE_MISS && request->pool_index == m->pools[0] &&
           !clock_key_is(request->be.key);
}

/* The list is there. */
static enum progress act(struct moving *m, struct mover *x)
{
    struct co *co = &x->co;
    const struct place *found = x->on_new ? &x->new : &x->old;
    bool is_head = is_head_request(x->request), missed = x->missed && !x->on_new;
    CO_BEGIN(co);
    if (is_head && !be_changes(x->request->be.verb)) {
        answer_with(m, x, found);
        CO_RETURN(co);
    }
    if (missed || (is_head && x->request->be.verb == BE_ADD)) {
        answer_status(m, x, missed ? BE_MISS : BE_NOT_STORED, NULL);
        CO_RETURN(co);
    }
    if (is_head && x->request->be.verb == BE_APPEND) {
        if (!append_has_place(x->request, found, moved_list_name(x->list))) {
            answer_status(m, x, BE_NOT_STORED, NULL);
            CO_RETURN(co);
        }
        append_begin(&x->append, x->request, &found->reply);
    }
    forward(m, x, x->on_new);
    CO_AWAIT(co, "asking for it");
    bool others_did = x->reply->status == BE_EXISTS || x->reply->status == BE_NOT_FOUND;
    if (may_have_moved(m, x->request, x->reply)) {
        x->missed = true; /* the list is looked for again: it may have moved since */
    } else if (x->append.under_way && others_did) {
        append_end(&x->append, x->request);
    } else {
        answer(m, x, x->reply);
    }
    CO_END(co);
}

/* Which server has given that number. */
static bool knows_epoch(const struct mover *x, bool *on_new)
{
    *on_new = x->request->be.epoch == x->list->epochs[1];
    return x->request->be.epoch == x->list->epochs[0] || *on_new;
}

static enum progress run(struct moving *m, struct mover *x)
{
    struct co *co = &x->co;
    CO_BEGIN(co);
    if (be_is_conditional(x->request->be.verb)) {
        if (!knows_epoch(x, &x->on_new)) {
            answer_status(m, x, BE_EXISTS, NULL);
            CO_RETURN(co);
        }
        forward(m, x, x->on_new);
        CO_AWAIT(co, "changing it");
        answer_changed(m, x);
        CO_RETURN(co);
    }
    while (x->request != NULL) {
        CO_CALL(co, find(m, x));
        if (x->request == NULL) {
            break;
        }
        x->list->known = true;
        x->list->on_new = x->on_new;
        if (x->marked && x->on_new) {
            leave_old(m, x);
            x->marked = false;
        }
        if (x->founds && !x->on_new && m->step == MOVING_MOVE && x->stay.why == NULL) {
            consider(m, x);
            metric_add(m->metrics, METRIC_list_moves_kept, x->stay.why != NULL);
            if (x->stay.why == NULL) {
                CO_CALL(co, move(m, x));
                if (x->stay.why == NULL) {
                    continue;
                }
            }
        }
        if (x->founds || !is_head_request(x->request)) {
            x->on_new = x->founds ? x->on_new : x->old.kind == PLACE_MARK;
            CO_CALL(co, act(m, x));
        } else {
            CO_CALL(co, make(m, x));
        }
    }
    CO_END(co);
}

/* --- requests and replies ------------------------------------------------------------------- */

/* With its list, for which next_bytes may have no room. */
static size_t mover_bytes(const struct moving *m)
{
    return sizeof(struct mover) + m->room_bytes + sizeof(struct moved_list);
}

static void free_mover(const struct moving *m, struct mover *x)
{
    memory_give(mover_bytes(m));
    place_forget(&x->old);
    place_forget(&x->new);
    place_forget(&x->again);
    place_forget(&x->left);
    block_unref(&x->own.be.block);
    append_forget(&x->append);
    free(x);
}

/* On until its first mover waits for an answer. reply: the one that it has waited for, or NULL. */
static void advance(struct moving *m, struct moved_list *list, const struct be_reply *reply)
{
    struct mover *x;
    while ((x = TAILQ_FIRST(&list->waiting)) != NULL && list->asked == NULL) {
        x->reply = reply;
        reply = NULL;
        if (run(m, x) == PROGRESS_DONE) {
            CHECK(x->request == NULL);
            TAILQ_REMOVE(&list->waiting, x, link);
            free_mover(m, x);
        } else {
            CHECK(list->asked != NULL);
        }
    }
}

static void queue(struct moving *m, struct moved_list *list, struct list_request *r, bool missed)
{
    struct mover *x = calloc(1, sizeof *x + m->room_bytes);
    CHECK(x != NULL);
    memory_take(mover_bytes(m));
    x->list = list;
    x->missed = missed;
    x->request = r;
    if (TAILQ_EMPTY(&list->waiting)) {
        STAILQ_INSERT_TAIL(&m->ready, list, ready);
    }
    TAILQ_INSERT_TAIL(&list->waiting, x, link);
}

void moving_submit(struct moving *m, struct list_request *request, bool old_is_gone)
{
    struct slice key = request_placement(request);
    struct moved_list *list = list_of(m, key);
    list->old_is_gone = old_is_gone;
    if (!is_head_request(request) && list->known && TAILQ_EMPTY(&list->waiting)) {
        list->passing++;
        request->pool_index = m->pools[list->on_new];
        STAILQ_INSERT_TAIL(&m->outbox, request, link);
        return;
    }
    queue(m, list, request, false);
}

struct list_request *moving_take_request(struct moving *m)
{
    while (STAILQ_EMPTY(&m->outbox) && !STAILQ_EMPTY(&m->ready)) {
        struct moved_list *list = STAILQ_FIRST(&m->ready);
        STAILQ_REMOVE_HEAD(&m->ready, ready);
        advance(m, list, NULL);
    }
    struct list_request *request = STAILQ_FIRST(&m->outbox);
    if (request != NULL) {
        STAILQ_REMOVE_HEAD(&m->outbox, link);
        request->moves = m;
    }
    return request;
}

void moving_reply(struct moving *m, struct list_request *request, const struct be_reply *reply)
{
    struct moved_list *list = *find_list(m, request_placement(request));
    CHECK(list != NULL);
    if (porter_takes(m, list, request, reply)) {
        return;
    }
    if (list->asked != request) {
        list->passing--;
        if (may_have_moved(m, request, reply)) {
            queue(m, list, request, true);
        } else {
            give_back(m, request, reply);
        }
        return;
    }
    list->asked = NULL;
    advance(m, list, reply);
}

void moving_update(struct moving *m, enum moving_step step, int64_t wall_s)
{
    m->step = step;
    m->wall_s = wall_s;
}

struct moving *moving_create(uint32_t old_pool, uint32_t new_pool, size_t room_bytes,
                             size_t bytes_max, struct rng *rng, struct metrics *metrics,
                             moving_done_fn *done, void *arg)
{
    struct moving *m = calloc(1, sizeof *m);
    CHECK(m != NULL);
    *m = (struct moving){.pools = {old_pool, new_pool},
                         .room_bytes = room_bytes,
                         .bucket_count = bytes_max / sizeof(struct moved_list) + 1,
                         .bytes_max = bytes_max,
                         .rng = rng,
                         .metrics = metrics,
                         .done = done,
                         .arg = arg};
    m->bytes = m->bucket_count * sizeof *m->buckets;
    m->buckets = calloc(m->bucket_count, sizeof *m->buckets);
    CHECK(m->buckets != NULL);
    STAILQ_INIT(&m->outbox);
    STAILQ_INIT(&m->ready);
    return m;
}

void moving_destroy(struct moving **slot)
{
    struct moving *m = *slot;
    struct list_request *request;
    *slot = NULL;
    STAILQ_FOREACH(request, &m->outbox, link)
    {
        if (!request->is_own) {
            m->done(m->arg, request, NULL);
        }
    }
    for (size_t i = 0; i < m->bucket_count; i++) {
        while (m->buckets[i] != NULL) {
            struct moved_list *list = m->buckets[i];
            struct mover *x;
            m->buckets[i] = list->next;
            while ((x = TAILQ_FIRST(&list->waiting)) != NULL) {
                TAILQ_REMOVE(&list->waiting, x, link);
                if (x->request != NULL && x->request != list->asked) {
                    m->done(m->arg, x->request, NULL);
                }
                free_mover(m, x);
            }
            porter_drop(m, list);
            free_list(m, list);
        }
    }
    free(m->buckets);
    free(m);
}
