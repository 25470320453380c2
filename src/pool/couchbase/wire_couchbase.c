/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a node of Couchbase is spoken to. Its handshake:
 *
 *     HELLO, VERSION, GET_ERROR_MAP, SASL_LIST   at once
 *     SASL_AUTH, SASL_STEP                       the strongest SCRAM of the node; where there is
 *                                                none, or it does not do, PLAIN, if that is
 *                                                allowed; none of SASL where a certificate has
 *                                                told who this is
 *     SELECT_BUCKET                              alone: else a node refuses it
 *     GET_COLLECTION_ID                          of a collection that is not the default one
 *     GET_CLUSTER_CONFIG                         whose answer is the map
 */
#include <stdio.h>

#include "base/version.h"
#include "pool/couchbase/wire_couchbase.h"
#include "proto/server/binary.h"
#include "proto/server/cluster_map.h"

_Static_assert(BINARY_FRONT_MAX <= WIRE_FRONT_MAX, "a front is written where an ASCII line is");

/* What a node answers of values: Couchbase's limit. */
#define VALUE_MAX ((size_t)20 << 20)

#define AGENT "mclistd/" MCLISTD_VERSION
#define ERROR_MAP_VERSION "\0\1"

/* Features of HELLO. */
#define TCP_NODELAY "\0\x03"
#define XERROR "\0\x07"
#define SELECT_BUCKET "\0\x08"
/* Frames in requests, and changes that wait for other nodes. */
#define DURABILITY "\0\x10\0\x11"
#define FEATURE_SYNC_REPLICATION 0x11
/* The node says by itself that it has a newer map, and which; older ones do so with the whole map
 * only, and are asked instead. */
#define NEWS "\0\x0c\0\x1f"
/* It is told which map is known, and sends newer ones only. */
#define KNOWN_MAP "\0\x1d"
#define FEATURE_KNOWN_MAP 0x1d
/* Each key has the id of its collection in front. */
#define COLLECTIONS "\0\x12"
#define FEATURE_COLLECTIONS 0x12

enum {
    STEP_START,
    STEP_HELLO,
    STEP_VERSION,
    STEP_ERROR_MAP,
    STEP_LIST,
    STEP_PLAIN,
    STEP_CHALLENGE,
    STEP_PROOF,
    STEP_BUCKET,
    STEP_MAP,
    STEP_COLLECTION,
    STEP_COUNT
};

static const struct {
    enum binary_opcode opcode;
    const char *name;
} steps[STEP_COUNT] = {
    [STEP_HELLO] = {BINARY_HELLO, "HELLO"},
    [STEP_VERSION] = {BINARY_VERSION, "VERSION"},
    [STEP_ERROR_MAP] = {BINARY_GET_ERROR_MAP, "GET_ERROR_MAP"},
    [STEP_LIST] = {BINARY_SASL_LIST, "SASL_LIST"},
    [STEP_PLAIN] = {BINARY_SASL_AUTH, "SASL_AUTH"},
    [STEP_CHALLENGE] = {BINARY_SASL_AUTH, "SASL_AUTH"},
    [STEP_PROOF] = {BINARY_SASL_STEP, "SASL_STEP"},
    [STEP_BUCKET] = {BINARY_SELECT_BUCKET, "SELECT_BUCKET"},
    [STEP_MAP] = {BINARY_GET_CLUSTER_CONFIG, "GET_CLUSTER_CONFIG"},
    [STEP_COLLECTION] = {BINARY_GET_COLLECTION_ID, "GET_COLLECTION_ID"},
};

static enum handshake_result refuse(struct handshake_step *step, const char *what,
                                    const char *detail)
{
    snprintf(step->error, sizeof step->error, "%s%s", what, detail);
    return HANDSHAKE_REFUSED;
}

/* The answer to the current step, which is none that the handshake can go on with. */
static enum handshake_result refuse_status(const struct handshake *hs, struct handshake_step *step,
                                           const struct binary_packet *answer)
{
    snprintf(step->error, sizeof step->error, "it answers %s with: %s (0x%x)", steps[hs->step].name,
             binary_status_text(answer->status), answer->status);
    return HANDSHAKE_REFUSED;
}

