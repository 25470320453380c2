/* SPDX-License-Identifier: BSD-3-Clause */
#include "audit.h"

#include <stdlib.h>

#include "answers.h"
#include "base/number.h"
#include "list/core/expiry.h"
#include "list/format/entry.h"
#include "../world/txlog.h"

/* A key taken apart. */
struct parts {
    unsigned list;
    struct slice name; /* of the run; empty: it is the head's */
    uint64_t number;
};

static void *grow(void *array, size_t count, size_t *cap, size_t size)
{
    if (count == *cap) {
        *cap = *cap * 2 + 8;
        array = realloc(array, *cap * size);
        CHECK(array != NULL);
    }
    return array;
}

void audit_fini(struct audit *a)
{
    for (size_t i = 0; i < a->head_count; i++) {
        ref_head_fini(&a->heads[i].head);
        block_unref(&a->heads[i].block);
    }
    for (size_t i = 0; i < a->sublist_count; i++) {
        block_unref(&a->sublists[i].key_block);
        block_unref(&a->sublists[i].value);
    }
    for (size_t i = 0; i < AUDIT_LOGS; i++) {
        block_unref(&a->logs[i]);
    }
    free(a->heads);
    free(a->sublists);
    free(a->names);
    *a = (struct audit){0};
}

void audit_crash(struct audit *a)
{
    for (size_t i = 0; i < a->name_count; i++) {
        a->names[i].own = false;
        a->names[i].publishing = 0;
    }
}

static struct slice key_of(const struct list_request *r)
{
    return r->be.key;
}

static struct parts take_apart(const struct list_request *r)
{
    struct parts parts = {0};
    struct slice key = key_of(r);
    const char *mark = memchr(key.p, '#', key.len);
    CHECK(mark != NULL && r->be.key.len <= KEY_BYTES_MAX);
    size_t len = (size_t)(mark - key.p);
    CHECK(len >= 1 && len <= AUDIT_LISTS);
    CHECK(r->placement_at == 0 && r->placement_len <= r->be.key.len);
    parts.list = (unsigned)len - 1;
    (void)slice_take(&key, len + 1);
    if (key.len > 0) {
        CHECK(key.len > NAME_BYTES + 1);
        parts.name = slice_take(&key, NAME_BYTES);
        CHECK(slice_take(&key, 1).p[0] == '.' && slice_to_u64(key, &parts.number));
    }
    return parts;
}

static struct audit_name *name_of(struct audit *a, unsigned list, struct slice text)
{
    for (size_t i = 0; i < a->name_count; i++) {
        struct audit_name *name = &a->names[i];
        if (name->list == list && memcmp(name->text, text.p, NAME_BYTES) == 0) {
            return name;
        }
    }
    a->names = grow(a->names, a->name_count, &a->name_cap, sizeof *a->names);
    struct audit_name *name = &a->names[a->name_count++];
    *name = (struct audit_name){.list = list};
    memcpy(name->text, text.p, NAME_BYTES);
    return name;
}

/* ---- what was seen ---- */

static struct block *copy_block(struct slice bytes)
{
    struct block *b = block_new(bytes.len + 1);
    block_append(&b, bytes.len == 0 ? "" : bytes.p, bytes.len);
    return b;
}

static struct audit_sublist *find_sublist(struct audit *a, struct slice key)
{
    for (size_t i = 0; i < a->sublist_count; i++) {
        if (slice_equal(a->sublists[i].key, key)) {
            return &a->sublists[i];
        }
    }
    return NULL;
}

static struct slice block_slice(const struct block *b)
{
    return slice_make(b->data, b->used);
}

static void note_sublist(struct audit *a, struct slice key, struct slice value)
{
    struct audit_sublist *known = find_sublist(a, key);
    if (!ref_sublist_valid(value)) {
        return; /* as good as nothing */
    }
    if (known != NULL) {
        known->changed = known->changed || !slice_equal(block_slice(known->value), value);
        return;
    }
    a->sublists = grow(a->sublists, a->sublist_count, &a->sublist_cap, sizeof *a->sublists);
    struct audit_sublist *s = &a->sublists[a->sublist_count++];
    s->key_block = copy_block(key);
    s->key = block_slice(s->key_block);
    s->value = copy_block(value);
    s->changed = false;
}

