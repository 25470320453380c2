/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/ascii_parse.h"

#include <strings.h>

/* Takes a number and the blank behind it, if there is one. */
static inline bool take_number(struct slice *words, uint64_t *number)
{
    const char *p = words->p;
    const char *end = p + words->len;
    uint64_t n = 0;
    for (; p < end && *p != ' '; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, digit, &n)) {
            return false;
        }
    }
    bool good = p > words->p;
    p += p < end;
    *words = slice_make(p, (size_t)(end - p));
    *number = n;
    return good;
}

/* "VA <size> <flags>*": the size, or false. */
static bool meta_size(struct slice line, uint64_t *size)
{
    (void)slice_take(&line, 3);
    return take_number(&line, size);
}

/* "VALUE <key> <flags> <size>[ <cas>]" */
static bool read_classic(struct slice line, bool wants_cas, struct be_reply *reply, uint64_t *size)
{
    uint64_t flags;
    (void)slice_take(&line, 6);
    const char *blank = line.len == 0 ? NULL : memchr(line.p, ' ', line.len);
    if (blank == NULL || blank == line.p) {
        return false;
    }
    reply->line = slice_take(&line, (size_t)(blank - line.p));
    (void)slice_take(&line, 1);
    if (!take_number(&line, &flags) || flags > UINT32_MAX || !take_number(&line, size)) {
        return false;
    }
    reply->flags = (uint32_t)flags;
    reply->cas = 0;
    return (!wants_cas || take_number(&line, &reply->cas)) && line.len == 0;
}

/* Takes a data block of len bytes behind the line, which is *size long. */
static inline enum ascii_parse_result take_data(struct slice bytes, uint64_t len, size_t max_value,
                                                struct be_reply *reply, size_t *size)
{
    if (len > max_value) {
        return ASCII_PARSE_GARBAGE;
    }
    const char *value = bytes.p + *size;
    *size += (size_t)len + 2;
    if (bytes.len < *size) {
        return ASCII_PARSE_MORE;
    }
    if (memcmp(value + len, "\r\n", 2) != 0) {
        return ASCII_PARSE_GARBAGE;
    }
    reply->has_value = true;
    reply->value = slice_make(value, (size_t)len);
    return ASCII_PARSE_OK;
}

/* Out of the way of the answers that come one by one. */
static NOINLINE enum ascii_parse_result take_classic(struct slice bytes, bool wants_cas,
                                                     size_t max_value, struct be_reply *reply,
                                                     size_t *size)
{
    uint64_t len;
    return read_classic(reply->line, wants_cas, reply, &len)
               ? take_data(bytes, len, max_value, reply, size)
               : ASCII_PARSE_GARBAGE;
}

enum ascii_parse_result ascii_parse(const struct be_operation *op, struct slice bytes,
                                    size_t max_value, struct be_reply *reply, size_t *size)
{
    bool classic = op->verb == BE_LINE_GET;
    size_t window = bytes.len < ASCII_REPLY_LINE_MAX ? bytes.len : ASCII_REPLY_LINE_MAX;
    const char *newline = window == 0 ? NULL : memchr(bytes.p, '\n', window);
    if (newline == NULL) {
        *size = 0;
        return bytes.len < ASCII_REPLY_LINE_MAX ? ASCII_PARSE_MORE : ASCII_PARSE_GARBAGE;
    }
    size_t line_end = (size_t)(newline - bytes.p) + 1;
    /* memcached always ends its lines with both. */
    if (line_end < 3 || newline[-1] != '\r') {
        return ASCII_PARSE_GARBAGE;
    }
    reply->line = slice_make(bytes.p, line_end - 2);
    reply->has_value = false;
    reply->value = SLICE_NONE;
    *size = line_end;
    if (bytes.p[0] != 'V') {
        return ASCII_PARSE_OK;
    }
    /* A hit of the other kind has a data block as well: the proxy has not asked for it here, so it
     * answers something else. */
    if (slice_starts_with(reply->line, SLICE_LIT("VA "))) {
        uint64_t len;
        return !classic && meta_size(reply->line, &len)
                   ? take_data(bytes, len, max_value, reply, size)
                   : ASCII_PARSE_GARBAGE;
    }
    if (slice_starts_with(reply->line, SLICE_LIT("VALUE "))) {
        return classic ? take_classic(bytes, op->asks_cas, max_value, reply, size)
                       : ASCII_PARSE_GARBAGE;
    }
    return ASCII_PARSE_OK;
}

