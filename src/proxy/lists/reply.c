/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/reply.h"

#include <inttypes.h>
#include <stdio.h>

/* Lines around a key of up to LIST_KEY_BYTES_MAX. */
#define LINE_MAX_BYTES (LIST_KEY_BYTES_MAX + 120)

/* The column "answer" of the table. */
enum answer {
    ANSWER_STORED,
    ANSWER_STORED_QUIET,
    ANSWER_COMMITTED,
    ANSWER_DELETED,
    ANSWER_DELETED_QUIET,
    ANSWER_OK,
    ANSWER_ADDED,
    ANSWER_REMOVED,
    ANSWER_NUMBER,
    ANSWER_TOUCHED,
    ANSWER_SECONDS,
    ANSWER_LEASE,
    /* END behind these. */
    ANSWER_VALUE,
    ANSWER_VERSIONED,
    ANSWER_SOME,
    ANSWER_MOVED,
    ANSWER_EACH,
    ANSWER_LINES,
    ANSWER_STAT,
    ANSWER_PAGE,
};

static const enum answer answers[VERB_COUNT] = {
#define LIST_VERB(id, kind, traits)
#define LIST_WORD(id, word, takes, answer) [VERB_##word] = ANSWER_##answer,
    LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
};

enum list_form list_reply_form(enum verb verb)
{
    return answers[verb] == ANSWER_LINES ? LIST_FORM_ITEMS : LIST_FORM_JOINED;
}

bool list_reply_has_version(enum verb verb)
{
    return answers[verb] == ANSWER_VERSIONED;
}

struct slice list_reply_trailer(enum verb verb)
{
    return answers[verb] >= ANSWER_VALUE ? SLICE_LIT("END\r\n") : SLICE_NONE;
}

bool list_reply_stands_alone(enum verb verb, const struct list_call *call)
{
    /* END alone would say that SRC has no items: here it may be DST that is missing. */
    bool moves = call->verb == LIST_POPTO;
    return (answers[verb] == ANSWER_PAGE || moves) && call->status == LIST_MISSING;
}

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

static void reply_seconds(const struct list_call *call, struct chain *out)
{
    char line[32];
    int len = snprintf(line, sizeof line, "%" PRId64 "\r\n", call->stat.ttl_s);
    chain_copy(out, line, (size_t)len);
}

/* version: NULL: it is not shown. */
static void reply_value(struct slice key, uint32_t flags, const uint64_t *version,
                        struct chain *items, struct chain *out)
{
    CHECK(key.len <= LIST_KEY_BYTES_MAX);
    char *start = chain_reserve(out, LINE_MAX_BYTES);
    char *end = start;
    memcpy(end, "VALUE ", 6);
    end += 6;
    memcpy(end, key.p, key.len);
    end += key.len;
    *end++ = ' ';
    end += format_u64(end, flags);
    *end++ = ' ';
    end += format_u64(end, items->bytes);
    if (version != NULL) {
        *end++ = ' ';
        end += format_u64(end, *version);
    }
    memcpy(end, "\r\n", 2);
    end += 2;
    chain_commit(out, (size_t)(end - start));
    chain_move(out, items);
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

void list_reply_value(struct list_call *call, uint32_t flags, bool with_version, struct chain *out)
{
    reply_value(call->key, flags, with_version ? &call->version : NULL, &call->answer, out);
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
        {"timed", s->timed},
        {"transactions_waiting", s->transactions_waiting},
        {"transactions_pending", s->transactions_pending},
        {"transactions_committed", s->transactions_committed},
        {"transaction_age", (uint64_t)s->transaction_age_s},
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

/* One line: when it was done, and when the list is missing. */
struct outcome {
    struct slice ok; /* empty: nothing is said */
    struct slice missing;
};

static const struct outcome outcomes[] = {
#define LINE(text) \
    { \
        text "\r\n", sizeof(text "\r\n") - 1 \
    }
    [ANSWER_STORED] = {LINE("STORED"), LINE("NOT_STORED")},
    [ANSWER_STORED_QUIET] = {{NULL, 0}, LINE("NOT_STORED")},
    [ANSWER_COMMITTED] = {LINE("STORED"), LINE("NOT_FOUND")},
    [ANSWER_DELETED] = {LINE("DELETED"), LINE("NOT_FOUND")},
    [ANSWER_DELETED_QUIET] = {{NULL, 0}, LINE("NOT_FOUND")},
    [ANSWER_OK] = {LINE("OK"), LINE("NOT_FOUND")},
    [ANSWER_ADDED] = {{NULL, 0}, LINE("NOT_STORED")},
    [ANSWER_REMOVED] = {{NULL, 0}, LINE("NOT_FOUND")},
    [ANSWER_NUMBER] = {{NULL, 0}, LINE("0")},
    [ANSWER_TOUCHED] = {LINE("TOUCHED"), LINE("NOT_FOUND")},
    [ANSWER_SECONDS] = {{NULL, 0}, LINE("NOT_FOUND")},
    [ANSWER_LEASE] = {{NULL, 0}, {NULL, 0}},
#undef LINE
};

static void reply_outcome(enum answer answer, const struct list_call *call, struct chain *out)
{
    bool is_number = answer == ANSWER_ADDED || answer == ANSWER_REMOVED ||
                     answer == ANSWER_NUMBER || answer == ANSWER_LEASE;
    if (call->status == LIST_NOT_STORED) {
        chain_copy_slice(out, SLICE_LIT("NOT_STORED\r\n"));
    } else if (call->status == LIST_EXISTS) {
        chain_copy_slice(out, SLICE_LIT("EXISTS\r\n"));
    } else if (call->status == LIST_MISSING) {
        chain_copy_slice(out, outcomes[answer].missing);
    } else if (is_number) {
        reply_number(call, out);
    } else if (answer == ANSWER_SECONDS) {
        reply_seconds(call, out);
    } else {
        chain_copy_slice(out, outcomes[answer].ok);
    }
}

void list_reply(enum verb verb, struct list_call *call, struct chain *out)
{
    bool found = call->status == LIST_OK;
    enum answer answer = answers[verb];
    switch (answer) {
    case ANSWER_VALUE:
    case ANSWER_VERSIONED:
        if (found) {
            list_reply_value(call, 0, answer == ANSWER_VERSIONED, out);
        }
        return;
    case ANSWER_SOME:
    case ANSWER_PAGE:
        /* A list that is there but has none of what was asked for. */
        if (found && call->number > 0) {
            list_reply_value(call, 0, false, out);
        }
        return;
    case ANSWER_MOVED:
        if (found && call->number > 0) {
            reply_value(call->lists[1].key, 0, NULL, &call->answer, out);
        }
        return;
    case ANSWER_EACH:
        for (size_t i = 0; i < call->list_count; i++) {
            if (call->lists[i].is_there) {
                reply_value(call->lists[i].key, 0, NULL, &call->lists[i].answer, out);
            }
        }
        return;
    case ANSWER_LINES:
        chain_move(out, &call->answer);
        return;
    case ANSWER_STAT:
        if (found) {
            reply_stat(call, out);
        }
        return;
    default:
        reply_outcome(answer, call, out);
        return;
    }
}