struct lookup {
    struct audit *audit;
    unsigned list;
};

static bool look_up(void *arg, struct slice name, uint64_t number, struct slice *value)
{
    const struct lookup *lookup = arg;
    char text[KEY_BYTES_MAX];
    struct name run;
    memcpy(run.text, name.p, NAME_BYTES);
    struct slice list = slice_make("kk", lookup->list + 1);
    struct slice key = slice_make(text, sublist_key(text, list, &run, (uint32_t)number));
    struct audit_sublist *s = find_sublist(lookup->audit, key);
    if (s != NULL && s->changed) {
        lookup->audit->met_changed = true;
        return false;
    }
    if (s != NULL) {
        *value = block_slice(s->value);
    }
    return s != NULL;
}

static bool is_committed(void *arg, const struct txlog_intent *intent)
{
    (void)arg;
    (void)intent;
    return false; /* reads are not answered from a head with one that is open */
}

static enum ref_result content_of(struct audit *a, unsigned list, const struct ref_head *head,
                                  struct ref_items *items)
{
    struct lookup lookup = {a, list};
    struct ref_head plain = *head;
    struct block **log = &a->logs[a->log_count++ % AUDIT_LOGS];
    block_unref(log);
    *log = txlog_resolve(head->log, slice_make("kk", list + 1), head->max > 0, is_committed, NULL);
    CHECK(*log != NULL);
    plain.log = block_slice(*log);
    a->met_changed = false;
    return ref_content(&plain, look_up, &lookup, items);
}

/* The head that the backend gave with that number; epoch 0: on whatever connection. */
static struct audit_head *find_head(struct audit *a, unsigned list, uint64_t cas, uint64_t epoch)
{
    for (size_t i = a->head_count; i-- > 0;) {
        struct audit_head *h = &a->heads[i];
        if (h->list == list && h->cas == cas && (epoch == 0 || h->epoch == epoch)) {
            return h;
        }
    }
    return NULL;
}

/* The head that answers with that version come from. */
static struct audit_head *find_version(struct audit *a, unsigned list, uint64_t version)
{
    for (size_t i = a->head_count; i-- > 0;) {
        if (a->heads[i].list == list && a->heads[i].version == version) {
            return &a->heads[i];
        }
    }
    return NULL;
}

static void note_garbage(struct audit *a, unsigned list, const struct ref_head *head)
{
    for (size_t i = 0; i < head->garbage.count; i++) {
        const struct ref_range *range = &head->garbage.ranges[i];
        struct audit_name *name = name_of(a, list, range->name);
        name->two_counts =
            name->two_counts || (name->garbage && name->garbage_count != range->count);
        name->garbage_count = range->count;
        name->garbage = true;
    }
}

static void note_head(struct audit *a, unsigned list, const struct be_reply *reply)
{
    struct audit_head *same = find_head(a, list, reply->cas, 0);
    bool differs = same != NULL && !slice_equal(same->head.value, reply->value);
    if (same != NULL && !differs && same->epoch == reply->epoch) {
        return;
    }
    struct audit_head h = {
        .list = list, .cas = reply->cas, .epoch = reply->epoch, .ambiguous = differs};
    h.block = copy_block(reply->value);
    h.version = head_version(reply->cas, reply->value);
    if (!ref_head_read(&h.head, block_slice(h.block))) {
        ref_head_fini(&h.head);
        block_unref(&h.block);
        return;
    }
    for (size_t i = 0; differs && i < a->head_count; i++) {
        if (a->heads[i].list == list && a->heads[i].cas == reply->cas) {
            a->heads[i].ambiguous = true;
        }
    }
    a->heads = grow(a->heads, a->head_count, &a->head_cap, sizeof *a->heads);
    a->heads[a->head_count++] = h;
    note_garbage(a, list, &h.head);
}

/* ---- what the engine sends ---- */

/* Of a run that is about to be written. */
static void sent_announced(struct audit *a, unsigned list, const struct ref_range *range)
{
    struct audit_name *name = name_of(a, list, range->name);
    CHECK(!name->own && name->sent == 0); /* drawn for the first time */
    name->own = true;
    name->announced_count = range->count;
}