static bool read_ttl(struct slice digits, int64_t *ttl_s)
{
    uint64_t n;
    if (slice_equal(digits, SLICE_LIT("-1"))) {
        *ttl_s = -1;
        return true;
    }
    if (!slice_to_u64(digits, &n) || n > INT64_MAX) {
        return false;
    }
    *ttl_s = (int64_t)n;
    return true;
}

/* --- meta lines --- */

/* What the words of a meta line say. */
struct meta_words {
    uint64_t seen; /* their letters */
    struct slice key, opaque;
};

static bool read_word(struct slice word, struct meta_words *words, struct be_reply *reply)
{
    struct slice text = slice_make(word.p + 1, word.len - 1);
    uint64_t n;
    switch (word.p[0]) {
    case 'k':
        words->key = text;
        break;
    case 'O':
        words->opaque = text;
        break;
    case 'c':
        if (!slice_to_u64(text, &reply->cas)) {
            return false;
        }
        break;
    case 's':
        if (!slice_to_u64(text, &reply->size_bytes)) {
            return false;
        }
        break;
    case 'f':
        if (!slice_to_u64(text, &n) || n > UINT32_MAX) {
            return false;
        }
        reply->flags = (uint32_t)n;
        break;
    case 't':
        if (!read_ttl(text, &reply->ttl_s)) {
            return false;
        }
        break;
    case 'h':
    case 'l':
        if (!slice_to_u64(text, &n)) {
            return false;
        }
        break;
    default:
        break;
    }
    words->seen |= letter_bit(word.p[0]);
    return true;
}

/* Is the word the key as it is, blanks and all? */
static bool is_key_itself(struct slice text, struct slice key)
{
    return key.len > 0 && text.len > key.len && text.p[0] == 'k' &&
           memcmp(text.p + 1, key.p, key.len) == 0 &&
           (text.len == key.len + 1 || text.p[key.len + 1] == ' ');
}

/* The return flags of a meta line: single letters, some with a value. plain: what a base64 key
 * means. memcached 1.6.18 answers that as it is where it has just made the item (flag N). */
static bool read_words(struct slice text, struct slice plain, struct meta_words *words,
                       struct be_reply *reply)
{
    words->seen = 0;
    while (text.len > 0) {
        if (text.p[0] == ' ') {
            (void)slice_take(&text, 1);
            continue;
        }
        if (UNLIKELY(is_key_itself(text, plain))) {
            words->key = slice_make(text.p + 1, plain.len);
            words->seen |= letter_bit('k');
            (void)slice_take(&text, plain.len + 1);
            continue;
        }
        const char *blank = memchr(text.p, ' ', text.len);
        size_t n = blank == NULL ? text.len : (size_t)(blank - text.p);
        if (!read_word(slice_take(&text, n), words, reply)) {
            return false;
        }
    }
    return true;
}

/* An item that was stored by a base64 key is named by one, in any case. */
static RARE bool same_decoded_key(struct slice said, bool said_base64, struct slice asked,
                                  bool asked_base64)
{
    char a[KEY_BYTES_MAX], b[KEY_BYTES_MAX];
    if (said_base64) {
        said = slice_make(a, key_decode_base64(said, a));
    }
    if (asked_base64) {
        asked = slice_make(b, key_decode_base64(asked, b));
    }
    return said.len > 0 && slice_equal(said, asked);
}

static inline bool names_key(const struct meta_words *words, struct slice asked, bool asked_base64)
{
    bool said_base64 = (words->seen & letter_bit('b')) != 0;
    return (said_base64 == asked_base64 && slice_equal(words->key, asked)) ||
           ((said_base64 || asked_base64) &&
            same_decoded_key(words->key, said_base64, asked, asked_base64));
}