/* Adds a request to what is sent. Its opaque is the step that takes the answer. */
static void ask(struct handshake_step *step, unsigned number, struct slice key, struct slice value)
{
    CHECK(step->send_len + BINARY_HEADER_BYTES + key.len + value.len <= sizeof step->send);
    step->send_len += binary_put_request(step->send + step->send_len, steps[number].opcode, number,
                                         SLICE_NONE, key, value);
}

static enum handshake_result ask_next(struct handshake *hs, struct handshake_step *step,
                                      unsigned number, struct slice key, struct slice value)
{
    ask(step, number, key, value);
    hs->step = number;
    hs->waits_for = steps[number].name;
    return HANDSHAKE_MORE;
}

static void begin(struct handshake *hs, struct handshake_step *step)
{
    static const char features[] =
        TCP_NODELAY XERROR SELECT_BUCKET DURABILITY NEWS KNOWN_MAP COLLECTIONS;
    size_t unwanted = hs->login->collection.len > 0 ? 0 : sizeof COLLECTIONS - 1;
    ask(step, STEP_HELLO, SLICE_LIT(AGENT), slice_make(features, sizeof features - 1 - unwanted));
    ask(step, STEP_VERSION, SLICE_NONE, SLICE_NONE);
    ask(step, STEP_ERROR_MAP, SLICE_NONE, SLICE_LIT(ERROR_MAP_VERSION));
    if (!hs->login->by_certificate) {
        ask(step, STEP_LIST, SLICE_NONE, SLICE_NONE);
    }
    hs->step = STEP_HELLO;
    hs->waits_for = steps[STEP_HELLO].name;
}

static enum handshake_result wait_for(struct handshake *hs, unsigned number)
{
    hs->step = number;
    hs->waits_for = steps[number].name;
    return HANDSHAKE_MORE;
}

/* A node that refuses HELLO, as those of before 5.0 do, which do not know it, has none of the
 * features. */
static bool has_feature(const struct binary_packet *answer, char feature)
{
    for (size_t i = 0; answer->status == BINARY_STATUS_SUCCESS && i + 1 < answer->value.len;
         i += 2) {
        if (answer->value.p[i] == 0 && answer->value.p[i + 1] == feature) {
            return true;
        }
    }
    return false;
}

static enum handshake_result take_hello(struct handshake *hs, struct handshake_step *step,
                                        const struct binary_packet *answer)
{
    bool durable = has_feature(answer, FEATURE_SYNC_REPLICATION);
    bool collects = hs->login->collection.len > 0;
    hs->durability = durable ? DURABILITY_HAS : DURABILITY_LACKS;
    hs->tells_newer = has_feature(answer, FEATURE_KNOWN_MAP);
    if (collects && !has_feature(answer, FEATURE_COLLECTIONS)) {
        return refuse(step, "it has no collections, Couchbase 7.0 or newer is needed for them", "");
    }
    if (hs->login->durable && !durable) {
        return refuse(step, "it has no durable writes, Couchbase 6.5 or newer is needed for them",
                      "");
    }
    return wait_for(hs, STEP_VERSION);
}

static enum handshake_result take_version(struct handshake *hs, const struct binary_packet *answer)
{
    if (answer->status == BINARY_STATUS_SUCCESS) {
        size_t len =
            answer->value.len < sizeof hs->version ? answer->value.len : sizeof hs->version - 1;
        for (size_t i = 0; i < len; i++) {
            char c = answer->value.p[i];
            hs->version[i] = c > ' ' && c <= '~' ? c : '?';
        }
    }
    return wait_for(hs, STEP_ERROR_MAP);
}

static bool offers(struct slice list, const char *mechanism)
{
    while (list.len > 0) {
        const char *blank = memchr(list.p, ' ', list.len);
        size_t len = blank == NULL ? list.len : (size_t)(blank - list.p);
        if (slice_equal(slice_take(&list, len), slice_of(mechanism))) {
            return true;
        }
        (void)slice_take(&list, list.len > 0);
    }
    return false;
}

