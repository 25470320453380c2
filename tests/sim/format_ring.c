/* SPDX-License-Identifier: BSD-3-Clause */
/* What the slots of a ring hold, template by template. */
#include "format.h"

#include <stdio.h>

static bool take_front(struct slice *text, const char *gap, uint64_t *number)
{
    size_t digits = 0, len = strlen(gap);
    while (digits < text->len && text->p[digits] >= '0' && text->p[digits] <= '9') {
        digits++;
    }
    if (!slice_to_u64(slice_take(text, digits), number) ||
        !slice_starts_with(*text, slice_of(gap))) {
        return false;
    }
    (void)slice_take(text, len);
    return true;
}

static bool take_back(struct slice *text, const char *gap, uint64_t *number)
{
    size_t at = text->len, len = strlen(gap);
    while (at > 0 && text->p[at - 1] >= '0' && text->p[at - 1] <= '9') {
        at--;
    }
    if (at < len || !slice_equal(slice_make(text->p + at - len, len), slice_of(gap)) ||
        !slice_to_u64(slice_make(text->p + at, text->len - at), number)) {
        return false;
    }
    text->len = at - len;
    return true;
}

bool entry_take_time(const struct format *f, struct slice *shown)
{
    uint64_t seconds = 0;
    switch (f->slot) {
    case 1:
    case 3:
        return take_back(shown, " ", &seconds);
    case 2:
        return take_front(shown, "|", &seconds);
    case 5:
        return take_front(shown, ": ", &seconds);
    default:
        return true;
    }
}

bool entry_take(const struct format *f, struct slice value, struct ring_entry *entry)
{
    entry->number = 0;
    bool good = !f->numbered   ? true
                : f->slot == 2 ? take_back(&value, " at ", &entry->number)
                               : take_front(&value, " ", &entry->number);
    return good && entry_take_time(f, &value) && item_of_name(value, &entry->id);
}

size_t entry_make(const struct format *f, uint64_t number, struct slice item, int64_t now_s,
                  char *out, size_t cap)
{
    unsigned long long n = number, t = (unsigned long long)now_s;
    int len = (int)item.len;
    switch (f->slot) {
    case 0:
        return (size_t)snprintf(out, cap, "%llu %.*s", n, len, item.p);
    case 1:
        return (size_t)snprintf(out, cap, "%llu %.*s %llu", n, len, item.p, t);
    case 2:
        return (size_t)snprintf(out, cap, "%llu|%.*s at %llu", t, len, item.p, n);
    case 3:
        return (size_t)snprintf(out, cap, "%.*s %llu", len, item.p, t);
    case 4:
        return (size_t)snprintf(out, cap, "%.*s", len, item.p);
    default:
        return (size_t)snprintf(out, cap, "%llu: %.*s", t, len, item.p);
    }
}