static void sent_announcement(struct audit *a, unsigned list, struct slice bytes)
{
    /* A head with nothing but this in its log, to be read as others are. */
    struct block *b = copy_block(SLICE_LIT("^1\n"));
    struct ref_head head;
    entry_append(&b, ENTRY_ANNOUNCE, bytes);
    CHECK(ref_head_read(&head, block_slice(b)) && head.announcements.count == 1);
    const struct ref_range *range = &head.announcements.ranges[0];
    if (range->count > 0) {
        sent_announced(a, list, range);
    } else {
        struct audit_name *name = name_of(a, list, range->name);
        CHECK(name->own && !name->withdrawn && !name->published && name->publishing == 0);
        CHECK(name->sent >= 64 || name->gone == (UINT64_C(1) << name->sent) - 1);
        name->withdrawn = true;
    }
    ref_head_fini(&head);
    block_unref(&b);
}

/* A new head names nothing that others were to find. A put of a long content makes one to announce
 * its run in: it holds that alone. */
static void sent_new_head(struct audit *a, unsigned list, struct slice value)
{
    struct ref_head head;
    CHECK(ref_head_read(&head, value));
    CHECK(head.runs.count == 0 && head.garbage.count == 0 && head.announcements.count <= 1);
    if (head.announcements.count == 1) {
        struct slice rest = head.log, bytes;
        char op;
        CHECK(ref_take_entry(&rest, &op, &bytes) && op == ENTRY_ANNOUNCE && rest.len == 0);
        sent_announced(a, list, &head.announcements.ranges[0]);
    }
    ref_head_fini(&head);
}

static void sent_add(struct audit *a, const struct list_request *r, struct parts parts)
{
    if (parts.name.len == 0) {
        sent_new_head(a, parts.list, r->be.value);
        return;
    }
    struct audit_name *name = name_of(a, parts.list, parts.name);
    struct slice entries, bytes;
    uint64_t count;
    char op;
    CHECK(name->own && !name->withdrawn && parts.number < name->announced_count);
    CHECK(parts.number == name->sent++); /* one after the other, none twice */
    CHECK(ref_sublist_valid(r->be.value));
    CHECK(ref_sublist_header(r->be.value, &count, &entries) && count > 0);
    while (ref_take_entry(&entries, &op, &bytes)) {
        name->items += op != '-';
    }
    name->bytes += r->be.value.len;
    note_sublist(a, key_of(r), r->be.value);
}

static void sent_append(struct audit *a, const struct list_request *r, struct parts parts)
{
    struct slice rest = r->be.value, bytes;
    char op;
    CHECK(parts.name.len == 0 && rest.len > 0);
    while (rest.len > 0) {
        CHECK(ref_take_entry(&rest, &op, &bytes));
        CHECK(op != '=' && (op != '!' || bytes.len == 0));
        if (op == '~') {
            sent_announcement(a, parts.list, bytes);
        }
    }
}

/* A run of the new head that the old one does not name. */
static void check_published(struct audit *a, unsigned list, const struct ref_range *run,
                            const struct ref_head *before)
{
    const struct audit_name *name = name_of(a, list, run->name);
    CHECK(name->own && !name->withdrawn);
    /* A withdrawal that others forge beside it is no reason to stop. */
    const struct ref_range *announced = NULL;
    for (size_t i = 0; i < before->announcements.count; i++) {
        const struct ref_range *range = &before->announcements.ranges[i];
        announced = slice_equal(range->name, run->name) && range->count > 0 ? range : announced;
    }
    CHECK(announced != NULL);
    CHECK(run->count == name->sent && run->count == name->stored);
    CHECK(run->bytes == name->bytes && run->items == name->items);
}

static bool all_gone(const struct audit_name *name, uint64_t count)
{
    return name->two_counts || count >= 64 ||
           (name->gone & ((UINT64_C(1) << count) - 1)) == (UINT64_C(1) << count) - 1;
}

