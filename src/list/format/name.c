/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/name.h"

#include "base/check.h"

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

void name_fresh(struct name *name, struct rng *rng)
{
    uint64_t bits = rng_unique(rng);
    for (size_t i = 0; i < NAME_BYTES; i++) {
        name->text[i] = alphabet[bits & 31];
        bits >>= 5;
    }
}

bool name_equal(const struct name *a, const struct name *b)
{
    return memcmp(a->text, b->text, NAME_BYTES) == 0;
}

uint8_t head_key(char out[KEY_BYTES_MAX], struct slice list_key)
{
    CHECK(list_key.len < KEY_BYTES_MAX);
    memcpy(out, list_key.p, list_key.len);
    out[list_key.len] = '#';
    return (uint8_t)(list_key.len + 1);
}

uint8_t sublist_key(char out[KEY_BYTES_MAX], struct slice list_key, const struct name *name,
                    uint32_t number)
{
    CHECK(list_key.len + 1 + NAME_BYTES + 1 + 7 <= KEY_BYTES_MAX && number <= SUBLISTS_MAX);
    size_t n = head_key(out, list_key);
    memcpy(out + n, name->text, NAME_BYTES);
    n += NAME_BYTES;
    out[n++] = '.';
    n += format_u64(out + n, number);
    return (uint8_t)n;
}

static bool name_takes(const char *text)
{
    for (size_t i = 0; i < NAME_BYTES; i++) {
        char c = text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'))) {
            return false;
        }
    }
    return true;
}

bool list_item_key(struct slice key, struct slice *list_key, bool *head)
{
    *head = key.len > 0 && key.p[key.len - 1] == '#';
    if (*head) {
        *list_key = slice_make(key.p, key.len - 1);
        return list_key->len > 0 && list_key->len <= LIST_KEY_BYTES_MAX;
    }
    size_t n = key.len;
    while (n > 0 && (unsigned char)(key.p[n - 1] - '0') <= 9) {
        n--;
    }
    struct slice digits = slice_make(key.p + n, key.len - n);
    uint64_t number;
    /* As sublist_key writes it: no zeros in front. */
    if (!slice_to_u64(digits, &number) || number > SUBLISTS_MAX ||
        (digits.len > 1 && digits.p[0] == '0') || n < 1 + 1 + NAME_BYTES + 1) {
        return false;
    }
    size_t name = n - 1 - NAME_BYTES;
    *list_key = slice_make(key.p, name - 1);
    return key.p[n - 1] == '.' && name_takes(key.p + name) && key.p[name - 1] == '#' &&
           list_key->len <= LIST_KEY_BYTES_MAX;
}

size_t name_range_format(char *out, const struct name_range *range)
{
    memcpy(out, range->name.text, NAME_BYTES);
    out[NAME_BYTES] = '.';
    return NAME_BYTES + 1 + format_u64(out + NAME_BYTES + 1, range->count);
}

bool number_take(struct slice *text, uint64_t *value)
{
    size_t n = 0;
    while (n < text->len && (unsigned char)(text->p[n] - '0') <= 9) {
        n++;
    }
    return slice_to_u64(slice_take(text, n), value);
}

bool name_take(struct slice *text, struct name *name)
{
    if (text->len < NAME_BYTES || !name_takes(text->p)) {
        return false;
    }
    memcpy(name->text, slice_take(text, NAME_BYTES).p, NAME_BYTES);
    return true;
}

bool name_range_take(struct slice *text, struct name_range *range)
{
    uint64_t count;
    if (!name_take(text, &range->name) || text->len == 0 || slice_take(text, 1).p[0] != '.') {
        return false;
    }
    if (!number_take(text, &count) || count > SUBLISTS_MAX) {
        return false;
    }
    range->count = (uint32_t)count;
    return true;
}
