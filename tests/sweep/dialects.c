/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of dialects, step by step: every write of a folding, of a conversion to the native layout
 * and of all changes is the last one of a proxy, or the one whose answer is lost, or the one beside
 * which another proxy does something. Then others look: nothing that was acknowledged may be lost,
 * no item may be there twice, and converting the list must bring the same items and leave nothing
 * of the old layout.
 */
#include <stdio.h>

#include "../world/seen.h"
#include "../world/settings.h"
#include "base/check.h"
#include "list/core/expiry.h"
#include "dialects_maybe.h"
#include "sweep.h"

static const struct op_spec ops_a[] = {
    {"lconvert", LIST_CONVERT, NULL}, {"lcompact", LIST_COMPACT, NULL}, {"ladd x", LIST_ADD, "x"},
    {"ldel a", LIST_DEL, "a"},        {"lset v w", LIST_SET, "vw"},     {"ldrop", LIST_DROP, NULL},
    {"lget", LIST_GET, NULL},
};
static const struct op_spec ops_b[] = {
    {"lget", LIST_GET, NULL},         {"ladd z", LIST_ADD, "z"},  {"ldel b", LIST_DEL, "b"},
    {"lset t u", LIST_SET, "tu"},     {"ldrop", LIST_DROP, NULL}, {"lcompact", LIST_COMPACT, NULL},
    {"lconvert", LIST_CONVERT, NULL},
};

static const struct op_spec look = {"lget", LIST_GET, NULL};
static const struct op_spec convert = {"lconvert", LIST_CONVERT, NULL};

/* What was asked for before a case begins, one after the other. */
static const struct op_spec scenes[][4] = {
    {{0}},
    {{"ladd a b c", LIST_ADD, "abc"}, {"ldel c", LIST_DEL, "c"}},
    {{"ladd a b c", LIST_ADD, "abc"}, {"ldrop", LIST_DROP, NULL}},
    {{"ladd a b c", LIST_ADD, "abc"}, {"ldel c", LIST_DEL, "c"}}, /* and expires */
    {{"ladd a to l", LIST_ADD, "abcdefghijkl"},
     {"ldel c e", LIST_DEL, "ce"},
     {"ladd c", LIST_ADD, "c"}},
};
#define SCENE_EXPIRES 3

/* FAMILY_WATCH: as FAMILY_MEET, and halfway others read and write. */
enum family { FAMILY_CRASH, FAMILY_LOST, FAMILY_DOWN, FAMILY_MEET, FAMILY_WATCH, FAMILIES };
static const char *const family_names[] = {"crash", "lost", "down", "meet", "watch"};

struct one_case {
    unsigned variant; /* a dialect, or one of these: */
    unsigned scene, a, b;
    enum family family;
    enum lost lost;
    unsigned p, q;
};

/* Where items are counted, changes are exact or blind; the slots of a ring hold numbers or none;
 * sublists are one, or four short ones that a folding merges; the additions of a pair stand under
 * the list's own key; sublists have signs or delimiters. */
enum {
    BLIND_TOMBSTONE = DIALECT_COUNT,
    BLIND_PAIRED,
    BARE_RING,
    SHORT_SUBLISTS,
    OWN_PAIRED,
    OWN_BLIND_PAIRED,
    COMMA_SUBLISTS,
    SHORT_COMMA_SUBLISTS,
    VARIANTS
};

static bool is_short(unsigned variant)
{
    return variant == SHORT_SUBLISTS || variant == SHORT_COMMA_SUBLISTS;
}

static enum list_dialect dialect_of_variant(unsigned variant)
{
    static const enum list_dialect dialects[VARIANTS] = {[BLIND_TOMBSTONE] = DIALECT_TOMBSTONE,
                                                         [BLIND_PAIRED] = DIALECT_PAIRED,
                                                         [BARE_RING] = DIALECT_RING,
                                                         [SHORT_SUBLISTS] = DIALECT_SUBLISTS,
                                                         [OWN_PAIRED] = DIALECT_PAIRED,
                                                         [OWN_BLIND_PAIRED] = DIALECT_PAIRED,
                                                         [COMMA_SUBLISTS] = DIALECT_SUBLISTS,
                                                         [SHORT_COMMA_SUBLISTS] = DIALECT_SUBLISTS};
    return variant < DIALECT_COUNT ? (enum list_dialect)variant : dialects[variant];
}

