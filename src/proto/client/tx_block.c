/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/tx_block.h"

#include "proto/client/request_parse.h"

static const struct slice words[] = {
#define TX_OP(id, word) [TX_OP_##id] = {#word, sizeof(#word) - 1},
    TX_OP_TABLE(TX_OP)
#undef TX_OP
};

void tx_block_begin(struct tx_block *b, struct slice data)
{
    *b = (struct tx_block){.rest = data};
}

static bool fail(struct tx_block *b, const char *fault)
{
    b->fault = fault;
    return false;
}

/* *is_one: it is the form for one item of any bytes. */
static bool find_op(struct slice word, enum tx_op *op, bool *is_one)
{
    for (unsigned i = 0; i < TX_OP_COUNT; i++) {
        *is_one = i != TX_OP_SET && word.len == words[i].len + 1 && word.p[word.len - 1] == 'b';
        if (slice_equal(slice_make(word.p, word.len - *is_one), words[i])) {
            *op = (enum tx_op)i;
            return true;
        }
    }
    return false;
}

bool tx_line_next(struct tx_line *line, struct slice *item)
{
    if (!line->is_one) {
        return item_next(&line->items, item);
    }
    *item = line->items;
    line->items = SLICE_NONE;
    return item->p != NULL;
}

/* Takes a line without its line end. */
static bool take_line(struct tx_block *b, struct slice *line)
{
    const char *end = memchr(b->rest.p, '\n', b->rest.len);
    if (end == NULL) {
        return false;
    }
    *line = slice_take(&b->rest, (size_t)(end - b->rest.p));
    (void)slice_take(&b->rest, 1);
    b->ended++;
    if (line->len > 0 && line->p[line->len - 1] == '\r') {
        line->len--;
    }
    return true;
}

static size_t count_line_ends(struct slice bytes)
{
    size_t count = 0;
    const char *end;
    while ((end = memchr(bytes.p, '\n', bytes.len)) != NULL) {
        (void)slice_take(&bytes, (size_t)(end + 1 - bytes.p));
        count++;
    }
    return count;
}

/* BYTES and, behind the line, so many bytes. */
static bool take_item(struct tx_block *b, struct slice args, struct slice *item)
{
    struct slice word, more, end;
    uint64_t bytes;
    if (!item_next(&args, &word) || item_next(&args, &more) || !slice_to_u64(word, &bytes)) {
        return fail(b, "KEY and BYTES go here, and the item stands in a line of its own");
    }
    if (bytes > b->rest.len) {
        return fail(b, "the item is longer than the rest of the block");
    }
    *item = slice_take(&b->rest, bytes);
    b->ended += count_line_ends(*item);
    return (take_line(b, &end) && end.len == 0) || fail(b, "no line end behind BYTES bytes");
}

static bool has_words(struct slice rest)
{
    struct slice word;
    return item_next(&rest, &word);
}

bool tx_block_next(struct tx_block *b, struct tx_line *line)
{
    struct slice word;
    if (b->rest.len == 0 || b->fault != NULL) {
        return false;
    }
    b->line = b->ended + 1;
    struct slice text;
    if (!take_line(b, &text)) {
        return fail(b, "no line end behind it: each line of the block has one, and BYTES counts "
                       "them");
    }
    if (!item_next(&text, &word)) {
        return fail(b, "the line is empty");
    }
    if (!find_op(word, &line->op, &line->is_one)) {
        return fail(b,
                    "it begins with none of ladd, laddb, ldel, ldelb, lset, lrequire, lrequireb, "
                    "lrefuse, lrefuseb");
    }
    if (!item_next(&text, &line->key)) {
        return fail(b, "no key");
    }
    line->items = text;
    const char *fault = list_key_fault_text(line->key);
    if (fault != NULL) {
        return fail(b, fault);
    }
    if (line->is_one) {
        return take_item(b, text, &line->items);
    }
    if (line->op != TX_OP_SET && !has_words(text)) {
        return fail(b, "no item: only lset goes without");
    }
    return true;
}
