/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "pool/memcached/wire_memcached.h"
#include "proto/server/ascii_classic.h"
#include "proto/server/ascii_format.h"
#include "proto/server/ascii_parse.h"
#include "proto/server/binary.h"

static const struct wire wire_memcached_classic; /* before 1.6.10 */

_Static_assert(ASCII_LINE_MAX <= WIRE_FRONT_MAX,
               "a line is written where the front of a request is");

/* --- handshake: `version`, `stats settings` and, if wanted, a probe, all sent at once ------------
 */

#define REQUEST "version\r\nstats settings\r\n"
#define PROBE "mn\r\n"

enum { STEP_START, STEP_VERSION, STEP_SETTINGS, STEP_PROBE };

/* The first one with all classic commands that lists need. */
static const struct version first_served = {{1, 4, 0}};
/* The first one with `HD` and all that the proxy asks by `mg`. */
static const struct version first_with_meta = {{1, 6, 10}};

static enum handshake_result refuse_line(struct slice line, const char *where,
                                         char error[HANDSHAKE_ERROR_MAX])
{
    char answer[64];
    snprintf(error, HANDSHAKE_ERROR_MAX, "no memcached, it answers \"%s\"%s",
             ascii_line_text(line, answer, sizeof answer), where);
    return HANDSHAKE_REFUSED;
}

static enum handshake_result take_version(struct handshake *hs, struct slice line,
                                          char error[HANDSHAKE_ERROR_MAX])
{
    struct version parts;
    struct slice version = line;
    /* What a memcached says to a connection above its -c, before it closes it. */
    if (slice_equal(line, SLICE_LIT("ERROR Too many open connections"))) {
        snprintf(error, HANDSHAKE_ERROR_MAX, "too many open connections, raise its -c");
        return HANDSHAKE_REFUSED;
    }
    if (!slice_starts_with(line, SLICE_LIT("VERSION "))) {
        return refuse_line(line, "", error);
    }
    (void)slice_take(&version, 8);
    ascii_line_text(version, hs->version, sizeof hs->version);
    /* It may be this proxy itself, whose requests would go round in a circle. */
    if (strstr(hs->version, PROXY_MARK) != NULL) {
        snprintf(error, HANDSHAKE_ERROR_MAX, "a proxy answers there, mclistd, and no memcached");
        return HANDSHAKE_REFUSED;
    }
    if (!version_read(version, &parts) || version_is_before(&parts, &first_served)) {
        snprintf(error, HANDSHAKE_ERROR_MAX, "memcached 1.4 or newer is needed, it is %s",
                 hs->version);
        return HANDSHAKE_REFUSED;
    }
    hs->speaks =
        version_is_before(&parts, &first_with_meta) ? &wire_memcached_classic : &wire_memcached;
    hs->step = STEP_SETTINGS;
    return HANDSHAKE_MORE;
}

static void take_setting(struct handshake *hs, struct slice line)
{
    static const struct slice item_size_max = {"STAT item_size_max ", 19};
    if (slice_starts_with(line, item_size_max)) {
        (void)slice_take(&line, item_size_max.len);
        if (!slice_to_u64(line, &hs->item_size_max)) {
            hs->item_size_max = 0;
        }
    } else if (slice_equal(line, SLICE_LIT("STAT cas_enabled no"))) {
        hs->cas_disabled = true;
    } else if (slice_equal(line, SLICE_LIT("STAT flush_enabled no"))) {
        hs->flush_disabled = true;
    } else if (slice_equal(line, SLICE_LIT("STAT evictions off"))) {
        hs->evictions_disabled = true;
    } else if (slice_equal(line, SLICE_LIT("STAT reqs_per_event 20"))) {
        hs->takes_few = true;
    }
}