static struct config *make_config(unsigned variant, bool migrates)
{
    struct config *config = settings_create(64, 4096, 96);
    struct list_policy *policy = &config->lists[0];
    policy->max_item_bytes = 8;
    policy->capacity = 8;
    policy->announcement_grace_s = 1;
    policy->compact_chance = 0;
    policy->dialect = dialect_of_variant(variant);
    bool blind =
        variant == BLIND_TOMBSTONE || variant == BLIND_PAIRED || variant == OWN_BLIND_PAIRED;
    policy->changes = blind ? CHANGES_BLIND : CHANGES_EXACT;
    if (variant == BARE_RING) {
        snprintf(policy->slot, sizeof policy->slot, "%%v");
    }
    if (variant == COMMA_SUBLISTS || variant == SHORT_COMMA_SUBLISTS) {
        policy->sublist_text = TEXTS_DELIMITED;
    }
    if (variant == OWN_PAIRED || variant == OWN_BLIND_PAIRED) {
        snprintf(policy->add_name, sizeof policy->add_name, "%%s");
    }
    policy->migrate = migrates ? MIGRATE_NATIVE : MIGRATE_NO;
    settings_finish(config);
    return config;
}

/* ---- one case ---- */

struct outcome {
    char text[VIOLATION_MAX]; /* what is wrong; "" = nothing */
};

#define WRONG(outcome, ...) \
    do { \
        if ((outcome)->text[0] == '\0') { \
            snprintf((outcome)->text, sizeof(outcome)->text, __VA_ARGS__); \
        } \
    } while (0)

/* Returns how many sublists are stored; what a native list of that name does not have is wrong. */
static unsigned count_sublists(const struct dialect_world *w, struct outcome *outcome)
{
    unsigned sublists = 0;
    const struct item *item;
    TAILQ_FOREACH(item, &w->base.stores[0].items, link)
    {
        struct slice key = item_key(item);
        if (clock_key_is(key)) {
            continue;
        }
        sublists += key.len > 2 && item->value->used > 0;
        if (key.len < 2 || key.p[0] != LIST_KEY[0] || key.p[1] != '#') {
            WRONG(outcome, "left over: %.*s", SLICE_ARGS(key));
        }
    }
    return sublists;
}

/* Nothing of the old layout, and no sublists without a name in the head. */
static void check_tidy(struct dialect_world *w, struct outcome *outcome)
{
    static const struct op_spec compact = {"lcompact", LIST_COMPACT, NULL};
    static const struct op_spec stat = {"lstat", LIST_STAT, NULL};
    w->base.now_us += 5000000;
    (void)steps_do(w, PROXY_D, &compact);
    const struct asked *asked = steps_do(w, PROXY_D, &stat);
    unsigned sublists = count_sublists(w, outcome);
    if (sublists != asked->call.stat.sublists) {
        WRONG(outcome, "%u sublists are stored, %u are named", sublists,
              (unsigned)asked->call.stat.sublists);
    }
}

static bool answers_well(struct outcome *outcome, const struct asked *asked, bool may_fail)
{
    if (asked->end == CALL_DONE) {
        return true;
    }
    if (!may_fail || asked->end == CALL_OPEN) {
        WRONG(outcome, "%s: %s", asked->spec->name,
              asked->end == CALL_OPEN ? "no answer" : asked->call.error);
    }
    return false;
}

static unsigned count_letters(letters set)
{
    return (unsigned)__builtin_popcount(set);
}

static void reverse(char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len / 2; i++) {
        char c = text[i];
        text[i] = text[len - 1 - i];
        text[len - 1 - i] = c;
    }
}

