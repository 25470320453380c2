/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/resolve.h"

#include <stdlib.h>

#include "base/array.h"
#include "list/format/intent.h"

#define NONE UINT32_MAX

/* That an intent is about an item. Nodes of the same slot form a chain. */
struct concern {
    struct slice item;
    uint32_t hash, intent, next;
};

/* A hash table of numbers, made larger as it fills. */
struct chains {
    uint32_t *first; /* of each slot; NONE: empty */
    uint32_t slots;  /* a power of two */
};

struct resolver {
    struct resolved *out;
    const struct name *only; /* of this intent alone; NULL: of all */
    size_t intent_cap;
    struct chains by_name;
    uint32_t *next_of_name; /* of each intent: the next one in the chain */
    size_t next_cap;
    size_t indexed; /* intents in front of that have their items in the table, if they were open */
    struct chains by_item;
    struct concern *concerns;
    size_t concern_count, concern_cap;
    bool rolls_back;
    /* Intents in front of that are crossed already by an entry that crosses all. */
    size_t crossed_up_to;
    uint32_t *clearing; /* intents that hold a '!': each entry crosses them */
    size_t clearing_count, clearing_cap;
};

static uint32_t name_hash(const struct name *name)
{
    return item_hash(slice_make(name->text, NAME_BYTES));
}

static uint32_t *slot_of(const struct chains *chains, uint32_t hash)
{
    return &chains->first[hash & (chains->slots - 1)];
}

/* Room for count in all; true when the table was made anew and is empty. */
static bool chains_room(struct chains *chains, size_t count)
{
    if (count <= chains->slots) {
        return false;
    }
    chains->slots = chains->slots == 0 ? 16 : chains->slots * 4;
    free(chains->first);
    chains->first = malloc(chains->slots * sizeof *chains->first);
    CHECK(chains->first != NULL);
    memset(chains->first, 0xff, chains->slots * sizeof *chains->first);
    return true;
}

static struct head_intent *find(const struct resolver *r, const struct name *name)
{
    uint32_t i = r->by_name.slots == 0 ? NONE : *slot_of(&r->by_name, name_hash(name));
    while (i != NONE && !name_equal(&r->out->intents[i].name, name)) {
        i = r->next_of_name[i];
    }
    return i == NONE ? NULL : &r->out->intents[i];
}

static void enter_name(struct resolver *r, uint32_t i)
{
    uint32_t *slot = slot_of(&r->by_name, name_hash(&r->out->intents[i].name));
    r->next_of_name[i] = *slot;
    *slot = i;
}

static void enter_concern(struct resolver *r, uint32_t i)
{
    uint32_t *slot = slot_of(&r->by_item, r->concerns[i].hash);
    r->concerns[i].next = *slot;
    *slot = i;
}

static void add_concern(struct resolver *r, uint32_t intent, struct slice item)
{
    r->concerns = array_room(r->concerns, r->concern_count, &r->concern_cap, sizeof *r->concerns);
    uint32_t at = (uint32_t)r->concern_count++;
    r->concerns[at] = (struct concern){.item = item, .hash = item_hash(item), .intent = intent};
    if (chains_room(&r->by_item, r->concern_count)) {
        for (uint32_t i = 0; i < at; i++) {
            enter_concern(r, i);
        }
    }
    enter_concern(r, at);
}

