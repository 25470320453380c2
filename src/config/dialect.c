/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/dialect.h"

#include <ctype.h>
#include <stdlib.h>

#include "config/value.h"

/* Of the numbers behind names. */
#define NUMBER_DIGITS_MAX 10
/* Digits that are not known yet. No name holds it but in %s. */
#define ANY_DIGIT '%'

/* What a dialect stores, as far as it limits the bytes and names that its settings can have. */
enum {
    STORES_DELIMITER = 1, /* between the items */
    STORES_NOTES = 2,     /* @NUMBER:HASH between signs */
    STORES_INDEX = 4,     /* numbers between signs, under the list's own key */
};
static const unsigned stores[DIALECT_COUNT] = {
    [DIALECT_SIMPLE] = STORES_DELIMITER, [DIALECT_TOMBSTONE] = STORES_DELIMITER,
    [DIALECT_PAIRED] = STORES_DELIMITER, [DIALECT_FLIP] = STORES_NOTES,
    [DIALECT_MARKER] = STORES_NOTES,     [DIALECT_SUBLISTS] = STORES_INDEX,
};

bool dialect_uses(const struct list_policy *policy, const struct config_key *key)
{
    uint32_t own = UINT32_C(1) << policy->dialect;
    uint32_t native = policy->migrate == MIGRATE_NATIVE ? UINT32_C(1) << DIALECT_NATIVE : 0;
    return (key->dialects & (own | native)) != 0;
}

static const struct config_key *key_of(const char *name)
{
    return config_key_known(SECTION_LISTS, name);
}

bool dialect_uses_named(const struct list_policy *policy, const char *name)
{
    return dialect_uses(policy, key_of(name));
}

/* The place for an error about one key, or about two. */
static struct place place_of(const struct list_policy *policy, const struct place *place,
                             const struct config_key *key, const struct config_key *other)
{
    return place_of_keys(place, policy->given_line, key, other);
}

static unsigned stored_by(const struct list_policy *policy)
{
    unsigned more = list_policy_delimits_sublists(policy) ? STORES_DELIMITER : 0;
    return stores[policy->dialect] | more;
}

static const char *word_of(const struct list_policy *policy)
{
    return key_of("dialect")->words[policy->dialect];
}

/* ---- keys that mean nothing there ---- */

/* Would migrate = native help? Of the two keys that check_words refuses there a ring takes both. */
static bool helps_to_migrate(const struct list_policy *policy, const struct config_key *key)
{
    bool needs_ring = key == key_of("order") || key == key_of("max_items") || key == key_of("cap");
    return (key->dialects >> DIALECT_NATIVE & 1) != 0 &&
           (policy->dialect == DIALECT_RING || !needs_ring);
}

static int check_unused(const struct list_policy *policy, const struct place *place)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        char users[CONFIG_DIALECTS_MAX];
        struct place exact = *place;
        exact.line = policy->given_line[i];
        if (exact.line != 0 && !dialect_uses(policy, &keys[i])) {
            return refuse(&exact, "%s: dialect = %s does not use it; expected with %s%s",
                          keys[i].name, word_of(policy),
                          config_dialects_text(keys[i].dialects, users),
                          helps_to_migrate(policy, &keys[i]) ? ", or with migrate = native" : "");
        }
    }
    return 0;
}

