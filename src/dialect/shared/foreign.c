/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/foreign.h"

#include "dialect/shared/dialect.h"
#include "dialect/shared/record.h"

/* Names are bytes that clients chose: escaped, and cut so that the reason has room. */
#define SHOWN_MAX 64

const char foreign_delimiter_text[] =
    "an item of this list holds the delimiter: ask for lgetb, which keeps them apart";

/* What the item may be to another list: then the error does not advise ldrop. NULL: nothing is
 * known. */
static const char *use_elsewhere(const struct list *list, const struct cell *cell)
{
    struct record record;
    if (slice_starts_with(cell->value, SLICE_LIT("^1"))) {
        return "it looks like a head or a sublist of a native list";
    }
    if (record_parse(cell->value, &record)) {
        return "it is the record of a list that moves";
    }
    const struct dialect *dialect = dialect_of(list);
    return dialect->use_elsewhere != NULL ? dialect->use_elsewhere(list, cell) : NULL;
}

static void note_refusal(struct engine *e, struct work *w, const struct cell *cell,
                         const char *reason)
{
    struct list *list = w->op.list;
    char name[KEY_BYTES_MAX], shown[SHOWN_MAX], key[SHOWN_MAX];
    struct slice stored = slice_make(name, cell_name(list, cell->role, cell->number, name));
    const char *use = use_elsewhere(list, cell);
    if (use == NULL && grammar_mostly_fits(list, cell)) {
        use = "what stands before that byte can be read: mend the value by hand";
    }
    metric_inc(e->metrics, METRIC_list_foreign_parts);
    known_of(list)->cells = 0;
    dialect_forget(list);
    (void)slice_escape(stored, shown, sizeof shown);
    (void)slice_escape(list_key(list), key, sizeof key);
    work_note_text(w, "%s is not of dialect %s: %s, nothing done; %s%s%s", shown,
                   dialect_of(list)->name, reason, use != NULL ? use : "ldrop ",
                   use != NULL ? "" : key, use != NULL ? "" : " removes it");
}

bool foreign_refuse(struct engine *e, struct work *w, const struct cell *cell)
{
    char text[GRAMMAR_REASON_MAX];
    const char *reason = cell->state == CELL_THERE ? grammar_reason(w->op.list, cell, text) : NULL;
    if (reason != NULL) {
        note_refusal(e, w, cell, reason);
    }
    return reason == NULL;
}

static struct cell cell_of(enum cell_role role, uint32_t number, const struct be_reply *reply)
{
    return (struct cell){.role = role,
                         .number = number,
                         .state = reply->status == BE_HIT ? CELL_THERE : CELL_MISSING,
                         .flags = reply->flags,
                         .value = reply->value};
}

bool foreign_allows(const struct list *list, enum cell_role role, uint32_t number,
                    const struct be_reply *reply)
{
    char text[GRAMMAR_REASON_MAX];
    const struct cell cell = cell_of(role, number, reply);
    return cell.state != CELL_THERE || grammar_reason(list, &cell, text) == NULL;
}

bool foreign_refuse_reply(struct engine *e, struct work *w, enum cell_role role,
                          const struct be_reply *reply)
{
    const struct cell cell = cell_of(role, 0, reply);
    return foreign_refuse(e, w, &cell);
}

bool foreign_refuse_cells(struct engine *e, struct work *w, size_t from, size_t to)
{
    char text[GRAMMAR_REASON_MAX];
    bool goes_on = work_is_asked(w, LIST_DROP) || w->completing;
    for (size_t i = from; i < to; i++) {
        struct cell *cell = &w->cells[i];
        if (cell->state != CELL_THERE || cell->proved) {
            continue;
        }
        const char *reason = cell->foreign ? NULL : grammar_reason(w->op.list, cell, text);
        cell->proved = reason == NULL && !cell->foreign;
        if (reason != NULL && !goes_on) {
            note_refusal(e, w, cell, reason);
            return false;
        }
        if (reason != NULL) {
            known_of(w->op.list)->cells = 0; /* the ldrop may fail behind it */
            cell->foreign = true;
            cell->value = SLICE_NONE;
        }
    }
    return true;
}

void foreign_look_back(const struct work *w)
{
    char text[GRAMMAR_REASON_MAX];
    for (size_t i = 0; i < w->cell_count; i++) {
        const struct cell *cell = &w->cells[i];
        /* What was marked as foreign has had the list forgotten already. */
        if (cell->state == CELL_THERE && !cell->proved && !cell->foreign &&
            grammar_reason(w->op.list, cell, text) != NULL) {
            known_of(w->op.list)->cells = 0;
        }
    }
}

bool foreign_knows(const struct list *list, const struct cell *cell)
{
    const struct known *known = known_of(list);
    return (known->cells & ROLE(cell->role)) != 0 &&
           (!cell_is_numbered(cell->role) || cell->number == known->number);
}

void foreign_note_known(struct list *list, const struct cell *cell)
{
    struct known *known = known_of(list);
    known->cells |= ROLE(cell->role);
    if (cell_is_numbered(cell->role)) {
        known->number = cell->number;
    }
}

bool foreign_holds_delimiter(const struct list *list, struct slice item)
{
    int delimiter = dialect_of(list)->delimited ? -1 : list->policy->delimiter;
    return delimiter >= 0 && memchr(item.p, delimiter, item.len) != NULL;
}

bool foreign_delimiter_within(const struct work *w)
{
    for (size_t i = 0; i < w->items.count; i++) {
        if (foreign_holds_delimiter(w->op.list, w->items.at[i])) {
            return true;
        }
    }
    return false;
}
