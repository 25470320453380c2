/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/binary_request.h"

#include "proto/client/request_shape.h"

/* What a client says of itself to log in. */
#define SASL_BYTES_MAX ((size_t)2048)
/* memcached's limit on the name of a mechanism. */
#define MECHANISM_BYTES_MAX ((size_t)32)

#define REPLY_INVALID SLICE_LIT("CLIENT_ERROR Invalid arguments\r\n")
#define REPLY_LONG_KEY \
    SLICE_LIT("CLIENT_ERROR a key with blanks or control bytes has 186 bytes at most\r\n")
_Static_assert(KEY_ENCODED_MAX == 186, "REPLY_LONG_KEY");

/* What has to stand behind the header. */
enum body {
    BODY_NONE,    /* nothing */
    BODY_KEY,     /* a key */
    BODY_ANY_KEY, /* a key, or nothing */
    BODY_VALUE,   /* a key, and maybe a value */
    BODY_FLUSH,   /* a time, or nothing */
    BODY_SASL,    /* a mechanism, and what is said in it */
};

struct form {
    bool is_known;
    bool is_quiet;
    uint8_t extras; /* bytes */
    enum body body;
    enum verb verb; /* VERB_COUNT: it is about logging in */
};

static const struct form forms[256] = {
#define ROW(name, quiet, extras, body, verb) \
    [BINARY_##name] = {true, quiet, extras, BODY_##body, VERB_##verb}
#define FORM(name, extras, body, verb) ROW(name, false, extras, body, verb)
/* There is a quiet one, too. */
#define FORM_Q(name, extras, body, verb) \
    FORM(name, extras, body, verb), ROW(name##Q, true, extras, body, verb)
    FORM_Q(GET, 0, KEY, GETS),        FORM_Q(GETK, 0, KEY, GETS),
    FORM_Q(GAT, 4, KEY, GATS),        FORM_Q(GATK, 4, KEY, GATS),
    FORM(TOUCH, 4, KEY, TOUCH),       FORM_Q(SET, 8, VALUE, SET),
    FORM_Q(ADD, 8, VALUE, ADD),       FORM_Q(REPLACE, 8, VALUE, REPLACE),
    FORM_Q(APPEND, 0, VALUE, APPEND), FORM_Q(PREPEND, 0, VALUE, PREPEND),
    FORM_Q(DELETE, 0, KEY, DELETE),   FORM_Q(INCREMENT, 20, KEY, INCR),
    FORM_Q(DECREMENT, 20, KEY, DECR), FORM_Q(FLUSH, 0, FLUSH, FLUSH_ALL),
    FORM_Q(QUIT, 0, NONE, QUIT),      FORM(NOOP, 0, NONE, MN),
    FORM(VERSION, 0, NONE, VERSION),  FORM(STAT, 0, ANY_KEY, STATS),
    FORM(SASL_LIST, 0, NONE, COUNT),  FORM(SASL_AUTH, 0, SASL, COUNT),
    FORM(SASL_STEP, 0, SASL, COUNT),
#undef FORM_Q
#undef FORM
#undef ROW
};

/* A header, and where its parts stand. */
struct packet {
    struct slice input;
    const struct form *form;
    uint8_t opcode;
    size_t extras_len, key_len, body_len;
    uint64_t cas;
    const char *extras;
    struct slice key;
    size_t value_len;
};

/* Refuses the request, whose body is thrown away as it comes. */
static struct parse_result refuse(const struct packet *p, struct slice reply)
{
    size_t arrived = p->input.len - BINARY_HEADER_BYTES;
    arrived = arrived < p->body_len ? arrived : p->body_len;
    return (struct parse_result){.status = PARSE_ERROR,
                                 .consumed = BINARY_HEADER_BYTES + arrived,
                                 .swallow = p->body_len - arrived,
                                 .reply = reply};
}

static struct parse_result close_with(const struct packet *p, struct slice reply)
{
    return (struct parse_result){.status = PARSE_CLOSE, .consumed = p->input.len, .reply = reply};
}

/* Do the lengths fit the opcode? */
static bool fits(const struct packet *p)
{
    const struct form *form = p->form;
    bool only_key = p->value_len == 0 && p->key_len > 0;
    if (form->body == BODY_FLUSH) {
        return (p->extras_len == 0 || p->extras_len == 4) && p->key_len == 0 && p->value_len == 0;
    }
    if (p->extras_len != form->extras) {
        return false;
    }
    switch (form->body) {
    case BODY_NONE:
        return p->body_len == 0;
    case BODY_KEY:
        return only_key;
    case BODY_ANY_KEY:
        return p->value_len == 0;
    default:
        return p->key_len > 0;
    }
}

static struct parse_result take(size_t whole)
{
    return (struct parse_result){.status = PARSE_OK, .consumed = whole};
}

static bool has_control(struct slice words)
{
    for (size_t i = 0; i < words.len; i++) {
        if ((unsigned char)words.p[i] < ' ') {
            return true;
        }
    }
    return false;
}

/* Has the key bytes that would end a word or a line? */
static bool is_odd_key(struct slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        if ((unsigned char)key.p[i] <= ' ') {
            return true;
        }
    }
    return false;
}

/* Times have 32 bits without a sign here. The text protocol can say no later one than this. */
static int64_t read_exptime(const char *p)
{
    uint32_t exptime = packet_u32(p);
    return exptime > INT32_MAX ? INT32_MAX : (int64_t)exptime;
}

static void read_extras(const struct packet *p, struct request *out)
{
    switch (out->verb->shape) {
    case SHAPE_STORE:
        if (p->extras_len > 0) {
            out->flags = packet_u32(p->extras);
            out->exptime = read_exptime(p->extras + 4);
        }
        break;
    case SHAPE_ARITH:
        out->delta = packet_u64(p->extras);
        out->binary.initial = packet_u64(p->extras + 8);
        out->binary.creates = packet_u32(p->extras + 16) != BINARY_DO_NOT_CREATE;
        out->exptime = read_exptime(p->extras + 16);
        break;
    case SHAPE_GAT:
    case SHAPE_TOUCH:
        out->exptime = read_exptime(p->extras);
        break;
    default:
        break;
    }
}

/* With a CAS number all three are done only if the item has it. */
static enum verb verb_of(const struct packet *p)
{
    enum verb verb = p->form->verb;
    bool sets = verb == VERB_SET || verb == VERB_ADD || verb == VERB_REPLACE;
    return sets && p->cas != 0 ? VERB_CAS : verb;
}

static void fill(const struct packet *p, struct request *out)
{
    const struct verb_info *verb = p->form->verb == VERB_COUNT ? NULL : verb_info(verb_of(p));
    struct binary_call binary = out->binary;
    *out = (struct request){.verb = verb,
                            .key = p->key,
                            .args = p->key,
                            .arg_count = p->key_len > 0,
                            .cas = p->cas,
                            .is_usual = true,
                            .binary = binary};
    out->line = slice_make(p->input.p, BINARY_HEADER_BYTES + p->extras_len + p->key_len);
    if (verb != NULL && verb->verb == VERB_FLUSH_ALL) {
        bool delayed = p->extras_len > 0 && packet_u32(p->extras) != 0;
        out->args = delayed ? SLICE_LIT("1") : SLICE_LIT("");
        out->arg_count = delayed;
    } else if (verb != NULL) {
        read_extras(p, out);
    }
    if (p->form->body == BODY_VALUE || p->form->body == BODY_SASL) {
        out->has_data = true;
        out->data = slice_make(p->key.p + p->key_len, p->value_len);
    }
}

/* Reads the header, which is there. */
static struct packet read_header(struct slice input, struct request *out)
{
    const char *h = input.p;
    struct packet p = {.input = input,
                       .opcode = (uint8_t)h[1],
                       .key_len = packet_u16(h + 2),
                       .extras_len = (uint8_t)h[4],
                       .body_len = packet_u32(h + 8),
                       .cas = packet_u64(h + 16)};
    p.form = &forms[p.opcode];
    p.extras = h + BINARY_HEADER_BYTES;
    p.key = slice_make(p.extras + p.extras_len, p.key_len);
    out->binary = (struct binary_call){
        .opaque = packet_u32(h + 12), .opcode = p.opcode, .is_quiet = p.form->is_quiet};
    return p;
}

struct parse_result binary_request_parse(struct slice input, const struct request_limits *limits,
                                         struct request *out)
{
    if (input.len > 0 && (uint8_t)*input.p != BINARY_MAGIC_REQUEST) {
        return (struct parse_result){.status = PARSE_CLOSE, .consumed = input.len};
    }
    if (input.len < BINARY_HEADER_BYTES) {
        return (struct parse_result){.status = PARSE_MORE, .need = BINARY_HEADER_BYTES};
    }
    struct packet p = read_header(input, out);
    /* As memcached does, which waits for no body. */
    if (limits->before_login && !binary_is_sasl(p.opcode) && p.opcode != BINARY_VERSION) {
        return close_with(&p, REPLY_UNAUTHENTICATED);
    }
    if (p.key_len + p.extras_len > p.body_len) {
        return close_with(&p, REPLY_ERROR);
    }
    p.value_len = p.body_len - p.key_len - p.extras_len;
    if (p.key_len > KEY_BYTES_MAX || (p.form->is_known && !fits(&p))) {
        return close_with(&p, REPLY_INVALID);
    }
    if (!p.form->is_known) {
        return refuse(&p, REPLY_ERROR);
    }
    if (p.form->body == BODY_SASL &&
        (p.key_len > MECHANISM_BYTES_MAX || p.value_len > SASL_BYTES_MAX)) {
        return refuse(&p, REPLY_INVALID);
    }
    /* Of a value that is too large, the key is looked at all the same: the item goes. */
    bool is_large = p.form->body == BODY_VALUE && p.value_len > limits->max_value_bytes;
    size_t whole = BINARY_HEADER_BYTES + p.body_len - (is_large ? p.value_len : 0);
    if (input.len < whole) {
        return (struct parse_result){.status = PARSE_MORE, .need = whole};
    }
    fill(&p, out);
    if (is_odd_key(p.key)) {
        if (p.opcode == BINARY_STAT) {
            return has_control(p.key) ? refuse(&p, REPLY_INVALID) : take(whole);
        }
        out->binary.odd_key = true;
        out->args = slice_make(p.key.p, 0);
        if (p.key_len > KEY_ENCODED_MAX) {
            return refuse(&p, REPLY_LONG_KEY);
        }
    }
    if (is_large) {
        struct parse_result result = refuse(&p, REPLY_TOO_LARGE);
        result.removes = p.form->verb == VERB_SET;
        return result;
    }
    return take(whole);
}

bool binary_read_plain(struct slice text, struct slice *user, struct slice *password)
{
    const char *first = text.len == 0 ? NULL : memchr(text.p, '\0', text.len);
    if (first == NULL) {
        return false;
    }
    (void)slice_take(&text, (size_t)(first + 1 - text.p));
    const char *second = text.len == 0 ? NULL : memchr(text.p, '\0', text.len);
    if (second == NULL) {
        return false;
    }
    *user = slice_take(&text, (size_t)(second - text.p));
    *password = slice_make(second + 1, text.len - 1);
    return true;
}
