/* SPDX-License-Identifier: BSD-3-Clause */
#include "format.h"

#include <stdio.h>

static const char *const dialect_names[DIALECT_COUNT] = {
    "native", "simple", "tombstone", "signed", "paired", "flip", "marker", "sublists", "ring"};

/* No list's key but its number begins with L. */
static const char *const manual_names[FORMAT_PARTS] = {
    "%s", "follow-%s", "unfollow-%s", "%s.a", "%s.b", "%s.active", "%s.", "%s.seq", "%s."};
static const char *const other_names[FORMAT_PARTS] = {
    "%s", "%s",          "not:%s",   "log:%s:first", "log:%s:second",
    "%s", "part of:%s:", "count:%s", "entry:%s:"};

static const char *const slot_templates[FORMAT_SLOTS] = {"%n %v", "%n %v %t", "%t|%v at %n",
                                                         "%v %t", "%v",       "%t: %v"};

const char *dialect_name(enum list_dialect dialect)
{
    return dialect_names[dialect];
}

bool dialect_of_name(const char *name, enum list_dialect *dialect)
{
    for (unsigned i = 0; i < DIALECT_COUNT; i++) {
        if (strcmp(dialect_names[i], name) == 0) {
            *dialect = i;
            return true;
        }
    }
    return false;
}

void format_init(struct format *f, const struct params *p, const struct cluster *cluster)
{
    bool manual = p->manual_format;
    *f = (struct format){
        .dialect = p->dialect,
        .bar = manual ? '|' : ';',
        .plus = manual ? '+' : '\x01',
        .minus = manual ? '-' : '\x02',
        .mark = manual ? '^' : '!',
        .names = manual ? manual_names : other_names,
        .capacity = p->capacity,
        .counter_wraps = p->counter_wraps && p->slot >= FORMAT_SLOTS_NUMBERED,
        .slot = p->slot,
        .numbered = p->slot < FORMAT_SLOTS_NUMBERED,
        .timed = strstr(slot_templates[p->slot], "%t") != NULL,
        .blind = p->blind,
        .delimited = p->delimited,
        .cluster = cluster,
    };
}

void format_configure(const struct format *f, struct list_policy *policy)
{
    static const struct {
        enum format_part part;
        size_t offset;
    } fields[] = {
        {FORMAT_ADDS, offsetof(struct list_policy, add_name)},
        {FORMAT_DELETES, offsetof(struct list_policy, delete_name)},
        {FORMAT_A, offsetof(struct list_policy, a_name)},
        {FORMAT_B, offsetof(struct list_policy, b_name)},
        {FORMAT_ACTIVE, offsetof(struct list_policy, active_name)},
        {FORMAT_SUBLIST, offsetof(struct list_policy, sublist_name)},
        {FORMAT_SEQ, offsetof(struct list_policy, seq_name)},
        {FORMAT_SLOT, offsetof(struct list_policy, slot_name)},
    };
    policy->dialect = f->dialect;
    policy->deleted_delimiter = f->bar;
    policy->add_sign = f->plus;
    policy->delete_sign = f->minus;
    policy->closed_mark = f->mark;
    policy->capacity = f->capacity;
    policy->counter_wraps = f->counter_wraps;
    snprintf(policy->slot, sizeof policy->slot, "%s", slot_templates[f->slot]);
    policy->changes = f->blind ? CHANGES_BLIND : CHANGES_EXACT;
    policy->sublist_text = f->delimited ? TEXTS_DELIMITED : TEXTS_SIGNED;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        snprintf((char *)policy + fields[i].offset, CONFIG_NAME_MAX + 1, "%s",
                 f->names[fields[i].part]);
    }
}

/* ---- keys ---- */

static bool is_numbered(enum format_part part)
{
    return part == FORMAT_SUBLIST || part == FORMAT_SLOT;
}

/* Which parts the dialect has. */
static bool has_part(const struct format *f, enum format_part part)
{
    static const unsigned parts[DIALECT_COUNT] = {
        [DIALECT_SIMPLE] = 1u << FORMAT_KEY,
        [DIALECT_TOMBSTONE] = 1u << FORMAT_KEY,
        [DIALECT_SIGNED] = 1u << FORMAT_KEY,
        [DIALECT_PAIRED] = 1u << FORMAT_ADDS | 1u << FORMAT_DELETES,
        [DIALECT_FLIP] = 1u << FORMAT_A | 1u << FORMAT_B | 1u << FORMAT_ACTIVE,
        [DIALECT_MARKER] = 1u << FORMAT_A | 1u << FORMAT_B,
        [DIALECT_SUBLISTS] = 1u << FORMAT_KEY | 1u << FORMAT_SUBLIST,
        [DIALECT_RING] = 1u << FORMAT_SEQ | 1u << FORMAT_SLOT,
    };
    return (parts[f->dialect] & 1u << part) != 0;
}

/* Called for each request, so without snprintf(). */
static char *put_number(char *out, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *out++ = digits[--count];
    }
    return out;
}

size_t format_key(const struct format *f, unsigned list, enum format_part part, uint64_t number,
                  char out[KEY_BYTES_MAX + 1])
{
    char *end = out;
    for (const char *p = f->names[part]; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 's') {
            *end++ = 'L';
            end = put_number(end, list);
            p++;
        } else {
            *end++ = *p;
        }
    }
    if (is_numbered(part)) {
        end = put_number(end, number);
    }
    *end = '\0';
    return (size_t)(end - out);
}

int format_list(const struct format *f, struct slice key, enum format_part *part, uint64_t *number)
{
    const char *begin = memchr(key.p, 'L', key.len);
    uint64_t list = 0, tail = 0;
    if (begin == NULL) {
        return -1;
    }
    for (const char *p = begin + 1; p < key.p + key.len && *p >= '0' && *p <= '9'; p++) {
        list = list * 10 + (uint64_t)(*p - '0');
    }
    const char *digits = key.p + key.len;
    while (digits > begin && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    bool has_number = slice_to_u64(slice_make(digits, (size_t)(key.p + key.len - digits)), &tail);
    for (*part = 0; *part < FORMAT_PARTS; (*part)++) {
        char name[KEY_BYTES_MAX + 1];
        if (!has_part(f, *part) || (is_numbered(*part) && !has_number)) {
            continue;
        }
        *number = is_numbered(*part) ? tail : 0;
        size_t len = format_key(f, (unsigned)list, *part, *number, name);
        if (slice_equal(slice_make(name, len), key)) {
            return (int)list;
        }
    }
    return -1;
}

const struct item *format_find(const struct format *f, unsigned list, enum format_part part,
                               uint64_t number, int64_t now_s)
{
    char name[KEY_BYTES_MAX + 1];
    struct slice key = slice_make(name, format_key(f, list, part, number, name));
    return store_find(cluster_store(f->cluster, key), key, now_s);
}

struct slice format_value(const struct format *f, unsigned list, enum format_part part,
                          uint64_t number, int64_t now_s)
{
    const struct item *item = format_find(f, list, part, number, now_s);
    return item == NULL ? SLICE_NONE : item_value(item);
}
