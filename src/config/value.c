/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/endpoint.h"
#include "config/suggest.h"
#include "config/text.h"

/* Of what a user wrote, this much is repeated in an error. */
#define SHOWN_MAX 80
/* Room for any value but a list of addresses. */
#define VALUE_TEXT_MAX (CONFIG_NAME_MAX + 1)

_Static_assert(sizeof(enum placement) == sizeof(unsigned), "TYPE_WORD stores an unsigned");

static void *field(const struct config_key *key, void *section)
{
    return (char *)section + key->offset;
}

static const void *field_const(const struct config_key *key, const void *section)
{
    return (const char *)section + key->offset;
}

/* "64k" rather than 65536, for ranges in error texts. */
static const char *short_bytes(uint64_t value, char out[32])
{
    static const char suffixes[] = {'\0', 'k', 'm', 'g'};
    size_t i = 0;
    while (i < 3 && value >= 1024 && value % 1024 == 0) {
        value /= 1024;
        i++;
    }
    (void)snprintf(out, 32, "%" PRIu64 "%.1s", value, &suffixes[i]);
    return out;
}

static void format_words(const char *const *words, char out[VALUE_EXPECTED_MAX])
{
    size_t n = 0;
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        n += (size_t)snprintf(out + n, VALUE_EXPECTED_MAX - n, "%s%s", before, words[i]);
        CHECK(n < VALUE_EXPECTED_MAX);
    }
}

const char *value_expected(const struct config_key *key, char out[VALUE_EXPECTED_MAX])
{
    char low[32];
    char high[32];
    const char *text = "";
    switch (key->type) {
    case TYPE_COUNT:
        (void)snprintf(out, VALUE_EXPECTED_MAX, "%" PRIu64 " to %" PRIu64 "%s%s", key->min,
                       key->max, key->unit[0] == '\0' ? "" : " ", key->unit);
        return out;
    case TYPE_BYTES:
    case TYPE_BYTES64:
        (void)snprintf(out, VALUE_EXPECTED_MAX, "%s to %s bytes", short_bytes(key->min, low),
                       short_bytes(key->max, high));
        return out;
    case TYPE_WORD:
        format_words(key->words, out);
        return out;
    case TYPE_YES_NO:
        text = "yes or no";
        break;
    case TYPE_MODE:
        text = "permissions as an octal number, 0 to 0777";
        break;
    case TYPE_TEXT:
        text = "a text";
        break;
    case TYPE_DELIMITER:
        text = "a punctuation character, \\xNN (# and ; are \\x23 and \\x3b) or none";
        break;
    case TYPE_BYTE:
        text = key->max == 1 ? "a punctuation character or \\xNN (# and ; are \\x23 and \\x3b)"
                             : "one character or \\xNN (# and ; are \\x23 and \\x3b)";
        break;
    case TYPE_TEMPLATE:
        text = "a name with one %s for the list's key (\\xNN is allowed)";
        break;
    case TYPE_ENTRY:
        text = "%v, and %n and %t if wanted, %n first or last, with text between them";
        break;
    case TYPE_FLAGS:
        (void)snprintf(out, VALUE_EXPECTED_MAX,
                       "1 to %d numbers of at most 32 bits, comma-separated", CONFIG_FLAGS_MAX);
        return out;
    case TYPE_VERBS:
        text = "verbs, comma-separated";
        break;
    case TYPE_LISTEN:
        text = "host, host:port, [IPv6]:port or unix:PATH, ...";
        break;
    case TYPE_SERVERS:
        text = "host, host:port, [IPv6]:port or unix:PATH, each with a weight if wanted, ...";
        break;
    }
    (void)snprintf(out, VALUE_EXPECTED_MAX, "%s", text);
    return out;
}

/* "'TEXT' WHY; expected ..." */
static int fail_value(const struct config_key *key, struct slice text, const char *why,
                      char error[CONFIG_ERROR_MAX])
{
    char shown[SHOWN_MAX];
    char expected[VALUE_EXPECTED_MAX];
    return config_fail(error, "'%s' %s; expected %s", text_show(text, shown, sizeof shown), why,
                       value_expected(key, expected));
}

