/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialects_maybe.h"

#include "base/check.h"

letters letters_of(const char *items)
{
    letters set = 0;
    for (; items != NULL && *items != '\0'; items++) {
        set |= (letters)1 << (*items - 'a');
    }
    return set;
}

letters applied(const struct op_spec *spec, letters set)
{
    switch (spec->verb) {
    case LIST_ADD:
        return set | letters_of(spec->items);
    case LIST_DEL:
        return set & ~letters_of(spec->items);
    case LIST_SET:
    case LIST_DROP:
        return letters_of(spec->items);
    default:
        return set;
    }
}

static void maybe_add(struct maybe *maybe, letters set)
{
    CHECK(maybe->count < MAYBE_MAX);
    maybe->sets[maybe->count++] = set;
}

void maybe_after(struct maybe *maybe, letters first, const struct asked *one,
                 const struct asked *two)
{
    letters after_one = applied(one->spec, first);
    bool one_may = one->end != CALL_REFUSED, one_must = one->end == CALL_DONE;
    bool two_may = two->end != CALL_REFUSED, two_must = two->end == CALL_DONE;
    if (one_may && two_may) {
        maybe_add(maybe, applied(two->spec, after_one));
    }
    if (one_may && !two_must) {
        maybe_add(maybe, after_one);
    }
    if (!one_must && two_may) {
        maybe_add(maybe, applied(two->spec, first));
    }
    if (!one_must && !two_must) {
        maybe_add(maybe, first);
    }
}

static letters by_hand(letters set)
{
    return (set | letters_of("y")) & ~letters_of("b");
}

void maybe_with_hand(struct maybe *maybe, letters first, const struct asked *one,
                     const struct asked *two, bool both_before)
{
    struct maybe before = {0};
    maybe_after(&before, first, one, two);
    for (unsigned i = 0; i < before.count; i++) {
        maybe_add(maybe, by_hand(before.sets[i]));
    }
    if (both_before) {
        return;
    }
    maybe_after(maybe, by_hand(first), one, two);
    if (one->end != CALL_REFUSED && two->end != CALL_REFUSED) {
        maybe_add(maybe, applied(two->spec, by_hand(applied(one->spec, first))));
    }
}

static bool replaces(const struct asked *asked)
{
    return asked->spec->verb == LIST_SET || asked->spec->verb == LIST_DROP;
}

bool is_weak(enum list_dialect dialect, const struct asked *a, const struct asked *b)
{
    bool several = dialect > DIALECT_SIGNED && dialect != DIALECT_PAIRED;
    return several && (replaces(a) || replaces(b));
}

bool is_allowed(const struct maybe *maybe, letters set, bool weak)
{
    letters all = ~(letters)0;
    for (unsigned i = 0; i < maybe->count; i++) {
        if (maybe->sets[i] == set) {
            return true;
        }
        all &= maybe->sets[i];
    }
    return weak && (all & ~set) == 0;
}
