/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/gate.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"
#include "proxy/core/metrics.h"

/* What a server holds, as of the last answer. */
enum seen {
    SEEN_NOTHING, /* it did not answer */
    SEEN_NONE,
    SEEN_EQUAL,
    SEEN_LOWER, /* differs, with a lower change than ours */
    SEEN_OTHER, /* differs, and ours is not higher */
    SEEN_FOREIGN,
};

/* All servers may have lost the others' item at once, as with flush_all. So an unequal proxy gives
 * the others two rounds to write it anew. In the third one it writes its own, as others like it may
 * do at the same time, and in the one behind that it takes itself for the right one. */
#define DOUBTS 3

struct gate_pool;

struct gate_server {
    struct gate_pool *pool;
    size_t index, place;
    struct exchange x;
    enum seen seen;
    enum seen seen_of_item; /* where the text is the same as before */
    uint32_t turn_of_item;  /* of this proxy, when it was compared */
    struct gate_item *item; /* of SEEN_EQUAL, SEEN_LOWER, SEEN_OTHER */
    char *value;            /* its text; or what is being written */
    size_t value_len;
    uint64_t cas, epoch;
    int64_t ttl_s;
    bool no_times;
    uint64_t item_size_max; /* of the server; 0 = not known */
    bool foreign_said, unkept_said;
    char why[GATE_WHY_MAX]; /* of SEEN_LOWER, SEEN_OTHER */
};

struct gate_pool {
    struct gate *gate;
    const struct pool_config *config;
    size_t index;
    struct pool *pool; /* the first worker's; NULL: not asked */
    char key[KEY_BYTES_MAX + 1];
    struct event timer;
    struct gate_step step;
    char *body; /* of the item that this proxy writes */
    struct gate_item *mine;
    struct gate_server *servers;
    size_t server_count;
    size_t waiting; /* exchanges under way */
    uint64_t rounds;
    uint64_t asked_us; /* when the last round began; 0: none has */
    bool slept;        /* for so long before it that others may have taken a step */
    bool again;        /* another proxy was faster: read once more */
    bool is_first;
    bool replaces;   /* what the pool had is being replaced */
    unsigned missed; /* rounds without the others' item, of an unequal proxy: see DOUBTS */
    /* With gate.lock, as other threads look. */
    struct gate_item *other; /* of whom lists are refused; NULL: none */
    uint64_t until_us;       /* only until then; UINT64_MAX: as long as it is read */
    size_t *other_places;    /* see gate_item_moves */
    char why[GATE_WHY_MAX];  /* "": equal */
};

struct gate {
    struct shared *shared;
    struct worker *worker; /* the first one, while it is attached */
    pthread_mutex_t lock;
    _Atomic uint32_t unread;              /* gates that clients wait for */
    atomic_bool wanted[CONFIG_POOLS_MAX]; /* a list verb came */
    struct gate_pool pools[CONFIG_POOLS_MAX];
};

static void ask_round(struct gate_pool *p);

static bool refuses(const struct gate_pool *p)
{
    return p->config->on_unequal == ON_UNEQUAL_REFUSE;
}

/* Do clients wait for the first reading? Where plain keys move, too, their step depends on it. */
static bool is_awaited(const struct gate_pool *p)
{
    return refuses(p) || p->config->next_name[0] != '\0';
}

/* --- what all workers see ------------------------------------------------------------------- */

/* Lists of any pool may belong to a pool that is unequal. */
static void set_states(struct gate *gate)
{
    struct shared *s = gate->shared;
    bool unequal = false;
    uint64_t count = 0;
    for (size_t i = 0; i < s->config->pool_count; i++) {
        unequal = unequal || (gate->pools[i].other != NULL && refuses(&gate->pools[i]));
        count += gate->pools[i].why[0] != '\0';
    }
    for (size_t i = 0; i < s->config->pool_count; i++) {
        bool idle = s->config->pools[i].gate_s != 0 && gate->pools[i].pool == NULL;
        enum gate_state state = unequal ? GATE_UNEQUAL : idle ? GATE_IDLE : GATE_QUIET;
        atomic_store(&s->gate_states[i], (uint8_t)state);
    }
    if (gate->worker != NULL) {
        atomic_store(&gate->worker->metrics.value[METRIC_gate_unequal], count);
    }
}

