/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "list/format/name.h"
#include "proto/client/request_parse.h"

#define LINE_MAX_BYTES 2048

void trace_init(struct trace *t)
{
    atomic_init(&t->on, false);
    t->text = NULL;
    CHECK(pthread_mutex_init(&t->lock, NULL) == 0);
}

void trace_fini(struct trace *t)
{
    free(t->text);
    pthread_mutex_destroy(&t->lock);
}

bool trace_begin(struct trace *t, struct slice key, const struct trace_name *names,
                 size_t name_count, unsigned requests)
{
    pthread_mutex_lock(&t->lock);
    bool is_free = t->text == NULL;
    if (is_free) {
        CHECK(key.len <= sizeof t->key && name_count <= TRACE_NAMES_MAX);
        memcpy(t->key, key.p, key.len);
        t->key_len = key.len;
        memcpy(t->names, names, name_count * sizeof *names);
        t->name_count = name_count;
        t->left = requests;
        t->text = malloc(TRACE_BYTES);
        CHECK(t->text != NULL);
        t->len = 0;
        t->lost = 0;
        atomic_store(&t->on, true);
    }
    pthread_mutex_unlock(&t->lock);
    return is_free;
}

void trace_end(struct trace *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->on, false);
    free(t->text);
    t->text = NULL;
    pthread_mutex_unlock(&t->lock);
}

size_t trace_take(struct trace *t, char *out, uint64_t *lost, bool *over)
{
    pthread_mutex_lock(&t->lock);
    size_t len = t->len;
    memcpy(out, t->text, len);
    *lost = t->lost;
    *over = t->left == 0;
    t->len = 0;
    t->lost = 0;
    pthread_mutex_unlock(&t->lock);
    return len;
}

/* --- lines: under the lock --- */

PRINTF_LIKE(3, 4)
static void add(struct trace *t, const struct trace_row *row, const char *format, ...)
{
    char line[LINE_MAX_BYTES], clock[16];
    struct timespec now;
    struct tm tm;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    int len = snprintf(line, sizeof line, "%s.%06ld worker=%zu verb=%.*s us=%" PRIu64 " ", clock,
                       now.tv_nsec / 1000, row->worker, SLICE_ARGS(row->verb), row->us);
    va_list args;
    va_start(args, format);
    len += vsnprintf(line + len, sizeof line - (size_t)len, format, args);
    va_end(args);
    size_t bytes = (size_t)len < sizeof line ? (size_t)len : sizeof line - 1;
    if (bytes + 1 > TRACE_BYTES - t->len) {
        t->lost++;
        return;
    }
    memcpy(t->text + t->len, line, bytes);
    t->text[t->len + bytes] = '\n';
    t->len += bytes + 1;
}

void trace_add_request(struct trace *t, const struct trace_row *row, uint64_t client,
                       uint64_t waited_us, struct slice keys)
{
    char shown[4 * KEY_BYTES_MAX + 1];
    struct slice key;
    pthread_mutex_lock(&t->lock);
    while (t->text != NULL && t->left > 0 && token_next(&keys, &key)) {
        if (slice_equal(key, slice_make(t->key, t->key_len))) {
            add(t, row, "waited_us=%" PRIu64 " client=%" PRIu64 " key=%s", waited_us, client,
                slice_escape(key, shown, sizeof shown));
            t->left--;
            break;
        }
    }
    pthread_mutex_unlock(&t->lock);
}

static bool has_name(const struct trace_name *name, struct slice item)
{
    if (!slice_starts_with(item, slice_make(name->text, name->len))) {
        return false;
    }
    size_t digits = 0, rest = item.len - name->len;
    while (digits < rest && item.p[name->len + digits] >= '0' &&
           item.p[name->len + digits] <= '9') {
        digits++;
    }
    return digits == rest && (rest > 0) == name->numbered;
}

static bool belongs(const struct trace *t, struct slice item)
{
    struct slice key = slice_make(t->key, t->key_len), list;
    bool is_head, found = slice_equal(item, key);
    found = found || (list_item_key(item, &list, &is_head) && slice_equal(list, key));
    for (size_t i = 0; i < t->name_count && !found; i++) {
        found = has_name(&t->names[i], item);
    }
    return found;
}

static const char *status_text(enum be_status status)
{
    static const char *const texts[] = {
        [BE_HIT] = "hit",
        [BE_MISS] = "miss",
        [BE_STORED] = "stored",
        [BE_NOT_STORED] = "not_stored",
        [BE_EXISTS] = "exists",
        [BE_NOT_FOUND] = "not_found",
        [BE_DELETED] = "deleted",
        [BE_ANSWERED] = "answered",
        [BE_NO_MEMORY] = "no_memory",
        [BE_TOO_LARGE] = "too_large",
        [BE_REFUSED] = "refused",
        [BE_DOWN] = "down",
        [BE_LOST] = "lost",
    };
    return texts[status];
}

struct slice trace_verb(enum be_verb verb)
{
    static const char *const texts[] = {
        [BE_GET] = "get",
        [BE_SIZE] = "size",
        [BE_PROBE] = "probe",
        [BE_TIME] = "time",
        [BE_FETCH] = "fetch",
        [BE_ADD] = "add",
        [BE_REPLACE] = "replace",
        [BE_SET] = "set",
        [BE_APPEND] = "append",
        [BE_PREPEND] = "prepend",
        [BE_INCR] = "incr",
        [BE_CAS] = "cas",
        [BE_CAS_DELETE] = "cas_delete",
        [BE_DELETE] = "delete",
        [BE_DECR] = "decr",
        [BE_TOUCH] = "touch",
        [BE_GAT] = "gat",
    };
    return verb <= BE_GAT ? slice_of(texts[verb]) : SLICE_LIT("other");
}

/* What the server or the proxy said besides, and under which name; of a line its first word. */
static const char *what_is_told(const struct be_reply *reply, struct slice *told)
{
    struct slice line = reply->line;
    if (reply->status == BE_ANSWERED && line.len > 0 && token_next(&line, told)) {
        return " answer=";
    }
    bool failed = reply->status >= BE_NO_MEMORY && reply->text != NULL;
    *told = slice_of(failed ? reply->text : "");
    return failed ? " why=" : "";
}

void trace_add_reply(struct trace *t, const struct trace_row *row, struct slice item,
                     const struct be_reply *reply)
{
    char shown[4 * KEY_BYTES_MAX + 1];
    struct slice told;
    pthread_mutex_lock(&t->lock);
    if (t->text != NULL && t->left > 0 && belongs(t, item)) {
        const char *what = what_is_told(reply, &told);
        add(t, row, "server=%s status=%s item=%s%s%.*s",
            reply->caps == NULL ? "unknown" : reply->caps->server_name, status_text(reply->status),
            slice_escape(item, shown, sizeof shown), what, SLICE_ARGS(told));
    }
    pthread_mutex_unlock(&t->lock);
}