static int check_words(const struct list_policy *policy, const struct place *place)
{
    struct place exact;
    if (policy->dialect == DIALECT_NATIVE && policy->migrate == MIGRATE_NATIVE) {
        exact = place_of(policy, place, key_of("migrate"), NULL);
        return refuse(&exact, "migrate = native is for lists of another dialect; expected "
                              "migrate = no with dialect = native");
    }
    /* A ring puts each item at the end, and has no more than its slots. */
    bool ring = policy->dialect == DIALECT_RING;
    if (policy->migrate == MIGRATE_NATIVE && policy->order == ORDER_RECENT && !ring) {
        exact = place_of(policy, place, key_of("order"), key_of("migrate"));
        return refuse(&exact,
                      "order = recent: dialect = %s keeps items in their places; expected "
                      "order = added until migrate = native is over",
                      word_of(policy));
    }
    if (policy->migrate == MIGRATE_NATIVE && policy->max_items != 0 && !ring) {
        exact = place_of(policy, place, key_of("max_items"), key_of("migrate"));
        return refuse(&exact,
                      "max_items: dialect = %s has lists of any length; expected max_items = 0 "
                      "until migrate = native is over",
                      word_of(policy));
    }
    if (policy->dialect != DIALECT_NATIVE && policy->on_missing == ON_MISSING_REFUSE) {
        exact = place_of(policy, place, key_of("on_missing"), NULL);
        return refuse(&exact,
                      "on_missing = refuse is for dialect = native only; expected create "
                      "with dialect = %s",
                      word_of(policy));
    }
    return 0;
}

/* What the slots of a ring hold. */
static int check_entries(const struct list_policy *policy, const struct place *place)
{
    struct place exact;
    if (policy->dialect != DIALECT_RING) {
        return 0;
    }
    if (policy->counter_wraps && strstr(policy->slot, "%n") != NULL) {
        exact = place_of(policy, place, key_of("slot"), key_of("counter_wraps"));
        return refuse(&exact,
                      "slot = %s: numbers of a counter that is set back tell nothing; "
                      "expected no %%n with counter_wraps = yes",
                      policy->slot);
    }
    if (policy->delimiter > 0 && policy->delimiter != '%' &&
        strchr(policy->slot, policy->delimiter) != NULL) {
        exact = place_of(policy, place, key_of("slot"), key_of("delimiter"));
        return refuse(&exact, "slot = %s holds the delimiter of lget; expected another delimiter",
                      policy->slot);
    }
    if (policy->migrate == MIGRATE_NATIVE && policy->max_items != 0 &&
        policy->max_items < policy->capacity) {
        exact = place_of(policy, place, key_of("max_items"), key_of("capacity"));
        return refuse(&exact,
                      "max_items (%u) is less than capacity (%u), and entries would go; "
                      "expected as much until migrate = native is over",
                      policy->max_items, policy->capacity);
    }
    return 0;
}

/* ---- bytes with a meaning ---- */

static bool is_byte(const struct config_key *key)
{
    return key->section == SECTION_LISTS && (key->type == TYPE_BYTE || key->type == TYPE_DELIMITER);
}

static int byte_of(const struct list_policy *policy, const struct config_key *key)
{
    int byte;
    memcpy(&byte, (const char *)policy + key->offset, sizeof byte);
    return byte;
}

static int refuse_byte(const struct list_policy *policy, const struct place *place,
                       const struct config_key *key, const char *why)
{
    struct place exact = place_of(policy, place, key, NULL);
    char *shown = value_format(key, policy);
    (void)refuse(&exact, "%s: '%s' %s dialect = %s", key->name, shown, why, word_of(policy));
    free(shown);
    return -1;
}

static int check_sign(const struct list_policy *policy, const struct place *place,
                      const struct config_key *key)
{
    int sign = byte_of(policy, key);
    unsigned stored = stores[policy->dialect];
    if ((stored & STORES_INDEX) != 0 && isdigit(sign)) {
        return refuse_byte(policy, place, key,
                           "is part of numbers, which stand between signs with");
    }
    if ((stored & STORES_NOTES) != 0 && (isxdigit(sign) || sign == '@' || sign == ':')) {
        return refuse_byte(policy, place, key, "is part of notes (@NUMBER:HASH) with");
    }
    return 0;
}

static int check_pair_of_bytes(const struct list_policy *policy, const struct place *place,
                               const struct config_key *key, const struct config_key *other)
{
    if (byte_of(policy, key) != byte_of(policy, other)) {
        return 0;
    }
    struct place exact = place_of(policy, place, other, key);
    char *shown = value_format(key, policy);
    (void)refuse(&exact, "%s and %s are both '%s'; expected different bytes with dialect = %s",
                 key->name, other->name, shown, word_of(policy));
    free(shown);
    return -1;
}