static void forget_other(struct gate_pool *p)
{
    gate_item_destroy(&p->other);
    for (size_t i = 0; i < p->server_count; i++) {
        p->other_places[i] = GATE_NO_PLACE;
    }
}

/* The server's item is that of the others; it stays here when the server has another one. */
static void take_other(struct gate_pool *p, struct gate_server *from, uint64_t until_us)
{
    forget_other(p);
    for (size_t i = 0; i < p->server_count; i++) {
        struct gate_server *s = &p->servers[i];
        if (s->item != NULL && gate_item_same_places(s->item, from->item)) {
            p->other_places[s->place] = gate_item_server(s->item);
        }
    }
    p->other = from->item;
    from->item = NULL;
    p->until_us = until_us;
}

static void say(struct gate_pool *p, const char *why)
{
    if (strcmp(p->why, why) == 0) {
        return;
    }
    if (why[0] == '\0') {
        log_info("pool %s: the proxies agree again", p->config->name);
    } else {
        log_error("pool %s: UNEQUAL PROXIES: %s%s", p->config->name, why,
                  refuses(p) ? ". List verbs are refused where that matters (on_unequal)"
                             : ". Lists are made twice, or misread, where that matters");
    }
    (void)snprintf(p->why, sizeof p->why, "%s", why);
}

bool gate_refuses(struct worker *w, struct slice key, char text[GATE_REFUSAL_MAX])
{
    struct gate *gate = w->shared->gate;
    size_t pool_index = config_list_policy(w->config, key)->pool_index;
    bool stale = gate_is_stale(w, pool_index);
    if ((stale || atomic_load(&w->shared->gate_states[pool_index]) == GATE_IDLE) &&
        !atomic_exchange(&gate->wanted[pool_index], true)) {
        worker_wake(w->shared->workers[0]);
    }
    if (stale) {
        (void)snprintf(text, GATE_REFUSAL_MAX,
                       "this proxy has not heard lately how the others keep lists of pool %.100s, "
                       "nothing done",
                       w->config->pools[pool_index].name);
        return true;
    }
    bool refused = false;
    pthread_mutex_lock(&gate->lock);
    for (size_t i = 0; i < w->config->pool_count && !refused; i++) {
        struct gate_pool *p = &gate->pools[i];
        refused = p->other != NULL && refuses(p) && w->now.mono_us < p->until_us &&
                  gate_item_moves(p->mine, p->other, p->other_places, key);
        if (refused) {
            (void)snprintf(text, GATE_REFUSAL_MAX,
                           "proxies of pool %.100s are unequal: others keep this list elsewhere or "
                           "in another way, nothing done",
                           p->config->name);
        }
    }
    pthread_mutex_unlock(&gate->lock);
    return refused;
}

const char *gate_why(struct shared *shared, size_t pool_index, char why[GATE_WHY_MAX])
{
    struct gate *gate = shared->gate;
    pthread_mutex_lock(&gate->lock);
    (void)snprintf(why, GATE_WHY_MAX, "%s", gate->pools[pool_index].why);
    pthread_mutex_unlock(&gate->lock);
    return why;
}

/* --- one round ------------------------------------------------------------------------------ */

static void end_first(struct gate_pool *p)
{
    if (p->is_first && is_awaited(p)) {
        atomic_fetch_sub(&p->gate->unread, 1);
    }
    p->is_first = false;
}

static uint64_t mono_us(const struct gate_pool *p)
{
    return p->gate->worker->now.mono_us;
}

