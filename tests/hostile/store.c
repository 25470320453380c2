/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "hostile.h"

#define ITEMS 1024

static struct item items[ITEMS];
static uint64_t last_cas;

void bytes_add(struct bytes *b, const void *p, size_t len)
{
    if (b->len + len > b->cap) {
        b->cap = (b->len + len) * 2 + 64;
        b->p = realloc(b->p, b->cap);
        CHECK(b->p != NULL);
    }
    if (len > 0) {
        memcpy(b->p + b->len, p, len);
    }
    b->len += len;
}

void bytes_text(struct bytes *b, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CHECK(n >= 0 && (size_t)n < sizeof text);
    bytes_add(b, text, (size_t)n);
}

void bytes_take(struct bytes *b, size_t len)
{
    if (len == 0) {
        return;
    }
    b->len -= len;
    memmove(b->p, b->p + len, b->len);
}

static struct item *place_of(struct slice key)
{
    size_t at = hash_bytes(key.p, key.len, 1) % ITEMS;
    for (size_t i = 0; i < ITEMS; i++, at = (at + 1) % ITEMS) {
        struct item *item = &items[at];
        if (item->key_len == 0 || slice_equal(slice_make(item->key, item->key_len), key)) {
            return item;
        }
    }
    /* Full: all go, as in a memcached that is restarted. */
    for (size_t i = 0; i < ITEMS; i++) {
        items[i].key_len = 0;
        items[i].cas = 0;
    }
    return place_of(key);
}

struct item *store_find(struct slice key)
{
    struct item *item = place_of(key);
    return item->key_len > 0 && item->cas != 0 ? item : NULL;
}

struct item *store_set(struct slice key, struct slice value, uint32_t flags)
{
    struct item *item = place_of(key);
    CHECK(key.len <= sizeof item->key && key.len > 0);
    memcpy(item->key, key.p, key.len);
    item->key_len = key.len;
    if (value.p != item->value.p) {
        item->value.len = 0;
        bytes_add(&item->value, value.p, value.len);
    }
    item->flags = flags;
    item->cas = ++last_cas;
    return item;
}

void store_drop(struct item *item)
{
    item->cas = 0; /* its place stays: others stand behind it */
}

struct item *store_any(struct rng *rng)
{
    size_t at = rng_below(rng, ITEMS);
    for (size_t i = 0; i < ITEMS; i++, at = (at + 1) % ITEMS) {
        if (items[at].key_len > 0 && items[at].cas != 0) {
            return &items[at];
        }
    }
    return NULL;
}

static const char *const texts[] = {
    "STORED\r\n",
    "NOT_STORED\r\n",
    "EXISTS\r\n",
    "NOT_FOUND\r\n",
    "DELETED\r\n",
    "TOUCHED\r\n",
    "END\r\n",
    "EN\r\n",
    "HD\r\n",
    "NF\r\n",
    "NS\r\n",
    "EX\r\n",
    "OK\r\n",
    "\r\n",
    "\n",
    "ERROR\r\n",
    "CLIENT_ERROR bad\r\n",
    "SERVER_ERROR out of memory writing get response\r\n",
    "7\r\n",
    "SERVER_ERROR object too large for cache\r\n",
    "VALUE p1 0 1\r\n?\r\n",
    "VA 1 f0\r\n?\r\n",
    "VA 1 kp1 f0 c1 t-1\r\n?\r\n",
    "VALUE p1 0 1 5\r\n?\r\nEND\r\n",
    "HD kp1\r\n",
    "ME p1 a=b\r\n",
    "VA 99999999999999999999 kp1\r\n",
    "VALUE p1 0 18446744073709551615\r\n",
    "STAT x 1\r\n",
    "18446744073709551616\r\n",
    "HD s1 c1 t1 kp1 f123456789012345678901\r\n",
    "HD O O O k k\r\n",
};

void add_garbage(struct bytes *b, struct rng *rng)
{
    if (rng_below(rng, 3) > 0) {
        const char *text = texts[rng_below(rng, sizeof texts / sizeof texts[0])];
        bytes_add(b, text, strlen(text));
        return;
    }
    for (uint64_t n = rng_below(rng, 60); n > 0; n--) {
        char c = (char)rng_below(rng, 256);
        bytes_add(b, &c, 1);
    }
}

void mangle(struct bytes *b, size_t from, struct rng *rng)
{
    static const char *const numbers[] = {
        "-1", "99999999999999999999999", "4294967296",           "x", "",
        " ",  "18446744073709551615",    "18446744073709551616", "0"};
    for (uint64_t n = 1 + rng_below(rng, 3); n > 0 && b->len > from; n--) {
        size_t at = from + rng_below(rng, b->len - from);
        struct bytes rest = {0};
        switch (rng_below(rng, 4)) {
        case 0:
            b->p[at] = (char)rng_below(rng, 256);
            continue;
        case 1: /* a byte less */
            memmove(b->p + at, b->p + at + 1, b->len - at - 1);
            b->len--;
            continue;
        case 2: { /* another number */
            while (at > from && (b->p[at] < '0' || b->p[at] > '9')) {
                at--;
            }
            const char *number = numbers[rng_below(rng, sizeof numbers / sizeof numbers[0])];
            bytes_add(&rest, b->p + at + 1, b->len - at - 1);
            b->len = at;
            bytes_add(b, number, strlen(number));
            break;
        }
        default:
            bytes_add(&rest, b->p + at, b->len - at);
            b->len = at;
            add_garbage(b, rng);
            break;
        }
        bytes_add(b, rest.p, rest.len);
        free(rest.p);
    }
}
