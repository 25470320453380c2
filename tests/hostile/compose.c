/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of all kinds. Values of plain keys p... begin with their key. An opaque of `mg` that is
 * no number says which of the flags v, f and t stand there besides: "O-vf". */
#include <stdio.h>

#include "hostile.h"

/* %p a plain key, %n the key of a number, %l the key of a list of some kind, %b of one behind the
 * bridge, %i an item, %d a number, %v a data block of the last %p, with its length in front. */
static const char *const requests[] = {
    "get %p",
    "get %p",
    "get %p",
    "gets %p",
    "get %p %p %p",
    "gets %p %n %p",
    "get %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p",
    "gets %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p %p",
    "gat 100 %p",
    "gats 100 %p %p",
    "set %p 0 0 %v",
    "set %p 7 0 %v",
    "add %p 0 0 %v",
    "replace %p 0 0 %v",
    "append %p 0 0 %v",
    "cas %p 0 0 %c",
    "delete %p",
    "touch %p 100",
    "set %n 0 0 1\r\n5",
    "incr %n %d",
    "decr %n 1",
    "set %p 0 0 %w",
    "mg %p v",
    "mg %p v k f c t s",
    "mg %p k O%d v",
    "mg %p O-vf v f",
    "mg %p O-t t",
    "mg %p O-",
    "mg %p v k q",
    "mg %p",
    "ms %p %u",
    "md %p",
    "md %p k O%d",
    "ma %n",
    "ma %n v",
    "me %p",
    "mn",
    "ladd %l %i",
    "ladd %l %i %i %i",
    "ladd %l %i",
    "ldel %l %i",
    "laddx %l %i",
    "ldelx %l %i",
    "lset %l %i %i",
    "lget %l",
    "lgets %l",
    "lgetb %l",
    "llen %l",
    "lhas %l %i",
    "lhas %l %i %i",
    "lrange %l 0 5",
    "lrevrange %l 0 3",
    "lpop %l 2",
    "lrandom %l 2",
    "lcompact %l",
    "ltouch %l 100",
    "lttl %l",
    "ldrop %l",
    "lstat %l",
    "lcreate %l %i",
    "lunion %l %l",
    "linter %l %l",
    "lmove %l %l %i",
    "lcopy %l %l",
    "llease %l 5",
    "lpurge %l",
    "get %b",
    "gets %b",
    "append %b 0 0 4\r\nabc,",
    "set %b 0 0 4\r\nabc,",
    "delete %b",
    "mg %b v c",
    "touch %b 100",
    "prepend %b 0 0 4\r\nabc,",
    "get %b %p %b %p",
};

static const char *const kinds[] = {"l",     "simple-", "tombstone-", "signed-", "paired-",
                                    "flip-", "marker-", "sublists-",  "ring-",   "b"};

static uint64_t draw(struct rng *rng, uint64_t bound)
{
    return rng_below(rng, bound);
}

/* The value of the key, with its length in front, which more may follow. */
static void add_data(struct bytes *b, uint64_t key, const char *more, uint64_t rest)
{
    char mark[32];
    int len = snprintf(mark, sizeof mark, "p%llu=", (unsigned long long)key);
    bytes_text(b, "%llu%s\r\n%s", (unsigned long long)len + (unsigned long long)rest, more, mark);
    while (rest-- > 0) {
        bytes_add(b, "x", 1);
    }
}

static void add_word(struct bytes *b, struct rng *rng, char what, uint64_t *key)
{
    switch (what) {
    case 'p':
        *key = draw(rng, 40);
        bytes_text(b, "p%llu", (unsigned long long)*key);
        return;
    case 'n':
        bytes_text(b, "n%llu", (unsigned long long)draw(rng, 4));
        return;
    case 'l':
        bytes_text(b, "%s%llu", kinds[draw(rng, draw(rng, 2) == 0 ? 1 : 10)],
                   (unsigned long long)draw(rng, 6));
        return;
    case 'b':
        bytes_text(b, "b%llu", (unsigned long long)draw(rng, 4));
        return;
    case 'i':
        bytes_text(b, "i%llu", (unsigned long long)draw(rng, 30));
        return;
    case 'd':
        bytes_text(b, "%llu", (unsigned long long)draw(rng, 1000));
        return;
    case 'c': {
        char cas[32];
        snprintf(cas, sizeof cas, " %llu", (unsigned long long)draw(rng, 3000));
        add_data(b, *key, cas, 0);
        return;
    }
    default:
        add_data(b, *key, "", what == 'w' ? draw(rng, 9000) : draw(rng, 20));
        return;
    }
}

static void add_request(struct bytes *b, struct rng *rng)
{
    const char *p = requests[draw(rng, sizeof requests / sizeof requests[0])];
    uint64_t key = 0;
    for (; *p != '\0'; p++) {
        if (*p != '%') {
            bytes_add(b, p, 1);
        } else {
            add_word(b, rng, *++p, &key);
        }
    }
    bytes_add(b, "\r\n", 2);
}

void compose(struct bytes *b, struct rng *rng)
{
    for (uint64_t n = 1 + draw(rng, 30); n > 0; n--) {
        add_request(b, rng);
    }
    bytes_text(b, "mn\r\n");
}