static enum handshake_result log_in_plainly(struct handshake *hs, struct handshake_step *step)
{
    char message[HANDSHAKE_SEND_MAX];
    size_t user = hs->login->user.len, password = hs->login->password.len;
    if (BINARY_HEADER_BYTES + 5 + 2 + user + password > sizeof message) {
        return refuse(step, "the password is too long for the login PLAIN", "");
    }
    message[0] = message[1 + user] = '\0';
    memcpy(message + 1, hs->login->user.p, user);
    memcpy(message + 2 + user, hs->login->password.p, password);
    return ask_next(hs, step, STEP_PLAIN, SLICE_LIT("PLAIN"),
                    slice_make(message, 2 + user + password));
}

static enum handshake_result take_list(struct handshake *hs, struct handshake_step *step,
                                       const struct binary_packet *answer)
{
    char message[SCRAM_MESSAGE_MAX];
    if (answer->status != BINARY_STATUS_SUCCESS) {
        return refuse_status(hs, step, answer);
    }
    hs->has_plain = offers(answer->value, "PLAIN");
    hs->logs_in = true;
    for (unsigned hash = 0; hash < SCRAM_HASH_COUNT; hash++) {
        const char *name = scram_name((enum scram_hash)hash);
        if (offers(answer->value, name)) {
            size_t len =
                scram_begin(&hs->scram, (enum scram_hash)hash, hs->login->user, hs->nonce, message);
            return ask_next(hs, step, STEP_CHALLENGE, slice_of(name), slice_make(message, len));
        }
    }
    if (!hs->has_plain) {
        return refuse(step, "it offers no login that the proxy knows: SCRAM or PLAIN", "");
    }
    return hs->login->plain
               ? log_in_plainly(hs, step)
               : refuse(step, "it offers no login but PLAIN, which would show the password", "");
}

static enum handshake_result refuse_user(const struct handshake *hs, struct handshake_step *step)
{
    snprintf(step->error, sizeof step->error, "it refuses user %.*s: wrong user or password",
             SLICE_ARGS(hs->login->user));
    return HANDSHAKE_REFUSED;
}

static enum handshake_result refuse_login(const struct handshake *hs, struct handshake_step *step,
                                          const struct binary_packet *answer)
{
    return answer->status == BINARY_STATUS_AUTH_ERROR ? refuse_user(hs, step)
                                                      : refuse_status(hs, step, answer);
}

/* A node offers SCRAM to every user, also to those whose password it does not have: another server
 * knows that (LDAP). And small servers mix the SCRAMs of two connections up. */
static bool may_go_on_plainly(const struct handshake *hs, const struct binary_packet *answer)
{
    return hs->login->plain && hs->has_plain &&
           (answer->status == BINARY_STATUS_AUTH_ERROR || answer->status == BINARY_STATUS_SUCCESS);
}

static enum handshake_result take_challenge(struct handshake *hs, struct handshake_step *step,
                                            const struct binary_packet *answer)
{
    char message[SCRAM_MESSAGE_MAX];
    const char *error;
    /* Success at this point would be one without a proof. */
    if (answer->status != BINARY_STATUS_AUTH_CONTINUE) {
        return may_go_on_plainly(hs, answer) ? log_in_plainly(hs, step)
                                             : refuse_login(hs, step, answer);
    }
    size_t len = scram_proof(&hs->scram, hs->login->password, answer->value, hs->login->cache,
                             message, &error);
    return len == 0 ? refuse(step, error, "")
                    : ask_next(hs, step, STEP_PROOF, slice_of(scram_name(hs->scram.hash)),
                               slice_make(message, len));
}