/* The words behind "VA <size>", "HD" and the like. */
static struct slice words_of(const struct be_reply *reply)
{
    struct slice text = reply->line;
    (void)slice_take(&text, reply->has_value ? 3 : 2);
    while (reply->has_value && text.len > 0 && text.p[0] != ' ') { /* the size, see meta_size */
        (void)slice_take(&text, 1);
    }
    return text;
}

static bool is_code(struct slice line, const char *code)
{
    return line.len >= 2 && line.p[0] == code[0] && line.p[1] == code[1] &&
           (line.len == 2 || line.p[2] == ' ');
}

static uint64_t letters(const char *of)
{
    uint64_t set = 0;
    for (; *of != '\0'; of++) {
        set |= letter_bit(*of);
    }
    return set;
}

static uint64_t words_asked(const struct be_operation *op)
{
    switch (op->verb) {
    case BE_GET:
        return letters("kfct");
    case BE_SIZE:
        return letters("ksc");
    case BE_TIME:
        return letters("ktc");
    case BE_PROBE:
        return letters("k");
    default:
        return letters(op->odd_key ? "fc" : op->asks_cas ? "kfc" : "kf");
    }
}

/* Some memcacheds name the key of a miss, too, and none says more. */
static int read_miss(const struct be_operation *op, struct be_reply *reply)
{
    struct meta_words words;
    struct be_reply numbers;
    reply->status = BE_MISS;
    return reply->line.len == 2 ||
                   (read_words(words_of(reply), SLICE_NONE, &words, &numbers) &&
                    (words.seen & ~letters("kb")) == 0 &&
                    ((words.seen & letter_bit('k')) == 0 || names_key(&words, op->key, false)))
               ? 0
               : -1;
}

static int read_mg(const struct be_operation *op, struct be_reply *reply)
{
    struct meta_words words;
    bool wants_value = op->verb == BE_GET || op->verb == BE_FETCH || op->verb == BE_GAT;
    if (is_code(reply->line, "EN")) {
        return read_miss(op, reply);
    }
    if (reply->has_value != wants_value || (!wants_value && !is_code(reply->line, "HD"))) {
        return -1;
    }
    reply->ttl_s = -1;
    reply->status = BE_HIT;
    reply->size_bytes = reply->value.len;
    uint64_t asked = words_asked(op);
    return read_words(words_of(reply), SLICE_NONE, &words, reply) &&
                   (words.seen & asked) == asked &&
                   ((asked & letter_bit('k')) == 0 || names_key(&words, op->key, false))
               ? 0
               : -1;
}

static bool starts_with_nocase(struct slice s, const char *prefix)
{
    size_t len = strlen(prefix);
    return s.len >= len && strncasecmp(s.p, prefix, len) == 0;
}

/* The capitals of "out of memory" differ between the places that say it. */
bool ascii_is_no_memory(struct slice line)
{
    return starts_with_nocase(line, "SERVER_ERROR out of memory");
}

bool ascii_error_read(struct slice line, enum be_status *status)
{
    if (ascii_is_no_memory(line)) {
        *status = BE_NO_MEMORY;
        return true;
    }
    if (starts_with_nocase(line, "SERVER_ERROR object too large")) {
        *status = BE_TOO_LARGE;
        return true;
    }
    *status = BE_REFUSED;
    return slice_equal(line, SLICE_LIT("ERROR")) || slice_starts_with(line, SLICE_LIT("ERROR ")) ||
           slice_starts_with(line, SLICE_LIT("CLIENT_ERROR")) ||
           slice_starts_with(line, SLICE_LIT("SERVER_ERROR"));
}

static const struct {
    struct slice line;
    enum be_status status;
} words_of_change[] = {
    {{"STORED", 6}, BE_STORED},   {{"NOT_STORED", 10}, BE_NOT_STORED},
    {{"EXISTS", 6}, BE_EXISTS},   {{"NOT_FOUND", 9}, BE_NOT_FOUND},
    {{"DELETED", 7}, BE_DELETED},
};

/* NOT_STORED is tolerated wherever something is stored: memcached says it when it runs out of
 * memory late. */
