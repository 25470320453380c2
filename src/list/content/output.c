/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/output.h"

#include "proto/client/list_format.h"

/* Writes items first..last-1 of the sublist, which stand side by side in its text. */
static void write_joined(struct output *o, struct sublist *s, uint32_t first, uint32_t last)
{
    if (o->written > last - first) {
        char delimiter = (char)o->delimiter;
        chain_copy(o->out, &delimiter, 1);
    }
    chain_add(o->out, s->text, s->text->data + s->starts[first],
              s->starts[last] - s->starts[first] - 1);
}

static void take(struct output *o, struct slice item)
{
    o->enough = !o->take(o, item);
    o->written++;
}

static RARE void take_span(struct output *o, struct sublist *s, uint32_t first, uint32_t last)
{
    uint64_t start = o->position, end = start + (last - first);
    uint64_t at = o->from > start ? o->from : start;
    while (at < end && at <= o->to && !o->enough) {
        take(o, sublist_item(s, first + (uint32_t)(at - start)));
        at = o->from > at ? o->from : at + 1;
    }
    o->position = end;
}

void output_span(struct output *o, struct sublist *s, uint32_t first, uint32_t last)
{
    if (o->take != NULL) {
        take_span(o, s, first, last);
        return;
    }
    uint64_t start = o->position;
    o->position += last - first;
    if ((o->out == NULL && o->gather == NULL) || first == last || start > o->to ||
        o->position <= o->from) {
        return;
    }
    uint32_t skip = o->from > start ? (uint32_t)(o->from - start) : 0;
    uint32_t over = o->position - 1 > o->to ? (uint32_t)(o->position - 1 - o->to) : 0;
    first += skip;
    last -= over;
    o->written += last - first;
    if (o->gather != NULL) {
        gather_span(o->gather, s, first, last);
        o->too_large = o->gather->full;
        return;
    }
    if (o->items_form) {
        for (uint32_t i = first; i < last; i++) {
            list_format_item(o->out, o->key, sublist_item(s, i));
        }
    } else {
        write_joined(o, s, first, last);
    }
    o->too_large = o->out->bytes > o->limit_bytes;
}

void output_back(struct output *o, struct sublist *s)
{
    uint64_t wanted_in = o->from > o->position ? o->from - o->position : 0;
    uint32_t skipped = wanted_in < s->count ? (uint32_t)wanted_in : s->count;
    uint32_t last = s->count - skipped;
    o->position += skipped;
    while (last > 0 && !output_satisfied(o)) {
        output_item(o, sublist_item(s, --last));
    }
}

void output_item(struct output *o, struct slice item)
{
    uint64_t position = o->position++;
    if (o->take != NULL) {
        if (position >= o->from && position <= o->to && !o->enough) {
            take(o, item);
        }
        return;
    }
    if ((o->out == NULL && o->gather == NULL) || position < o->from || position > o->to) {
        return;
    }
    o->written++;
    if (o->gather != NULL) {
        gather_item(o->gather, item);
        o->too_large = o->gather->full;
        return;
    }
    if (o->items_form) {
        list_format_item(o->out, o->key, item);
    } else {
        chain_copy_behind(o->out, o->written > 1, (char)o->delimiter, item);
    }
    o->too_large = o->out->bytes > o->limit_bytes;
}