/* Everything that the old head names is named by the new one, or is known to be gone. */
static void check_nothing_forgotten(struct audit *a, unsigned list, const struct ref_head *before,
                                    const struct ref_head *after)
{
    for (size_t i = 0; i < before->runs.count; i++) {
        const struct ref_range *run = &before->runs.ranges[i];
        CHECK(ref_find(&after->runs, run->name) != NULL ||
              ref_find(&after->garbage, run->name) != NULL);
    }
    for (size_t i = 0; i < before->garbage.count; i++) {
        const struct ref_range *range = &before->garbage.ranges[i];
        CHECK(ref_find(&after->garbage, range->name) != NULL ||
              all_gone(name_of(a, list, range->name), range->count));
    }
    for (size_t i = 0; i < before->announcements.count; i++) {
        struct slice text = before->announcements.ranges[i].name;
        const struct audit_name *name = name_of(a, list, text);
        /* Its owner takes it off when it publishes, or when there was nothing to write. */
        bool own = name->own && (ref_find(&after->runs, text) != NULL || name->sent == 0);
        CHECK(ref_head_withdraws(before, text) || ref_head_announces(after, text) ||
              ref_find(&after->garbage, text) != NULL || own);
    }
}

static void check_content(struct audit *a, unsigned list, const struct ref_head *before,
                          const struct ref_head *after)
{
    struct ref_items old = {0}, new = {0};
    if (content_of(a, list, before, &old) == REF_OK) {
        enum ref_result result = content_of(a, list, after, &new);
        CHECK(result == REF_OK || a->met_changed);
        CHECK(result != REF_OK || ref_items_equal(&old, &new));
    }
    ref_items_fini(&old);
    ref_items_fini(&new);
}

static void sent_cas(struct audit *a, const struct list_request *r, struct parts parts,
                     bool content_stays)
{
    const struct audit_head *read = find_head(a, parts.list, r->be.cas, r->be.epoch);
    CHECK(parts.name.len == 0 && read != NULL && r->be.epoch != 0);
    struct ref_head after;
    CHECK(ref_head_read(&after, r->be.value));
    for (size_t i = 0; i < after.runs.count; i++) {
        const struct ref_range *run = &after.runs.ranges[i];
        if (!read->ambiguous && ref_find(&read->head.runs, run->name) == NULL) {
            check_published(a, parts.list, run, &read->head);
        }
        if (name_of(a, parts.list, run->name)->own) {
            name_of(a, parts.list, run->name)->publishing++;
        }
    }
    if (!read->ambiguous) {
        check_nothing_forgotten(a, parts.list, &read->head, &after);
    }
    if (!read->ambiguous && content_stays) {
        check_content(a, parts.list, &read->head, &after);
    }
    ref_head_fini(&after);
}

static void sent_cas_delete(struct audit *a, const struct list_request *r, struct parts parts)
{
    const struct audit_head *read = find_head(a, parts.list, r->be.cas, r->be.epoch);
    CHECK(parts.name.len == 0 && read != NULL && r->be.epoch != 0);
    CHECK(read->ambiguous || (read->head.runs.count == 0 && read->head.garbage.count == 0 &&
                              read->head.announcements.count == 0));
}

/* A clock item says when it expires, and goes where the list's head is. */
static void sent_clock(const struct list_request *r)
{
    bool writes = r->be.verb == BE_ADD || r->be.verb == BE_CAS;
    struct slice placement = request_placement(r);
    CHECK(writes || r->be.verb == BE_GET);
    CHECK(!writes || clock_value_read(r->be.value, r->be.flags) == r->be.exptime);
    CHECK(placement.p == r->key + r->be.key.len && placement.len >= 2 &&
          placement.len <= AUDIT_LISTS + 1 && placement.p[placement.len - 1] == '#');
}