/* Another proxy reads it, converts it, and reads it as a native list. */
static void check_end(struct dialect_world *w, const struct one_case *c, const struct maybe *maybe,
                      bool weak, struct outcome *outcome)
{
    char before[LETTERS + 1];
    const struct asked *asked = steps_do(w, PROXY_C, &look);
    letters held = asked->held;
    if (!answers_well(outcome, asked, false)) {
        return;
    }
    memcpy(before, asked->order, sizeof before);
    if (asked->twice) {
        WRONG(outcome, "an item is there twice: %s", before);
    }
    if (!is_allowed(maybe, held, weak)) {
        WRONG(outcome, "it holds %s", before);
    }
    asked = steps_do(w, PROXY_C, &convert);
    if (answers_well(outcome, asked, false) && asked->call.number != count_letters(held)) {
        WRONG(outcome, "%u items were converted", (unsigned)asked->call.number);
    }
    asked = steps_do(w, PROXY_D, &look);
    if (dialect_of_variant(c->variant) == DIALECT_RING && strcmp(asked->order, before) != 0) {
        reverse(before);
    }
    if (strcmp(asked->order, before) != 0) {
        WRONG(outcome, "before it was converted it held %s, then %s", before, asked->order);
    }
    if (c->family == FAMILY_MEET) {
        check_tidy(w, outcome);
    }
}

/* Who looks at the end knows only what is stored: that it finds the same as in a case before, of
 * which the same was expected, it need not show again. */
static void check_end_once(struct dialect_world *w, const struct one_case *c,
                           const struct maybe *maybe, bool weak, struct outcome *outcome)
{
    static struct seen good; /* of this variant: its process has no other */
    uint64_t hash =
        hash_bytes(maybe->sets, maybe->count * sizeof maybe->sets[0], world_hash(&w->base));
    hash += 2 * (c->family == FAMILY_MEET) + weak;
    if (outcome->text[0] == '\0' && seen_has(&good, hash)) {
        return;
    }
    check_end(w, c, maybe, weak, outcome);
    if (outcome->text[0] == '\0' && !w->base.failed) {
        seen_add(&good, hash);
    }
}

static letters make_sublists(struct dialect_world *w)
{
    static const struct op_spec held = {"four sublists", LIST_ADD, "abde"};
    static const char *const names[] = {LIST_KEY ".0", LIST_KEY ".1", LIST_KEY ".2", LIST_KEY ".3",
                                        LIST_KEY};
    static const char *const texts[2][5] = {{"+a", "+b", "+d", "+e", "+0+1+2+3"},
                                            {"a,", "b", "d,a,", "e", "0,1,2,3"}};
    bool delimited = w->config->lists[0].sublist_text == TEXTS_DELIMITED;
    for (unsigned i = 0; i < COUNT(names); i++) {
        hand_append(w, names[i], texts[delimited][i]);
    }
    return applied(&held, 0);
}

static letters make_scene(struct dialect_world *w, const struct one_case *c, struct config *setup)
{
    letters set = is_short(c->variant) ? make_sublists(w) : 0;
    const struct config *config = w->config;
    w->config = setup;
    for (unsigned i = 0; i < 4 && scenes[c->scene][i].name != NULL; i++) {
        if (i == 1) {
            /* Has seen it, and believes it to be there. */
            w->config = config;
            (void)steps_do(w, PROXY_A, &look);
            w->config = setup;
        }
        if (steps_do(w, PROXY_B, &scenes[c->scene][i])->end == CALL_DONE) {
            set = applied(&scenes[c->scene][i], set);
        }
    }
    if (w->proxies[PROXY_B].base.engine != NULL) {
        steps_crash(w, PROXY_B, LOST_NONE);
    }
    w->config = config;
    if (c->scene == SCENE_EXPIRES) {
        steps_touch(w);
    }
    return set;
}

/* While A and B have done some of their steps: readers see what a moment of both allows, a client
 * by hand the same; and what that one does counts. */
static void watch(struct dialect_world *w, letters first, struct outcome *outcome)
{
    const struct asked *a = &w->proxies[PROXY_A].asked, *b = &w->proxies[PROXY_B].asked;
    struct maybe maybe = {0};
    bool strange;
    maybe_after(&maybe, first, a, b);
    maybe_after(&maybe, first, b, a);
    const struct asked *asked = steps_do(w, PROXY_C, &look);
    letters by_hand = hand_sees(w, &strange);
    if (answers_well(outcome, asked, false) && !is_allowed(&maybe, asked->held, false)) {
        WRONG(outcome, "halfway it holds %s", asked->order);
    }
    if (by_hand != asked->held || strange) {
        WRONG(outcome, "halfway it holds %s, a client by hand sees %x%s", asked->order, by_hand,
              strange ? " and more" : "");
    }
    hand_append(w, hand_adds(w), "y,");
    hand_append(w, "unfollow-" LIST_KEY, "b,");
    asked = steps_do(w, PROXY_C, &look);
    if (answers_well(outcome, asked, false) &&
        (asked->held & letters_of("by")) != letters_of("y")) {
        WRONG(outcome, "y was added by hand, b deleted, and it holds %s", asked->order);
    }
}

