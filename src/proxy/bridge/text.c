/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/bridge/text.h"

#include <string.h>

struct slice bridge_text(struct slice value, char delimiter)
{
    if (value.len > 0 && value.p[0] == delimiter) {
        (void)slice_take(&value, 1);
    }
    if (value.len > 0 && value.p[value.len - 1] == delimiter) {
        value.len--;
    }
    return value;
}

struct slice bridge_next(struct slice *text, char delimiter)
{
    const char *end = memchr(text->p, delimiter, text->len);
    struct slice item = slice_take(text, end != NULL ? (size_t)(end - text->p) : text->len);
    if (end != NULL) {
        (void)slice_take(text, 1);
    }
    return item;
}

size_t bridge_count(struct slice text, char delimiter, bool *whole)
{
    size_t count = 0;
    /* A delimiter at the end has an empty item behind it. */
    *whole = text.len == 0 || text.p[text.len - 1] != delimiter;
    while (text.len > 0) {
        *whole = bridge_next(&text, delimiter).len > 0 && *whole;
        count++;
    }
    return count;
}

size_t bridge_signed_count(struct slice text, struct signs signs, bool *whole)
{
    size_t count = 0, bytes = 0;
    enum entry_op op;
    struct slice rest = text, item;
    while (signed_next(&rest, signs, &op, &item)) {
        bytes += 1 + item.len;
        count++;
    }
    *whole = bytes == text.len;
    return count;
}
