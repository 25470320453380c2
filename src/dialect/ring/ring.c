/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.seq, a counter, and X.0 ... X.N-1, one entry each, as the prefix's slot says:
 * "17 user-4", its number in front, or "user-4 1700000299", who and when. An entry's slot is its
 * number modulo N.
 *
 * Order of writes: INCR the counter by the number of entries, then SET their slots. Where there is
 * no counter, it is made as large as the number of the newest entry that is there. With
 * counter_wraps = yes a counter that has reached N is set back by CAS, by a multiple of N, before
 * the slots are written.
 *
 * A SET does not look at what stands in the slot. So before the first entry that this worker adds
 * to a ring, it reads the counter, the slot of the newest entry, those that the call will write to,
 * and those behind the last: a value that no slot has, or a number in another one's place, says
 * that the ring is not as it is configured here. In each lap behind the first, in which entries
 * overwrite others, it looks at these slots once more, behind the numbers that it has taken: a ring
 * that is larger than this proxy believes shows that only by then.
 *
 * Not guaranteed: a proxy that dies between the two writes leaves a gap. A writer that falls behind
 * by a whole lap leaves one as well, since its late entry overwrites a newer one; without numbers
 * it is shown in that one's place.
 */
#include "dialect/ring/ring.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "dialect/shared/foreign.h"

#define TRIES_MAX 4
/* Slots written, or deleted, at the same time. */
#define INFLIGHT_MAX 256
/* Slots behind the last that are looked at. One that holds an entry is of a ring that is larger
 * than this proxy believes. Of two, one may be missing: a gap, or evicted. */
#define SLOTS_BEHIND 2

/* ---- what a slot holds ----
 *
 * The setting `slot` is its template, of up to three fields with text between them, which has no
 * digit and no %:
 *
 *     %v    the item, once
 *     %n    the entry's number, in decimal: it stands first or last
 *     %t    the time of the entry: seconds since 1970, ten digits
 *
 *     %n %v %t        17 ann 1700000299        what readers are shown: ann 1700000299
 *     %v %t           1299 1700000299                                  1299 1700000299
 */

#define FIELDS_MAX 3
/* A time in seconds has so many digits from 2001 to 2286: a count of milliseconds, or another
 * number, is not taken for one. */
#define SLOT_TIME_DIGITS 10

struct slot_entry {
    uint64_t number; /* 0 where the template has none */
    uint64_t time_s; /* the same */
    struct slice item;
    struct slice shown; /* all but the number */
};

/* The template's fields that are not taken yet, from first to last, and the text behind each. */
struct fields {
    char at[FIELDS_MAX];
    struct slice gap[FIELDS_MAX];
    size_t first, last;
};

static struct fields fields_of(const char *template)
{
    struct fields f = {.first = 0};
    size_t count = 0;
    for (const char *t = template; *t == '%' && count < FIELDS_MAX; count++) {
        f.at[count] = t[1];
        f.gap[count] = slice_make(t + 2, strcspn(t + 2, "%"));
        t += 2 + f.gap[count].len;
    }
    CHECK(count > 0);
    f.last = count - 1;
    return f;
}