/* A pair that no client changes any more: it folds to what it needs, and a client by hand sees the
 * same. */
static void check_pair(struct dialect_world *w, const struct maybe *maybe, struct outcome *outcome)
{
    static const struct op_spec compact = {"lcompact", LIST_COMPACT, NULL};
    static const struct op_spec stat = {"lstat", LIST_STAT, NULL};
    enum { MARKS_BYTES = 2 * 18 };
    bool strange;
    const struct asked *asked = steps_do(w, PROXY_C, &look);
    letters held = asked->held;
    if (!answers_well(outcome, asked, false) || asked->twice || !is_allowed(maybe, held, false)) {
        WRONG(outcome, "it holds %s", asked->order);
    }
    if (hand_sees(w, &strange) != held || strange) {
        WRONG(outcome, "a client by hand sees something else than %s", asked->order);
    }
    (void)answers_well(outcome, steps_do(w, PROXY_C, &compact), false);
    (void)answers_well(outcome, steps_do(w, PROXY_C, &stat), false);
    if (w->proxies[PROXY_C].asked.call.stat.log_bytes > 2 * count_letters(held) + MARKS_BYTES) {
        WRONG(outcome, "%u items take %u bytes", count_letters(held),
              (unsigned)w->proxies[PROXY_C].asked.call.stat.log_bytes);
    }
    if (steps_do(w, PROXY_C, &look)->held != held || hand_sees(w, &strange) != held || strange) {
        WRONG(outcome, "lcompact has changed what it holds");
    }
}

/* What may be there when all is over. */
static void expect_end(struct maybe *maybe, const struct one_case *c, letters first,
                       const struct asked *a, const struct asked *b, bool both_before)
{
    if (c->family == FAMILY_WATCH) {
        maybe_with_hand(maybe, first, a, b, both_before);
        maybe_with_hand(maybe, first, b, a, both_before);
        return;
    }
    maybe_after(maybe, first, a, b);
    if (c->family == FAMILY_MEET || a->end != CALL_DONE) {
        maybe_after(maybe, first, b, a);
    }
}

/* Would A's end be as if less had been lost? */
static bool loss_is_same(const struct proxy *a, enum lost lost)
{
    unsigned flights = 0, changes = 0;
    const struct flight *f, *first = TAILQ_FIRST(&a->flights);
    TAILQ_FOREACH(f, &a->flights, link)
    {
        flights++;
        changes += flight_is_change(f);
    }
    return lost != LOST_NONE && (changes == 0 || (lost == LOST_FIRST && !flight_is_change(first)) ||
                                 (lost == LOST_ALL && flights == 1));
}

/* A is interrupted; then B, to its end, or for q steps, behind which it crashes as well. */
static enum result interrupt(struct dialect_world *w, const struct one_case *c)
{
    struct proxy *a = &w->proxies[PROXY_A].base, *b = &w->proxies[PROXY_B].base;
    if (!steps_take(w, PROXY_A, c->p) || TAILQ_EMPTY(&a->flights)) {
        return NONE;
    }
    bool crash_again = c->family == FAMILY_CRASH && c->lost == LOST_NONE && crash_is_same(a);
    if (crash_again || (c->family != FAMILY_DOWN && loss_is_same(a, c->lost))) {
        return SAME_ROW;
    }
    if (c->family == FAMILY_CRASH) {
        steps_crash(w, PROXY_A, c->lost);
    } else if (c->family == FAMILY_DOWN) {
        a->down = true;
        steps_rest(w, PROXY_A);
    } else {
        steps_lose(w, PROXY_A, c->lost);
        steps_rest(w, PROXY_A);
    }
    steps_ask(w, PROXY_B, &ops_b[c->b]);
    if (c->q == 0) {
        steps_rest(w, PROXY_B);
    } else if (!steps_take(w, PROXY_B, c->q)) {
        return NONE;
    } else if (crash_is_same(b) && !w->base.failed) {
        return SAME;
    } else {
        steps_crash(w, PROXY_B, LOST_NONE);
    }
    world_arrive_late(&w->base);
    return DONE;
}