/* Takes a k, m or g off the end; returns how far it shifts the number. */
static unsigned take_suffix(struct slice *text)
{
    unsigned shift = 0;
    if (text->len > 0) {
        switch (tolower((unsigned char)text->p[text->len - 1])) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        default:
            return 0;
        }
        text->len--;
    }
    return shift;
}

static int parse_number(const struct config_key *key, struct slice text, uint64_t *value,
                        char error[CONFIG_ERROR_MAX])
{
    struct slice digits = text;
    unsigned shift = key->type == TYPE_COUNT ? 0 : take_suffix(&digits);
    uint64_t number;
    for (size_t i = 0; i < digits.len; i++) {
        if (!isdigit((unsigned char)digits.p[i])) {
            return fail_value(key, text, "is not a number", error);
        }
    }
    if (digits.len == 0) {
        return fail_value(key, text, "is not a number", error);
    }
    if (!slice_to_u64(digits, &number) || number > UINT64_MAX >> shift ||
        number << shift < key->min || number << shift > key->max) {
        return fail_value(key, text, "is out of range", error);
    }
    *value = number << shift;
    return 0;
}

/* The same for a word that is none of those known. */
static int fail_word(const struct config_key *key, struct slice text, const char *const *words,
                     char error[CONFIG_ERROR_MAX])
{
    char why[64] = "is not known";
    const char *near = suggest(text, words);
    if (near != NULL) {
        (void)snprintf(why, sizeof why, "is not known (did you mean %s?)", near);
    }
    return fail_value(key, text, why, error);
}

static int parse_word(const struct config_key *key, void *section, struct slice text,
                      char error[CONFIG_ERROR_MAX])
{
    unsigned index;
    if (!config_word_find(key, text, &index)) {
        return fail_word(key, text, key->words, error);
    }
    memcpy(field(key, section), &index, sizeof index);
    return 0;
}

static int parse_yes_no(const struct config_key *key, void *section, struct slice text,
                        char error[CONFIG_ERROR_MAX])
{
    static const char *const words[] = {"yes", "no", NULL};
    bool yes = slice_equal(text, SLICE_LIT("yes"));
    if (!yes && !slice_equal(text, SLICE_LIT("no"))) {
        return fail_word(key, text, words, error);
    }
    *(bool *)field(key, section) = yes;
    return 0;
}

static int parse_text(const struct config_key *key, void *section, struct slice text,
                      char error[CONFIG_ERROR_MAX])
{
    char *out = field(key, section);
    if (text.len > CONFIG_NAME_MAX) {
        return config_fail(error, "a text of %zu bytes; expected at most %d", text.len,
                           CONFIG_NAME_MAX);
    }
    if (text.len == 0 && key->max == 0) {
        return config_fail(error, "nothing is given; expected a text");
    }
    if (text.len > 0) {
        memcpy(out, text.p, text.len);
    }
    out[text.len] = '\0';
    return 0;
}

static int parse_delimiter(const struct config_key *key, void *section, struct slice text,
                           char error[CONFIG_ERROR_MAX])
{
    char byte[2];
    int delimiter = -1;
    if (!slice_equal(text, SLICE_LIT("none"))) {
        if (text_unescape(text, byte, sizeof byte) != 1) {
            return fail_value(key, text, "is not one byte", error);
        }
        delimiter = (unsigned char)byte[0];
        /* An item that holds the delimiter is refused, so letters and digits would refuse most
         * items; line ends and NUL would mislead clients that read answers by lines or as C
         * strings. */
        if (isalnum(delimiter)) {
            return fail_value(key, text, "is in too many items", error);
        }
        if (delimiter == '\r' || delimiter == '\n' || delimiter == '\0') {
            return fail_value(key, text, "would break answers apart", error);
        }
    }
    memcpy(field(key, section), &delimiter, sizeof delimiter);
    return 0;
}

static int parse_byte(const struct config_key *key, void *section, struct slice text,
                      char error[CONFIG_ERROR_MAX])
{
    char bytes[2];
    if (text_unescape(text, bytes, sizeof bytes) != 1) {
        return fail_value(key, text, "is not one byte", error);
    }
    int byte = (unsigned char)bytes[0];
    if (key->max == 1 && isalnum(byte)) {
        return fail_value(key, text, "is in too many items", error);
    }
    memcpy(field(key, section), &byte, sizeof byte);
    return 0;
}

