/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A compaction: looks at the head, does what plan.h says, and looks again, until nothing is left to
 * do. Any proxy may do any of it at any time, no lock is taken: each step publishes by one CAS of
 * the head, and gives up when the head has moved on in a way that matters.
 *
 * Within a worker a list has two places, list.compaction for the short steps and list.merge. A
 * merge leaves the first, so that logs are flipped meanwhile, and takes it again afterwards. Only
 * one of the two publishes at a time (list.publisher).
 *
 * What a worker's compactions hold of heads and their folded logs, all together, is counted as it
 * is allocated. An automatic one starts when that leaves room in fold_memory_bytes for what it is
 * expected to take, or none is under way; until then its list waits, first come, first served. One
 * that a client asks for starts at once. What a merge streams is not in it: that has a limit of its
 * own, and takes its time.
 *
 * The order of writes is each step's: flip.c, merge.c, collect.c. An ldrop has one more, before
 * them all: with on_missing = create it empties the list by an append of '!'.
 */
#ifndef LIST_COMPACT_COMPACT_H
#define LIST_COMPACT_COMPACT_H

#include "list/compact/plan.h"
#include "list/content/content.h"
#include "list/core/expiry.h"
#include "list/core/op.h"
#include "list/core/scan.h"
#include "list/core/write_run.h"
#include "list/format/layout.h"
#include "list/format/log_fold.h"

/* For schedule.c alone. Is there memory for an automatic compaction of that list, and is it the
 * first one that waits for it? When that changes, the first one that waits is marked as ready. */
bool compact_has_room(const struct engine *e, const struct list *list);
/* The same; list.compaction must be NULL. Starts an automatic compaction. instead: of
 * another proxy, which should have compacted the list and does not seem to; when that one has
 * announced something lately, the work is left to it after all. */
void compact_start(struct engine *e, struct list *list, bool instead);
/* The same for the sake of one run: COMPACT_HEAL, or COMPACT_CLEAR of a list that lacks the sublist
 * of it whose number is the count. */
void compact_start_on(struct engine *e, struct list *list, enum compact_goal goal,
                      const struct name_range *about);
/* The same for an ldrop or lcompact, which it answers. */
void compact_start_for(struct engine *e, struct list *list, struct list_call *call);

/* ---- for the files that make it up ---- */

enum step_result {
    STEP_DONE,
    STEP_CONFLICT, /* gave up, nothing changed: the head had moved on */
    STEP_FAILED,   /* gave up, nothing changed: see error */
    STEP_UNKNOWN,  /* the outcome of a write is not known: nothing may be deleted */
};

enum { TAG_CAS = TAG_OWN, TAG_DROP, TAG_CLOCK, TAG_PROBE };

/* A run that this compaction has written, and until when its sublists live. */
struct lasting {
    struct name name;
    int64_t until_s;
};

struct op_compact {
    struct op op;
    enum compact_goal goal;
    struct list_call *call; /* the ldrop or lcompact that waits for the end, or NULL */
    uint64_t until_us;      /* it gives up then: the lcompact's deadline, or long_timeout_ms */
    int64_t over_s; /* items that were over in this second are taken out of what is stored */
    bool drops;     /* an ldrop asked for it */
    bool sent;      /* what the ldrop asks for is on its way, or may have been done */
    bool withdrawn; /* the ldrop's time was over before that: nothing may be cleared */
    unsigned steps, conflicts;
    uint64_t counted_bytes; /* in lists.compacting_bytes */
    bool dropped;           /* the content is gone: by the append of an ldrop, or by PLAN_CLEAR */
    bool foreign;           /* what stands in the head's place is no list */
    bool was_missing;       /* there was none, and that is not this compaction's doing */
    bool was_absent;        /* the last head that was read says that there is none */
    bool did_something;
    bool asked_to_finish;    /* transactions: core/finish.h */
    struct head *head;       /* as last read */
    struct log_fold log;     /* compact_log's */
    struct block *value;     /* the head being published */
    bool fills;              /* it says no more that the list is missing */
    bool empties;            /* it says so from now on */
    int64_t until_s;         /* life.c: the head lives no longer than that; 0: any time */
    bool new_until;          /* that is not what the head says that was read */
    bool extends;            /* the plan is there for the sublists' times alone */
    struct lasting *lasting; /* runs of this compaction that live as long as the list needs */
    size_t lasting_count;
    struct plan plan;
    enum step_result result;
    unsigned tries;
    struct name_range about; /* COMPACT_HEAL, and COMPACT_CLEAR when about_run: compact_start_on */
    bool about_run;
    bool instead;        /* see compact_start */
    bool collect_failed; /* PLAN_COLLECT_FIRST; error says why */
    char error[LIST_ERROR_MAX];

