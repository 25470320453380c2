/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/ring/slot.h"

#include <stdio.h>

#include "base/check.h"

#define FIELDS_MAX 3

/* The template's fields that are not taken yet, from first to last, and the text behind each. */
struct fields {
    char at[FIELDS_MAX];
    struct slice gap[FIELDS_MAX];
    size_t first, last;
};

static struct fields fields_of(const char *template)
{
    struct fields f = {.first = 0};
    size_t count = 0;
    for (const char *t = template; *t == '%' && count < FIELDS_MAX; count++) {
        f.at[count] = t[1];
        f.gap[count] = slice_make(t + 2, strcspn(t + 2, "%"));
        t += 2 + f.gap[count].len;
    }
    CHECK(count > 0);
    f.last = count - 1;
    return f;
}

bool slot_has(const char *template, char field)
{
    const char text[] = {'%', field, '\0'};
    return strstr(template, text) != NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct slice take_digits(struct slice *rest, bool front)
{
    size_t len = 0;
    while (len < rest->len && is_digit(rest->p[front ? len : rest->len - 1 - len])) {
        len++;
    }
    if (front) {
        return slice_take(rest, len);
    }
    if (len == 0) {
        return SLICE_NONE;
    }
    rest->len -= len;
    return slice_make(rest->p + rest->len, len);
}

static bool take_gap(struct slice *rest, struct slice gap, bool front)
{
    if (gap.len == 0) {
        return true;
    }
    if (rest->len < gap.len) {
        return false;
    }
    size_t at = front ? 0 : rest->len - gap.len;
    if (!slice_equal(slice_make(rest->p + at, gap.len), gap)) {
        return false;
    }
    rest->p += front ? gap.len : 0;
    rest->len -= gap.len;
    return true;
}

/* Takes the field, if it is the first one or the last one, and the text beside it. Returns false if
 * it is not there as the template says. */
static bool peel(struct fields *f, char field, struct slice *rest, struct slice *digits)
{
    bool front = f->at[f->first] == field;
    if (!front && f->at[f->last] != field) {
        return true;
    }
    *digits = take_digits(rest, front);
    struct slice gap = f->gap[front ? f->first++ : --f->last];
    return digits->len > 0 && take_gap(rest, gap, front);
}

/* Takes the time, and the item, which is the rest. */
static bool read_shown(struct fields *f, struct slice shown, struct slot_entry *entry)
{
    struct slice digits = SLICE_NONE;
    entry->shown = shown;
    if (!peel(f, 't', &shown, &digits) ||
        (digits.len > 0 &&
         (digits.len != SLOT_TIME_DIGITS || !slice_to_u64(digits, &entry->time_s)))) {
        return false;
    }
    entry->item = shown;
    return shown.len > 0;
}

bool slot_read(const char *template, struct slice value, struct slot_entry *entry)
{
    struct fields f = fields_of(template);
    struct slice digits = SLICE_NONE;
    *entry = (struct slot_entry){.number = 0};
    return peel(&f, 'n', &value, &digits) &&
           (digits.len == 0 || slice_to_u64(digits, &entry->number)) &&
           read_shown(&f, value, entry);
}

bool slot_read_shown(const char *template, struct slice shown, struct slot_entry *entry)
{
    struct fields f = fields_of(template);
    f.first += f.at[f.first] == 'n';
    f.last -= f.at[f.last] == 'n';
    *entry = (struct slot_entry){.number = 0};
    return read_shown(&f, shown, entry);
}

void slot_write(const char *template, const struct slot_entry *entry, struct block **out)
{
    struct fields f = fields_of(template);
    for (size_t i = 0; i <= f.last; i++) {
        char text[24];
        struct slice field = entry->item;
        if (f.at[i] == 'n') {
            field = slice_make(text, format_u64(text, entry->number));
        } else if (f.at[i] == 't') {
            int len = snprintf(text, sizeof text, "%0*llu", SLOT_TIME_DIGITS,
                               (unsigned long long)entry->time_s);
            field = slice_make(text, (size_t)len);
        }
        block_append(out, field.p, field.len);
        block_append(out, f.gap[i].p, f.gap[i].len);
    }
}