static uint64_t rounds_us(const struct gate_pool *p, unsigned rounds)
{
    return rounds * (uint64_t)p->config->gate_s * 1000000;
}

/* How many of the servers are seen so. */
static size_t count_seen(const struct gate_pool *p, enum seen seen)
{
    size_t count = 0;
    for (size_t i = 0; i < p->server_count; i++) {
        count += p->servers[i].seen == seen;
    }
    return count;
}

/* Of two that differ, the one with the higher change is right; else the first. */
static struct gate_server *find_right(struct gate_pool *p, enum seen seen)
{
    struct gate_server *best = NULL;
    for (size_t i = 0; i < p->server_count; i++) {
        struct gate_server *s = &p->servers[i];
        if (s->seen == seen && s->item != NULL &&
            (best == NULL || gate_item_change(s->item) > gate_item_change(best->item))) {
            best = s;
        }
    }
    return best;
}

static bool is_unequal(const struct gate_pool *p)
{
    return p->other != NULL && p->until_us == UINT64_MAX;
}

/* True: the others' item is still to be waited for. */
static bool waits_for_others(struct gate_pool *p)
{
    size_t equal = count_seen(p, SEEN_EQUAL);
    bool misses = is_unequal(p) ? equal < p->server_count : p->slept && equal == 0;
    bool doubts = misses && p->missed < DOUBTS;
    p->missed = doubts ? p->missed + 1 : 0;
    return doubts;
}

/* Of the servers that both proxies know, the first one by name that holds an item. NULL: none. */
static const struct gate_server *find_first(const struct gate_pool *p,
                                            const struct gate_item *other)
{
    const struct gate_server *first = NULL;
    const struct server_config *named = p->config->servers;
    for (size_t i = 0; i < p->server_count; i++) {
        const struct gate_server *s = &p->servers[i];
        if (s->item != NULL && s->seen != SEEN_NOTHING && s->seen != SEEN_NONE &&
            gate_item_has_server(other, named[i].name) &&
            (first == NULL || strcmp(named[i].name, named[first->index].name) < 0)) {
            first = s;
        }
    }
    return first;
}

/* Was the item of this proxy there before those of all that differ? Returns the server that says
 * so, as of one of them; NULL: it was not. */
static const struct gate_server *find_own_first(const struct gate_pool *p)
{
    const struct gate_server *first = NULL;
    if (is_unequal(p) && p->missed < DOUBTS) {
        return NULL;
    }
    for (size_t i = 0; i < p->server_count; i++) {
        const struct gate_server *s = &p->servers[i];
        if (s->seen != SEEN_OTHER) {
            continue;
        }
        first =
            gate_item_change(s->item) == gate_item_change(p->mine) ? find_first(p, s->item) : NULL;
        if (first == NULL || first->seen != SEEN_EQUAL) {
            return NULL;
        }
    }
    return first;
}

/* Where the item of this proxy was first, the others' count like those with a lower change. Returns
 * the server that says so, or NULL. */
static const struct gate_server *rank_by_first(struct gate_pool *p)
{
    const struct gate_server *first = find_own_first(p);
    for (size_t i = 0; i < p->server_count && first != NULL; i++) {
        struct gate_server *s = &p->servers[i];
        s->seen = s->seen == SEEN_OTHER ? SEEN_LOWER : s->seen;
    }
    return first;
}

/* The others have two rounds to see that their items are replaced. */
static void replace(struct gate_pool *p, struct gate_server *lower, const struct gate_server *first)
{
    if (!p->replaces && first != NULL) {
        log_warn("pool %s: other proxies have begun at the same time, and %s had the item of this "
                 "proxy first, which replaces theirs: %s",
                 p->config->name, p->config->servers[first->index].name, lower->why);
    } else if (!p->replaces) {
        log_warn("pool %s: change = %u of this proxy replaces what the pool had: %s",
                 p->config->name, (unsigned)p->config->change, lower->why);
    }
    say(p, "");
    p->replaces = true;
    p->missed = 0;
    take_other(p, lower, mono_us(p) + rounds_us(p, 2));
}