/* Does the template have that field, 'n' or 't'? */
static bool slot_has(const char *template, char field)
{
    const char text[] = {'%', field, '\0'};
    return strstr(template, text) != NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct slice take_digits(struct slice *rest, bool front)
{
    size_t len = 0;
    while (len < rest->len && is_digit(rest->p[front ? len : rest->len - 1 - len])) {
        len++;
    }
    if (front) {
        return slice_take(rest, len);
    }
    if (len == 0) {
        return SLICE_NONE;
    }
    rest->len -= len;
    return slice_make(rest->p + rest->len, len);
}

static bool take_gap(struct slice *rest, struct slice gap, bool front)
{
    if (gap.len == 0) {
        return true;
    }
    if (rest->len < gap.len) {
        return false;
    }
    size_t at = front ? 0 : rest->len - gap.len;
    if (!slice_equal(slice_make(rest->p + at, gap.len), gap)) {
        return false;
    }
    rest->p += front ? gap.len : 0;
    rest->len -= gap.len;
    return true;
}

/* Takes the field, if it is the first one or the last one, and the text beside it. Returns false if
 * it is not there as the template says. */
static bool peel(struct fields *f, char field, struct slice *rest, struct slice *digits)
{
    bool front = f->at[f->first] == field;
    if (!front && f->at[f->last] != field) {
        return true;
    }
    *digits = take_digits(rest, front);
    struct slice gap = f->gap[front ? f->first++ : --f->last];
    return digits->len > 0 && take_gap(rest, gap, front);
}

/* Takes the time, and the item, which is the rest. */
static bool read_shown(struct fields *f, struct slice shown, struct slot_entry *entry)
{
    struct slice digits = SLICE_NONE;
    entry->shown = shown;
    if (!peel(f, 't', &shown, &digits) ||
        (digits.len > 0 &&
         (digits.len != SLOT_TIME_DIGITS || !slice_to_u64(digits, &entry->time_s)))) {
        return false;
    }
    entry->item = shown;
    return shown.len > 0;
}

/* Reads what a slot holds. The entry's slices are of value. False: it is not of the template. */
static bool slot_read(const char *template, struct slice value, struct slot_entry *entry)
{
    struct fields f = fields_of(template);
    struct slice digits = SLICE_NONE;
    *entry = (struct slot_entry){.number = 0};
    return peel(&f, 'n', &value, &digits) &&
           (digits.len == 0 || slice_to_u64(digits, &entry->number)) &&
           read_shown(&f, value, entry);
}

/* The same of an entry as readers are shown it, without a number. */
static bool slot_read_shown(const char *template, struct slice shown, struct slot_entry *entry)
{
    struct fields f = fields_of(template);
    f.first += f.at[f.first] == 'n';
    f.last -= f.at[f.last] == 'n';
    *entry = (struct slot_entry){.number = 0};
    return read_shown(&f, shown, entry);
}

/* Appends the entry's number, time and item, as the template says. */
static void slot_write(const char *template, const struct slot_entry *entry, struct block **out)
{
    struct fields f = fields_of(template);
    for (size_t i = 0; i <= f.last; i++) {
        char text[24];
        struct slice field = entry->item;
        if (f.at[i] == 'n') {
            field = slice_make(text, format_u64(text, entry->number));
        } else if (f.at[i] == 't') {
            int len = snprintf(text, sizeof text, "%0*llu", SLOT_TIME_DIGITS,
                               (unsigned long long)entry->time_s);
            field = slice_make(text, (size_t)len);
        }
        block_append(out, field.p, field.len);
        block_append(out, f.gap[i].p, f.gap[i].len);
    }
}

/* ---- reading a ring ----
 *
 * First the counter, then the slots of as many of the newest entries as the calls ask for; more of
 * them where some are gaps. Without a counter all slots.
 *
 * The counter says how many entries there are. What has a larger number was written since the
 * counter was read, or under a counter that is gone: it is not shown. So one slot that holds a
 * number far too large hides nothing.
 *
 * Slots without numbers say nothing of their age. While they are read others may be written, and
 * what was the oldest entry's slot holds the newest: behind a read of more than half of the ring
 * the counter is asked for again, and what the new entries may have overwritten is left out. Where
 * there was no counter, and their times told which entry is the newest, the read begins anew if
 * there is one by then: clocks of writers differ, so of entries that were written meanwhile the
 * times may say otherwise than the counter does. A number that was taken and is not written leaves
 * the entry of a lap ago in its place, where it is shown: clocks of writers differ, so its time
 * proves nothing.
 */

/* What a worker remembers of a ring. */
struct ring_list {
    uint64_t last; /* the number of the entry that it has added last */
};

/* The state of an operation. */
struct ring_work {
    uint64_t last; /* the newest entry's number: what the counter says */
    /* Of a look. */
    uint64_t wanted; /* so many of the newest entries are needed */
    uint32_t named;  /* so many slots were named, from the newest on */
    bool counted;    /* the counter was there */
    bool recounted;  /* and was asked for again behind the slots */
    /* Of an addition. */
    uint64_t number, expected;
    struct list_call *writing; /* the call whose items are being written */
    bool is_new;               /* this worker does not know the ring: it looks first */
};

static struct ring_work *ring_own(const struct work *w)
{
    return w->own;
}

/* Do the slots hold their numbers? Else an entry has the number that its place says. */
static bool ring_is_numbered(const struct list_policy *policy)
{
    return slot_has(policy->slot, 'n');
}

/* Reads a counter. False: it is missing, or none. */
static bool ring_counter(const struct cell *cell, uint64_t *number)
{
    struct slice text = cell->value;
    /* memcached pads a number with blanks when it becomes shorter. */
    while (text.len > 0 && text.p[text.len - 1] == ' ') {
        text.len--;
    }
    return slice_to_u64(text, number);
}

/* ---- which slots ---- */

/* How many of the newest entries do the calls need? */
static uint64_t entries_wanted(const struct work *w)
{
    const struct list_call *call;
    uint64_t capacity = w->op.list->policy->capacity, most = 0;
    if (w->lane != LANE_READ || TAILQ_EMPTY(&w->calls)) {
        return capacity;
    }
    TAILQ_FOREACH(call, &w->calls, link)
    {
        bool front = list_verb_has(call->verb, LIST_RANGES) && call->from >= 0 && call->to >= 0;
        uint64_t wanted = front && !call->wants_version ? (uint64_t)call->to + 1 : capacity;
        most = wanted > most ? wanted : most;
    }
    return u64_least(most, capacity);
}

/* Names the counter, then the slots that the calls need; fills in the items, and last. */
static void ring_cells(struct work *w)
{
    struct ring_work *own = ring_own(w);
    own->wanted = entries_wanted(w);
    own->named = 0;
    own->counted = own->recounted = false;
    (void)work_add_cell(w, CELL_SEQ, 0);
}

/* How many slots may hold entries: a counter that counts on has reached no more. */
static uint32_t slots_in_use(const struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct ring_work *own = ring_own(w);
    bool all = policy->counter_wraps || !own->counted || work_is_asked(w, LIST_DROP);
    return all || own->last >= policy->capacity ? policy->capacity : (uint32_t)own->last + 1;
}

static void name_behind(struct work *w)
{
    for (uint32_t n = 0; n < SLOTS_BEHIND; n++) {
        (void)work_add_cell(w, CELL_SLOT, w->op.list->policy->capacity + n);
    }
}

/* A look at all slots, or before a write, names those behind the last as well. An ldrop tells
 * nothing of the ring that clients may begin behind it. */
static void name_slots(struct work *w, uint64_t up_to)
{
    struct ring_work *own = ring_own(w);
    uint32_t capacity = w->op.list->policy->capacity, newest = (uint32_t)(own->last % capacity);
    uint32_t before = own->named;
    for (up_to = u64_least(up_to, slots_in_use(w)); own->named < up_to; own->named++) {
        (void)work_add_cell(w, CELL_SLOT, (newest + capacity - own->named) % capacity);
    }
    if (own->named > before && (own->named == capacity || w->lane != LANE_READ)) {
        name_behind(w);
    }
    w->partial = own->named < capacity || work_is_asked(w, LIST_DROP);
}

/* ---- what they hold ---- */

struct entry_at {
    uint64_t number; /* last and less */
    struct slot_entry entry;
};

static int newest_first(const void *a, const void *b)
{
    const struct entry_at *left = a, *right = b;
    return left->number > right->number ? -1 : left->number < right->number;
}

/* Reads the slots. Returns how many there are. */
static size_t read_slots(const struct work *w, struct entry_at *found)
{
    const struct list_policy *policy = w->op.list->policy;
    size_t count = 0;
    for (size_t i = 0; i < w->cell_count; i++) {
        const struct cell *cell = &w->cells[i];
        struct entry_at *at = &found[count];
        if (cell->role == CELL_SLOT && slot_read(policy->slot, cell->value, &at->entry)) {
            at->number = ring_is_numbered(policy) ? at->entry.number : cell->number;
            count++;
        }
    }
    return count;
}

/* The number of the newest entry where there is no counter: the largest one; or that of the slot
 * with the latest time whose next one holds none as late. One that counts on has been all around,
 * so that all slots are in use. */
static uint64_t newest_of(const struct list_policy *policy, const struct entry_at *found,
                          size_t count)
{
    uint64_t newest = 0, *times = calloc(policy->capacity, sizeof *times);
    uint64_t latest = 0;
    CHECK(times != NULL);
    for (size_t i = 0; i < count; i++) {
        if (ring_is_numbered(policy)) {
            newest = found[i].number > newest ? found[i].number : newest;
        } else if (found[i].number < policy->capacity) {
            times[found[i].number] = found[i].entry.time_s + 1;
        }
    }
    if (!ring_is_numbered(policy) && count > 0) {
        newest = policy->capacity - 1;
        for (uint32_t slot = 0; slot < policy->capacity; slot++) {
            bool ends = times[slot] > times[(slot + 1) % policy->capacity];
            if (ends && times[slot] >= latest) {
                latest = times[slot];
                newest = slot;
            }
        }
        newest += policy->counter_wraps ? 0 : policy->capacity;
    }
    free(times);
    return newest;
}

/* Slots without numbers: gives each entry the one that its place says. */
static void number_by_place(const struct work *w, struct entry_at *found, size_t count)
{
    uint32_t capacity = w->op.list->policy->capacity;
    uint64_t last = ring_own(w)->last + capacity; /* so that none is below 0 */
    for (size_t i = 0; i < count; i++) {
        uint64_t age = (last % capacity + capacity - found[i].number % capacity) % capacity;
        found[i].number = last - age;
    }
}

/* How many entries were counted while the slots were read? */
static uint64_t counted_since(const struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct ring_work *own = ring_own(w);
    uint64_t now = 0;
    if (!own->recounted || !ring_counter(&w->cells[w->cell_count - 1], &now)) {
        return 0;
    }
    uint64_t lap = policy->capacity;
    return policy->counter_wraps ? (now % lap + lap - own->last % lap) % lap
           : now > own->last     ? now - own->last
                                 : 0;
}

/* Is the counter to be asked for again, behind the slots? */
static bool wants_recount(const struct work *w, size_t count)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct ring_work *own = ring_own(w);
    if (own->recounted || ring_is_numbered(policy)) {
        return false;
    }
    return own->counted ? own->named > policy->capacity / 2 : count > 0;
}

