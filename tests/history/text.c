/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file format; history.h describes it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "records.h"

static const char *const verbs[HISTORY_VERBS] = {"ladd",  "ldel",    "lset",  "laddx",
                                                 "ldelx", "lcreate", "lget",  "lhas",
                                                 "llen",  "lrange",  "ldrop", "lcompact"};
static const char *const outcomes[HISTORY_OUTCOMES] = {"ok",    "missing", "not_stored", "none",
                                                       "error", "damaged", "unknown",    "maybe"};

const char *history_verb_name(enum history_verb verb)
{
    return verbs[verb];
}

const char *history_outcome_name(enum history_outcome outcome)
{
    return outcomes[outcome];
}

/* --- reading --- */

struct reader {
    const char *name;
    uint64_t line;
    char *error;
    struct history *history;
    struct op_buffers buffers; /* the slices of the current line */
};

static bool PRINTF_LIKE(2, 3) refuse(struct reader *r, const char *format, ...)
{
    va_list args;
    int n = snprintf(r->error, HISTORY_ERROR_MAX, "%s:%" PRIu64 ": ", r->name, r->line);
    if (n > 0 && n < HISTORY_ERROR_MAX) {
        va_start(args, format);
        vsnprintf(r->error + n, HISTORY_ERROR_MAX - (size_t)n, format, args);
        va_end(args);
    }
    return false;
}