static int parse_template(const struct config_key *key, void *section, struct slice text,
                          char error[CONFIG_ERROR_MAX])
{
    char *out = field(key, section);
    int len = text_unescape(text, out, CONFIG_NAME_MAX + 1);
    int found = 0;
    if (len < 0) {
        return fail_value(key, text, "is too long, or has a \\ without xNN", error);
    }
    for (int i = 0; i < len; i++) {
        unsigned char c = (unsigned char)out[i];
        if (c <= ' ' || c == 0x7f) {
            return fail_value(key, text, "is no name that memcached takes", error);
        }
        if (c == '%' && out[i + 1] != 's') {
            return fail_value(key, text, "has a % that is not part of %s", error);
        }
        found += c == '%';
    }
    if (found != 1) {
        return fail_value(key, text, found == 0 ? "lacks %s" : "has %s more than once", error);
    }
    return 0;
}

/* Fields with text between them that tells where a number ends. */
static int parse_entry(const struct config_key *key, void *section, struct slice text,
                       char error[CONFIG_ERROR_MAX])
{
    char *out = field(key, section);
    int len = text_unescape(text, out, CONFIG_NAME_MAX + 1);
    size_t found[UCHAR_MAX + 1] = {0}, fields = 0, gap = 1;
    if (len < 0) {
        return fail_value(key, text, "is too long, or has a \\ without xNN", error);
    }
    for (const char *p = out; p < out + len; p++) {
        unsigned char c = (unsigned char)*p, name = c == '%' ? (unsigned char)p[1] : 0;
        if (c < ' ' || c >= 0x7f || isdigit(c)) {
            return fail_value(key, text, "has a digit, or a byte that is no text", error);
        }
        if (c == '%' && name != 'v' && name != 'n' && name != 't') {
            return fail_value(key, text, "has a % that is not part of %v, %n or %t", error);
        }
        if (c == '%' && (gap == 0 || found[name]++ > 0)) {
            return fail_value(key, text, "has a field twice, or nothing between two", error);
        }
        fields += c == '%';
        gap = c == '%' ? 0 : gap + 1;
        p += c == '%';
    }
    if (found['v'] == 0) {
        return fail_value(key, text, "lacks %v", error);
    }
    if (out[0] != '%' || gap != 0) {
        return fail_value(key, text, "has text before its fields, or behind them", error);
    }
    if (fields == 3 && out[1] != 'n' && out[len - 1] != 'n') {
        return fail_value(key, text, "has %n in its middle", error);
    }
    return 0;
}

static int parse_flags(const struct config_key *key, void *section, struct slice text,
                       char error[CONFIG_ERROR_MAX])
{
    struct flag_set set = {.count = 0};
    struct slice rest = text, item;
    bool more = true;
    while (text_next_item(&rest, &more, &item)) {
        uint64_t number;
        if (!slice_to_u64(item, &number) || number > UINT32_MAX) {
            return fail_value(key, item, "is no number of 32 bits", error);
        }
        if (set.count == CONFIG_FLAGS_MAX) {
            return fail_value(key, item, "is one too many", error);
        }
        set.flags[set.count++] = (uint32_t)number;
    }
    memcpy(field(key, section), &set, sizeof set);
    return 0;
}

static int parse_verbs(const struct config_key *key, void *section, struct slice text,
                       char error[CONFIG_ERROR_MAX])
{
    struct verb_set set = {{0}};
    const char *words[VERB_COUNT + 1] = {NULL};
    struct slice rest = text, item;
    bool more = text.len > 0;
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        words[v] = verb_info((enum verb)v)->text.p;
    }
    while (text_next_item(&rest, &more, &item)) {
        const struct verb_info *info = verb_find(item);
        if (info == NULL) {
            return fail_word(key, item, words, error);
        }
        set.bits[info->verb / 64] |= UINT64_C(1) << (info->verb % 64);
    }
    memcpy(field(key, section), &set, sizeof set);
    return 0;
}