/* Was there no counter when the read began, and is there one now? */
static bool was_made_since(const struct work *w)
{
    uint64_t now;
    return !ring_own(w)->counted && ring_own(w)->recounted &&
           ring_counter(&w->cells[w->cell_count - 1], &now);
}

/* Keeps those that are shown. Returns how many. */
static size_t keep_shown(const struct work *w, struct entry_at *found, size_t count)
{
    const struct list_policy *policy = w->op.list->policy;
    uint64_t last = ring_own(w)->last, since = 0;
    size_t kept = 0;
    if (!ring_is_numbered(policy)) {
        last += policy->capacity;
        since = counted_since(w);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t age = last - found[i].number;
        if (found[i].number <= last && age < policy->capacity && age + since < policy->capacity) {
            found[kept++] = found[i];
        }
    }
    return kept;
}

/* Entries that the counter does not have stay where they are when the list is moved. */
static void leave_uncounted(struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    struct slot_entry entry;
    for (size_t i = 0; w->completing && ring_is_numbered(policy) && i < w->cell_count; i++) {
        struct cell *cell = &w->cells[i];
        cell->foreign = cell->foreign ||
                        (cell->role == CELL_SLOT && slot_read(policy->slot, cell->value, &entry) &&
                         entry.number > ring_own(w)->last);
    }
}

