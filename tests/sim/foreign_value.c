/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands under the name of a list, and is none: as an application may have put it there.
 */
#include "world.h"

/* An item of so many bytes is longer than max_item_bytes, with a ring's time behind it, too. */
#define LONG_BYTES 60

enum kind { ARRAY, OBJECT, WORD, NUMBER, FLAGGED, CONTROL, LONG, KINDS };

static bool is_delimited(const struct sim_world *w)
{
    return w->p.dialect == DIALECT_SIMPLE || w->p.dialect == DIALECT_TOMBSTONE ||
           w->p.dialect == DIALECT_PAIRED || w->p.delimited;
}

/* A value of the list's own format, but for what stands in place of its item. */
static void put_own(const struct foreign_list *f, struct slice item, struct block **b)
{
    const struct sim_world *w = f->world;
    const struct format *format = &w->format;
    bool delimiter = is_delimited(w);
    bool sign = !delimiter && (w->p.dialect == DIALECT_SIGNED || w->p.dialect == DIALECT_SUBLISTS ||
                               f->part == FORMAT_A || f->part == FORMAT_B);
    if (w->p.dialect == DIALECT_NATIVE) {
        block_append(b, "^1", 2);
    } else if (sign) {
        block_append(b, &format->plus, 1);
    } else if (f->part == FORMAT_SLOT) {
        char text[160];
        size_t len =
            entry_make(format, f->number, item, world_now(&w->base).wall_s, text, sizeof text);
        block_append(b, text, len);
        return;
    }
    block_append(b, item.p, item.len);
    if (delimiter || w->p.dialect == DIALECT_NATIVE) {
        block_append(b, delimiter ? "," : "\n", 1);
    }
}

static struct slice own_item(const struct foreign_list *f, char name[KEY_BYTES_MAX + 1])
{
    if (f->part == FORMAT_ACTIVE) {
        return slice_make(name, format_key(&f->world->format, f->list, FORMAT_A, 0, name));
    }
    bool number = f->part == FORMAT_SEQ || f->world->p.dialect == DIALECT_SUBLISTS;
    return f->world->p.dialect == DIALECT_NATIVE ? SLICE_NONE
           : number                              ? SLICE_LIT("7")
                                                 : item_text(3);
}

/* An entry of another slot of a ring. */
static void put_misplaced(struct foreign_list *f, struct block **b)
{
    const struct format *format = &f->world->format;
    char text[160];
    uint64_t number = f->number + 1 + rng_below(&f->rng, 3) * format->capacity;
    size_t len = entry_make(format, number, item_text(3), START_WALL_S, text, sizeof text);
    block_append(b, text, len);
}

struct block *foreign_value(struct foreign_list *f, uint32_t *flags)
{
    static const char *const texts[] = {"[5,1,1,3]", "{\"a\":1,\"b\":[2,3]}", "hello", "12345"};
    static const uint32_t other_flags[] = {1, 4, 8, 32};
    char item[LONG_BYTES], name[KEY_BYTES_MAX + 1];
    enum kind kind = (enum kind)rng_below(&f->rng, KINDS);
    struct block *b = block_new(64);
    *flags = 0;
    memset(item, '9', sizeof item);
    if (kind == NUMBER && f->part == FORMAT_SEQ) {
        kind = WORD;
    }
    if ((kind == NUMBER || kind == WORD) && is_delimited(f->world)) {
        kind = OBJECT; /* a word is a list of one item there */
    }
    /* Where a slot holds the item alone, any text is one; where it holds numbers, most are of other
     * slots. */
    bool bare = f->part == FORMAT_SLOT && f->world->format.slot == FORMAT_SLOT_BARE;
    if (bare && kind < FLAGGED) {
        kind = CONTROL;
    }
    if (kind == NUMBER && f->part == FORMAT_SLOT && f->world->format.numbered &&
        f->world->format.capacity > 1) {
        put_misplaced(f, &b);
    } else if (kind == FLAGGED) {
        *flags = other_flags[rng_below(&f->rng, 4)];
        put_own(f, own_item(f, name), &b);
    } else if (kind == CONTROL) {
        put_own(f, SLICE_LIT(" a\x03"), &b);
    } else if (kind == LONG) {
        put_own(f, slice_make(item, sizeof item), &b);
    } else {
        block_append(&b, texts[kind], strlen(texts[kind]));
    }
    return b;
}
