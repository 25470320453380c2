/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this room have in common.
 */
#ifndef PROXY_BRIDGE_PART_H
#define PROXY_BRIDGE_PART_H

#include "dialect/shared/text.h"
#include "proxy/bridge/bridge.h"
#include "proxy/lists/call_part.h"

/* What a verb with one key does to its list. */
enum bridge_verb {
    BRIDGE_ADD,     /* append */
    BRIDGE_DELETE,  /* prepend */
    BRIDGE_SET,     /* set */
    BRIDGE_CREATE,  /* add */
    BRIDGE_REPLACE, /* replace */
    BRIDGE_CAS,     /* cas */
    BRIDGE_DROP,    /* delete */
    BRIDGE_TOUCH,   /* touch */
    BRIDGE_READ,    /* mg */
    BRIDGE_DEBUG,   /* me */
    BRIDGE_NONE,    /* incr, decr, ma */
};

/* A request with one key, as classic and meta commands both say it. */
struct bridge_request {
    enum bridge_verb verb;
    bool has_exptime;
    int64_t exptime;
    uint32_t flags; /* of the value */
    bool has_cas;
    uint64_t cas;
    /* mg: what the answer is to show. */
    bool wants_value, wants_size, wants_ttl, wants_version;
    char unknown_flag; /* a meta flag that makes no sense for a list, or 0 */
};

/* How it ended. */
enum bridge_outcome {
    BRIDGE_DONE,
    BRIDGE_NOT_STORED,
    BRIDGE_EXISTS,
    BRIDGE_NOT_FOUND,
};

/* The policy of the list that a plain key names; NULL: it names none. */
const struct list_policy *bridge_policy(const struct config *config, struct slice key);

static inline bool bridge_has_items(enum bridge_verb verb)
{
    return verb <= BRIDGE_CAS;
}

static inline char bridge_delimiter(const struct list_policy *policy)
{
    return (char)policy->delimiter;
}

/* append with bridge = signed: additions and deletions. */
static inline bool bridge_takes_signs(const struct list_policy *policy, enum bridge_verb verb)
{
    return policy->bridge == BRIDGE_SIGNED && verb == BRIDGE_ADD;
}

static inline struct signs bridge_signs(const struct list_policy *policy)
{
    return (struct signs){(char)policy->add_sign, (char)policy->delete_sign};
}

/* Is the time to live over at once? Absolute times of the past are left to memcached. */
static inline bool bridge_is_over(const struct bridge_request *b)
{
    return b->has_exptime && b->exptime < 0;
}

/* Answers in turn, unless the request is one without answer, and counts an error. */
void bridge_refuse(struct client *client, const struct request *request, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Beside the part's read goes a new time to live. */
void bridge_add_touch(struct call_part *part, int64_t exptime);

/* Has one of the part's calls failed? Then counts it, and line is what the answer ends with. */
bool bridge_failed(struct call_part *part, char line[CALL_PART_LINE_MAX]);

/* keys.c: a request of SHAPE_KEYS or SHAPE_GAT with a list among its keys. */
void bridge_keys(struct client *client, const struct request *request, struct block *block);

/* flags.c: of mg, ms, md, ma, me. */
void bridge_meta_read(const struct request *request, struct bridge_request *out);
/* meta.c. Appends the answer; the call has not failed. */
void bridge_meta_answer(struct call_part *part, const struct bridge_request *b,
                        enum bridge_outcome outcome, struct chain *out);

/* The flags of answers. */
static inline uint32_t bridge_flags(const struct call_part *c)
{
    return c->call.policy->bridge_flags_out;
}
/* Completes the items of an answer, once, before they are sent or measured. */
static inline void bridge_complete(struct call_part *c)
{
    const struct list_policy *policy = c->call.policy;
    char delimiter = bridge_delimiter(policy);
    if (policy->bridge_last_delimiter && c->call.answer.bytes > 0) {
        chain_copy(&c->call.answer, &delimiter, 1);
    }
}

#endif
