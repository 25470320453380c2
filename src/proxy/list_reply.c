/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/list_reply.h"

#include <inttypes.h>
#include <stdio.h>

/* Lines around a key of up to LIST_KEY_BYTES_MAX. */
#define LINE_MAX_BYTES (LIST_KEY_BYTES_MAX + 120)

void list_reply_failure(const struct list_call *call, char *line, size_t cap)
{
    const char *who = call->status == LIST_CLIENT_ERROR ? "CLIENT" : "SERVER";
    snprintf(line, cap, "%s_ERROR %s", who, call->error);
}

static void reply_number(const struct list_call *call, struct chain *out)
{
    char *start = chain_reserve(out, 24);
    size_t len = format_u64(start, call->number);
    memcpy(start + len, "\r\n", 2);
    chain_commit(out, len + 2);
}

/* VALUE KEY 0 BYTES[ VERSION], the items, and the line end behind them. */
static void reply_joined(struct list_call *call, bool with_version, struct chain *out)
{
    CHECK(call->key.len <= LIST_KEY_BYTES_MAX);
    char *start = chain_reserve(out, LINE_MAX_BYTES);
    char *end = start;
    memcpy(end, "VALUE ", 6);
    end += 6;
    memcpy(end, call->key.p, call->key.len);
    end += call->key.len;
    memcpy(end, " 0 ", 3);
    end += 3;
    end += format_u64(end, call->answer.bytes);
    if (with_version) {
        *end++ = ' ';
        end += format_u64(end, call->version);
    }
    memcpy(end, "\r\n", 2);
    end += 2;
    chain_commit(out, (size_t)(end - start));
    chain_move(out, &call->answer);
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

static void stat_number(struct chain *out, const char *name, int64_t value)
{
    char line[80];
    int len = snprintf(line, sizeof line, "STAT %s %" PRId64 "\r\n", name, value);
    chain_copy(out, line, (size_t)len);
}

static RARE void reply_stat(const struct list_call *call, struct chain *out)
{
    const struct list_stat *s = &call->stat;
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"items", s->items},
        {"log_bytes", s->log_bytes},
        {"log_entries", s->log_entries},
        {"runs", s->runs},
        {"sublists", s->sublists},
        {"sublist_bytes", s->sublist_bytes},
        {"garbage_names", s->garbage_names},
        {"announcements", s->announcements},
        {"head_cas", s->head_cas},
        {"cached", s->cached},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        stat_number(out, numbers[i].name, (int64_t)numbers[i].value);
    }
    stat_number(out, "ttl", s->ttl_s);
    if (s->head_server != NULL) {
        chain_copy_slice(out, SLICE_LIT("STAT head_server "));
        chain_copy_slice(out, slice_of(s->head_server));
        chain_copy_slice(out, SLICE_LIT("\r\n"));
    }
}

/* The one-line answer of a verb that changes: when it was done, and when the list is missing. */
struct outcome {
    struct slice ok; /* empty: a number is the answer */
    struct slice missing;
};

static struct outcome outcome_of(enum verb verb)
{
    switch (verb) {
    case VERB_LADD:
    case VERB_LADDQ:
    case VERB_LADDB:
    case VERB_LSET:
    case VERB_LSETQ:
    case VERB_LCREATE:
        return (struct outcome){SLICE_LIT("STORED\r\n"), SLICE_LIT("NOT_STORED\r\n")};
    case VERB_LADDX:
        return (struct outcome){SLICE_NONE, SLICE_LIT("NOT_STORED\r\n")};
    case VERB_LDELX:
        return (struct outcome){SLICE_NONE, SLICE_LIT("NOT_FOUND\r\n")};
    case VERB_LLEN:
    case VERB_LCONVERT:
        return (struct outcome){SLICE_NONE, SLICE_LIT("0\r\n")};
    case VERB_LCOMPACT:
        return (struct outcome){SLICE_LIT("OK\r\n"), SLICE_LIT("NOT_FOUND\r\n")};
    default:
        return (struct outcome){SLICE_LIT("DELETED\r\n"), SLICE_LIT("NOT_FOUND\r\n")};
    }
}

static void reply_outcome(enum verb verb, bool quiet, const struct list_call *call,
                          struct chain *out)
{
    struct outcome outcome = outcome_of(verb);
    if (call->status == LIST_NOT_STORED) {
        chain_copy_slice(out, SLICE_LIT("NOT_STORED\r\n"));
    } else if (call->status == LIST_MISSING) {
        chain_copy_slice(out, outcome.missing);
    } else if (outcome.ok.len == 0) {
        reply_number(call, out);
    } else if (!quiet) {
        chain_copy_slice(out, outcome.ok);
    }
}

void list_reply(enum verb verb, bool quiet, struct list_call *call, struct chain *out)
{
    bool found = call->status == LIST_OK;
    switch (verb) {
    case VERB_LGET:
    case VERB_LGETS:
        if (found) {
            reply_joined(call, verb == VERB_LGETS, out);
        }
        return;
    case VERB_LHAS:
    case VERB_LHASB:
    case VERB_LRANGE:
        /* A list that is there but has none of what was asked for. */
        if (found && call->number > 0) {
            reply_joined(call, false, out);
        }
        return;
    case VERB_LGETB:
        chain_move(out, &call->answer);
        return;
    case VERB_LSTAT:
        if (found) {
            reply_stat(call, out);
        }
        return;
    default:
        reply_outcome(verb, quiet, call, out);
        return;
    }
}