/* --- how far lists have moved ---------------------------------------------------------------- */

/* Makes the item of this proxy anew for its step. */
static void make_own(struct gate_pool *p)
{
    gate_item_destroy(&p->mine);
    free(p->body);
    p->body = gate_item_body(p->gate->shared->config, p->index, p->step);
    char *text = gate_item_write(p->body, 0);
    CHECK(gate_item_read(slice_of(text), &p->mine) == GATE_ITEM);
    free(text);
}

/* Who goes on in the step `move`, or behind it, has waited already. */
static void set_moves(struct gate_pool *p)
{
    _Atomic uint64_t *at_us = &p->gate->shared->moves_at_us[p->index];
    atomic_store(&p->gate->shared->steps[p->index], (uint8_t)p->step.step);
    if (p->step.step < STEP_MOVE) {
        atomic_store(at_us, UINT64_MAX);
    } else if (p->step.step == STEP_MOVED) {
        atomic_store(at_us, 0); /* others know the new servers alone */
    } else if (atomic_load(at_us) == UINT64_MAX) {
        atomic_store(at_us, mono_us(p) + rounds_us(p, GATE_MOVES_AFTER_ROUNDS));
    }
}

/* Takes the latest step that any server says. With the lock. */
static void follow_step(struct gate_pool *p)
{
    struct gate_step step = p->step;
    for (size_t i = 0; i < p->server_count; i++) {
        const struct gate_server *s = &p->servers[i];
        struct gate_step said =
            s->seen == SEEN_EQUAL ? gate_item_later_step(p->mine, s->item) : step;
        step = said.turn > step.turn ? said : step;
    }
    if (step.turn != p->step.turn) {
        p->step = step;
        make_own(p);
        set_moves(p);
        log_warn("pool %s: step %s of the move to %s (number %u), as the servers say",
                 p->config->name, gate_step_name(step), p->config->next_name, (unsigned)step.turn);
    }
}

/* The round was asked for at asked_us, and says what to go by. */
static void note_fresh(struct gate_pool *p)
{
    struct gate_fresh *fresh = &p->gate->shared->gate_fresh[p->index];
    bool answered = count_seen(p, SEEN_NOTHING) < p->server_count;
    if (!refuses(p)) {
        atomic_store(&fresh->until_us, UINT64_MAX); /* a reload may have ended that */
        return;
    }
    if (!answered) {
        return;
    }
    p->slept = false;
    if (mono_us(p) > atomic_load(&fresh->until_us)) {
        log_warn("pool %s: the gate was not read for more than %u s: changes of lists on their way "
                 "count as unknown",
                 p->config->name, GATE_FRESH_ROUNDS * (unsigned)p->config->gate_s);
        atomic_store(&fresh->gap_us, mono_us(p));
    }
    atomic_store(&fresh->until_us, p->asked_us + rounds_us(p, GATE_FRESH_ROUNDS));
}

/* True when this proxy is not the unequal one, and may write. */
static bool judge(struct gate_pool *p)
{
    const struct gate_server *first = rank_by_first(p);
    struct gate_server *other = find_right(p, SEEN_OTHER), *lower = find_right(p, SEEN_LOWER);
    bool right = other == NULL, doubts = false;
    pthread_mutex_lock(&p->gate->lock);
    follow_step(p);
    if (other != NULL) {
        say(p, other->why);
        p->missed = 0;
        take_other(p, other, UINT64_MAX);
    } else if (lower != NULL) {
        replace(p, lower, first);
    } else if (waits_for_others(p)) {
        right = p->missed == DOUBTS;
        doubts = p->slept && !right;
    } else if (p->until_us == UINT64_MAX || mono_us(p) >= p->until_us) {
        say(p, "");
        forget_other(p);
    }
    p->replaces = p->replaces && lower != NULL;
    set_states(p->gate);
    if (!doubts) {
        note_fresh(p);
    }
    pthread_mutex_unlock(&p->gate->lock);
    return right;
}