static bool fits(enum be_verb verb, enum be_status status)
{
    switch (status) {
    case BE_STORED:
    case BE_NOT_STORED:
        return verb != BE_DELETE && verb != BE_INCR && verb != BE_DECR && verb != BE_TOUCH;
    case BE_EXISTS:
        return verb == BE_CAS || verb == BE_CAS_DELETE;
    case BE_NOT_FOUND:
        return verb == BE_CAS || verb == BE_CAS_DELETE || verb == BE_DELETE || verb == BE_INCR ||
               verb == BE_DECR || verb == BE_TOUCH;
    case BE_DELETED:
        return verb == BE_DELETE;
    default:
        return false;
    }
}

static int read_change(enum be_verb verb, struct slice line, struct be_reply *reply)
{
    bool counts = verb == BE_INCR || verb == BE_DECR;
    if ((counts && slice_to_u64(line, &reply->number)) ||
        (verb == BE_TOUCH && slice_equal(line, SLICE_LIT("TOUCHED")))) {
        reply->status = BE_STORED;
        return 0;
    }
    for (size_t i = 0; i < sizeof words_of_change / sizeof words_of_change[0]; i++) {
        if (slice_equal(line, words_of_change[i].line)) {
            reply->status = words_of_change[i].status;
            return fits(verb, reply->status) ? 0 : -1;
        }
    }
    return -1;
}

/* The codes of meta commands that change something; what else fits which of them follows from
 * fits(). */
static bool read_code(const struct be_operation *op, struct be_reply *reply)
{
    bool counts = op->verb == BE_INCR || op->verb == BE_DECR;
    if (counts && reply->has_value) {
        reply->status = BE_STORED;
        return slice_to_u64(reply->value, &reply->number);
    }
    if (is_code(reply->line, "HD")) {
        reply->status = op->verb == BE_DELETE ? BE_DELETED : BE_STORED;
        return !counts;
    }
    if (is_code(reply->line, "NS")) {
        reply->status = BE_NOT_STORED;
    } else if (is_code(reply->line, "EX")) {
        reply->status = BE_EXISTS;
        return op->with_cas || be_is_conditional(op->verb);
    } else if (is_code(reply->line, "NF")) {
        reply->status = BE_NOT_FOUND;
    } else {
        return false;
    }
    return fits(op->verb, reply->status);
}

/* The answer to a change that asks for the item's CAS number. */
static int read_meta_change(const struct be_operation *op, struct be_reply *reply)
{
    struct meta_words words;
    if (op->verb == BE_TOUCH) {
        int rc = read_mg(op, reply);
        reply->status = reply->status == BE_MISS ? BE_NOT_FOUND : BE_STORED;
        return rc;
    }
    bool tells = op->verb != BE_DELETE && op->verb != BE_CAS_DELETE;
    if (!read_code(op, reply) || !read_words(words_of(reply), SLICE_NONE, &words, reply)) {
        return -1;
    }
    return reply->status != BE_STORED || !tells || (words.seen & letter_bit('c')) != 0 ? 0 : -1;
}

int ascii_reply_read(const struct be_operation *op, struct be_reply *reply)
{
    if (ascii_error_read(reply->line, &reply->status)) {
        return reply->has_value ? -1 : 0;
    }
    if (op->verb < BE_ADD || op->verb == BE_FETCH || op->verb == BE_GAT) {
        return read_mg(op, reply);
    }
    if (op->asks_cas) {
        return read_meta_change(op, reply);
    }
    return reply->has_value ? -1 : read_change(op->verb, reply->line, reply);
}

/* The short way looks for a line end once: what reads on only while it finds something else ends
 * there at the latest. */

/* Takes the digits of a number, of which there must be some: behind them, or NULL. */
static inline const char *take_digits(const char *p, uint64_t *number)
{
    const char *start = p;
    uint64_t n = 0;
    unsigned digit;
    while ((digit = (unsigned)(unsigned char)*p - '0') <= 9) {
        n = n * 10 + digit;
        p++;
    }
    *number = n;
    return (size_t)(p - start) - 1 < 18 ? p : NULL; /* longer ones may be too large */
}

/* " <digits>", or " <lead><digits>": behind it, or NULL. */
static inline const char *take_word(const char *p, uint64_t *number)
{
    return *p == ' ' ? take_digits(p + 1, number) : NULL;
}