static enum handshake_result take_settings_line(struct handshake *hs, struct slice line,
                                                char error[HANDSHAKE_ERROR_MAX])
{
    if (slice_starts_with(line, SLICE_LIT("STAT "))) {
        take_setting(hs, line);
        return HANDSHAKE_MORE;
    }
    /* A server that does not tell its settings is taken with the defaults. */
    if (!slice_equal(line, SLICE_LIT("END")) && !slice_starts_with(line, SLICE_LIT("ERROR")) &&
        !slice_starts_with(line, SLICE_LIT("CLIENT_ERROR")) &&
        !slice_starts_with(line, SLICE_LIT("SERVER_ERROR"))) {
        return refuse_line(line, "", error);
    }
    if (!hs->probe) {
        return HANDSHAKE_DONE;
    }
    hs->step = STEP_PROBE;
    hs->waits_for = "a probe";
    return HANDSHAKE_MORE;
}

/* Before 1.6.10 `mn` is no command, or an early one. */
static bool answers_probe(const struct handshake *hs, struct slice line)
{
    return slice_equal(line, SLICE_LIT("MN")) ||
           (hs->speaks == &wire_memcached_classic &&
            (slice_equal(line, SLICE_LIT("EN")) || slice_equal(line, SLICE_LIT("ERROR"))));
}

static enum handshake_result take_handshake_line(struct handshake *hs, struct slice line,
                                                 char error[HANDSHAKE_ERROR_MAX])
{
    switch (hs->step) {
    case STEP_VERSION:
        return take_version(hs, line, error);
    case STEP_SETTINGS:
        return take_settings_line(hs, line, error);
    default:
        return answers_probe(hs, line) ? HANDSHAKE_DONE : refuse_line(line, " to mn", error);
    }
}

/* Takes a line off the bytes, with either line end. Returns 1, 0 when there is none yet, -1 when it
 * is longer than any of memcached's. */
static int take_line(struct slice *bytes, struct slice *line)
{
    size_t window = bytes->len < ASCII_REPLY_LINE_MAX ? bytes->len : ASCII_REPLY_LINE_MAX;
    const char *newline = window == 0 ? NULL : memchr(bytes->p, '\n', window);
    if (newline == NULL) {
        return bytes->len < ASCII_REPLY_LINE_MAX ? 0 : -1;
    }
    *line = slice_take(bytes, (size_t)(newline - bytes->p));
    (void)slice_take(bytes, 1);
    if (line->len > 0 && line->p[line->len - 1] == '\r') {
        line->len--;
    }
    return 1;
}

static enum handshake_result shake_hands(struct handshake *hs, struct handshake_step *step)
{
    static const char request[] = REQUEST PROBE;
    struct slice line;
    int rc;
    step->send_len = 0;
    if (hs->step == STEP_START) {
        step->send_len = hs->probe ? sizeof request - 1 : sizeof REQUEST - 1;
        memcpy(step->send, request, step->send_len);
        hs->step = STEP_VERSION;
        hs->waits_for = "`version`";
    }
    while ((rc = take_line(&step->in, &line)) == 1) {
        enum handshake_result result = take_handshake_line(hs, line, step->error);
        if (result != HANDSHAKE_MORE) {
            return result;
        }
    }
    if (rc < 0) {
        snprintf(step->error, sizeof step->error, "no memcached, its answer has no line end");
        return HANDSHAKE_REFUSED;
    }
    return HANDSHAKE_MORE;
}

/* --- requests and answers ------------------------------------------------------------------- */

static NOINLINE struct slice encode_operation(const struct be_operation *op,
                                              char room[WIRE_FRONT_MAX], struct slice *tail)
{
    if (be_has_value(op->verb)) {
        *tail = SLICE_LIT("\r\n");
    }
    return slice_make(room, ascii_format(op, room));
}

/* Lines come first, here and in decode: each client's request is one. */
static struct slice encode(const struct be_operation *op, char room[WIRE_FRONT_MAX],
                           struct slice *tail)
{
    *tail = SLICE_NONE;
    if (LIKELY(op->verb >= BE_LINE)) {
        return op->verb == BE_STATS ? SLICE_LIT("stats\r\n") : op->line;
    }
    return encode_operation(op, room, tail);
}