/* Some steps of A, some of B, then A to its end, and B. */
static enum result meet(struct dialect_world *w, const struct one_case *c, letters first,
                        struct outcome *outcome, bool *before)
{
    bool reached = steps_take(w, PROXY_A, c->p);
    steps_ask(w, PROXY_B, &ops_b[c->b]);
    reached = steps_take(w, PROXY_B, c->q) && reached;
    *before =
        w->proxies[PROXY_A].asked.end != CALL_OPEN && w->proxies[PROXY_B].asked.end != CALL_OPEN;
    if (c->family == FAMILY_WATCH) {
        watch(w, first, outcome);
    }
    steps_rest(w, PROXY_A);
    steps_rest(w, PROXY_B);
    return reached ? DONE : NONE;
}

static void check_case(struct dialect_world *w, const struct one_case *c, letters first,
                       bool both_before, struct outcome *outcome)
{
    const struct asked *a = &w->proxies[PROXY_A].asked, *b = &w->proxies[PROXY_B].asked;
    enum list_dialect dialect = dialect_of_variant(c->variant);
    struct maybe maybe = {0};
    bool weak = is_weak(dialect, a, b), faultless = c->family >= FAMILY_MEET;
    expect_end(&maybe, c, first, a, b, both_before);
    if (c->family < FAMILY_WATCH && a->spec->verb == LIST_GET && a->end == CALL_DONE &&
        a->held != first && a->held != applied(b->spec, first) && !weak) {
        WRONG(outcome, "a reader saw %s", a->order);
    }
    if (faultless && !a->busy && dialect != DIALECT_RING) {
        (void)answers_well(outcome, a, false);
    }
    if (faultless && !b->busy && dialect != DIALECT_RING) {
        (void)answers_well(outcome, b, false);
    }
    if (c->family == FAMILY_WATCH) {
        check_pair(w, &maybe, outcome);
    } else {
        check_end_once(w, c, &maybe, weak, outcome);
    }
}

static enum result run(struct dialect_world *w, const struct one_case *c, struct outcome *outcome,
                       struct config *setup)
{
    letters first = make_scene(w, c, setup);
    bool both_before = false;
    if (w->proxies[PROXY_A].base.engine == NULL) {
        steps_start(w, PROXY_A);
    }
    steps_start(w, PROXY_B);
    steps_ask(w, PROXY_A, &ops_a[c->a]);
    enum result result =
        c->family >= FAMILY_MEET ? meet(w, c, first, outcome, &both_before) : interrupt(w, c);
    if (result == DONE && !w->base.failed) {
        check_case(w, c, first, both_before, outcome);
    }
    return w->base.failed ? DONE : result;
}

/* ---- which cases there are ---- */

static const struct row rows[VARIANTS] = {
    {"native", ""},
    {"simple", ""},
    {"tombstone", ""},
    {"signed", ""},
    {"paired", ""},
    {"flip", ""},
    {"marker", ""},
    {"sublists", ""},
    {"ring", ""},
    {"tombstone, blind", ""},
    {"paired, blind", ""},
    {"ring, bare", ""},
    {"sublists, short", ""},
    {"paired, own key", ""},
    {"paired, own key, blind", ""},
    {"sublists, commas", ""},
    {"sublists, short commas", ""},
};

/* Of the group under way. */
static struct config *config, *native, *setup;
static struct dialect_world world;

static struct one_case case_of(const struct case_id *id)
{
    const unsigned *n = id->n;
    return (struct one_case){n[0], n[1], n[2], n[3], (enum family)n[4], (enum lost)n[5],
                             n[6], n[7]};
}

static enum result try_case(struct sweep *s, const struct one_case *c)
{
    struct case_id id = {{c->variant, c->scene, c->a, c->b, c->family, c->lost, c->p, c->q}};
    return sweep_try(s, &id, c->variant);
}

static void sweep_steps(struct sweep *s, struct one_case c)
{
    enum result result = DONE;
    for (c.p = 0; result != NONE; c.p++) {
        c.q = 0;
        result = try_case(s, &c);
        for (c.q = 1; result == DONE && try_case(s, &c) != NONE; c.q++) {
        }
    }
}

