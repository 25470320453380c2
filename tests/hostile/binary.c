/* SPDX-License-Identifier: BSD-3-Clause */
/* Couchbase's binary protocol, told truly or not: a cluster of one node, a login without a
 * password. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "hostile.h"
#include "proto/server/binary.h"

#define VBUCKETS 64
#define VALUE_MAX ((size_t)20000)

struct asked {
    uint8_t opcode;
    uint32_t opaque;
    uint64_t cas;
    struct slice extras, key, value;
};

struct said {
    uint16_t status;
    uint64_t cas;
    struct bytes extras, value;
};

static uint64_t get(const char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v = v << 8 | (uint8_t)p[i];
    }
    return v;
}

static void put(struct bytes *b, uint64_t v, size_t n)
{
    while (n-- > 0) {
        char c = n < sizeof v ? (char)(v >> (8 * n)) : 0;
        bytes_add(b, &c, 1);
    }
}

static size_t take(struct slice in, struct asked *a)
{
    if (in.len < BINARY_HEADER_BYTES) {
        return 0;
    }
    const char *p = in.p;
    bool framed = (uint8_t)p[0] == 0x08;
    CHECK(framed || (uint8_t)p[0] == 0x80);
    size_t frames = framed ? (uint8_t)p[2] : 0;
    size_t key = framed ? (uint8_t)p[3] : get(p + 2, 2), extras = (uint8_t)p[4];
    size_t body = get(p + 8, 4);
    CHECK(frames + extras + key <= body);
    if (in.len < BINARY_HEADER_BYTES + body) {
        return 0;
    }
    a->opcode = (uint8_t)p[1];
    a->opaque = (uint32_t)get(p + 12, 4);
    a->cas = get(p + 16, 8);
    p += BINARY_HEADER_BYTES + frames;
    a->extras = slice_make(p, extras);
    a->key = slice_make(p + extras, key);
    a->value = slice_make(p + extras + key, body - frames - extras - key);
    return BINARY_HEADER_BYTES + body;
}

static void map(struct bytes *b, unsigned port)
{
    bytes_text(b,
               "{\"rev\":7,\"name\":\"b\",\"nodeLocator\":\"vbucket\",\"nodesExt\":[{\"services\":{"
               "\"kv\":%u},\"thisNode\":true,\"hostname\":\"127.0.0.1\"}],\"vBucketServerMap\":{"
               "\"hashAlgorithm\":\"CRC\",\"numReplicas\":0,\"serverList\":[\"127.0.0.1:%u\"],"
               "\"vBucketMap\":[",
               port, port);
    for (int i = 0; i < VBUCKETS; i++) {
        bytes_text(b, i == 0 ? "[0]" : ",[0]");
    }
    bytes_text(b, "]}}");
}

static void read_item(const struct item *item, struct said *said)
{
    if (item == NULL) {
        said->status = BINARY_STATUS_NOT_FOUND;
        return;
    }
    put(&said->extras, item->flags, 4);
    bytes_add(&said->value, item->value.p, item->value.len);
    said->cas = item->cas;
}

static void count(const struct asked *a, struct item *item, struct said *said)
{
    uint64_t n;
    char digits[24];
    if (item == NULL) {
        said->status = BINARY_STATUS_NOT_FOUND;
    } else if (!slice_to_u64(slice_make(item->value.p, item->value.len), &n)) {
        said->status = BINARY_STATUS_NOT_A_NUMBER;
    } else {
        n += get(a->extras.p, 8);
        store_set(a->key, slice_make(digits, format_u64(digits, n)), item->flags);
        put(&said->value, n, 8);
    }
}

static void store(const struct asked *a, struct item *item, struct said *said)
{
    bool grows = a->opcode == BINARY_APPEND || a->opcode == BINARY_PREPEND;
    if (a->opcode == BINARY_ADD ? item != NULL
                                : item == NULL && (a->cas != 0 || a->opcode != BINARY_SET)) {
        said->status = a->opcode == BINARY_ADD ? BINARY_STATUS_EXISTS
                       : grows                 ? BINARY_STATUS_NOT_STORED
                                               : BINARY_STATUS_NOT_FOUND;
        return;
    }
    if (item != NULL && a->cas != 0 && item->cas != a->cas) {
        said->status = BINARY_STATUS_EXISTS;
        return;
    }
    struct bytes whole = {0};
    if (a->opcode == BINARY_APPEND) {
        bytes_add(&whole, item->value.p, item->value.len);
    }
    bytes_add(&whole, a->value.p, a->value.len);
    if (a->opcode == BINARY_PREPEND) {
        bytes_add(&whole, item->value.p, item->value.len);
    }
    if (whole.len > VALUE_MAX) {
        said->status = BINARY_STATUS_TOO_LARGE;
    } else {
        uint32_t flags = grows ? item->flags : (uint32_t)get(a->extras.p, 4);
        said->cas = store_set(a->key, slice_make(whole.p, whole.len), flags)->cas;
    }
    free(whole.p);
}

static void answer_data(const struct asked *a, struct said *said)
{
    struct item *item = store_find(a->key);
    switch (a->opcode) {
    case BINARY_GET:
    case BINARY_GAT:
        read_item(item, said);
        return;
    case BINARY_TOUCH:
        said->status = item == NULL ? BINARY_STATUS_NOT_FOUND : 0;
        return;
    case BINARY_GET_META:
        if (item == NULL) {
            said->status = BINARY_STATUS_NOT_FOUND;
            return;
        }
        put(&said->extras, 0, 4);
        put(&said->extras, item->flags, 4);
        put(&said->extras, 0, 4);
        put(&said->extras, 1, 9);
        said->cas = item->cas;
        return;
    case BINARY_DELETE:
        if (item == NULL) {
            said->status = BINARY_STATUS_NOT_FOUND;
        } else if (a->cas != 0 && a->cas != item->cas) {
            said->status = BINARY_STATUS_EXISTS;
        } else {
            store_drop(item);
        }
        return;
    case BINARY_INCREMENT:
    case BINARY_DECREMENT:
        count(a, item, said);
        return;
    default:
        store(a, item, said);
        return;
    }
}

static void answer(const struct asked *a, struct said *said, unsigned port)
{
    switch (a->opcode) {
    case 0x1f: /* HELLO */
        put(&said->value, 0x11, 2);
        return;
    case 0x0b: /* VERSION */
        bytes_text(&said->value, "7.1.0");
        return;
    case 0x20: /* which logins there are */
        bytes_text(&said->value, "PLAIN");
        return;
    case 0xfe: /* the errors' texts */
    case 0x21:
    case 0x89:
        return;
    case BINARY_GET_CLUSTER_CONFIG:
        map(&said->value, port);
        return;
    default:
        answer_data(a, said);
        return;
    }
}

