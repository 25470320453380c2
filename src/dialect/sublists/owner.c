/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does an item belong to another list? The name of a sublist, X.0, is also a key that a list may
 * have, and a sublist may look like an index. So before a list of sublists is converted, the proxy
 * reads the indexes of the lists that would have a sublist of this name.
 */
#include "dialect/sublists/sublists.h"

#include "dialect/shared/record.h"

/* Digits of the largest number that an index may list. */
#define DIGITS_MAX 10

/* The key of the list that has a sublist of this name, if the last digits are its number. Empty:
 * there is no such key. */
static struct slice owner_of(const struct list *list, size_t digits, uint64_t *number)
{
    const char *template = list->policy->sublist_name, *rest = strstr(template, "%s");
    size_t before = (size_t)(rest - template), after = strlen(rest + 2);
    struct slice key = list_key(list);
    if (key.len <= before + after + digits) {
        return SLICE_NONE;
    }
    const char *tail = key.p + key.len - digits;
    bool is_name = memcmp(key.p, template, before) == 0 &&
                   memcmp(tail - after, rest + 2, after) == 0 &&
                   slice_to_u64(slice_make(tail, digits), number) && (digits == 1 || *tail != '0');
    return is_name ? slice_make(key.p + before, key.len - before - after - digits) : SLICE_NONE;
}

bool owner_is_possible(const struct list *list)
{
    uint64_t number;
    bool possible = false;
    for (size_t digits = 1; digits <= DIGITS_MAX && !possible; digits++) {
        possible = owner_of(list, digits, &number).len > 0;
    }
    return possible;
}

/* Does the index list that number? A record of a move holds the index that stood there before. */
static bool lists_number(const struct list *list, struct slice index, uint64_t number)
{
    struct record record;
    struct fold fold;
    struct slice item;
    uint32_t at = 0;
    uint64_t listed;
    char op;
    bool found = false;
    if (record_parse(index, &record)) {
        index = record.before;
    }
    fold_init(&fold);
    sublists_fold(list, &fold, index);
    while (!found && fold_next(&fold, true, &at, &op, &item)) {
        found = slice_to_u64(item, &listed) && listed == number;
    }
    fold_fini(&fold);
    return found;
}

/* Asks for the index of the next list that may own the item. False: there is no other. */
static bool ask_next(struct engine *e, struct work *w)
{
    while (sublists_own(w)->owner_digits < DIGITS_MAX) {
        struct slice owner =
            owner_of(w->op.list, ++sublists_own(w)->owner_digits, &sublists_own(w)->owner_number);
        if (owner.len > 0 && config_list_policy(e->config, owner) == w->op.list->policy) {
            struct be_request *r = request_new(e, w->op.list, BE_GET);
            memcpy(r->key, owner.p, owner.len);
            r->key_len = r->placement_len = (uint8_t)owner.len;
            op_send(e, &w->op, r, NULL, 0);
            return true;
        }
    }
    return false;
}

enum progress owner_check(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    sublists_own(w)->owner_digits = 0;
    while (!w->failed && ask_next(e, w)) {
        CO_AWAIT(co, "looking at a list that the item may be a part of");
        if (event->status == BE_HIT) {
            if (lists_number(w->op.list, event->reply->value, sublists_own(w)->owner_number)) {
                work_note_text(w, "another list names this item as one of its sublists, "
                                  "not converted");
            }
        } else if (event->status != BE_MISS) {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}