static enum handshake_result take_login(struct handshake *hs, struct handshake_step *step,
                                        const struct binary_packet *answer)
{
    bool good = answer->status == BINARY_STATUS_SUCCESS &&
                (hs->step == STEP_PLAIN || scram_verify(&hs->scram, answer->value));
    if (!good && hs->step == STEP_PROOF && may_go_on_plainly(hs, answer)) {
        return log_in_plainly(hs, step);
    }
    if (answer->status != BINARY_STATUS_SUCCESS) {
        return refuse_login(hs, step, answer);
    }
    /* The signature, and behind it an error: the proof was wrong. */
    if (!good && memmem(answer->value.p, answer->value.len, ",e=", 3) != NULL) {
        return refuse_user(hs, step);
    }
    if (!good) {
        return refuse(step, "it accepts the login, but does not know the password itself", "");
    }
    hs->logs_in = false;
    return ask_next(hs, step, STEP_BUCKET, hs->login->bucket, SLICE_NONE);
}

static enum handshake_result take_bucket(struct handshake *hs, struct handshake_step *step,
                                         const struct binary_packet *answer)
{
    switch (answer->status) {
    case BINARY_STATUS_SUCCESS:
    /* Of old: the login decides which bucket it is. */
    case BINARY_STATUS_UNKNOWN_COMMAND:
    case BINARY_STATUS_NOT_SUPPORTED:
        return hs->login->collection.len > 0
                   ? ask_next(hs, step, STEP_COLLECTION, SLICE_NONE, hs->login->collection)
                   : ask_next(hs, step, STEP_MAP, SLICE_NONE, SLICE_NONE);
    case BINARY_STATUS_NOT_FOUND:
    case BINARY_STATUS_NO_ACCESS:
        snprintf(step->error, sizeof step->error,
                 "%s%.*s has no access to bucket %.*s, or it is not there",
                 hs->login->by_certificate ? "the user of tls_cert" : "user ",
                 SLICE_ARGS(hs->login->user), SLICE_ARGS(hs->login->bucket));
        return HANDSHAKE_REFUSED;
    default:
        return refuse_status(hs, step, answer);
    }
}

/* A collection that is not there may be made, and be there then: no reason to refuse the node. */
static enum handshake_result take_collection(struct handshake *hs, struct handshake_step *step,
                                             const struct binary_packet *answer)
{
    if (!binary_read_collection(answer, &hs->collection_id, &hs->manifest)) {
        return refuse(step, "it tells no id of the collection", "");
    }
    switch (answer->status) {
    case BINARY_STATUS_SUCCESS:
        hs->collection = COLLECTION_IS_THERE;
        break;
    case BINARY_STATUS_UNKNOWN_COLLECTION:
        hs->collection = COLLECTION_IS_MISSING;
        break;
    case BINARY_STATUS_UNKNOWN_SCOPE:
        hs->collection = COLLECTION_LACKS_SCOPE;
        break;
    default:
        return refuse_status(hs, step, answer);
    }
    return ask_next(hs, step, STEP_MAP, SLICE_NONE, SLICE_NONE);
}

static enum handshake_result take_map(struct handshake *hs, struct handshake_step *step,
                                      const struct binary_packet *answer)
{
    if (answer->status == BINARY_STATUS_UNKNOWN_COMMAND ||
        answer->status == BINARY_STATUS_NOT_SUPPORTED) {
        return refuse(step,
                      "it does not tell its map over the data port: expected a bucket of type "
                      "Couchbase or Ephemeral, of Couchbase 5.0 or later",
                      "");
    }
    if (answer->status != BINARY_STATUS_SUCCESS || answer->value.len == 0) {
        return refuse_status(hs, step, answer);
    }
    step->map = answer->value;
    hs->item_size_max = VALUE_MAX;
    return HANDSHAKE_DONE;
}

static enum handshake_result take_answer(struct handshake *hs, struct handshake_step *step,
                                         const struct binary_packet *answer)
{
    if (answer->opcode != steps[hs->step].opcode || answer->opaque != hs->step) {
        return refuse(step, "it gives another answer than that to ", steps[hs->step].name);
    }
    switch (hs->step) {
    case STEP_HELLO:
        return take_hello(hs, step, answer);
    case STEP_VERSION:
        return take_version(hs, answer);
    case STEP_ERROR_MAP:
        return hs->login->by_certificate
                   ? ask_next(hs, step, STEP_BUCKET, hs->login->bucket, SLICE_NONE)
                   : wait_for(hs, STEP_LIST);
    case STEP_LIST:
        return take_list(hs, step, answer);
    case STEP_CHALLENGE:
        return take_challenge(hs, step, answer);
    case STEP_PLAIN:
    case STEP_PROOF:
        return take_login(hs, step, answer);
    case STEP_BUCKET:
        return take_bucket(hs, step, answer);
    case STEP_COLLECTION:
        return take_collection(hs, step, answer);
    default:
        return take_map(hs, step, answer);
    }
}

