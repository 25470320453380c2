/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/record.h"

#include <stdio.h>

#include "list/format/name.h"

static const char record_word[] = "\1mclistd moved 1 ";

void record_append(struct block **b, struct slice head, struct slice before, uint64_t version)
{
    char line[80];
    int len = snprintf(line, sizeof line, "%s%zu %llu\n", record_word, head.len,
                       (unsigned long long)version);
    block_append(b, line, (size_t)len);
    block_append(b, head.p, head.len);
    block_append(b, before.p, before.len);
}

bool record_parse(struct slice value, struct record *record)
{
    struct slice rest = value;
    uint64_t head_bytes;
    size_t word_len = sizeof record_word - 1;
    if (rest.len < word_len || memcmp(rest.p, record_word, word_len) != 0) {
        return false;
    }
    (void)slice_take(&rest, word_len);
    if (!number_take(&rest, &head_bytes) || rest.len == 0 || *rest.p != ' ') {
        return false;
    }
    (void)slice_take(&rest, 1);
    if (!number_take(&rest, &record->version) || rest.len == 0 || *rest.p != '\n' ||
        head_bytes > rest.len - 1) {
        return false;
    }
    (void)slice_take(&rest, 1);
    record->head = slice_take(&rest, head_bytes);
    record->before = rest;
    return true;
}