/* Takes the next word; false when there is none. Two blanks have an empty word between them. */
static bool take_word(struct slice *rest, struct slice *word)
{
    if (rest->p == NULL) {
        return false;
    }
    const char *blank = memchr(rest->p, ' ', rest->len);
    *word = slice_make(rest->p, blank == NULL ? rest->len : (size_t)(blank - rest->p));
    if (blank == NULL) {
        *rest = SLICE_NONE;
    } else {
        (void)slice_take(rest, word->len + 1);
    }
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes a name in place, in the line's own memory. */
static bool decode(struct slice *name)
{
    char *out = (char *)name->p;
    size_t n = 0;
    for (size_t i = 0; i < name->len; i++) {
        unsigned char c = (unsigned char)name->p[i];
        if (c == '%') {
            int high = i + 2 < name->len ? hex_digit(name->p[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(name->p[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (unsigned char)(high * 16 + low);
            i += 2;
        } else if (c <= ' ' || c == 0x7f || c == '=') {
            return false;
        }
        out[n++] = (char)c;
    }
    name->len = n;
    return n > 0;
}

static bool take_number(struct slice *rest, int64_t *value)
{
    struct slice word;
    uint64_t magnitude;
    if (!take_word(rest, &word)) {
        return false;
    }
    bool minus = word.len > 0 && word.p[0] == '-';
    (void)slice_take(&word, minus ? 1 : 0);
    if (!slice_to_u64(word, &magnitude) || magnitude >= INT64_MAX) {
        return false;
    }
    *value = minus ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool find(struct slice word, const char *const *words, int count, int *found)
{
    for (*found = 0; *found < count; ++*found) {
        if (slice_equal(word, slice_of(words[*found]))) {
            return true;
        }
    }
    return false;
}

/* Takes names up to "=" (or the line's end, when at_end). */
static bool take_names(struct reader *r, struct slice *rest, bool at_end, struct slice **names,
                       uint32_t *cap, size_t *count)
{
    struct slice word;
    *count = 0;
    while (take_word(rest, &word)) {
        if (!at_end && slice_equal(word, SLICE_LIT("="))) {
            return true;
        }
        if (!decode(&word)) {
            return refuse(r, "malformed name");
        }
        *names = history_grow(*names, (uint32_t)*count, cap, sizeof **names);
        (*names)[(*count)++] = word;
    }
    return at_end || refuse(r, "no \"=\" before the outcome");
}

static bool take_request(struct reader *r, struct slice *rest, struct history_op *op)
{
    struct slice word;
    int64_t process = -1;
    int verb = 0;
    if (!take_number(rest, &op->invoked)) {
        return refuse(r, "no time of invocation");
    }
    if (rest->len > 1 && rest->p[0] == '-' && rest->p[1] == ' ') {
        (void)slice_take(rest, 2);
        op->completed = HISTORY_NEVER;
    } else if (!take_number(rest, &op->completed)) {
        return refuse(r, "no time of completion");
    }
    if (!take_number(rest, &process) || process < 0 || process > UINT32_MAX) {
        return refuse(r, "no number of a process");
    }
    op->process = (uint32_t)process;
    if (!take_word(rest, &word) || !find(word, verbs, HISTORY_VERBS, &verb)) {
        return refuse(r, "unknown verb");
    }
    op->verb = (enum history_verb)verb;
    if (!take_word(rest, &op->list) || !decode(&op->list)) {
        return refuse(r, "malformed name of a list");
    }
    if (op->verb == HISTORY_LRANGE &&
        (!take_number(rest, &op->from) || !take_number(rest, &op->to))) {
        return refuse(r, "lrange needs two positions");
    }
    return take_names(r, rest, false, &r->buffers.items, &r->buffers.item_cap, &op->item_count);
}

static bool take_line(struct reader *r, struct slice rest)
{
    struct history_op op = {.number = r->line};
    struct slice word;
    int outcome = 0;
    int64_t count = 0;
    if (!take_request(r, &rest, &op)) {
        return false;
    }
    if (!take_word(&rest, &word) || !find(word, outcomes, HISTORY_OUTCOMES, &outcome)) {
        return refuse(r, "unknown outcome");
    }
    op.outcome = (enum history_outcome)outcome;
    bool counts = op.verb == HISTORY_LADDX || op.verb == HISTORY_LDELX || op.verb == HISTORY_LLEN;
    if (counts && op.outcome == HISTORY_OK && (!take_number(&rest, &count) || count < 0)) {
        return refuse(r, "no number in the answer");
    }
    op.count = (uint64_t)count;
    if (!take_names(r, &rest, true, &r->buffers.answer, &r->buffers.answer_cap, &op.answer_count)) {
        return false;
    }
    op.items = r->buffers.items;
    op.answer = r->buffers.answer;
    const char *fault = history_add(r->history, &op);
    return fault == NULL || refuse(r, "%s", fault);
}

static bool take_header(struct reader *r, struct slice line, uint64_t configurations_max)
{
    struct history_options options = {.configurations_max = configurations_max};
    if (slice_equal(line, SLICE_LIT("history 1 on_missing=refuse"))) {
        options.refuse = true;
    } else if (!slice_equal(line, SLICE_LIT("history 1 on_missing=create"))) {
        return refuse(r, "expected \"history 1 on_missing=create\" or \"...=refuse\"");
    }
    r->history = history_create(&options);
    return true;
}

bool history_read(FILE *file, const char *name, uint64_t configurations_max,
                  struct history **history, char error[HISTORY_ERROR_MAX])
{
    struct reader r = {.name = name, .error = error};
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    bool good = true;
    while (good && (n = getline(&text, &cap, file)) >= 0) {
        r.line++;
        struct slice line = slice_make(text, (size_t)n);
        line.len -= line.len > 0 && line.p[line.len - 1] == '\n';
        if (line.len == 0 || line.p[0] == '#') {
            continue;
        }
        good = r.history == NULL ? take_header(&r, line, configurations_max) : take_line(&r, line);
    }
    if (good && ferror(file)) {
        good = refuse(&r, "cannot be read");
    }
    if (good && r.history == NULL) {
        good = refuse(&r, "no header");
    }
    free(text);
    op_buffers_fini(&r.buffers);
    if (!good) {
        history_destroy(&r.history);
    }
    *history = r.history;
    return good;
}

/* --- writing --- */

static void put_name(FILE *file, struct slice name)
{
    putc(' ', file);
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c <= ' ' || c >= 0x7f || c == '%' || c == '=') {
            fprintf(file, "%%%02X", c);
        } else {
            putc(c, file);
        }
    }
}

void history_write_header(FILE *file, bool refuse_missing)
{
    fprintf(file, "history 1 on_missing=%s\n", refuse_missing ? "refuse" : "create");
}

void history_write(FILE *file, const struct history_op *op)
{
    fprintf(file, "%" PRId64 " ", op->invoked);
    if (op->completed == HISTORY_NEVER) {
        fprintf(file, "-");
    } else {
        fprintf(file, "%" PRId64, op->completed);
    }
    fprintf(file, " %" PRIu32 " %s", op->process, verbs[op->verb]);
    put_name(file, op->list);
    if (op->verb == HISTORY_LRANGE) {
        fprintf(file, " %" PRId64 " %" PRId64, op->from, op->to);
    }
    for (size_t i = 0; i < op->item_count; i++) {
        put_name(file, op->items[i]);
    }
    fprintf(file, " = %s", outcomes[op->outcome]);
    if (op->outcome == HISTORY_OK &&
        (op->verb == HISTORY_LADDX || op->verb == HISTORY_LDELX || op->verb == HISTORY_LLEN)) {
        fprintf(file, " %" PRIu64, op->count);
    }
    for (size_t i = 0; i < op->answer_count; i++) {
        put_name(file, op->answer[i]);
    }
    putc('\n', file);
}