    struct run_writer writer;
    /* A flip: the head that was folded. A merge: the runs it merges. */
    struct head *folded;
    bool cleared;
    struct run *inputs;
    size_t input_count;
    size_t inputs_max; /* more do not fit fold_memory_bytes; SIZE_MAX: as far as is known all do */
    bool oldest;       /* nothing lies below the inputs */
    bool inlined;      /* what was written is little: it goes back into the log */
    struct content content;
    bool content_ready;
    struct scan scan;
    uint32_t passed;  /* items of the oldest input's sublist that have been passed on */
    uint32_t rest_at; /* how far the overlay's rest has been written */

    struct fold capped; /* cap.c: the content, and of which head */
    uint8_t cap_tries;  /* that others undid, or all of them when there is no other */
    uint64_t capped_count, capped_cas, capped_epoch;

    struct name_range *garbage; /* collecting: what it deletes */
    bool *garbage_failed;
    size_t garbage_count, garbage_at;
    uint32_t garbage_number, garbage_end;
    bool garbage_cut;      /* some of it was left for another compaction */
    uint64_t deleted_none; /* when collecting: deletions that found nothing */
};

/* Builds the head to be published from the one read last (c->head), in a fresh block. NULL: the
 * head has moved on in a way that matters. */
typedef struct block *publish_build(struct engine *e, struct op_compact *c);

enum progress flip_step(struct engine *e, struct op_compact *c, const struct op_event *event);
enum progress merge_step(struct engine *e, struct op_compact *c, const struct op_event *event);
enum progress collect_step(struct engine *e, struct op_compact *c, const struct op_event *event);
/* Folds the log in place, or drops all content (PLAN_CLEAR). */
enum progress fold_step(struct engine *e, struct op_compact *c, const struct op_event *event);
enum progress remove_step(struct engine *e, struct op_compact *c, const struct op_event *event);
/* Behind it, for a list that is gone: deletes all that the head named. */
enum progress collect_behind_step(struct engine *e, struct op_compact *c,
                                  const struct op_event *event);

/* cap.c: gives the head the cap that the file says. */
enum progress cap_step(struct engine *e, struct op_compact *c, const struct op_event *event);
/* Chooses that, where it is due. */
void cap_choose(struct op_compact *c);
/* Notes how long a capped list's log has to be at least. */
void cap_note_size(struct op_compact *c);

/* What c->head needs, as c->goal says. */
struct plan compact_plan(const struct engine *e, struct op_compact *c);
/* Is its time over? */
bool compact_over(const struct engine *e, const struct op_compact *c);
/* Takes a head's reply into c->head; false (with c->head = NULL, and error) when there is none or
 * it cannot be read. */
bool compact_take_head(struct engine *e, struct op_compact *c, const struct op_event *event);
/* Does c->head say that the list is missing? */
bool compact_is_absent(const struct op_compact *c);
/* The head names the run of the sublist that c->scan missed: reports the damage. With on_damaged =
 * miss the list is cleared next. */
void compact_note_damage(struct engine *e, struct op_compact *c);
/* The head that is to be published, from its layout, which is given up. */
struct block *compact_value(struct op_compact *c, struct layout *layout);
/* life.c: the time to live that the head gets, of which ttl_s is left. fills: it says no more that
 * the list is missing. */
struct life life_then(const struct op_compact *c, int64_t ttl_s, bool fills);
/* Decides until when the sublists live that are about to be written, for a head that
 * expires by the server's clock. others: runs that the head names besides will stay beside the new
 * one. */
enum progress life_step(struct engine *e, struct op_compact *c, const struct op_event *event,
                        bool others);
/* The run that was written is in the head now: notes until when it lives. */
void life_note(struct op_compact *c);
/* Chooses a merge where the head's sublists do not live as long as the list needs. */
void life_choose(struct engine *e, struct op_compact *c);
/* Says in the layout until when its sublists live. False: not as long as the list does. */
bool life_settle(struct op_compact *c, struct layout *layout);
/* What the log of c->head amounts to; valid until the next call. */
const struct fold *compact_log(struct op_compact *c);
/* There is no list: is that news, or this compaction's own doing? */
bool compact_found_nothing(const struct op_compact *c);
/* Publishes c->head as build makes it, by CAS, again on a conflict. Ends with c->result. A damaged
 * list is cleared only where the sublist is missing behind the head that is replaced. */
enum progress publish_step(struct engine *e, struct op_compact *c, const struct op_event *event,
                           publish_build *build);

#endif
