/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/cap.h"

#include <string.h>

#include "base/number.h"
#include "list/format/name.h"

uint32_t cap_format(char *out, struct cap cap)
{
    const struct slice word = cap.refuses ? SLICE_LIT(".refuse") : SLICE_LIT(".drop");
    memcpy(out, " #", 2);
    size_t n = 2 + format_u64(out + 2, cap.max);
    memcpy(out + n, word.p, word.len);
    return (uint32_t)(n + word.len);
}

bool cap_parse(struct slice field, struct cap *cap)
{
    uint64_t max;
    if (field.len == 0 || slice_take(&field, 1).p[0] != '#' || !number_take(&field, &max) ||
        max == 0 || max > CAP_ITEMS_MAX) {
        return false;
    }
    cap->max = (uint32_t)max;
    cap->refuses = slice_equal(field, SLICE_LIT(".refuse"));
    return cap->refuses || slice_equal(field, SLICE_LIT(".drop"));
}
