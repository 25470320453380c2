/* SPDX-License-Identifier: BSD-3-Clause */
/* X.active, which names the active log of flip.c. */
#include "dialect/two_logs/two_logs.h"

static struct slice name_of(const struct list *list, int which, char text[KEY_BYTES_MAX])
{
    return slice_make(text, cell_name(list, two_logs_role(which), 0, text));
}

/* The log's name without what both names begin with and end with. */
static struct slice short_name(const struct list *list, int which, char text[KEY_BYTES_MAX])
{
    char other_text[KEY_BYTES_MAX];
    struct slice name = name_of(list, which, text), other = name_of(list, 1 - which, other_text);
    while (name.len > 0 && other.len > 0 && *name.p == *other.p) {
        (void)slice_take(&name, 1);
        (void)slice_take(&other, 1);
    }
    while (name.len > 0 && other.len > 0 && name.p[name.len - 1] == other.p[other.len - 1]) {
        name.len--;
        other.len--;
    }
    return name;
}

int two_logs_named(const struct list *list, struct slice value)
{
    char text[KEY_BYTES_MAX];
    for (int which = 0; which < 2 && value.len > 0; which++) {
        if (slice_equal(value, name_of(list, which, text)) ||
            slice_equal(value, short_name(list, which, text))) {
            return which + 1;
        }
    }
    return 0;
}

/* May live in text. */
static struct slice pointer_text(const struct list *list, int which, struct slice before,
                                 char text[KEY_BYTES_MAX])
{
    int named = two_logs_named(list, before);
    bool whole = named == 0 || slice_equal(before, name_of(list, named - 1, text));
    return whole ? name_of(list, which, text) : short_name(list, which, text);
}

void two_logs_write_pointer(struct engine *e, struct work *w, int which)
{
    const struct cell *pointer = &w->cells[TWO_LOGS_POINTER];
    char text[KEY_BYTES_MAX];
    struct slice name = pointer_text(w->op.list, which, pointer->value, text);
    struct block *value = block_new(name.len);
    block_append(&value, name.p, name.len);
    cell_write(e, &w->op, &w->cells[TWO_LOGS_POINTER], value, 0);
    block_unref(&value);
}