static bool add_intent(struct resolver *r, struct slice key, struct slice bytes, size_t at)
{
    struct resolved *out = r->out;
    struct intent intent;
    if (!intent_parse(bytes, &intent) || find(r, &intent.name) != NULL) {
        return false;
    }
    struct head_intent known = {.name = intent.name,
                                .state = INTENT_OPEN,
                                .created_s = intent.created_s,
                                .at = at,
                                .bytes = bytes,
                                .entries = intent.entries};
    while (known.key_at < intent.key_count && !slice_equal(intent.keys[known.key_at], key)) {
        known.key_at++;
    }
    if (known.key_at == intent.key_count) {
        return false;
    }
    known.primary = known.key_at == 0;
    out->intents =
        array_room(out->intents, out->intent_count, &r->intent_cap, sizeof *out->intents);
    r->next_of_name =
        array_room(r->next_of_name, out->intent_count, &r->next_cap, sizeof *r->next_of_name);
    uint32_t i = (uint32_t)out->intent_count++;
    out->intents[i] = known;
    if (chains_room(&r->by_name, out->intent_count)) {
        for (uint32_t older = 0; older < i; older++) {
            enter_name(r, older);
        }
    }
    enter_name(r, i);
    return true;
}

static void add_items(struct resolver *r, uint32_t intent)
{
    struct slice rest = r->out->intents[intent].entries;
    struct entry entry;
    bool clears = false;
    while (entry_next(&rest, &entry) == ENTRY_OK) {
        if (entry.op != ENTRY_CLEAR) {
            add_concern(r, intent, entry.bytes);
        } else if (!clears) {
            r->clearing =
                array_room(r->clearing, r->clearing_count, &r->clearing_cap, sizeof *r->clearing);
            r->clearing[r->clearing_count++] = intent;
            clears = true;
        }
    }
}

/* A plain entry follows. It can cross what is open; most intents of a log are decided by then. */
static void add_items_of_open(struct resolver *r)
{
    for (; r->indexed < r->out->intent_count; r->indexed++) {
        if (r->out->intents[r->indexed].state == INTENT_OPEN) {
            add_items(r, (uint32_t)r->indexed);
        }
    }
}

static void cross(struct resolver *r, size_t i)
{
    struct head_intent *intent = &r->out->intents[i];
    if (intent->state == INTENT_OPEN) {
        intent->crossed = true;
        intent->state = intent->primary && !r->rolls_back ? INTENT_ABORTED : INTENT_OPEN;
    }
}

/* Each intent is crossed once by each of its items: its node leaves the chain then. So all of it
 * takes time in proportion to the log. */
static void take_plain(struct resolver *r, const struct entry *entry, bool capped)
{
    if (capped || entry->op == ENTRY_CLEAR) {
        for (; r->crossed_up_to < r->out->intent_count; r->crossed_up_to++) {
            cross(r, r->crossed_up_to);
        }
        r->clearing_count = 0;
        return;
    }
    add_items_of_open(r);
    while (r->clearing_count > 0) {
        cross(r, r->clearing[--r->clearing_count]);
    }
    uint32_t hash = r->concern_count > 0 ? item_hash(entry->bytes) : 0;
    uint32_t *link = r->concern_count > 0 ? slot_of(&r->by_item, hash) : NULL;
    while (link != NULL && *link != NONE) {
        struct concern *concern = &r->concerns[*link];
        if (concern->hash == hash && slice_equal(concern->item, entry->bytes)) {
            cross(r, concern->intent);
            *link = concern->next;
        } else {
            link = &concern->next;
        }
    }
}

static bool take_decision(struct resolver *r, struct slice bytes)
{
    struct name name;
    enum decision decision;
    if (!decision_parse(bytes, &name, &decision)) {
        return false;
    }
    struct head_intent *intent = find(r, &name);
    if (intent == NULL) {
        return true;
    }
    if (decision == DECISION_DONE) {
        intent->done = intent->state == INTENT_COMMITTED;
    } else if (intent->state == INTENT_OPEN) {
        bool crossed = intent->primary && intent->crossed;
        intent->state = decision == DECISION_COMMIT && !crossed ? INTENT_COMMITTED : INTENT_ABORTED;
    }
    return true;
}

static bool is_asked_for(const struct resolver *r, struct slice bytes)
{
    return r->only == NULL ||
           (bytes.len > NAME_BYTES && memcmp(bytes.p, r->only->text, NAME_BYTES) == 0);
}