/* An empty text leaves the permissions to the umask. */
static int parse_mode(const struct config_key *key, void *section, struct slice text,
                      char error[CONFIG_ERROR_MAX])
{
    int mode = text.len == 0 ? -1 : 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] < '0' || text.p[i] > '7') {
            return fail_value(key, text, "is no octal number", error);
        }
        mode = mode * 8 + (text.p[i] - '0');
        if (mode > 0777) {
            return fail_value(key, text, "is out of range", error);
        }
    }
    memcpy(field(key, section), &mode, sizeof mode);
    return 0;
}

static int parse_listen(const struct config_key *key, void *section, struct slice text, char *error)
{
    if (text.len == 0 && key->max == 1) {
        return 0;
    }
    uint16_t port = key->section == SECTION_ADMIN ? ADMIN_PORT : PROXY_PORT;
    return listen_list_add(field(key, section), text, port, error);
}

void value_clear_listen(const struct config_key *key, void *section)
{
    ((struct endpoint_list *)field(key, section))->count = 0;
}

int value_parse(const struct config_key *key, void *section, struct slice text,
                char error[CONFIG_ERROR_MAX])
{
    uint64_t number;
    switch (key->type) {
    case TYPE_COUNT:
    case TYPE_BYTES:
        if (parse_number(key, text, &number, error) != 0) {
            return -1;
        }
        *(uint32_t *)field(key, section) = (uint32_t)number;
        return 0;
    case TYPE_BYTES64:
        if (parse_number(key, text, &number, error) != 0) {
            return -1;
        }
        *(uint64_t *)field(key, section) = number;
        return 0;
    case TYPE_WORD:
        return parse_word(key, section, text, error);
    case TYPE_YES_NO:
        return parse_yes_no(key, section, text, error);
    case TYPE_MODE:
        return parse_mode(key, section, text, error);
    case TYPE_TEXT:
        return parse_text(key, section, text, error);
    case TYPE_DELIMITER:
        return parse_delimiter(key, section, text, error);
    case TYPE_BYTE:
        return parse_byte(key, section, text, error);
    case TYPE_TEMPLATE:
        return parse_template(key, section, text, error);
    case TYPE_ENTRY:
        return parse_entry(key, section, text, error);
    case TYPE_FLAGS:
        return parse_flags(key, section, text, error);
    case TYPE_VERBS:
        return parse_verbs(key, section, text, error);
    case TYPE_LISTEN:
        return parse_listen(key, section, text, error);
    case TYPE_SERVERS:
        return server_list_add(section, text, error);
    }
    CHECK(!"an unknown type in the table");
    return -1;
}

static char *format_listen(const struct endpoint_list *list)
{
    size_t cap = list->count * (ENDPOINT_TEXT_MAX + 2) + 1;
    char *out = malloc(cap);
    size_t n = 0;
    CHECK(out != NULL);
    out[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        char name[ENDPOINT_TEXT_MAX];
        n += (size_t)snprintf(out + n, cap - n, "%s%s", i == 0 ? "" : ", ",
                              endpoint_format(&list->at[i], name));
    }
    return out;
}

static char *format_servers(const struct pool_config *pool)
{
    size_t cap = pool->server_count * (ENDPOINT_TEXT_MAX + 16) + 1;
    char *out = malloc(cap);
    size_t n = 0;
    CHECK(out != NULL);
    out[0] = '\0';
    for (size_t i = 0; i < pool->server_count; i++) {
        n += (size_t)snprintf(out + n, cap - n, "%s%s", i == 0 ? "" : ", ", pool->servers[i].name);
        if (pool->servers[i].weight != 1) {
            n += (size_t)snprintf(out + n, cap - n, " %" PRIu32, pool->servers[i].weight);
        }
    }
    return out;
}

/* So that a file may hold it. Returns the number of characters. */
static size_t format_byte(int byte, char out[5])
{
    /* strchr finds NUL, too. */
    bool plain = byte < 0x80 && isgraph(byte) && strchr("#;\\", byte) == NULL;
    return (size_t)snprintf(out, 5, plain ? "%c" : "\\x%02x", byte);
}