void audit_sent(struct audit *a, const struct list_request *r, bool content_stays)
{
    if (clock_key_is(key_of(r))) {
        sent_clock(r);
        return;
    }
    struct parts parts = take_apart(r);
    const struct audit_name *name = NULL;
    if (parts.name.len > 0) {
        name = name_of(a, parts.list, parts.name);
    }
    switch (r->be.verb) {
    case BE_GET:
        return;
    case BE_SIZE:
    case BE_TIME:
        CHECK(name == NULL);
        return;
    case BE_PROBE:
        CHECK(name != NULL);
        return;
    case BE_ADD:
        sent_add(a, r, parts);
        return;
    case BE_REPLACE:
    case BE_SET: /* one that is refused takes away what was there */
    case BE_PREPEND:
    case BE_INCR:
    case BE_FETCH: /* the engine sends none of these */
    case BE_DECR:
    case BE_TOUCH:
    case BE_GAT:
    case BE_LINE:
    case BE_LINE_READ:
    case BE_LINE_GET:
    case BE_STATS:
    case BE_MAP:
    case BE_COLLECTION:
        break;
    case BE_APPEND:
        sent_append(a, r, parts);
        return;
    case BE_CAS:
        sent_cas(a, r, parts, content_stays);
        return;
    case BE_CAS_DELETE:
        sent_cas_delete(a, r, parts);
        return;
    case BE_DELETE:
        CHECK(name != NULL);
        CHECK(name->garbage || (name->own && !name->published && name->publishing == 0));
        return;
    }
    CHECK(false);
}

/* ---- what it is told ---- */

static void told_cas(struct audit *a, const struct list_request *r, unsigned list,
                     enum be_status status)
{
    struct ref_head after;
    CHECK(ref_head_read(&after, r->be.value));
    for (size_t i = 0; i < after.runs.count; i++) {
        struct audit_name *name = name_of(a, list, after.runs.ranges[i].name);
        if (name->publishing > 0) {
            name->publishing--;
            name->published = name->published || status == BE_STORED || status == BE_LOST;
        }
    }
    ref_head_fini(&after);
}

void audit_told(struct audit *a, const struct list_request *r, const struct be_reply *reply)
{
    if (clock_key_is(key_of(r))) {
        return;
    }
    struct parts parts = take_apart(r);
    enum be_status status = reply->status;
    if (parts.name.len == 0) {
        if (r->be.verb == BE_GET && status == BE_HIT) {
            note_head(a, parts.list, reply);
        } else if (r->be.verb == BE_CAS) {
            told_cas(a, r, parts.list, status);
        }
        return;
    }
    struct audit_name *name = name_of(a, parts.list, parts.name);
    if (r->be.verb == BE_GET && status == BE_HIT) {
        note_sublist(a, key_of(r), reply->value);
    } else if (r->be.verb == BE_ADD) {
        name->stored += status == BE_STORED;
    } else if (r->be.verb == BE_DELETE) {
        bool gone = status == BE_DELETED || status == BE_NOT_FOUND;
        name->gone |= gone && parts.number < 64 ? UINT64_C(1) << parts.number : 0;
    }
}

/* ---- answers ---- */

/* How many items there are may be known, and a range be found, without reading all. */
static bool reads_all(const struct list_call *call)
{
    return call->verb == LIST_GET;
}

void audit_done(struct audit *a, const struct list_call *call)
{
    bool reads = list_verb_reads(call->verb) && call->verb != LIST_STAT;
    if (!reads || (call->status != LIST_OK && call->status != LIST_MISSING)) {
        return;
    }
    unsigned list = (unsigned)call->key.len - 1;
    const struct audit_head *h = find_version(a, list, call->version);
    if (h == NULL) {
        /* A look that stands behind changes has seen what they made, which no reply has shown. */
        bool behind_changes = call->verb == LIST_HAS && call->number <= call->item_count;
        CHECK(call->version == 0);
        CHECK(behind_changes || (call->status == LIST_MISSING && call->answer.bytes == 0));
        return;
    }
    if (h->ambiguous || (call->version == 0 && call->status == LIST_MISSING)) {
        return;
    }
    struct ref_items items = {0};
    enum ref_result result = content_of(a, list, &h->head, &items);
    CHECK(result != REF_MISSING || a->met_changed || !reads_all(call));
    if (result == REF_OK && call->verb == LIST_LEN) {
        CHECK(call->number == items.count);
    } else if (result == REF_OK && call->verb == LIST_RANDOM) {
        CHECK(call->number == u64_least(items.count, (uint64_t)call->count));
    } else if (result == REF_OK) {
        check_answer_bytes(call, &items);
    }
    ref_items_fini(&items);
}
