/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of indexes and sublists, as pure functions. */
#include "dialect/sublists/sublists.h"

bool sublists_next(const struct list *list, struct slice *rest, enum entry_op *op,
                   struct slice *item)
{
    if (!sublists_is_delimited(list)) {
        return signed_next(rest, signs_of(list->policy), op, item);
    }
    *op = ENTRY_ADD;
    return text_next(rest, (char)list->policy->delimiter, item);
}

void sublists_fold(const struct list *list, struct fold *fold, struct slice text)
{
    struct slice item;
    if (!sublists_is_delimited(list)) {
        signed_fold(fold, text, signs_of(list->policy));
        return;
    }
    while (text_next(&text, (char)list->policy->delimiter, &item)) {
        fold_apply(fold, ENTRY_ADD, item);
    }
}

void sublists_append(const struct list *list, struct block **b, enum entry_op op, struct slice item)
{
    if (!sublists_is_delimited(list)) {
        signed_append(b, op, item, signs_of(list->policy));
        return;
    }
    CHECK(op == ENTRY_ADD);
    text_append(b, item, (char)list->policy->delimiter);
}

bool sublists_number(struct slice text, uint32_t *number)
{
    uint64_t value;
    bool leading_zero = text.len > 1 && text.p[0] == '0';
    if (leading_zero || !slice_to_u64(text, &value) || value > SUBLIST_NUMBER_MAX) {
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

bool sublists_newest(const struct list *list, struct slice index, uint32_t *newest)
{
    struct fold fold;
    uint32_t at = 0, number;
    struct slice item;
    bool found = false;
    fold_init(&fold);
    sublists_fold(list, &fold, index);
    while (fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item)) {
        if (sublists_number(item, &number) && (!found || number > *newest)) {
            *newest = number;
            found = true;
        }
    }
    fold_fini(&fold);
    return found;
}

void sublists_append_number(const struct list *list, struct block **b, enum entry_op op,
                            uint32_t number)
{
    char digits[24];
    size_t len = format_u64(digits, number);
    sublists_append(list, b, op, slice_make(digits, len));
}