static void say(const struct asked *a, const struct said *said, struct bytes *out)
{
    put(out, 0x81, 1);
    put(out, a->opcode, 1);
    put(out, 0, 2);
    put(out, said->extras.len, 1);
    put(out, 0, 1);
    put(out, said->status, 2);
    put(out, said->extras.len + said->value.len, 4);
    put(out, a->opaque, 4);
    put(out, said->cas, 8);
    bytes_add(out, said->extras.p, said->extras.len);
    bytes_add(out, said->value.p, said->value.len);
}

static void lie(struct asked *a, struct said *said, struct talk *t)
{
    static const uint16_t statuses[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05,  0x06, 0x07, 0x08,
                                        0x09, 0x0c, 0x1f, 0x20, 0x21, 0x22,  0x23, 0x24, 0x26,
                                        0x28, 0x81, 0x82, 0x83, 0x84, 0x85,  0x86, 0x87, 0x88,
                                        0xa0, 0xa1, 0xa2, 0xa3, 0xff, 0xffff};
    size_t from = t->out.len;
    bool whole = true;
    switch (rng_below(t->rng, 9)) {
    case 0: /* of another request */
        a->opaque += (uint32_t)rng_below(t->rng, 3) - 1;
        break;
    case 1:
        a->opcode = (uint8_t)rng_below(t->rng, 256);
        break;
    case 2:
        said->status = statuses[rng_below(t->rng, sizeof statuses / sizeof statuses[0])];
        break;
    case 3:
        said->status = statuses[rng_below(t->rng, sizeof statuses / sizeof statuses[0])];
        said->value.len = 0;
        add_garbage(&said->value, t->rng);
        break;
    case 4:
        said->extras.len = 0;
        add_garbage(&said->extras, t->rng);
        break;
    case 5:
        add_garbage(&t->out, t->rng);
        break;
    case 6:
        t->is_over = true;
        break;
    default:
        if (said->value.len > 0) {
            memset(said->value.p, '?', said->value.len);
        }
        whole = false;
        break;
    }
    say(a, said, &t->out);
    if (t->is_over) {
        t->out.len = from + rng_below(t->rng, t->out.len - from + 1);
    } else if (!whole) {
        mangle(&t->out, from, t->rng);
    }
}

bool binary_answer(struct talk *t, unsigned port)
{
    struct asked asked;
    struct said said = {0};
    size_t len = take(slice_make(t->in.p, t->in.len), &asked);
    if (len == 0) {
        return false;
    }
    bool handshake = asked.opcode == 0x1f || asked.opcode == 0x0b || asked.opcode == 0x20 ||
                     asked.opcode == 0xfe || asked.opcode == 0x21 || asked.opcode == 0x89 ||
                     asked.opcode == BINARY_GET_CLUSTER_CONFIG;
    answer(&asked, &said, port);
    if ((!handshake || rng_below(t->rng, 20) == 0) && is_lie(t)) {
        lie(&asked, &said, t);
    } else {
        say(&asked, &said, &t->out);
    }
    free(said.extras.p);
    free(said.value.p);
    t->answers++;
    bytes_take(&t->in, len);
    return true;
}