static int check_bytes(const struct list_policy *policy, const struct place *place)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    if (policy->delimiter < 0 && (stored_by(policy) & STORES_DELIMITER) != 0) {
        return refuse_byte(policy, place, key_of("delimiter"), "does not do: it is stored with");
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_byte(&keys[i]) || !dialect_uses(policy, &keys[i])) {
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            if (is_byte(&keys[k]) && dialect_uses(policy, &keys[k]) &&
                check_pair_of_bytes(policy, place, &keys[k], &keys[i]) != 0) {
                return -1;
            }
        }
    }
    if (!dialect_uses_named(policy, "add_sign")) {
        return 0;
    }
    return check_sign(policy, place, key_of("add_sign")) != 0
               ? -1
               : check_sign(policy, place, key_of("delete_sign"));
}

/* ---- names of items ---- */

/* What stands around the key of a list. */
struct template
{
    const struct config_key *key; /* NULL: the head of a native list */
    struct slice before;
    struct slice after;
    char text[CONFIG_NAME_MAX + 1 + NUMBER_DIGITS_MAX];
};

static void template_set(struct template *t, const char *text, size_t digits)
{
    size_t len = strlen(text);
    memcpy(t->text, text, len);
    memset(t->text + len, ANY_DIGIT, digits);
    t->before = slice_make(t->text, (size_t)(strstr(t->text, "%s") - t->text));
    t->after = slice_make(t->before.p + t->before.len + 2, len + digits - t->before.len - 2);
}

static bool may_be_equal(struct slice a, struct slice b)
{
    bool equal = a.len == b.len;
    for (size_t i = 0; equal && i < a.len; i++) {
        equal = a.p[i] == b.p[i] || (a.p[i] == ANY_DIGIT && isdigit((unsigned char)b.p[i])) ||
                (b.p[i] == ANY_DIGIT && isdigit((unsigned char)a.p[i]));
    }
    return equal;
}

/* Is there a key for which both give the same name? With Q what the second has more in front of the
 * key than the first, and R what the first has more behind it, that is a key with KEY R = Q KEY;
 * there is one if R is Q turned around: of Q = uv and R = vu it is u. */
static bool may_meet(const struct template *a, const struct template *b)
{
    if (a->before.len > b->before.len) {
        return may_meet(b, a);
    }
    struct slice q = b->before, r = a->after;
    struct slice same = slice_take(&q, a->before.len);
    if (!slice_equal(same, a->before) || a->after.len != b->after.len + q.len) {
        return false;
    }
    (void)slice_take(&r, q.len);
    if (!may_be_equal(r, b->after)) {
        return false;
    }
    r = slice_make(a->after.p, q.len);
    bool turned = q.len == 0;
    for (size_t u = 0; !turned && u < q.len; u++) {
        size_t v = q.len - u;
        turned = may_be_equal(slice_make(q.p, u), slice_make(r.p + v, u)) &&
                 may_be_equal(slice_make(q.p + u, v), slice_make(r.p, v));
    }
    return turned;
}

static int check_pair_of_names(const struct list_policy *policy, const struct place *place,
                               const struct template *a, const struct template *b)
{
    if (!may_meet(a, b)) {
        return 0;
    }
    if (a->key == NULL) {
        struct place exact = place_of(policy, place, b->key, NULL);
        return refuse(&exact,
                      "%s: a name may be that of a native list, KEY#; expected "
                      "another with migrate = native",
                      b->key->name);
    }
    struct place exact = place_of(policy, place, b->key, a->key);
    return refuse(&exact, "%s and %s may give the same name; expected two that never do",
                  a->key->name, b->key->name);
}

static bool is_numbered(const struct config_key *key)
{
    return key->offset == offsetof(struct list_policy, sublist_name) ||
           key->offset == offsetof(struct list_policy, slot_name);
}