/* Takes the counter, and names the first slots. */
static void begin(struct work *w)
{
    struct ring_work *own = ring_own(w);
    own->counted = ring_counter(&w->cells[0], &own->last);
    own->last = own->counted ? own->last : 0;
    name_slots(w, own->counted ? own->wanted : UINT64_MAX);
}

static enum look ring_look(struct engine *e, struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    struct ring_work *own = ring_own(w);
    (void)e;
    w->can_shrink = false;
    if (own->named == 0) {
        begin(w);
        return LOOK_MORE;
    }
    if (was_made_since(w)) {
        return LOOK_AGAIN;
    }
    struct entry_at *found = malloc((w->cell_count + 1) * sizeof *found);
    CHECK(found != NULL);
    size_t count = read_slots(w, found);
    own->last = own->counted ? own->last : newest_of(policy, found, count);
    if (!ring_is_numbered(policy)) {
        number_by_place(w, found, count);
    }
    qsort(found, count, sizeof *found, newest_first);
    count = keep_shown(w, found, count);
    uint32_t named = own->named;
    if (!own->recounted && count < own->wanted) {
        name_slots(w, 2 * (uint64_t)named);
    }
    bool more = own->named > named;
    if (!more && wants_recount(w, count)) {
        (void)work_add_cell(w, CELL_SEQ, 0);
        more = own->recounted = true;
    }
    for (size_t i = 0; !more && i < count; i++) {
        items_push(&w->items, found[i].entry.shown);
    }
    free(found);
    leave_uncounted(w);
    return more ? LOOK_MORE : LOOK_DONE;
}

