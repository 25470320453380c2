/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The documents of a node, for measuring: a server of Couchbase's operations on documents that is
 * as fast as memcached. relay.py shakes hands in front of it. One thread; nothing expires, and
 * nothing is refused.
 *
 *     documents PORT        on 127.0.0.1, until it is killed
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUCKETS (UINT32_C(1) << 20)
#define READ_BYTES ((size_t)1 << 20)
#define EVENTS 64
/* A request with frames, of a durable change: their length is in the key length's first byte. */
#define MAGIC_FRAMES 0x08
/* A vBucket's clock: its lowest 16 bits are 0. */
#define CAS_STEP (UINT64_C(1) << 16)
#define GET_META_BYTES 21

enum opcode {
    GET = 0x00,
    SET = 0x01,
    ADD = 0x02,
    REPLACE = 0x03,
    DELETE = 0x04,
    NOOP = 0x0a,
    APPEND = 0x0e,
    GET_META = 0xa0,
    GET_CLUSTER_CONFIG = 0xb5 /* an empty answer: nothing newer */
};

enum status { OK = 0, NOT_FOUND = 1, EXISTS = 2, NOT_STORED = 5, UNKNOWN = 0x81 };

struct header {
    uint8_t magic, opcode;
    uint16_t key_len;
    uint8_t extras_len, datatype;
    uint16_t vbucket; /* in an answer: the status */
    uint32_t body_len, opaque;
    uint64_t cas;
} __attribute__((packed));

struct bytes {
    char *p;
    size_t used, cap;
};

struct document {
    struct document *next;
    struct bytes key, value;
    uint32_t flags, expires_s; /* as on the wire */
    uint64_t cas;
};

struct connection {
    int fd;
    struct bytes in, out;
};

struct request {
    struct header header;
    const char *extras, *key, *value;
    size_t key_len, value_len;
};

static struct document *table[BUCKETS];
static uint64_t last_cas = CAS_STEP;

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static void bytes_add(struct bytes *b, const void *p, size_t len)
{
    if (b->used + len > b->cap) {
        b->cap = 2 * (b->used + len);
        b->p = realloc(b->p, b->cap);
        must(b->p != NULL, "realloc");
    }
    if (len > 0) {
        memcpy(b->p + b->used, p, len);
        b->used += len;
    }
}