static void end_writes(struct gate_pool *p)
{
    if (p->again) {
        p->again = false;
        ask_round(p);
    } else {
        end_first(p);
    }
}

/* A server that has no room for the item goes without; the others have it. */
static void say_unkept(struct gate_server *s, bool kept, const char *reason)
{
    if (!kept && !s->unkept_said) {
        log_warn("pool %s: %s does not keep %s, by which unequal proxies are found: %s",
                 s->pool->config->name, s->pool->config->servers[s->index].name, s->pool->key,
                 reason != NULL ? reason : "it has no room");
    }
    s->unkept_said = !kept;
}

static void on_written(struct exchange *x, const struct be_reply *reply)
{
    struct gate_server *s = x->owner;
    struct gate_pool *p = s->pool;
    p->waiting--;
    if (p->gate->worker == NULL) {
        return;
    }
    say_unkept(s,
               reply->status != BE_NO_MEMORY && reply->status != BE_TOO_LARGE &&
                   reply->status != BE_REFUSED,
               reply->text);
    p->again = p->again || reply->status == BE_NOT_STORED || reply->status == BE_EXISTS;
    if (p->waiting == 0) {
        end_writes(p);
    }
}

static void write_item(struct gate_server *s, enum be_verb verb, bool own)
{
    struct gate_pool *p = s->pool;
    if (own) {
        gate_item_destroy(&s->item); /* another text than that which was read */
        free(s->value);
        s->value = gate_item_write(p->body, s->place);
        s->value_len = strlen(s->value);
    }
    uint64_t room = s->item_size_max == 0 ? UINT64_MAX : s->item_size_max;
    if (s->value_len > GATE_ITEM_BYTES_MAX || s->value_len + CONFIG_ITEM_REST_BYTES > room) {
        say_unkept(s, false, "it is too large");
        return;
    }
    s->x = (struct exchange){
        .op = {.verb = verb,
               .key = slice_of(p->key),
               .value = slice_make(s->value, s->value_len),
               .exptime = (int32_t)(p->config->gate_s * GATE_LIFE_ROUNDS),
               .cas = s->cas,
               .epoch = verb == BE_CAS ? s->epoch : 0},
        .needs_cas = true,
        .done = on_written,
        .owner = s,
    };
    p->waiting++;
    pool_submit_own(p->pool, s->index, &s->x);
}

/* Where a server tells no times, each proxy renews once in a third of the item's life. */
static bool is_due(const struct gate_server *s)
{
    int64_t life_s = (int64_t)s->pool->config->gate_s * GATE_LIFE_ROUNDS;
    return s->no_times ? s->pool->rounds % (GATE_LIFE_ROUNDS / 3) == 0 : s->ttl_s < life_s / 2;
}

static void write_where_needed(struct gate_pool *p)
{
    for (size_t i = 0; i < p->server_count; i++) {
        struct gate_server *s = &p->servers[i];
        if (s->seen == SEEN_NONE) {
            write_item(s, BE_ADD, true);
        } else if (s->seen == SEEN_LOWER) {
            write_item(s, BE_CAS, true);
        } else if (s->seen == SEEN_EQUAL && gate_item_change(s->item) < gate_item_change(p->mine)) {
            write_item(s, BE_CAS, true);
        } else if (s->seen == SEEN_EQUAL &&
                   gate_item_change(s->item) == gate_item_change(p->mine) && is_due(s)) {
            write_item(s, BE_CAS, false);
        }
    }
    if (p->waiting == 0) {
        end_writes(p);
    }
}