static size_t value_max(const struct be_caps *server)
{
    return server->item_size_max != 0 ? (size_t)server->item_size_max : ASCII_VALUE_MAX;
}

/* The only error that is the answer to a request which was understood. */
static bool is_no_number(enum be_verb verb, struct slice line)
{
    return (verb == BE_INCR || verb == BE_DECR) &&
           slice_equal(line, SLICE_LIT("CLIENT_ERROR cannot increment or decrement non-numeric "
                                       "value"));
}

/* What a refusal means, and its text. */
static RARE void explain_refusal(const struct be_operation *op, const struct be_caps *server,
                                 struct wire_answer *out)
{
    struct slice line = out->reply.line;
    char shown[160];
    bool changes = be_changes(op->verb);
    /* A server that is a proxy itself may have done it and lost the answer. A client error means
     * that our request was misread: its data may have been taken for commands. `incr` has no data,
     * and is refused so where there is no number; other verbs have none either. */
    bool unknown = changes && slice_starts_with(line, SLICE_LIT("SERVER_ERROR"));
    out->distrust = !unknown && changes && op->verb != BE_INCR && op->verb != BE_DECR &&
                    op->verb != BE_TOUCH && op->verb != BE_GAT;
    snprintf(out->text, sizeof out->text, "backend %s: %s%s", server->server_name,
             ascii_line_text(line, shown, sizeof shown), unknown ? ", outcome unknown" : "");
    out->reply.text = out->text;
    out->reply.status = unknown ? BE_LOST : BE_REFUSED;
    out->reply.code = is_no_number(op->verb, line) ? BINARY_STATUS_NOT_A_NUMBER : 0;
}

/* A memcached that runs out of memory for the answer to a `get` of many keys drops with it all
 * answers that it has not sent yet, and its error comes in place of the first of them. */
static bool may_displace(struct slice line)
{
    return slice_starts_with(line, SLICE_LIT("SERVER_ERROR out of memory writing get response"));
}

static enum wire_result decode_stats(struct slice bytes, struct wire_answer *out)
{
    struct slice rest = bytes, line;
    int rc = take_line(&rest, &line);
    if (rc != 1) {
        out->size = 0;
        return rc == 0 ? WIRE_MORE : WIRE_GARBAGE;
    }
    out->size = bytes.len - rest.len;
    out->reply = (struct be_reply){.status = BE_ANSWERED, .line = line};
    if (!slice_starts_with(line, SLICE_LIT("STAT "))) {
        return WIRE_ANSWER;
    }
    (void)slice_take(&line, 5);
    const char *blank = line.len == 0 ? NULL : memchr(line.p, ' ', line.len);
    size_t name_len = blank == NULL ? line.len : (size_t)(blank - line.p);
    out->reply.line = slice_take(&line, name_len);
    out->reply.value = line.len > 0 ? slice_make(line.p + 1, line.len - 1) : line;
    return WIRE_PART;
}

static enum wire_result decode_operation(const struct be_operation *op,
                                         const struct be_caps *server, struct wire_answer *out)
{
    struct be_reply *reply = &out->reply;
    *reply = (struct be_reply){
        .line = reply->line, .has_value = reply->has_value, .value = reply->value};
    if (ascii_reply_read(op, reply) < 0) {
        return WIRE_MISFIT;
    }
    if (UNLIKELY(reply->status >= BE_NO_MEMORY) && (op->verb == BE_FETCH || op->verb == BE_GAT)) {
        reply->status = BE_ANSWERED;
    } else if (UNLIKELY(reply->status == BE_REFUSED)) {
        explain_refusal(op, server, out);
    }
    return WIRE_ANSWER;
}