/* ---- what is stored ---- */

/* All slots, whatever the counter says: those that a late change may have written to. */
static void all_cells(struct work *w)
{
    (void)work_add_cell(w, CELL_SEQ, 0);
    for (uint32_t n = 0; n < w->op.list->policy->capacity; n++) {
        (void)work_add_cell(w, CELL_SLOT, n);
    }
}

/* The item of an entry, as it is shown: without its time. */
static struct slice ring_item(const struct list_policy *policy, struct slice shown)
{
    struct slot_entry entry;
    return slot_read_shown(policy->slot, shown, &entry) ? entry.item : shown;
}

static const char *slot_grammar(const struct grammar *g, const struct cell *cell)
{
    const struct list_policy *policy = g->list->policy;
    struct slot_entry entry;
    if (cell->number >= policy->capacity) {
        snprintf(g->reason, GRAMMAR_REASON_MAX, "a slot beyond capacity = %u", policy->capacity);
        return g->reason;
    }
    if (!slot_read(policy->slot, g->value, &entry)) {
        snprintf(g->reason, GRAMMAR_REASON_MAX, "no entry as slot = %.48s says", policy->slot);
        return g->reason;
    }
    if (ring_is_numbered(policy) && entry.number % policy->capacity != cell->number) {
        snprintf(g->reason, GRAMMAR_REASON_MAX, "its number %llu is of another slot",
                 (unsigned long long)entry.number);
        return g->reason;
    }
    return grammar_item(g, entry.item);
}

static const char *ring_grammar(const struct grammar *g, const struct cell *cell)
{
    uint64_t number;
    switch (cell->role) {
    case CELL_SEQ:
        return ring_counter(cell, &number) ? NULL : "no number";
    case CELL_SLOT:
        return slot_grammar(g, cell);
    default:
        return NULL;
    }
}

/* The ring may be sound, and this proxy's settings wrong. */
static const char *ring_use_elsewhere(const struct list *list, const struct cell *cell)
{
    (void)list;
    return cell->role == CELL_SLOT ? "do slot and capacity say what clients write?" : NULL;
}

/* The numbers of a ring go on after an ldrop, if memcached can count on. */
static bool ring_survives_drop(const struct cell *cell)
{
    uint64_t number;
    bool broken = cell->state == CELL_THERE && !ring_counter(cell, &number);
    return cell->role == CELL_SEQ && !cell->foreign && !broken;
}

static void ring_replace_call(struct work *w, const struct list_call *call, struct list_call *ghost)
{
    if (ring_own(w)->writing == call) {
        ring_own(w)->writing = ghost;
    }
}

/* ---- adding ---- */

static size_t count_items(const struct work *w)
{
    const struct list_call *call;
    size_t count = 0;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        count += call->item_count;
    }
    return count;
}

static const struct cell counter = {.role = CELL_SEQ};

/* Names the slots of the next entries behind that number. */
static void name_next(struct work *w, uint64_t last)
{
    uint32_t capacity = w->op.list->policy->capacity;
    for (uint64_t i = 1; i <= u64_least(count_items(w), capacity); i++) {
        (void)work_add_cell(w, CELL_SLOT, (uint32_t)((last + i) % capacity));
    }
}

/* Before the first INCR: ends with failed, or memcached can count on, and the slots that the call
 * is going to write to are the ring's. */
