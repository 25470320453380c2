/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as two items of a gate and a list's key, with a zero between them: an item is read or
 * not, agrees with itself, and what it says of another one is a line that can be logged.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "pool/gate_item.h"

static struct slice take_text(struct slice *rest)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->p, '\0', rest->len);
    struct slice text = slice_take(rest, end == NULL ? rest->len : (size_t)(end - rest->p));
    if (rest->len > 0) {
        (void)slice_take(rest, 1);
    }
    return text;
}

static struct gate_item *read_item(struct slice text)
{
    struct gate_item *item;
    enum gate_kind kind = gate_item_read(text, &item);
    CHECK((kind == GATE_ITEM) == (item != NULL));
    return item;
}

static void check_one(struct gate_item *item, const size_t *places, struct slice key)
{
    char why[GATE_WHY_MAX];
    CHECK(gate_item_agrees(item, item, gate_item_server(item), why));
    CHECK(!gate_item_moves(item, item, places, key));
}

static void check_two(struct gate_item *mine, struct gate_item *other, const size_t *places,
                      struct slice key)
{
    char why[GATE_WHY_MAX] = "";
    bool agrees = gate_item_agrees(mine, other, 0, why);
    size_t len = strnlen(why, sizeof why);
    CHECK(len < sizeof why && agrees == (len == 0));
    CHECK(agrees == gate_item_agrees(mine, other, 0, NULL));
    for (size_t i = 0; i < len; i++) {
        CHECK(!iscntrl((unsigned char)why[i]));
    }
    (void)gate_item_moves(mine, other, places, key);
    CHECK(!agrees || gate_item_same_places(mine, other));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t places[CONFIG_SERVERS_MAX];
    struct input in = input_make(data, size);
    struct gate_item *mine = read_item(take_text(&in.rest));
    struct gate_item *other = read_item(take_text(&in.rest));
    struct slice key = take_text(&in.rest);
    for (size_t i = 0; i < CONFIG_SERVERS_MAX; i++) {
        places[i] = GATE_NO_PLACE;
    }
    if (key.len > LIST_KEY_BYTES_MAX) {
        key.len = LIST_KEY_BYTES_MAX;
    }
    if (mine != NULL) {
        check_one(mine, places, key);
    }
    if (mine != NULL && other != NULL) {
        check_two(mine, other, places, key);
    }
    gate_item_destroy(&mine);
    gate_item_destroy(&other);
    return 0;
}