static inline const char *take_led(const char *p, char lead, uint64_t *number)
{
    return p[0] == ' ' && p[1] == lead ? take_digits(p + 2, number) : NULL;
}

/* What a hit says in front of its line end. */
struct hit {
    struct slice key;
    uint64_t len, flags, cas;
};

/* "VA <len> k<key> f<flags>[ c<cas>]", of that key: behind it, or NULL. */
static inline const char *take_meta_hit(const struct be_operation *op, const char *p,
                                        const char *end, struct hit *hit)
{
    hit->key = op->key;
    if (memcmp(p, "VA", 2) != 0 || (p = take_word(p + 2, &hit->len)) == NULL || p[0] != ' ' ||
        p[1] != 'k' || (size_t)(end - p) <= hit->key.len + 2 ||
        memcmp(p + 2, hit->key.p, hit->key.len) != 0 ||
        (p = take_led(p + 2 + hit->key.len, 'f', &hit->flags)) == NULL) {
        return NULL;
    }
    return op->asks_cas ? take_led(p, 'c', &hit->cas) : p;
}

/* "VALUE <key> <flags> <len>[ <cas>]": behind it, or NULL. */
static inline const char *take_classic_hit(const struct be_operation *op, const char *p,
                                           struct hit *hit)
{
    if (memcmp(p, "VALUE ", 6) != 0) {
        return NULL;
    }
    const char *key = p += 6;
    while ((unsigned char)*p > ' ') {
        p++;
    }
    hit->key = slice_make(key, (size_t)(p - key));
    if (hit->key.len == 0 || (p = take_word(p, &hit->flags)) == NULL ||
        (p = take_word(p, &hit->len)) == NULL) {
        return NULL;
    }
    return op->asks_cas ? take_word(p, &hit->cas) : p;
}

/* All that is the decoder's to fill: one by one, since compilers make a slow loop of an assignment
 * of the whole. */
static inline void begin_reply(struct be_reply *reply, enum be_status status, struct slice line)
{
    reply->status = status;
    reply->flags = reply->expires_s = reply->code = 0;
    reply->ttl_s = 0;
    reply->no_times = reply->has_value = false;
    reply->cas = reply->size_bytes = reply->number = 0;
    reply->value = SLICE_NONE;
    reply->text = NULL;
    reply->line = line;
}

static bool take_hit(const struct be_operation *op, struct slice bytes, size_t max_value,
                     struct be_reply *reply, size_t *size)
{
    struct hit hit = {.cas = 0};
    const char *p = bytes.p, *end = p + bytes.len;
    if (end[-1] != '\n' && memchr(p, '\n', bytes.len) == NULL) {
        return false;
    }
    p = op->verb == BE_LINE_GET ? take_classic_hit(op, p, &hit) : take_meta_hit(op, p, end, &hit);
    if (p == NULL || hit.flags > UINT32_MAX || hit.len > max_value || p[0] != '\r' ||
        p[1] != '\n' || (size_t)(end - p) < hit.len + 4 ||
        memcmp(p + 2 + hit.len, "\r\n", 2) != 0) {
        return false;
    }
    begin_reply(reply, BE_HIT, hit.key);
    reply->ttl_s = -1;
    reply->flags = (uint32_t)hit.flags;
    reply->cas = hit.cas;
    reply->size_bytes = hit.len;
    reply->has_value = true;
    reply->value = slice_make(p + 2, (size_t)hit.len);
    *size = (size_t)(p - bytes.p) + 4 + (size_t)hit.len;
    return true;
}

bool ascii_take_usual(const struct be_operation *op, struct slice bytes, size_t max_value,
                      struct be_reply *reply, size_t *size)
{
    if (bytes.len < 8) {
        return false;
    }
    if (op->verb == BE_FETCH || op->verb == BE_LINE_GET) {
        return take_hit(op, bytes, max_value, reply, size);
    }
    bool is_line = op->verb == BE_LINE;
    if (memcmp(bytes.p, "STORED\r\n", 8) != 0 || (is_line ? op->form.meta != 0 : op->asks_cas) ||
        !be_has_value(is_line ? op->form.like : op->verb)) {
        return false;
    }
    begin_reply(reply, is_line ? BE_ANSWERED : BE_STORED, slice_make(bytes.p, 6));
    *size = 8;
    return true;
}

