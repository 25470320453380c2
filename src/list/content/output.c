/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/output.h"

#include <string.h>

#include "base/number.h"
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

/* Most lists are short and read whole, as text: their items up to the first that does not fit
 * behind what the chain holds, or within the limit. */
static void write_what_fits(struct output *o, const struct fold *fold, int64_t over_s, uint32_t *at)
{
    char *start, *p;
    uint64_t room = u64_least(chain_room(o->out, &start), o->limit_bytes - o->out->bytes);
    uint64_t before = o->written;
    uint32_t next = *at;
    struct slice item;
    for (p = start;
         fold_next_item(fold, over_s, &next, &item) && room - (size_t)(p - start) > item.len;
         *at = next) {
        *p = (char)o->delimiter;
        p += o->written++ > 0;
        memcpy(p, item.p, item.len);
        p += item.len;
    }
    o->position += o->written - before;
    if (p > start) {
        chain_commit(o->out, (size_t)(p - start));
    }
}

void output_fold(struct output *o, const struct fold *fold, int64_t over_s, bool back)
{
    uint32_t at = back ? fold->count : 0;
    bool whole = !back && o->out != NULL && o->take == NULL && o->gather == NULL &&
                 !o->items_form && o->from == 0 && o->to == UINT64_MAX;
    struct slice item;
    while (!output_satisfied(o) && (back ? fold_previous(fold, over_s, &at, &item)
                                         : fold_next_item(fold, over_s, &at, &item))) {
        output_item(o, item);
        if (whole && !o->too_large) {
            write_what_fits(o, fold, over_s, &at);
        }
    }
}