static bool take_entries(struct resolver *r, struct slice log, struct slice key, bool capped)
{
    struct entry entry;
    const char *start = log.p;
    for (;;) {
        size_t at = (size_t)(log.p - start);
        enum entry_status status = entry_next(&log, &entry);
        if (status != ENTRY_OK) {
            return status == ENTRY_END;
        }
        bool ok = entry.op != ENTRY_CONDITION;
        if (entry.op == ENTRY_INTENT) {
            ok = !is_asked_for(r, entry.bytes) || add_intent(r, key, entry.bytes, at);
        } else if (entry.op == ENTRY_DECISION) {
            ok = !is_asked_for(r, entry.bytes) || take_decision(r, entry.bytes);
        } else if (ok && entry.op != ENTRY_ANNOUNCE && r->out->intent_count > 0) {
            take_plain(r, &entry, capped);
        }
        if (!ok) {
            return false;
        }
    }
}

/* ---- the plain log ---- */

static void append_effects(struct block **log, struct slice entries)
{
    struct entry entry;
    for (const char *start = entries.p; entry_next(&entries, &entry) == ENTRY_OK;
         start = entries.p) {
        if (entry.op != ENTRY_CONDITION) {
            block_append(log, start, (size_t)(entries.p - start));
        }
    }
}

void residue_append(struct block **residue, const struct head_intent *known)
{
    struct intent intent;
    if (known->state != INTENT_COMMITTED || !known->primary || known->done) {
        return;
    }
    if (*residue == NULL) {
        *residue = block_new(128);
    }
    bool whole = intent_parse(known->bytes, &intent);
    CHECK(whole);
    intent.entries = SLICE_NONE;
    intent_append(residue, &intent);
    decision_append(residue, &intent.name, DECISION_COMMIT);
}

static void write_plain(struct resolved *out, struct slice log)
{
    struct entry entry;
    size_t i = 0;
    /* Never longer: each effect stands in its intent. */
    out->log = block_new_exact(log.len);
    for (const char *start = log.p; entry_next(&log, &entry) == ENTRY_OK; start = log.p) {
        if (entry.op == ENTRY_INTENT) {
            struct head_intent *known = &out->intents[i++];
            known->plain = out->log->used;
            out->open_count += known->state == INTENT_OPEN;
            if (known->state == INTENT_COMMITTED) {
                append_effects(&out->log, known->entries);
            }
            residue_append(&out->residue, known);
        } else if (entry.op != ENTRY_DECISION) {
            block_append(&out->log, start, (size_t)(log.p - start));
        }
    }
}

static void resolver_fini(struct resolver *r)
{
    free(r->by_name.first);
    free(r->next_of_name);
    free(r->by_item.first);
    free(r->concerns);
    free(r->clearing);
}

static void resolved_fini(struct resolved *resolved)
{
    free(resolved->intents);
    block_unref(&resolved->log);
    block_unref(&resolved->residue);
    *resolved = (struct resolved){0};
}

bool resolve_log(struct slice log, struct slice key, bool capped, bool rolls_back,
                 struct resolved *out)
{
    *out = (struct resolved){0};
    struct resolver r = {.out = out, .rolls_back = rolls_back};
    bool ok = take_entries(&r, log, key, capped);
    if (ok) {
        write_plain(out, log);
    } else {
        resolved_fini(out);
    }
    resolver_fini(&r);
    return ok;
}

bool resolve_state(struct slice log, struct slice key, bool capped, bool rolls_back,
                   const struct name *name, enum intent_state *state)
{
    struct resolved found = {0};
    struct resolver r = {.out = &found, .rolls_back = rolls_back, .only = name};
    bool ok = take_entries(&r, log, key, capped);
    *state = ok && found.intent_count > 0 ? found.intents[0].state : INTENT_GONE;
    resolver_fini(&r);
    resolved_fini(&found);
    return ok;
}
