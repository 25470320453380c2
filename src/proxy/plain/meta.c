/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/meta.h"

#include "list/core/expiry.h"
#include "proto/client/request_shape.h"
#include "proto/server/binary.h"
#include "proxy/plain/operation.h"

/* Room for the longest answer without its value: a key, an opaque, numbers. */
#define LINE_MAX_BYTES ((size_t)512)
/* Values up to this size are copied with their line into one piece of the output. */
#define SMALL_VALUE_MAX ((size_t)4096)

/* Takes the next flag off the front; flag letter and its value. */
static bool next_flag(struct slice *flags, char *letter, struct slice *value)
{
    struct slice token;
    if (!token_next(flags, &token)) {
        return false;
    }
    *letter = token.p[0];
    *value = slice_make(token.p + 1, token.len - 1);
    return true;
}

/* The flags of a request, without the length that stands before those of ms. */
static struct slice flags_of(const struct request *r)
{
    struct slice flags = r->args, length;
    if (r->verb->shape == SHAPE_META_SET) {
        (void)token_next(&flags, &length);
    }
    return flags;
}

char meta_mode(const struct request *r)
{
    struct slice flags = flags_of(r), value;
    char letter;
    while (next_flag(&flags, &letter, &value)) {
        if (letter == 'M' && value.len > 0) {
            return value.p[0];
        }
    }
    return 0;
}

char meta_refused_flag(const struct request *r)
{
    /* Without them there is nothing to be stale, or to be told who recaches. */
    static const char *const refused[] = {
        [VERB_MG] = "hlNRE", [VERB_MS] = "IE", [VERB_MD] = "IEx", [VERB_MA] = "CETt"};
    struct slice flags = flags_of(r), value;
    bool extends = r->verb->verb == VERB_MS && (meta_mode(r) == 'A' || meta_mode(r) == 'P');
    char letter;
    while (next_flag(&flags, &letter, &value)) {
        if (strchr(refused[r->verb->verb], letter) != NULL || (extends && letter == 'N')) {
            return letter;
        }
    }
    return 0;
}

/* Numbers were checked by the parser. */
static uint64_t number_of(struct slice value)
{
    uint64_t n = 0;
    (void)word_to_u64(value, &n);
    return n;
}

static int32_t exptime_of(struct slice value)
{
    int64_t exptime = 0;
    bool is_usual;
    (void)word_to_exptime(value, &exptime, &is_usual);
    return operation_exptime(exptime);
}

static enum be_verb get_verb(bool touches, bool wants_time)
{
    return touches ? BE_GAT : wants_time ? BE_GET : BE_FETCH;
}

static void fill_get(const struct request *r, struct be_operation *op)
{
    struct slice flags = r->args, value;
    bool touches = false, wants_time = false;
    char letter;
    while (next_flag(&flags, &letter, &value)) {
        wants_time = wants_time || letter == 't';
        if (letter == 'T') {
            touches = true;
            op->exptime = exptime_of(value);
        }
    }
    op->verb = get_verb(touches, wants_time);
}

static enum be_verb set_verb(char mode, bool has_cas)
{
    switch (mode) {
    case 'E':
        return BE_ADD;
    case 'A':
        return BE_APPEND;
    case 'P':
        return BE_PREPEND;
    case 'R':
        return BE_REPLACE;
    default:
        return has_cas ? BE_CAS : BE_SET;
    }
}

static void fill_set(const struct request *r, struct be_operation *op)
{
    struct slice flags = flags_of(r), value;
    char letter;
    while (next_flag(&flags, &letter, &value)) {
        switch (letter) {
        case 'C':
            op->with_cas = true;
            op->cas = number_of(value);
            break;
        case 'F':
            op->flags = (uint32_t)number_of(value);
            break;
        case 'T':
            op->exptime = exptime_of(value);
            break;
        default:
            break;
        }
    }
    op->verb = set_verb(meta_mode(r), op->with_cas);
    op->with_cas = op->with_cas && op->verb != BE_ADD;
}

static void fill_delete(const struct request *r, struct be_operation *op)
{
    struct slice flags = r->args, value;
    char letter;
    op->verb = BE_DELETE;
    while (next_flag(&flags, &letter, &value)) {
        if (letter == 'C') {
            op->verb = BE_CAS_DELETE;
            op->cas = number_of(value);
        }
    }
}

static void fill_arithmetic(const struct request *r, struct be_operation *op)
{
    struct slice flags = r->args, value;
    char mode = meta_mode(r), letter;
    op->verb = mode == 'D' || mode == '-' ? BE_DECR : BE_INCR;
    op->delta = 1;
    while (next_flag(&flags, &letter, &value)) {
        switch (letter) {
        case 'N':
            op->creates = true;
            op->exptime = exptime_of(value);
            break;
        case 'J':
            op->initial = number_of(value);
            break;
        case 'D':
            op->delta = number_of(value);
            break;
        default:
            break;
        }
    }
}

void meta_fill(const struct request *r, struct be_operation *op)
{
    switch (r->verb->verb) {
    case VERB_MG:
        fill_get(r, op);
        return;
    case VERB_MS:
        fill_set(r, op);
        return;
    case VERB_MD:
        fill_delete(r, op);
        return;
    default:
        fill_arithmetic(r, op);
        return;
    }
}

/* --- answers ------------------------------------------------------------------------------------
 */

static char *put_flag(char *to, char letter)
{
    *to++ = ' ';
    *to++ = letter;
    return to;
}