static struct document **place_of(const char *key, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (uint8_t)key[i]) * UINT64_C(1099511628211);
    }
    struct document **at = &table[(hash >> 8) % BUCKETS];
    while (*at != NULL && ((*at)->key.used != len || memcmp((*at)->key.p, key, len) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

static void answer(struct connection *c, const struct request *r, enum status status, uint64_t cas,
                   struct bytes extras, struct bytes value)
{
    struct header header = {.magic = 0x81,
                            .opcode = r->header.opcode,
                            .extras_len = (uint8_t)extras.used,
                            .vbucket = htons((uint16_t)status),
                            .body_len = htonl((uint32_t)(extras.used + value.used)),
                            .opaque = r->header.opaque,
                            .cas = htobe64(cas)};
    bytes_add(&c->out, &header, sizeof header);
    bytes_add(&c->out, extras.p, extras.used);
    bytes_add(&c->out, value.p, value.used);
}

static void answer_status(struct connection *c, const struct request *r, enum status status)
{
    answer(c, r, status, 0, (struct bytes){0}, (struct bytes){0});
}

static void get(struct connection *c, const struct request *r, struct document *d)
{
    char meta[GET_META_BYTES] = {0};
    if (d == NULL) {
        answer_status(c, r, NOT_FOUND);
    } else if (r->header.opcode == GET) {
        answer(c, r, OK, d->cas, (struct bytes){(char *)&d->flags, 4, 4}, d->value);
    } else {
        memcpy(meta + 4, &d->flags, 4);
        memcpy(meta + 8, &d->expires_s, 4);
        answer(c, r, OK, d->cas, (struct bytes){meta, sizeof meta, 0}, (struct bytes){0});
    }
}

static struct document *make(const struct request *r, struct document **at)
{
    *at = calloc(1, sizeof **at);
    must(*at != NULL, "calloc");
    bytes_add(&(*at)->key, r->key, r->key_len);
    return *at;
}

/* Is the change refused, and why? */
static enum status judge(const struct request *r, const struct document *d)
{
    uint8_t opcode = r->header.opcode;
    uint64_t cas = be64toh(r->header.cas);
    if (opcode == ADD) {
        return d == NULL ? OK : EXISTS;
    }
    if (d == NULL && opcode == APPEND) {
        return NOT_STORED;
    }
    if (d == NULL) {
        return opcode == SET && cas == 0 ? OK : NOT_FOUND;
    }
    return cas == 0 || cas == d->cas ? OK : EXISTS;
}

static void change(struct connection *c, const struct request *r, struct document **at)
{
    struct document *d = *at;
    enum status status = judge(r, d);
    if (status != OK) {
        answer_status(c, r, status);
        return;
    }
    last_cas += CAS_STEP;
    if (r->header.opcode == DELETE) {
        *at = d->next;
        free(d->key.p);
        free(d->value.p);
        free(d);
    } else {
        d = d == NULL ? make(r, at) : d;
        d->cas = last_cas;
        if (r->header.opcode != APPEND) {
            memcpy(&d->flags, r->extras, 4);
            memcpy(&d->expires_s, r->extras + 4, 4);
            d->value.used = 0;
        }
        bytes_add(&d->value, r->value, r->value_len);
    }
    answer(c, r, OK, last_cas, (struct bytes){0}, (struct bytes){0});
}

static void carry_out(struct connection *c, const struct request *r)
{
    struct document **at = place_of(r->key, r->key_len);
    switch (r->header.opcode) {
    case GET:
    case GET_META:
        get(c, r, *at);
        return;
    case SET:
    case ADD:
    case REPLACE:
    case APPEND:
    case DELETE:
        change(c, r, at);
        return;
    case NOOP:
    case GET_CLUSTER_CONFIG:
        answer_status(c, r, OK);
        return;
    default:
        answer_status(c, r, UNKNOWN);
    }
}

/* Takes the next request off the bytes. False when it is not all there. */
static bool next_request(const struct bytes *in, size_t *at, struct request *r)
{
    if (in->used - *at < sizeof r->header) {
        return false;
    }
    memcpy(&r->header, in->p + *at, sizeof r->header);
    size_t body = ntohl(r->header.body_len), frames_len = 0;
    if (in->used - *at < sizeof r->header + body) {
        return false;
    }
    r->key_len = ntohs(r->header.key_len);
    if (r->header.magic == MAGIC_FRAMES) {
        frames_len = r->key_len >> 8;
        r->key_len &= 0xff;
    }
    r->extras = in->p + *at + sizeof r->header + frames_len;
    r->key = r->extras + r->header.extras_len;
    r->value = r->key + r->key_len;
    r->value_len = body - frames_len - r->key_len - r->header.extras_len;
    *at += sizeof r->header + body;
    return true;
}

static bool serve(struct connection *c)
{
    if (c->in.cap - c->in.used < READ_BYTES) {
        c->in.cap = 2 * (c->in.used + READ_BYTES);
        c->in.p = realloc(c->in.p, c->in.cap);
        must(c->in.p != NULL, "realloc");
    }
    ssize_t n = read(c->fd, c->in.p + c->in.used, c->in.cap - c->in.used);
    if (n <= 0) {
        return false;
    }
    c->in.used += (size_t)n;
    struct request r;
    size_t at = 0, written = 0;
    while (next_request(&c->in, &at, &r)) {
        carry_out(c, &r);
    }
    memmove(c->in.p, c->in.p + at, c->in.used - at);
    c->in.used -= at;
    for (; written < c->out.used && n > 0; written += (size_t)n) {
        n = write(c->fd, c->out.p + written, c->out.used - written);
    }
    c->out.used = 0;
    return n > 0;
}

static void forget(struct connection *c)
{
    close(c->fd);
    free(c->in.p);
    free(c->out.p);
    free(c);
}

static void welcome(int listener, int epoll)
{
    struct connection *c = calloc(1, sizeof *c);
    must(c != NULL, "calloc");
    int one = 1;
    c->fd = accept(listener, NULL, NULL);
    must(c->fd >= 0, "accept");
    must(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) == 0, "epoll_ctl");
}

static int listen_at(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0, "socket");
    must(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    must(listen(fd, SOMAXCONN) == 0, "listen");
    return fd;
}

int main(int argc, char **argv)
{
    long port = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (port < 1 || port > UINT16_MAX) {
        fprintf(stderr, "usage: documents PORT\n");
        return 2;
    }
    int listener = listen_at((uint16_t)port), epoll = epoll_create1(0);
    struct epoll_event events[EVENTS], first = {.events = EPOLLIN};
    must(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &first) == 0, "epoll");
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c == NULL) {
                welcome(listener, epoll);
            } else if (!serve(c)) {
                forget(c);
            }
        }
    }
}