/* What is said of a server that holds something else. */
static void say_foreign(struct gate_server *s, enum gate_kind kind)
{
    if (!s->foreign_said) {
        log_warn("pool %s: %s holds %s under %s, which the proxy leaves alone: unequal proxies are "
                 "not found there",
                 s->pool->config->name, s->pool->config->servers[s->index].name,
                 kind == GATE_NEWER ? "an item of a later release" : "foreign data", s->pool->key);
    }
    s->foreign_said = true;
}

static enum seen look_at(struct gate_server *s, const struct be_reply *reply)
{
    struct gate_pool *p = s->pool;
    bool same = s->item != NULL && s->turn_of_item == p->step.turn &&
                reply->value.len == s->value_len &&
                memcmp(reply->value.p, s->value, s->value_len) == 0;
    s->cas = reply->cas;
    s->epoch = reply->epoch;
    s->ttl_s = reply->ttl_s;
    s->no_times = reply->no_times;
    if (same) {
        return s->seen_of_item;
    }
    gate_item_destroy(&s->item);
    enum gate_kind kind = gate_item_read(reply->value, &s->item);
    if (kind != GATE_ITEM) {
        say_foreign(s, kind);
        return SEEN_FOREIGN;
    }
    s->foreign_said = false;
    free(s->value);
    s->value = malloc(reply->value.len);
    CHECK(s->value != NULL);
    memcpy(s->value, reply->value.p, reply->value.len);
    s->value_len = reply->value.len;
    s->turn_of_item = p->step.turn;
    if (gate_item_agrees(p->mine, s->item, s->place, s->why)) {
        return SEEN_EQUAL;
    }
    return gate_item_change(s->item) < gate_item_change(p->mine) ? SEEN_LOWER : SEEN_OTHER;
}

static void on_read(struct exchange *x, const struct be_reply *reply)
{
    struct gate_server *s = x->owner;
    struct gate_pool *p = s->pool;
    p->waiting--;
    if (p->gate->worker == NULL) {
        return;
    }
    if (reply->caps != NULL) {
        s->item_size_max = reply->caps->item_size_max;
    }
    if (reply->status == BE_HIT) {
        s->seen = s->seen_of_item = look_at(s, reply);
    } else {
        s->seen = reply->status == BE_MISS ? SEEN_NONE : SEEN_NOTHING;
    }
    if (p->waiting > 0) {
        return;
    }
    p->rounds++;
    if (judge(p)) {
        write_where_needed(p);
    } else {
        end_first(p);
    }
}

static void ask_round(struct gate_pool *p)
{
    uint64_t until_us = p->asked_us + rounds_us(p, GATE_FRESH_ROUNDS);
    p->slept = p->slept || (p->asked_us != 0 && mono_us(p) > until_us);
    p->asked_us = mono_us(p);
    for (size_t i = 0; i < p->server_count; i++) {
        struct gate_server *s = &p->servers[i];
        s->x = (struct exchange){
            .op = {.verb = BE_GET, .time_optional = true, .key = slice_of(p->key)},
            .done = on_read,
            .owner = s,
        };
        p->waiting++;
        pool_submit_own(p->pool, s->index, &s->x);
    }
}

static void on_gate_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gate_pool *p = arg;
    (void)fd, (void)what;
    worker_woke(p->gate->worker);
    if (p->waiting == 0) { /* else a server is slow */
        ask_round(p);
    }
}

/* --- start and stop ------------------------------------------------------------------------- */

