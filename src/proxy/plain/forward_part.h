/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A part that is one key's request to its server, and the reply: what all of pass-through has in
 * common. For forward.c and multiget.c.
 */
#ifndef PROXY_PLAIN_FORWARD_PART_H
#define PROXY_PLAIN_FORWARD_PART_H

#include "pool/pool.h"
#include "proxy/client/client.h"
#include "proxy/core/worker.h"

/* What the answer to an operation says, beside the value. Of a line only status, BE_ANSWERED. */
struct item_answer {
    enum be_status status;
    uint32_t flags, code;
    int64_t ttl_s;
    uint64_t cas, number;
};

struct forward_part {
    struct part part;
    /* The reply: borrowed until it is parked. */
    bool failed; /* no reply: text says why */
    bool has_value;
    bool parked;      /* block or text is ours */
    bool as_told;     /* value and its line stand in the server's answer as the client gets them */
    bool failed_over; /* it has asked the failover pool of its route */
    struct slice line;
    struct slice value;
    struct block *block; /* NULL: line is static */
    const char *text;
    struct worker *heeded;   /* whose part it is, if its reply is traced, or its request has ended;
                                else NULL */
    struct block *key_block; /* of one that has ended: holds a reference to where the key lies */
    struct block *own_key;   /* holds a key that was decoded, or NULL */
    struct forward_part *next; /* of those that share an exchange */
    struct item_answer item;
    struct exchange exchange; /* not filled when it is shared */
};

static inline struct forward_part *forward_of(struct part *part)
{
    return (struct forward_part *)((char *)part - offsetof(struct forward_part, part));
}

/* As servers know it: decoded, if need be. It lives as long as the part. */
static inline struct slice forward_part_key(const struct forward_part *f)
{
    return f->own_key != NULL ? slice_make(f->own_key->data, f->own_key->used) : f->part.key;
}

static inline struct worker *worker_of(const struct pending *p)
{
    return p->client->worker;
}

/* A part that is counted in, owned by the pending. */
struct forward_part *forward_part_new(struct pending *pending, struct slice key,
                                      enum window_kind kind);
/* The part's own exchange, for that line, which is answered like that operation (be_line_form):
 * submit it. */
struct exchange *forward_part_exchange(struct forward_part *part, enum be_verb verb,
                                       struct slice line, enum be_verb like);
/* The same for an operation, which is at its exchange's op, all zeros. Its key and value must live
 * as long as the request. */
struct exchange *forward_part_operation(struct forward_part *part);
/* Takes the exchange's reply: the part is answered, or postponed. A line that is static comes
 * without block. The part may be freed by this call. */
void forward_part_reply(struct forward_part *part, const struct exchange *exchange,
                        const struct be_reply *reply);

/* Servers count the numbers of their CAS from 1 and do not get here; Couchbase's are nanoseconds
 * since 1970. A signed number holds it. */
#define FAILOVER_CAS (UINT64_C(1) << 62)

/* The number of the item's CAS as the client is told it. One of the failover pool must not be that
 * of another value in the first pool, where a cas with it goes. 0: there is none. */
static inline uint64_t forward_part_cas(const struct forward_part *part, uint64_t cas)
{
    return UNLIKELY(part->failed_over) && cas != 0 ? cas | FAILOVER_CAS : cas;
}

/* For handlers. */
/* Of requests that change nothing, and of all others. */
const char *forward_read_timeout_text(const struct pending *pending);
const char *forward_timeout_text(const struct pending *pending);

/* Counts it if it is an error line of a server. */
void forward_count_error(struct worker *worker, struct slice line);
/* The request's answer will end with the part's error instead of its trailer. */
void forward_part_fail(struct pending *pending, const struct forward_part *part);
/* The part has no reply: counts that, and answers so. */
void forward_part_emit_failure(const struct forward_part *part, struct chain *out);
/* The part has no reply, and reads are answered as misses then: counts it. */
bool forward_part_is_miss(const struct forward_part *part);

/* Writing lines: each returns where it ends. */
static inline char *put(char *out, struct slice s)
{
    if (s.len > 0) {
        memcpy(out, s.p, s.len);
    }
    return out + s.len;
}

static inline char *put_word(char *out, struct slice s)
{
    *out++ = ' ';
    return put(out, s);
}

static inline char *put_number(char *out, uint64_t number)
{
    *out++ = ' ';
    return out + format_u64(out, number);
}

#endif