/* The next answer. What a node says by itself meanwhile is left out: the map is asked for anyway.
 */
static enum binary_result parse_step(struct handshake_step *step, struct binary_packet *answer)
{
    enum binary_result result = BINARY_OK;
    while (result == BINARY_OK && step->in.len > 0 && (uint8_t)step->in.p[0] == BINARY_NEWS) {
        result = binary_parse_news(step->in, CLUSTER_MAP_BYTES_MAX, answer);
        (void)slice_take(&step->in, result == BINARY_OK ? answer->size : 0);
    }
    return result == BINARY_OK ? binary_parse(step->in, CLUSTER_MAP_BYTES_MAX, answer) : result;
}

static enum handshake_result shake_hands(struct handshake *hs, struct handshake_step *step)
{
    struct binary_packet answer;
    enum binary_result result;
    step->send_len = step->need = 0;
    step->map = SLICE_NONE;
    if (hs->step == STEP_START) {
        begin(hs, step);
        return HANDSHAKE_MORE;
    }
    while ((result = parse_step(step, &answer)) == BINARY_OK) {
        if (step->send_len > 0) {
            return refuse(step, "it answers before it was asked", "");
        }
        (void)slice_take(&step->in, answer.size);
        enum handshake_result taken = take_answer(hs, step, &answer);
        if (taken != HANDSHAKE_MORE) {
            return taken;
        }
    }
    if (result != BINARY_MORE) {
        bool is_http = slice_starts_with(step->in, SLICE_LIT("HTTP/"));
        return refuse(step,
                      is_http ? "it speaks HTTP: name its data port, 11210"
                              : "no Couchbase node, its answer is not of the binary protocol",
                      "");
    }
    step->need = answer.size;
    return HANDSHAKE_MORE;
}

/* --- requests and answers ----------------------------------------------------------------------
 */

/* What is known of the map stands behind it, as the operation's value. */
static NOINLINE struct slice encode_control(const struct be_operation *op,
                                            char room[WIRE_FRONT_MAX])
{
    bool of_map = op->verb == BE_MAP;
    CHECK(of_map || BINARY_HEADER_BYTES + op->key.len <= WIRE_FRONT_MAX);
    size_t len = of_map ? binary_put_request(room, BINARY_GET_CLUSTER_CONFIG, op->opaque, op->value,
                                             SLICE_NONE, SLICE_NONE) -
                              op->value.len
                        : binary_put_request(room, BINARY_GET_COLLECTION_ID, op->opaque, SLICE_NONE,
                                             SLICE_NONE, op->key);
    return slice_make(room, len);
}

static struct slice encode(const struct be_operation *op, char room[WIRE_FRONT_MAX],
                           struct slice *tail)
{
    *tail = SLICE_NONE;
    if (UNLIKELY(op->verb >= BE_MAP)) {
        return encode_control(op, room);
    }
    return slice_make(room, binary_format(op, room));
}

/* Statuses by which a node says that it does nothing on this connection before another login. */
static bool wants_login(uint32_t code)
{
    return code == BINARY_STATUS_NO_BUCKET || code == BINARY_STATUS_AUTH_STALE ||
           code == BINARY_STATUS_AUTH_ERROR || code == BINARY_STATUS_NOT_INITIALIZED;
}

static const char *status_text(const struct be_operation *op, uint32_t code,
                               const struct be_caps *server)
{
    bool unsupported = code == BINARY_STATUS_UNKNOWN_COMMAND || code == BINARY_STATUS_NOT_SUPPORTED;
    if (unsupported && (op->verb == BE_GET || op->verb == BE_TIME)) {
        return "it does not tell times to live";
    }
    if (code == BINARY_STATUS_DURABILITY_IMPOSSIBLE && server->is_alone) {
        return "no durable change is possible with one node and a bucket that is to have replicas: "
               "set these to 0, or add a node";
    }
    return binary_status_text(code);
}