/* Each of the dialect's templates against those before it; the one with numbers, of any number of
 * digits, comes last. */
static int check_names(const struct list_policy *policy, const struct place *place)
{
    struct template names[4];
    size_t count, known = 0;
    const struct config_key *keys = config_keys(&count);
    if (policy->migrate == MIGRATE_NATIVE) {
        names[known].key = NULL;
        template_set(&names[known++], "%s#", 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (keys[i].type != TYPE_TEMPLATE || !dialect_uses(policy, &keys[i])) {
            continue;
        }
        CHECK(known < sizeof names / sizeof names[0]);
        struct template *name = &names[known];
        name->key = &keys[i];
        bool numbered = is_numbered(&keys[i]);
        for (size_t digits = numbered; digits <= (numbered ? NUMBER_DIGITS_MAX : 0); digits++) {
            template_set(name, (const char *)policy + keys[i].offset, digits);
            for (size_t k = 0; k < known; k++) {
                if (check_pair_of_names(policy, place, &names[k], name) != 0) {
                    return -1;
                }
            }
        }
        known++;
    }
    return 0;
}

/* What stands under the list's own key leaves no room for another item: the index of sublists, and
 * with migrate = native the record of a move. That may take the place of an item without which
 * there is no list: of a pair's additions, but neither of its deletions, which may be missing, nor
 * of logs that change places. */
static int check_own_key(const struct list_policy *policy, const struct place *place)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    const char *taken = (stores[policy->dialect] & STORES_INDEX) != 0 ? "the list's index"
                        : policy->migrate == MIGRATE_NATIVE ? "the record of a list that moves"
                                                            : NULL;
    for (size_t i = 0; taken != NULL && i < count; i++) {
        if (keys[i].type == TYPE_TEMPLATE && dialect_uses(policy, &keys[i]) &&
            keys[i].offset != offsetof(struct list_policy, slot_name) &&
            keys[i].offset != offsetof(struct list_policy, add_name) &&
            strcmp((const char *)policy + keys[i].offset, "%s") == 0) {
            struct place exact = place_of(policy, place, &keys[i], NULL);
            return refuse(&exact, "%s: '%%s' alone is the name of %s; expected more beside it",
                          keys[i].name, taken);
        }
    }
    return 0;
}

static int fill_key_bytes_max(struct list_policy *policy, const struct place *place)
{
    size_t count, longest = 0;
    const struct config_key *keys = config_keys(&count);
    const struct config_key *key = key_of("dialect");
    for (size_t i = 0; i < count; i++) {
        if (keys[i].type == TYPE_TEMPLATE && dialect_uses(policy, &keys[i])) {
            size_t len = strlen((const char *)policy + keys[i].offset) - 2 +
                         (is_numbered(&keys[i]) ? NUMBER_DIGITS_MAX : 0);
            key = len > longest ? &keys[i] : key;
            longest = len > longest ? len : longest;
        }
    }
    size_t room = longest > policy->name_bytes_max ? 0 : policy->name_bytes_max - longest;
    policy->key_bytes_max = (uint8_t)(room > CONFIG_PREFIX_MAX ? CONFIG_PREFIX_MAX : room);
    if (policy->key_bytes_max == 0 || policy->key_bytes_max < policy->prefix_len) {
        struct place exact = place_of(policy, place, key, NULL);
        return refuse(&exact,
                      "%s: it leaves %u bytes for keys, of the %u that a name may have; no key "
                      "fits",
                      key->name, policy->key_bytes_max, policy->name_bytes_max);
    }
    return 0;
}

int dialect_check(struct list_policy *policy, const struct place *place)
{
    if (check_unused(policy, place) != 0 || check_words(policy, place) != 0 ||
        check_entries(policy, place) != 0 || check_bytes(policy, place) != 0 ||
        check_names(policy, place) != 0 || check_own_key(policy, place) != 0) {
        return -1;
    }
    return fill_key_bytes_max(policy, place);
}