static enum progress look_before(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    uint32_t capacity = w->op.list->policy->capacity;
    CO_BEGIN(co);
    work_forget_cells(w);
    (void)work_add_cell(w, CELL_SEQ, 0);
    CO_CALL(co, work_read(e, w, event));
    if (w->failed || !ring_counter(&w->cells[0], &ring_own(w)->last)) {
        CO_RETURN(co); /* there is none: it is made from all slots, which are read then */
    }
    ring_own(w)->expected = ring_own(w)->last + count_items(w);
    (void)work_add_cell(w, CELL_SLOT, (uint32_t)(ring_own(w)->last % capacity));
    name_behind(w);
    name_next(w, ring_own(w)->last);
    CO_CALL(co, work_read(e, w, event));
    if (!w->failed && ring_own(w)->last > 0 && w->cells[1].state == CELL_MISSING) {
        /* A gap, or entries of a ring of another capacity stand elsewhere. */
        CO_CALL(co, work_look(e, w, event));
    }
    CO_END(co);
}

/* Has the ring been all around, so that an entry overwrites another one? */
static bool has_lapped(const struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    return policy->counter_wraps || ring_own(w)->last >= policy->capacity;
}

/* Numbers are taken. Is there to be a look at the slots before they are written? A counter that is
 * smaller than it was has been set back, or begun anew. */
static bool wants_look_at_slots(const struct work *w)
{
    const struct list *list = w->op.list;
    const struct ring_work *own = ring_own(w);
    const struct ring_list *known = list_own(list);
    uint64_t capacity = list->policy->capacity;
    if (own->is_new) {
        return own->last != own->expected;
    }
    return has_lapped(w) &&
           (own->last / capacity != known->last / capacity || own->last < known->last);
}

static void note_ring_known(struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    struct ring_list *known = list_own(w->op.list);
    uint64_t last = ring_own(w)->last;
    foreign_note_known(w->op.list, &counter);
    known->last = policy->counter_wraps ? last % policy->capacity : last;
}

/* Before the first write to slots: ends with failed when one of them holds a foreign value. */
static enum progress look_at_slots(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    work_forget_cells(w);
    name_behind(w);
    name_next(w, ring_own(w)->last - count_items(w));
    CO_CALL(co, work_read(e, w, event));
    CO_END(co);
}

/* The counter has come around: sets it back as clients by hand do, but loses no number that another
 * one takes meanwhile. If it cannot, the next writer does. */
static enum progress set_back(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    uint32_t capacity = w->op.list->policy->capacity;
    struct block *value;
    uint64_t number;
    char digits[24];
    CO_BEGIN(co);
    for (w->tries = 0; w->tries < TRIES_MAX; w->tries++) {
        work_forget_cells(w);
        (void)work_add_cell(w, CELL_SEQ, 0);
        CO_CALL(co, work_read(e, w, event));
        if (w->failed || !ring_counter(&w->cells[0], &number) || number < capacity) {
            break;
        }
        value = block_new(sizeof digits);
        block_append(&value, digits, format_u64(digits, number % capacity));
        cell_write(e, &w->op, &w->cells[0], value, 0);
        block_unref(&value);
        CO_AWAIT(co, "setting the counter back");
        if (event->status != BE_EXISTS) {
            break;
        }
    }
    w->failed = false;
    CO_END(co);
}

/* Ends with the number of the last entry in ring_own(w)->last, or failed. */
static enum progress take_numbers(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct block *value;
    char digits[24];
    CO_BEGIN(co);
    for (w->tries = 0; w->tries < TRIES_MAX; w->tries++) {
        cell_incr(e, &w->op, &counter, count_items(w), 0);
        CO_AWAIT(co, "taking numbers");
        if (event->status == BE_STORED) {
            ring_own(w)->last = event->reply->number;
            CO_RETURN(co);
        }
        if (event->status != BE_NOT_FOUND) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
        CO_CALL(co, work_look(e, w, event));
        if (w->failed) {
            CO_RETURN(co);
        }
        value = block_new(sizeof digits);
        block_append(&value, digits, format_u64(digits, ring_own(w)->last));
        cell_send(e, &w->op, &counter, BE_ADD, value, 0);
        block_unref(&value);
        CO_AWAIT(co, "making the counter");
        if (event->status != BE_STORED && event->status != BE_NOT_STORED) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
    }
    work_note_text(w, "busy, nothing done: the ring's counter is removed each time");
    CO_END(co);
}

