/* SPDX-License-Identifier: BSD-3-Clause */
#include "transactions.h"

struct search {
    const struct atomic_world *w;
    const struct state *last;
    uint32_t counts; /* calls that count */
    uint32_t must;   /* of these, those that took effect for sure */
};

/* Was that one answered before this one was asked? */
static bool precedes(const struct asked *that, const struct asked *this)
{
    return that->answered_at != 0 && that->answered_at < this->asked_at;
}

static bool is_last(const struct search *s, uint32_t done, const struct state *state)
{
    return (s->must & ~done) == 0 && memcmp(state, s->last, sizeof *state) == 0;
}

static bool may_be_next(const struct search *s, uint32_t done, unsigned at)
{
    if (!(s->counts & ~done & 1u << at)) {
        return false;
    }
    for (unsigned i = 0; i < s->w->count; i++) {
        bool waits = (s->must & ~done & 1u << i) != 0;
        if (waits && i != at && precedes(&s->w->calls[i], &s->w->calls[at])) {
            return false;
        }
    }
    return true;
}

static bool go(const struct search *s, uint32_t done, const struct state *state)
{
    if (is_last(s, done, state)) {
        return true;
    }
    for (unsigned i = 0; i < s->w->count; i++) {
        const struct asked *a = &s->w->calls[i];
        if (!may_be_next(s, done, i)) {
            continue;
        }
        bool guesses = a->call.verb == LIST_POPTO && a->end != CALL_DONE;
        for (unsigned moved = 0; moved < (guesses ? 1u << ITEMS : 1); moved++) {
            struct state next = *state;
            if (asked_apply(a, (uint8_t)moved, &next) && go(s, done | 1u << i, &next)) {
                return true;
            }
        }
    }
    return false;
}

/* Calls that were refused are in no order; those without a known outcome may be in it. One that was
 * never answered comes before none, so it may come at any time since it was asked: its requests may
 * arrive late. */
bool explains(const struct atomic_world *w, const struct state *last)
{
    struct search s = {.w = w, .last = last};
    for (unsigned i = 0; i < w->count; i++) {
        if (!asked_says_nothing(&w->calls[i])) {
            s.counts |= 1u << i;
            s.must |= w->calls[i].end == CALL_DONE ? 1u << i : 0;
        }
    }
    return go(&s, 0, &w->first);
}