/* With all that may go wrong. */
static void sweep_operations(struct sweep *s, struct one_case c)
{
    bool paired = dialect_of_variant(c.variant) == DIALECT_PAIRED;
    /* A client by hand knows nothing of a list that moves. */
    bool moves = ops_a[c.a].verb == LIST_CONVERT || ops_b[c.b].verb == LIST_CONVERT;
    unsigned families = paired && !moves ? FAMILIES : FAMILY_WATCH;
    for (c.family = 0; c.family < families; c.family++) {
        enum lost kinds = c.family >= FAMILY_DOWN ? 1 : LOST_KINDS;
        for (c.lost = 0; c.lost < kinds; c.lost++) {
            sweep_steps(s, c);
        }
    }
}

/* ---- the table ---- */

/* A variant; those that take longest first. */
static const unsigned order[] = {
    DIALECT_RING,      BARE_RING,        DIALECT_FLIP,    DIALECT_MARKER,
    DIALECT_PAIRED,    DIALECT_SUBLISTS, DIALECT_SIGNED,  DIALECT_SIMPLE,
    DIALECT_TOMBSTONE, BLIND_PAIRED,     BLIND_TOMBSTONE, SHORT_SUBLISTS,
    OWN_PAIRED,        OWN_BLIND_PAIRED, COMMA_SUBLISTS,  SHORT_COMMA_SUBLISTS};

static unsigned group_count(void)
{
    return COUNT(order);
}

static void begin(const struct case_id *id)
{
    unsigned variant = id->n[0];
    config = make_config(variant, true);
    native = make_config(DIALECT_NATIVE, false);
    setup = make_config(variant, false);
}

static void end(void)
{
    world_fini(&world.base);
    config_destroy(&config);
    config_destroy(&native);
    config_destroy(&setup);
}

static void run_group(struct sweep *s, unsigned group)
{
    struct one_case c = {.variant = order[group]};
    struct case_id id = {{c.variant}};
    begin(&id);
    /* A ring has no deletions, and shows what was added twice twice. */
    unsigned scene_count =
        is_short(c.variant) ? 1 : COUNT(scenes) - (dialect_of_variant(c.variant) == DIALECT_RING);
    for (c.scene = 0; c.scene < scene_count; c.scene++) {
        for (c.a = 0; c.a < COUNT(ops_a); c.a++) {
            for (c.b = 0; c.b < COUNT(ops_b); c.b++) {
                sweep_operations(s, c);
            }
        }
    }
    end();
}

static enum result play(const struct case_id *id, bool trace, char wrong[WRONG_MAX])
{
    struct one_case c = case_of(id);
    struct outcome outcome = {{0}};
    trace_mode = trace ? TRACE_PRINT : TRACE_OFF;
    steps_init(&world, c.family == FAMILY_WATCH ? setup : config, native);
    enum result result = run(&world, &c, &outcome, setup);
    steps_fini(&world);
    snprintf(wrong, WRONG_MAX, "%s", world.base.failed ? world.base.violation : outcome.text);
    return result;
}

static bool describe(const struct case_id *id, char *out, size_t cap)
{
    struct one_case c = case_of(id);
    if (c.variant >= VARIANTS || c.scene >= COUNT(scenes) || c.a >= COUNT(ops_a) ||
        c.b >= COUNT(ops_b) || c.family >= FAMILIES || c.lost >= LOST_KINDS) {
        return false;
    }
    snprintf(out, cap, "%s, scene %u, %s of A, %s of B, %s: A takes %u steps, B %u",
             rows[c.variant].name, c.scene, ops_a[c.a].name, ops_b[c.b].name,
             family_names[c.family], c.p, c.q);
    return true;
}

static void print_bounds(void)
{
    printf("%u scenes x %u operations of A x %u of B; left out: as of native lists, and losses of "
           "which nothing arrives that changes anything\n",
           COUNT(scenes), COUNT(ops_a), COUNT(ops_b));
}

const struct table dialects_table = {
    .name = "dialects",
    .rows = rows,
    .row_count = VARIANTS,
    .group_count = group_count,
    .run_group = run_group,
    .begin = begin,
    .end = end,
    .play = play,
    .describe = describe,
    .print_bounds = print_bounds,
};