static NOINLINE enum wire_result decode_unusual(const struct be_operation *op, struct slice bytes,
                                                const struct be_caps *server,
                                                struct wire_answer *out)
{
    bool is_get = op->verb == BE_LINE_GET;
    if (op->verb == BE_STATS) {
        return decode_stats(bytes, out);
    }
    enum ascii_parse_result result =
        ascii_parse(op, bytes, value_max(server), &out->reply, &out->size);
    if (result != ASCII_PARSE_OK) {
        return result == ASCII_PARSE_MORE ? WIRE_MORE : WIRE_GARBAGE;
    }
    if (UNLIKELY(ascii_is_no_memory(out->reply.line))) {
        out->no_memory = true;
        out->displaced = !is_get && may_displace(out->reply.line);
    }
    if (op->verb < BE_LINE) {
        return decode_operation(op, server, out);
    }
    if (is_get && out->reply.has_value) {
        out->reply.status = BE_HIT;
        return WIRE_PART;
    }
    if (!ascii_line_fits(op, &out->reply)) {
        return WIRE_MISFIT;
    }
    out->reply.status = BE_ANSWERED;
    out->reply.text = NULL;
    return WIRE_ANSWER;
}

static enum wire_result decode(const struct be_operation *op, struct slice bytes,
                               const struct be_caps *server, struct wire_answer *out)
{
    if (LIKELY(ascii_take_usual(op, bytes, value_max(server), &out->reply, &out->size))) {
        return op->verb == BE_LINE_GET ? WIRE_PART : WIRE_ANSWER;
    }
    return decode_unusual(op, bytes, server, out);
}

/* --- memcacheds before 1.6.10 --------------------------------------------------------------- */

/* Is it an operation that no classic command is? */
static bool lacks_words(const struct be_operation *op)
{
    return op->asks_cas &&
           (op->odd_key || op->creates || (op->with_cas && !be_is_conditional(op->verb)));
}

static enum exchange_failure lacks(const struct be_operation *op)
{
    bool is_line = op->verb == BE_LINE || op->verb == BE_LINE_READ;
    bool needs_meta = is_line ? op->form.meta != 0 : op->verb < BE_LINE && lacks_words(op);
    return op->verb == BE_TIME ? FAILURE_NO_TIMES : needs_meta ? FAILURE_NO_META : FAILURE_NONE;
}

/* The operation, which is no read, as such a server is asked for it: a change does not tell the
 * item's CAS number. room: for what is not as it was. */
static const struct be_operation *without_cas(const struct be_operation *op,
                                              struct be_operation *room)
{
    if (!op->asks_cas || op->verb >= BE_LINE) {
        return op;
    }
    *room = *op;
    room->asks_cas = false;
    return room;
}

static struct slice encode_classic(const struct be_operation *op, char room[WIRE_FRONT_MAX],
                                   struct slice *tail)
{
    if (!ascii_classic_reads(op->verb)) {
        struct be_operation plain;
        return encode(without_cas(op, &plain), room, tail);
    }
    *tail = SLICE_NONE;
    return slice_make(room, ascii_classic_format(op, room));
}

static enum wire_result decode_classic(const struct be_operation *op, struct slice bytes,
                                       const struct be_caps *server, struct wire_answer *out)
{
    /* All reads are `get`s: whichever of them was meant, those behind it cannot be told apart. */
    if (UNLIKELY(may_displace(bytes))) {
        return WIRE_GARBAGE;
    }
    if (!ascii_classic_reads(op->verb)) {
        struct be_operation plain;
        return decode(without_cas(op, &plain), bytes, server, out);
    }
    switch (ascii_classic_read(op, bytes, value_max(server), &out->reply, &out->size)) {
    case ASCII_CLASSIC_MORE:
        return WIRE_MORE;
    case ASCII_CLASSIC_READ:
        return WIRE_ANSWER;
    case ASCII_CLASSIC_ERROR:
        return decode_operation(op, server, out);
    case ASCII_CLASSIC_MISFIT:
        return WIRE_MISFIT;
    default:
        return WIRE_GARBAGE;
    }
}

static const struct wire wire_memcached_classic = {.kind = "memcached",
                                                   .lack = ", no meta commands",
                                                   .handshake = shake_hands,
                                                   .lacks = lacks,
                                                   .encode = encode_classic,
                                                   .decode = decode_classic};

const struct wire wire_memcached = {
    .kind = "memcached", .handshake = shake_hands, .encode = encode, .decode = decode};
