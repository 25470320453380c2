/* SPDX-License-Identifier: BSD-3-Clause */
#include "transactions.h"

#include <stdio.h>
#include <string.h>

static uint8_t add_item(uint8_t bits, char digit)
{
    CHECK(digit >= '0' && digit < '0' + ITEMS);
    return (uint8_t)(bits | 1u << (digit - '0'));
}

static size_t items_of(uint8_t bits, struct slice items[ITEMS])
{
    size_t count = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        if (bits & 1u << i) {
            items[count++] = item_text((uint16_t)i);
        }
    }
    return count;
}

static unsigned add_list(struct asked *a, char key)
{
    CHECK(key >= 'A' && key < 'A' + LISTS && a->list_count < LISTS);
    unsigned at = a->list_count++;
    a->keys[at] = key;
    a->lists[at] = (unsigned)(key - 'A');
    a->several[at].key = slice_make(&a->keys[at], 1);
    a->several[at].policy = a->call.policy;
    chain_init(&a->several[at].answer);
    return at;
}

/* A+01-2: the changes of one list. */
static void read_changes(struct asked *a, const char *word)
{
    static const char signs[] = "+-=?!";
    static const enum tx_op ops[] = {TX_OP_ADD, TX_OP_DEL, TX_OP_SET, TX_OP_REQUIRE, TX_OP_REFUSE};
    unsigned at = add_list(a, *word++);
    struct call_list *list = &a->several[at];
    list->changes = a->changes[at];
    while (*word != '\0') {
        const char *sign = strchr(signs, *word++);
        CHECK(sign != NULL && list->change_count < CHANGES_MAX);
        size_t n = list->change_count++;
        while (*word >= '0' && *word <= '9') {
            a->bits[at][n] = add_item(a->bits[at][n], *word++);
        }
        a->changes[at][n] = (struct tx_change){
            .op = ops[sign - signs],
            .items = a->items[at][n],
            .item_count = items_of(a->bits[at][n], a->items[at][n]),
        };
    }
}

static enum list_verb verb_of(const char *word)
{
    for (unsigned v = 0; v < LIST_VERB_COUNT; v++) {
        if (strcmp(list_verb_word((enum list_verb)v), word) == 0) {
            return (enum list_verb)v;
        }
    }
    CHECK(!"a verb");
    return LIST_GET;
}

static void read_word(struct asked *a, const char *word)
{
    if (a->call.verb == LIST_TX) {
        read_changes(a, word);
    } else if (*word >= 'A' && *word <= 'Z') {
        while (*word != '\0') {
            (void)add_list(a, *word++);
        }
    } else if (a->call.verb == LIST_POPTO) {
        bool back = *word == '-';
        a->call.count = (back ? -1 : 1) * (word[back] - '0');
    } else {
        while (*word != '\0') {
            a->named = add_item(a->named, *word++);
        }
    }
}

void asked_init(struct atomic_world *w, struct asked *a, const char *text)
{
    char copy[TEXT_MAX], *rest = copy;
    *a = (struct asked){.world = w};
    snprintf(a->text, sizeof a->text, "%s", text);
    snprintf(copy, sizeof copy, "%s", text);
    a->call = (struct list_call){.verb = verb_of(strsep(&rest, " ")),
                                 .form = LIST_FORM_JOINED,
                                 .policy = &w->config->lists[0],
                                 .owner = a};
    while (rest != NULL) {
        read_word(a, strsep(&rest, " "));
    }
    a->call.key = slice_make(&a->keys[0], 1);
    a->call.items = a->named_items;
    a->call.item_count = items_of(a->named, a->named_items);
    enum list_kind kind = list_verb_kind(a->call.verb);
    if (kind == LIST_KIND_TX || kind == LIST_KIND_JOINT) {
        a->call.lists = a->several;
        a->call.list_count = a->list_count;
    }
    chain_init(&a->call.answer);
}

void asked_fini(struct asked *a)
{
    chain_fini(&a->call.answer);
    for (unsigned i = 0; i < a->list_count; i++) {
        chain_fini(&a->several[i].answer);
    }
}

static uint8_t read_items(struct chain *chain)
{
    uint8_t bits = 0;
    char text[256];
    size_t used = 0;
    struct iovec iov;
    while (chain->bytes > 0) {
        CHECK(chain_iov(chain, &iov, 1) == 1 && used + iov.iov_len < sizeof text);
        memcpy(text + used, iov.iov_base, iov.iov_len);
        used += iov.iov_len;
        chain_consume(chain, iov.iov_len);
    }
    struct slice rest = slice_make(text, used);
    while (rest.len > 0) {
        const char *end = memchr(rest.p, ',', rest.len);
        struct slice name = slice_take(&rest, end == NULL ? rest.len : (size_t)(end - rest.p));
        uint16_t id;
        CHECK(item_of_name(name, &id) && id < ITEMS && !(bits & 1u << id));
        bits |= (uint8_t)(1u << id);
        if (end != NULL) {
            (void)slice_take(&rest, 1);
        }
    }
    return bits;
}