static char *format_template(const char *name)
{
    char *out = malloc(4 * strlen(name) + 1);
    size_t n = 0;
    CHECK(out != NULL);
    out[0] = '\0';
    for (; *name != '\0'; name++) {
        if (*name == ' ') {
            out[n++] = *name;
            out[n] = '\0';
        } else {
            n += format_byte((unsigned char)*name, out + n);
        }
    }
    return out;
}

static char *format_flags(const struct flag_set *set)
{
    size_t cap = CONFIG_FLAGS_MAX * sizeof ", 4294967295";
    char *out = malloc(cap);
    size_t n = 0;
    CHECK(out != NULL);
    for (uint32_t i = 0; i < set->count; i++) {
        n += (size_t)snprintf(out + n, cap - n, "%s%" PRIu32, i == 0 ? "" : ", ", set->flags[i]);
    }
    return out;
}

static char *format_verbs(const struct verb_set *set)
{
    char *out = NULL;
    size_t len;
    FILE *memory = open_memstream(&out, &len);
    CHECK(memory != NULL);
    const char *before = "";
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        if (verb_set_has(set, (enum verb)v)) {
            fprintf(memory, "%s%s", before, verb_info((enum verb)v)->text.p);
            before = ", ";
        }
    }
    CHECK(fclose(memory) == 0);
    return out;
}

char *value_format(const struct config_key *key, const void *section)
{
    const void *from = field_const(key, section);
    char text[VALUE_TEXT_MAX] = "";
    unsigned word;
    switch (key->type) {
    case TYPE_COUNT:
    case TYPE_BYTES:
        (void)snprintf(text, sizeof text, "%" PRIu32, *(const uint32_t *)from);
        break;
    case TYPE_BYTES64:
        (void)snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)from);
        break;
    case TYPE_WORD:
        memcpy(&word, from, sizeof word);
        (void)snprintf(text, sizeof text, "%s", key->words[word]);
        break;
    case TYPE_YES_NO:
        (void)snprintf(text, sizeof text, "%s", *(const bool *)from ? "yes" : "no");
        break;
    case TYPE_MODE:
        if (*(const int *)from >= 0) {
            (void)snprintf(text, sizeof text, "%04o", *(const unsigned *)from);
        }
        break;
    case TYPE_TEXT:
        (void)snprintf(text, sizeof text, "%s", (const char *)from);
        break;
    case TYPE_DELIMITER:
        if (*(const int *)from < 0) {
            (void)snprintf(text, sizeof text, "none");
            break;
        }
        (void)format_byte(*(const int *)from, text);
        break;
    case TYPE_BYTE:
        (void)format_byte(*(const int *)from, text);
        break;
    case TYPE_TEMPLATE:
    case TYPE_ENTRY:
        return format_template(from);
    case TYPE_FLAGS:
        return format_flags(from);
    case TYPE_VERBS:
        return format_verbs(from);
    case TYPE_LISTEN:
        return format_listen(field_const(key, section));
    case TYPE_SERVERS:
        return format_servers(section);
    }
    char *out = strdup(text);
    CHECK(out != NULL);
    return out;
}

static size_t field_size(const struct config_key *key)
{
    switch (key->type) {
    case TYPE_COUNT:
    case TYPE_BYTES:
        return sizeof(uint32_t);
    case TYPE_BYTES64:
        return sizeof(uint64_t);
    case TYPE_WORD:
        return sizeof(unsigned);
    case TYPE_YES_NO:
        return sizeof(bool);
    case TYPE_TEXT:
    case TYPE_TEMPLATE:
    case TYPE_ENTRY:
        return CONFIG_NAME_MAX + 1;
    case TYPE_FLAGS:
        return sizeof(struct flag_set);
    case TYPE_VERBS:
        return sizeof(struct verb_set);
    case TYPE_DELIMITER:
    case TYPE_BYTE:
    case TYPE_MODE:
        return sizeof(int);
    case TYPE_LISTEN:
    case TYPE_SERVERS:
        break;
    }
    CHECK(!"addresses are not copied");
    return 0;
}

void value_copy(const struct config_key *key, void *to, const void *from)
{
    memcpy(field(key, to), field_const(key, from), field_size(key));
}
