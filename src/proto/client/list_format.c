/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/list_format.h"

void list_format_item(struct chain *out, struct slice key, struct slice item)
{
    char digits[24];
    size_t n = format_u64(digits, item.len);
    chain_copy(out, "ITEM ", 5);
    chain_copy_slice(out, key);
    chain_copy(out, " ", 1);
    chain_copy(out, digits, n);
    chain_copy(out, "\r\n", 2);
    chain_copy_slice(out, item);
    chain_copy(out, "\r\n", 2);
}

void item_block_begin(struct item_block *b, struct slice data, int delimiter)
{
    if (delimiter >= 0 && data.len > 0 && data.p[0] == (char)delimiter) {
        (void)slice_take(&data, 1);
    }
    if (delimiter >= 0 && data.len > 0 && data.p[data.len - 1] == (char)delimiter) {
        data.len--;
    }
    *b = (struct item_block){.rest = data, .delimiter = delimiter, .more = data.len > 0};
}

static bool next_joined(struct item_block *b, struct slice *item)
{
    const char *end = memchr(b->rest.p, b->delimiter, b->rest.len);
    b->more = end != NULL;
    *item = slice_take(&b->rest, end == NULL ? b->rest.len : (size_t)(end - b->rest.p));
    if (b->more) {
        (void)slice_take(&b->rest, 1);
    }
    return true;
}

/* Takes a line end, with or without the carriage return. */
static bool take_line_end(struct slice *rest)
{
    if (rest->len > 0 && rest->p[0] == '\r') {
        (void)slice_take(rest, 1);
    }
    return rest->len > 0 && slice_take(rest, 1).p[0] == '\n';
}

/* ITEM KEY BYTES: sets bytes. */
static bool read_item_line(struct slice line, uint64_t *bytes)
{
    if (line.len > 0 && line.p[line.len - 1] == '\r') {
        line.len--;
    }
    if (!slice_starts_with(line, SLICE_LIT("ITEM "))) {
        return false;
    }
    (void)slice_take(&line, 5);
    const char *blank = memchr(line.p, ' ', line.len);
    if (blank == NULL || blank == line.p) {
        return false;
    }
    (void)slice_take(&line, (size_t)(blank + 1 - line.p));
    return slice_to_u64(line, bytes);
}

static bool next_line(struct item_block *b, struct slice *item)
{
    struct slice rest = b->rest;
    uint64_t bytes;
    const char *end = memchr(rest.p, '\n', rest.len);
    struct slice line = slice_take(&rest, end == NULL ? rest.len : (size_t)(end - rest.p));
    if (slice_equal(line, SLICE_LIT("END")) || slice_equal(line, SLICE_LIT("END\r"))) {
        b->bad = rest.len > 1; /* nothing comes behind it */
        b->more = false;
        return false;
    }
    b->bad = end == NULL || !read_item_line(line, &bytes);
    if (!b->bad) {
        (void)slice_take(&rest, 1);
        b->bad = bytes > rest.len;
    }
    if (!b->bad) {
        *item = slice_take(&rest, bytes);
        b->bad = rest.len > 0 && !take_line_end(&rest);
    }
    b->more = !b->bad && rest.len > 0;
    b->rest = b->bad ? b->rest : rest;
    return !b->bad;
}

bool item_block_next(struct item_block *b, struct slice *item)
{
    return b->more && (b->delimiter >= 0 ? next_joined(b, item) : next_line(b, item));
}