static void start_pool(struct gate_pool *p, struct pool *pool)
{
    struct timeval interval = {p->config->gate_s, 0};
    p->step = (struct gate_step){.step = p->config->step};
    make_own(p);
    set_moves(p);
    gate_item_key(p->config, p->key);
    p->server_count = p->config->type == POOL_COUCHBASE ? 1 : p->config->server_count;
    p->servers = calloc(p->server_count, sizeof *p->servers);
    p->other_places = calloc(p->server_count, sizeof *p->other_places);
    CHECK(p->servers != NULL && p->other_places != NULL);
    for (size_t i = 0; i < p->server_count; i++) {
        p->servers[i].pool = p;
        p->servers[i].index = i;
        p->servers[i].place = gate_item_place(p->config, i);
        p->other_places[i] = GATE_NO_PLACE;
    }
    p->pool = pool;
    event_assign(&p->timer, p->gate->worker->base, -1, EV_PERSIST, on_gate_timer, p);
    event_add(&p->timer, &interval);
    ask_round(p);
}

/* Does a section of the file speak of lists in that pool? */
static bool has_lists(const struct config *config, size_t pool_index)
{
    for (size_t i = 0; i < config->list_count; i++) {
        if (config->lists[i].line != 0 && config->lists[i].pool_index == pool_index) {
            return true;
        }
    }
    return false;
}

void gate_create(struct shared *s)
{
    struct gate *gate = calloc(1, sizeof *gate);
    CHECK(gate != NULL);
    CHECK(pthread_mutex_init(&gate->lock, NULL) == 0);
    gate->shared = s;
    s->gate = gate;
    for (size_t i = 0; i < s->config->pool_count; i++) {
        struct gate_pool *p = &gate->pools[i];
        p->gate = gate;
        p->index = i;
        p->config = &s->config->pools[i];
        p->until_us = UINT64_MAX;
        p->is_first =
            p->config->gate_s != 0 && (has_lists(s->config, i) || p->config->next_name[0] != '\0');
        atomic_init(&s->moves_at_us[i], UINT64_MAX);
        atomic_init(&s->gate_fresh[i].until_us, UINT64_MAX);
        atomic_init(&s->steps[i], (uint8_t)p->config->step);
        if (p->is_first && is_awaited(p)) {
            gate->unread++;
        }
    }
    set_states(gate);
}

void gate_attach(struct worker *w)
{
    struct gate *gate = w->shared->gate;
    if (w->index != 0) {
        return;
    }
    gate->worker = w;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        if (gate->pools[i].is_first) {
            start_pool(&gate->pools[i], w->pools[i]);
        }
    }
    set_states(gate);
}

void gate_woken(struct worker *w)
{
    struct gate *gate = w->shared->gate;
    if (w != gate->worker) {
        return;
    }
    for (size_t i = 0; i < w->config->pool_count; i++) {
        struct gate_pool *p = &gate->pools[i];
        if (!atomic_load(&gate->wanted[i]) || !atomic_exchange(&gate->wanted[i], false)) {
            continue;
        }
        if (p->pool == NULL) {
            start_pool(p, w->pools[i]);
            pthread_mutex_lock(&gate->lock);
            set_states(gate);
            pthread_mutex_unlock(&gate->lock);
        } else if (p->waiting == 0) {
            ask_round(p);
        }
    }
}

void gate_detach(struct worker *w)
{
    struct gate *gate = w->shared->gate;
    if (w != gate->worker) {
        return;
    }
    gate->worker = NULL;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        if (gate->pools[i].pool != NULL) {
            event_del(&gate->pools[i].timer);
        }
    }
}

bool gate_is_read(const struct shared *s)
{
    return atomic_load(&s->gate->unread) == 0;
}

void gate_destroy(struct shared *s)
{
    struct gate *gate = s->gate;
    s->gate = NULL;
    for (size_t i = 0; gate != NULL && i < s->config->pool_count; i++) {
        struct gate_pool *p = &gate->pools[i];
        for (size_t k = 0; k < p->server_count; k++) {
            gate_item_destroy(&p->servers[k].item);
            free(p->servers[k].value);
        }
        free(p->servers);
        free(p->other_places);
        gate_item_destroy(&p->other);
        gate_item_destroy(&p->mine);
        free(p->body);
    }
    if (gate != NULL) {
        pthread_mutex_destroy(&gate->lock);
        free(gate);
    }
}