void asked_answered(struct asked *a)
{
    a->end = call_end_of(&a->call);
    if (a->call.verb == LIST_GETX) {
        for (unsigned i = 0; i < a->list_count; i++) {
            a->seen[i] = read_items(&a->several[i].answer);
        }
    } else if (a->call.verb != LIST_STAT) {
        a->seen[0] = read_items(&a->call.answer);
    }
}

/* ---- what calls do ---- */

static bool conditions_hold(const struct asked *a, const struct state *state)
{
    for (unsigned i = 0; i < a->list_count; i++) {
        uint8_t items = state->items[a->lists[i]];
        for (size_t n = 0; n < a->several[i].change_count; n++) {
            uint8_t bits = a->bits[i][n];
            enum tx_op op = a->changes[i][n].op;
            if ((op == TX_OP_REQUIRE && (items & bits) != bits) ||
                (op == TX_OP_REFUSE && (items & bits) != 0)) {
                return false;
            }
        }
    }
    return true;
}

static void do_changes(const struct asked *a, struct state *state)
{
    for (unsigned i = 0; i < a->list_count; i++) {
        uint8_t *items = &state->items[a->lists[i]];
        for (size_t n = 0; n < a->several[i].change_count; n++) {
            uint8_t bits = a->bits[i][n];
            enum tx_op op = a->changes[i][n].op;
            *items = op == TX_OP_SET   ? bits
                     : op == TX_OP_ADD ? *items | bits
                     : op == TX_OP_DEL ? *items & (uint8_t)~bits
                                       : *items;
        }
    }
}

static bool do_moves(const struct asked *a, uint8_t moved, struct state *state)
{
    uint8_t *from = &state->items[a->lists[0]], *to = &state->items[a->lists[1]];
    bool answered = a->end == CALL_DONE;
    if (a->call.verb == LIST_MOVE) {
        moved = *from & a->named;
        if (answered && a->call.number != (uint64_t)__builtin_popcount(moved)) {
            return false;
        }
    } else {
        int wanted = (int)(a->call.count < 0 ? -a->call.count : a->call.count);
        int had = __builtin_popcount(*from);
        moved = answered ? a->seen[0] : moved;
        if ((*from & moved) != moved ||
            __builtin_popcount(moved) != (wanted < had ? wanted : had)) {
            return false;
        }
    }
    *from &= (uint8_t)~moved;
    *to |= moved;
    return true;
}

static bool do_single(const struct asked *a, struct state *state)
{
    uint8_t *items = &state->items[a->lists[0]], before = *items;
    enum list_verb verb = a->call.verb;
    bool adds = verb == LIST_ADD || verb == LIST_ADDX, dels = verb == LIST_DEL || verb == LIST_DELX;
    *items = adds                ? before | a->named
             : dels              ? before & (uint8_t)~a->named
             : verb == LIST_SET  ? a->named
             : verb == LIST_DROP ? 0
                                 : before;
    bool counts = (verb == LIST_ADDX || verb == LIST_DELX) && a->end == CALL_DONE;
    return !counts || a->call.number == (uint64_t)__builtin_popcount(before ^ *items);
}

bool asked_apply(const struct asked *a, uint8_t moved, struct state *state)
{
    enum list_verb verb = a->call.verb;
    bool answered = a->end == CALL_DONE;
    if (verb == LIST_TX && answered && a->call.status == LIST_NOT_STORED) {
        return !conditions_hold(a, state);
    }
    if (verb == LIST_TX) {
        bool good = conditions_hold(a, state);
        do_changes(a, state);
        return good;
    }
    if (verb == LIST_MOVE || verb == LIST_POPTO) {
        return do_moves(a, moved, state);
    }
    if (!list_verb_reads(verb)) {
        return do_single(a, state);
    }
    for (unsigned i = 0; i < a->list_count; i++) {
        if (a->seen[i] != state->items[a->lists[i]]) {
            return false;
        }
    }
    return true;
}

bool asked_says_nothing(const struct asked *a)
{
    bool reads = list_verb_reads(a->call.verb);
    return a->call.verb == LIST_COMPACT || a->end == CALL_REFUSED || (reads && a->end != CALL_DONE);
}

void asked_describe(const struct asked *a, char *out, size_t cap)
{
    static const char *const ends[] = {"no answer", "done", "refused", "unknown"};
    int n = snprintf(out, cap, "%s -> %s", a->text, ends[a->end]);
    if (a->end == CALL_DONE) {
        n += snprintf(out + n, cap - (size_t)n, " %d, number %llu, seen %x %x %x", a->call.status,
                      (unsigned long long)a->call.number, a->seen[0], a->seen[1], a->seen[2]);
    } else if (a->end != CALL_OPEN) {
        snprintf(out + n, cap - (size_t)n, ": %s", a->call.error);
    }
}