/* An item that comes with a time, as readers are shown it, keeps that. */
static void send_slot(struct engine *e, struct work *w, uint64_t number, struct slice item)
{
    const struct list_policy *policy = w->op.list->policy;
    struct cell slot = {.role = CELL_SLOT, .number = (uint32_t)(number % policy->capacity)};
    struct block *value = block_new(item.len + sizeof policy->slot);
    struct slot_entry entry;
    if (!slot_read_shown(policy->slot, item, &entry)) {
        entry.item = item;
        entry.time_s = (uint64_t)e->now.wall_s;
    }
    entry.number = number;
    slot_write(policy->slot, &entry, &value);
    cell_send(e, &w->op, &slot, BE_SET, value, 0);
    block_unref(&value);
}

/* Takes the next item of the calls. False: there is no more. */
static bool next_item(struct work *w, struct slice *item)
{
    while (ring_own(w)->writing != NULL) {
        if (w->next_cell < ring_own(w)->writing->item_count) {
            *item = ring_own(w)->writing->items[w->next_cell++];
            return true;
        }
        ring_own(w)->writing = TAILQ_NEXT(ring_own(w)->writing, link);
        w->next_cell = 0;
    }
    return false;
}

/* Sends the next slots, except for those that later entries of the same batch would overwrite. */
static void send_slots(struct engine *e, struct work *w)
{
    uint32_t capacity = w->op.list->policy->capacity;
    struct slice item;
    while (w->op.due < INFLIGHT_MAX && next_item(w, &item)) {
        uint64_t number = ++ring_own(w)->number;
        if (ring_own(w)->last - number < capacity) {
            send_slot(e, w, number, item);
        }
    }
}

static enum progress ring_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    ring_own(w)->is_new = !foreign_knows(w->op.list, &counter);
    ring_own(w)->expected = 0;
    if (ring_own(w)->is_new) {
        CO_CALL(co, look_before(e, w, event));
    }
    if (!w->failed) {
        CO_CALL(co, take_numbers(e, w, event));
    }
    if (!w->failed && wants_look_at_slots(w)) {
        CO_CALL(co, look_at_slots(e, w, event));
    }
    if (!w->failed) {
        note_ring_known(w);
    }
    if (!w->failed && w->op.list->policy->counter_wraps &&
        ring_own(w)->last >= w->op.list->policy->capacity) {
        CO_CALL(co, set_back(e, w, event));
    }
    if (!w->failed) {
        ring_own(w)->number = ring_own(w)->last - count_items(w);
        ring_own(w)->writing = TAILQ_FIRST(&w->calls);
        w->next_cell = 0;
        send_slots(e, w);
        while (w->op.due > 0) {
            CO_AWAIT(co, "writing slots");
            if (event->status != BE_STORED) {
                work_note_error(w, event);
            }
            w->wrote_any = w->wrote_any || event->status == BE_STORED || event->status == BE_LOST;
            send_slots(e, w);
        }
    }
    if (w->failed && w->wrote_any) {
        work_note_unknown(w);
    }
    work_end(e, w);
    CO_END(co);
}

/* Clients may begin the ring anew as one of another capacity. */
static enum progress ring_drop(struct engine *e, struct work *w, const struct op_event *event)
{
    known_of(w->op.list)->cells = 0;
    return dialect_drop(e, w, event);
}

/* There is nothing to fold in a ring. */
static enum progress ring_compact(struct engine *e, struct work *w, const struct op_event *event)
{
    (void)event;
    work_finish(e, w);
    return PROGRESS_DONE;
}

const struct dialect dialect_ring = {
    .name = "ring",
    .lanes = {[LIST_ADD] = LANE_ADD},
    .unsupported_reason = "a ring takes ladd alone, and forgets by itself",
    .grammar = ring_grammar,
    .integers = ROLE(CELL_SEQ),
    .essential = ROLE(CELL_SEQ),
    .newest_first = true,
    .item_of = ring_item,
    .use_elsewhere = ring_use_elsewhere,
    .work_bytes = sizeof(struct ring_work),
    .list_bytes = sizeof(struct ring_list),
    .cells = ring_cells,
    .look = ring_look,
    .change = ring_change,
    .drop = ring_drop,
    .drops_at_once = INFLIGHT_MAX,
    .survives_drop = ring_survives_drop,
    .replace_call = ring_replace_call,
    .compact = ring_compact,
    .late_cells = all_cells,
};