static RARE void explain(const struct be_operation *op, const struct be_caps *server,
                         struct wire_answer *out)
{
    uint32_t code = out->reply.code;
    bool unknown = out->reply.status == BE_LOST;
    snprintf(out->text, sizeof out->text, "backend %s: %s (0x%x)%s", server->server_name,
             status_text(op, code, server), code, unknown ? ", outcome unknown" : "");
    out->reply.text = out->text;
    /* At a number, that is how gocaves says that the value is none: others' requests must not be
     * lost by it. */
    out->distrust = code == BINARY_STATUS_INTERNAL && op->verb != BE_INCR && op->verb != BE_DECR;
    out->stale = wants_login(code);
}

static NOINLINE enum wire_result decode_control(const struct be_operation *op, struct slice bytes,
                                                const struct be_caps *server,
                                                struct wire_answer *out)
{
    struct binary_packet packet;
    uint32_t collection = 0;
    bool of_map = op->verb == BE_MAP;
    enum binary_result result = binary_parse(bytes, CLUSTER_MAP_BYTES_MAX, &packet);
    out->size = packet.size;
    if (result != BINARY_OK) {
        return result == BINARY_MORE ? WIRE_MORE : WIRE_GARBAGE;
    }
    if (packet.opcode != (of_map ? BINARY_GET_CLUSTER_CONFIG : BINARY_GET_COLLECTION_ID) ||
        packet.opaque != op->opaque ||
        (!of_map && !binary_read_collection(&packet, &collection, &out->reply.cas))) {
        return WIRE_MISFIT;
    }
    out->reply.number = collection;
    bool good = packet.status == BINARY_STATUS_SUCCESS;
    out->reply.status = good ? BE_ANSWERED : BE_REFUSED;
    out->reply.code = packet.status;
    out->reply.has_value = good;
    out->reply.value = good ? packet.value : SLICE_NONE;
    if (!good) {
        explain(op, server, out);
    }
    return WIRE_ANSWER;
}

static enum wire_result decode(const struct be_operation *op, struct slice bytes,
                               const struct be_caps *server, struct wire_answer *out)
{
    out->reply = (struct be_reply){0};
    if (UNLIKELY(op->verb >= BE_MAP)) {
        return decode_control(op, bytes, server, out);
    }
    enum binary_result result =
        binary_decode(op, bytes, VALUE_MAX, out->now_s, &out->reply, &out->size);
    switch (result) {
    case BINARY_MORE:
        return WIRE_MORE;
    case BINARY_GARBAGE:
        return WIRE_GARBAGE;
    case BINARY_MISFIT:
        return WIRE_MISFIT;
    case BINARY_OK:
        break;
    }
    if (UNLIKELY(out->reply.status == BE_REFUSED || out->reply.status == BE_LOST)) {
        explain(op, server, out);
    }
    out->no_memory = out->reply.status == BE_NO_MEMORY;
    out->displaced = false;
    return WIRE_ANSWER;
}

static enum wire_result read_news(struct slice bytes, struct wire_news *out)
{
    struct binary_packet packet;
    enum binary_result result = binary_parse_news(bytes, CLUSTER_MAP_BYTES_MAX, &packet);
    out->size = packet.size;
    if (result != BINARY_OK) {
        return result == BINARY_MORE ? WIRE_MORE : WIRE_GARBAGE;
    }
    out->of_map = packet.opcode == BINARY_NEWS_MAP &&
                  binary_read_version(packet.extras, &out->epoch, &out->revision);
    out->map = packet.value;
    return WIRE_ANSWER;
}

const struct wire wire_couchbase = {.kind = "Couchbase",
                                    .handshake = shake_hands,
                                    .encode = encode,
                                    .decode = decode,
                                    .news_mark = BINARY_NEWS,
                                    .news = read_news};