/* A time to live that the request has just set, in seconds from now; -1: none. */
static int64_t new_ttl(int32_t exptime, int64_t now_s)
{
    if (exptime <= EXPTIME_RELATIVE_MAX_S) {
        return exptime == 0 ? -1 : exptime < 0 ? 0 : exptime;
    }
    return exptime > now_s ? exptime - now_s : 0;
}

static char *put_ttl(char *to, const struct forward_part *f, int64_t now_s)
{
    const struct be_operation *op = &f->exchange.op;
    int64_t ttl_s = op->verb == BE_GAT ? new_ttl(op->exptime, now_s) : f->item.ttl_s;
    if (ttl_s < 0) {
        return put(put_flag(to, 't'), SLICE_LIT("-1"));
    }
    to = put_flag(to, 't');
    return to + format_u64(to, (uint64_t)ttl_s);
}

static char *put_tagged(char *to, char letter, uint64_t number)
{
    to = put_flag(to, letter);
    return to + format_u64(to, number);
}

/* Flags that are answered whatever became of the request. */
static char *put_echo(char *to, const struct request *r, char letter, struct slice value)
{
    if (letter == 'O') {
        return put(put_flag(to, 'O'), value);
    }
    to = put(put_flag(to, 'k'), r->key);
    return r->base64 ? put_flag(to, 'b') : to;
}

/* The flags behind the status, in the request's order. */
static char *put_flags(char *to, const struct forward_part *f, bool hit, int64_t now_s)
{
    const struct request *r = &f->part.pending->request;
    const struct item_answer *item = &f->item;
    bool get = r->verb->verb == VERB_MG, stored = item->status == BE_STORED;
    struct slice flags = flags_of(r), value;
    char letter;
    while (next_flag(&flags, &letter, &value)) {
        if (letter == 'O' || letter == 'k') {
            to = put_echo(to, r, letter, value);
        } else if (letter == 'c' && ((get && hit) || r->verb->verb == VERB_MS ||
                                     (r->verb->verb == VERB_MA && stored))) {
            to = put_tagged(to, 'c', get || stored ? forward_part_cas(f, item->cas) : 0);
        } else if (get && hit && letter == 'f') {
            to = put_tagged(to, 'f', item->flags);
        } else if (get && hit && letter == 's') {
            to = put_tagged(to, 's', f->value.len);
        } else if (get && hit && letter == 't') {
            to = put_ttl(to, f, now_s);
        }
    }
    return to;
}

static bool wants_value(const struct request *r)
{
    struct slice flags = flags_of(r), value;
    char letter;
    while (next_flag(&flags, &letter, &value)) {
        if (letter == 'v') {
            return true;
        }
    }
    return false;
}

static struct slice status_word(const struct forward_part *f)
{
    const struct be_operation *op = &f->exchange.op;
    if (op->verb == BE_REPLACE && op->with_cas && f->item.code == BINARY_STATUS_NOT_FOUND) {
        return SLICE_LIT("NF"); /* with C it is a cas to memcached */
    }
    switch (f->item.status) {
    case BE_MISS:
        return SLICE_LIT("EN");
    case BE_NOT_STORED:
        return SLICE_LIT("NS");
    case BE_EXISTS:
        return SLICE_LIT("EX");
    case BE_NOT_FOUND:
        return SLICE_LIT("NF");
    default:
        return SLICE_LIT("HD");
    }
}

/* As memcached hides it from a request with flag q. */
static bool is_hidden(const struct request *r, enum be_status status)
{
    bool done = status == BE_HIT || status == BE_STORED || status == BE_DELETED;
    return r->quiet && (r->verb->verb == VERB_MG ? status == BE_MISS : done);
}

void meta_emit_miss(const struct request *r, struct chain *out)
{
    struct slice flags = flags_of(r), value;
    char letter;
    if (r->quiet) {
        return;
    }
    chain_copy_slice(out, SLICE_LIT("EN"));
    while (next_flag(&flags, &letter, &value)) {
        if (letter == 'O' || letter == 'k') {
            chain_copy_slice(out, letter == 'O' ? SLICE_LIT(" O") : SLICE_LIT(" k"));
            chain_copy_slice(out, letter == 'O' ? value : r->key);
            chain_copy_slice(out, letter == 'k' && r->base64 ? SLICE_LIT(" b") : SLICE_NONE);
        }
    }
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

/* Appends the value and its line end. */
static void emit_data(const struct forward_part *f, struct chain *out)
{
    if (f->value.len <= SMALL_VALUE_MAX) {
        chain_copy_slice(out, f->value);
    } else {
        chain_add(out, f->block, f->value.p, f->value.len);
    }
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

void meta_emit(const struct forward_part *f, int64_t now_s, struct chain *out)
{
    const struct request *r = &f->part.pending->request;
    const struct item_answer *item = &f->item;
    bool hit = item->status == BE_HIT;
    bool counts = r->verb->verb == VERB_MA && item->status == BE_STORED;
    bool value = wants_value(r) && (hit || counts);
    char digits[24];
    size_t digits_len = counts ? format_u64(digits, item->number) : 0;
    if (is_hidden(r, item->status)) {
        return;
    }
    char *start = chain_reserve(out, LINE_MAX_BYTES + KEY_BYTES_MAX), *end = start;
    if (value) {
        end = put_number(put(end, SLICE_LIT("VA")), hit ? f->value.len : digits_len);
    } else {
        end = put(end, status_word(f));
    }
    end = put(put_flags(end, f, hit, now_s), SLICE_LIT("\r\n"));
    if (value && counts) {
        end = put(put(end, slice_make(digits, digits_len)), SLICE_LIT("\r\n"));
    }
    chain_commit(out, (size_t)(end - start));
    if (value && hit) {
        emit_data(f, out);
    }
}