/* The codes of meta commands' answers, two letters each. */
static const char *codes_of(char meta)
{
    switch (meta) {
    case 'g':
        return "HDVAEN";
    case 's':
        return "HDNSEXNF";
    case 'd':
        return "HDNFEXNS";
    case 'a':
        return "HDVANFNSEXEN";
    case 'e':
        return "MEEN";
    default:
        return "MN";
    }
}

/* What `mg` and `ma` have found has a value if and only if that was asked for. `mg` answers all
 * that was asked for, and nothing more but what cannot be asked for: W, X, Z and what later
 * versions may add. Where nothing was found, the answer says no more than which request it is for;
 * where something else failed, it may have numbers. */
static bool tells_what_was_asked(const struct be_line_form *form, const struct be_reply *reply,
                                 uint64_t seen, bool found)
{
    uint64_t numbers = letters("cfhlst");
    if (!found) {
        return (seen & ~letters("kbO")) == 0 ||
               (!is_code(reply->line, "EN") && (seen & ~(letters("kbO") | numbers)) == 0);
    }
    bool has_right_value = reply->has_value == ((form->flags & letter_bit('v')) != 0);
    return form->meta == 'g' ? has_right_value && ((seen ^ form->flags) & numbers) == 0
                             : form->meta != 'a' || has_right_value;
}

/* An answer names the key and the opaque if and only if the request wants that; where nothing was
 * found, some memcacheds do not. */
static bool meta_fits(const struct be_line_form *form, const struct be_reply *reply)
{
    struct meta_words words;
    struct be_reply numbers;
    const char *code = codes_of(form->meta);
    while (*code != '\0' && !is_code(reply->line, code)) {
        code += 2;
    }
    if (*code == '\0') {
        return false;
    }
    if (form->meta == 'e' || form->meta == 'n') {
        return form->meta == 'e' || reply->line.len == 2; /* ME has words of other kinds */
    }
    char decoded[KEY_BYTES_MAX];
    struct slice plain = SLICE_NONE;
    uint64_t names = letters("kO");
    if (form->key_is_base64 && (form->flags & letter_bit('k')) != 0) {
        plain = slice_make(decoded, key_decode_base64(form->key, decoded));
    }
    if (!read_words(words_of(reply), plain, &words, &numbers)) {
        return false;
    }
    bool found = reply->has_value || is_code(reply->line, "HD");
    return (words.seen & names & ~form->flags) == 0 &&
           (!found || (form->flags & names & ~words.seen) == 0) &&
           ((words.seen & letter_bit('k')) == 0 ||
            names_key(&words, form->key, form->key_is_base64)) &&
           ((words.seen & letter_bit('O')) == 0 || slice_equal(words.opaque, form->opaque)) &&
           tells_what_was_asked(form, reply, words.seen, found);
}

static bool is_right_answer(const struct be_operation *op, struct be_reply *reply)
{
    if (op->verb == BE_LINE_GET) {
        return slice_equal(reply->line, SLICE_LIT("END"));
    }
    if (op->form.meta != 0) {
        return meta_fits(&op->form, reply);
    }
    return !reply->has_value &&
           (op->form.like == BE_LINE ? slice_equal(reply->line, SLICE_LIT("OK"))
                                     : read_change(op->form.like, reply->line, reply) == 0);
}

bool ascii_line_fits(const struct be_operation *op, struct be_reply *reply)
{
    enum be_status status;
    return is_right_answer(op, reply) ||
           (!reply->has_value && ascii_error_read(reply->line, &status));
}

const char *ascii_line_text(struct slice line, char *out, size_t cap)
{
    size_t n = line.len < cap - 1 ? line.len : cap - 1;
    for (size_t i = 0; i < n; i++) {
        out[i] = line.p[i] >= ' ' && line.p[i] <= '~' ? line.p[i] : '?';
    }
    out[n] = '\0';
    return out;
}
