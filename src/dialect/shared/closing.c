/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/closing.h"

static bool strict(const struct list *list)
{
    return list->policy->compatible == COMPATIBLE_STRICT;
}

bool closing_is_open(const struct list *list, struct slice text)
{
    char reserved[RESERVED_MAX];
    const struct dialect *dialect = dialect_of(list);
    char last = text.len == 0 ? (char)list->policy->delimiter : text.p[text.len - 1];
    size_t count = dialect->reserved == NULL ? 0 : dialect->reserved(list->policy, reserved);
    return dialect->delimited && last != (char)list->policy->delimiter &&
           (count == 0 || memchr(reserved, last, count) == NULL);
}

void closing_note_read(struct list *list, const struct part *part)
{
    struct known *known = known_of(list);
    known->open &= ~ROLE(part->role);
    if (part->state == PART_THERE && closing_is_open(list, part->value)) {
        known->open |= ROLE(part->role);
    }
}

void closing_note_appended(struct list *list, enum part_role role)
{
    known_of(list)->open &= ~ROLE(role);
}

struct block *closing_append_text(const struct list *list, enum part_role role, struct block *text)
{
    bool closed = strict(list) && (known_of(list)->open & ROLE(role)) == 0;
    if (!dialect_of(list)->delimited || closed) {
        return block_ref(text);
    }
    char delimiter = (char)list->policy->delimiter;
    struct block *more = block_new(text->used + 1);
    block_append(&more, &delimiter, 1);
    block_append(&more, text->data, text->used);
    return more;
}
