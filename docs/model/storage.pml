/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is stored of a list, how it is read, and what must hold of it after every step. Included by
 * list.pml.
 */

/* ---- content and entries --------------------------------------------------------------------- */

/* The content: two items, A = 1 and B = 2, and their order: 3 is A before B, 4 is B before A. */
#define EMPTY 0
#define HAS(content, item) ((content) == (item) || (content) > 2)
#define WITHOUT(content, item) ((content) == (item) -> EMPTY : 3 - (item))
#define WITH(content, item) ((content) == EMPTY -> (item) : (content) + 2)

/* Entries: op and item (1 to 6), '!', announcements of names and their withdrawals. 0 is none. */
#define ADD 0   /* + */
#define DEL 1   /* - */
#define READD 2 /* = */
#define ENTRY(op, item) (2 * (op) + (item))
#define OP(entry) (((entry) - 1) / 2)
#define ITEM(entry) (1 + ((entry) - 1) % 2)
#define CLEAR 7
#define ANNOUNCED(name) (16 + (name))
#define WITHDRAWN(name) (32 + (name))
#define IS_ANNOUNCEMENT(entry) ((entry) >= 16 && (entry) < 32)
#define IS_WITHDRAWAL(entry) ((entry) >= 32)
#define NAME_IN(entry) ((entry) % 16)

/* For printf. */
#define SIGN(entry) \
    ((entry) == CLEAR -> '!' : (OP(entry) == ADD -> '+' : (OP(entry) == DEL -> '-' : '=')))
#define LETTER(entry) ((entry) == CLEAR -> ' ' : 'A' + ITEM(entry) - 1)

/* Scratch: without meaning between steps, so not part of a state. (-DSCRATCH= for -DBFS.) */
#ifndef SCRATCH
#define SCRATCH hidden
#endif
SCRATCH byte i, j, k;
SCRATCH byte content;
SCRATCH byte fold_1, fold_2, known, carried;
SCRATCH byte cleared, torn, gone; /* true or false: bits cannot be hidden */

inline apply(list, entry)
{
    if
    :: (entry) == CLEAR -> list = EMPTY
    :: (entry) > CLEAR || (entry) == 0
    :: else ->
        if
        :: OP(entry) != ADD && HAS(list, ITEM(entry)) -> list = WITHOUT(list, ITEM(entry))
        :: else
        fi;
        if
        :: OP(entry) != DEL && !HAS(list, ITEM(entry)) -> list = WITH(list, ITEM(entry))
        :: else
        fi
    fi
}

/* Lays an entry over what was folded so far: one and two, in their order; 0 is none. */
inline fold_apply(one, two, entry)
{
    known = 0;
    if
    :: (entry) == CLEAR -> one = 0; two = 0; cleared = true
    :: (entry) < CLEAR && one != 0 && ITEM(one) == ITEM(entry) -> known = one
    :: (entry) < CLEAR && two != 0 && ITEM(two) == ITEM(entry) -> known = two
    :: (entry) < CLEAR && one == 0 -> one = entry
    :: (entry) > CLEAR
    :: else -> two = entry
    fi;
    if
    :: known != 0 && OP(entry) == DEL ->
        one = (one == known -> ENTRY(DEL, ITEM(known)) : one);
        two = (two == known -> ENTRY(DEL, ITEM(known)) : two)
    :: known != 0 && OP(entry) != DEL && (OP(entry) == READD || OP(known) == DEL) ->
        /* Absent in between: its old place is void, its new one is behind the other's. */
        one = (one == known -> two : one);
#ifdef BREAK_ORDER
        known = ENTRY(ADD, ITEM(known));
#else
        known = ENTRY(READD, ITEM(known));
#endif
        two = (one != 0 -> known : 0);
        one = (one == 0 -> known : one)
    :: else
    fi
}

/* Nothing lies below: '-' is dropped, '=' becomes '+'. */
inline fold_as_oldest(one, two)
{
    two = (two != 0 && OP(two) == DEL -> 0 : two);
    two = (two != 0 && OP(two) == READD -> ENTRY(ADD, ITEM(two)) : two);
    one = (one != 0 && OP(one) == READD -> ENTRY(ADD, ITEM(one)) : one);
    if
    :: one != 0 && OP(one) == DEL -> one = two; two = 0
    :: else
    fi
}

/* ---- what is stored -------------------------------------------------------------------------- */

/* Names are numbers: first those that are there at the start, then STEPS for each compactor. */
#define OLD_NAMES 3
#define NAMES (OLD_NAMES + COMPACTORS * STEPS)
#define BIT(name) (1 << (name))

/* A run NAME.COUNT. One sublist holds one entry, so a run has two at most. */
#define RUN(name, count) (4 * (name) + (count))
#define NAME_OF(run) ((run) / 4)
#define COUNT_OF(run) ((run) % 4)
#define SUBLISTS 2
#define KEY(name, number) (SUBLISTS * (name) + (number))
#define KEYS (SUBLISTS * NAMES)

/* Places of sublists in a head, in their order: that of run 0 are 0 and 1, and so on. */
#define RUN_AT(head, place) head.runs[(place) / SUBLISTS]
#define SUBLIST_AT(head, place) KEY(NAME_OF(RUN_AT(head, place)), (place) % SUBLISTS)
#define BEHIND(head, place) \
    ((place) % SUBLISTS + 1 < COUNT_OF(RUN_AT(head, place)) -> \
        (place) + 1 : SUBLISTS * ((place) / SUBLISTS + 1))

#define RUNS_MAX (2 + COMPACTORS * STEPS)
#define LOG_MAX (4 + WRITERS * CHANGES + 2 * COMPACTORS * STEPS)

typedef Head {
    bool here;
    byte run_count;
    byte runs[RUNS_MAX]; /* oldest first */
    short garbage;      /* -NAME: one bit per name */
    byte logged;
    byte log[LOG_MAX]
};

Head head;
byte store[KEYS]; /* per key an entry, or: */
#define ABSENT 0
#define IS_SUBLIST(key) (store[key] != ABSENT)
/* One bit per name: announced at some time; written when it was not announced any more; its writer
 * has died, or has not learnt what became of a write. */
short told;
short late;
short died;

/* A CAS number is never given twice while the server runs. So all that matters of the one that a
 * compactor holds is whether it fits the head, and whether its connection is still there. */
bool fits[COMPACTORS];
bool connected[COMPACTORS];

/* The content as it ought to be: every change is applied when the server executes it. */
byte ghost;
/* The server threw something out: a sublist may be missing. */
bool evicted;

inline copy_head(to, from)
{
    to.here = from.here;
    to.run_count = from.run_count;
    to.garbage = from.garbage;
    to.logged = from.logged;
    for (i : 0 .. RUNS_MAX - 1) {
        to.runs[i] = from.runs[i]
    }
    for (i : 0 .. LOG_MAX - 1) {
        to.log[i] = from.log[i]
    }
}

/* index: a variable that is free for it. */
inline clear_head(to, index)
{
    to.here = false;
    to.run_count = 0;
    to.garbage = 0;
    to.logged = 0;
    for (index : 0 .. RUNS_MAX - 1) {
        to.runs[index] = 0
    }
    for (index : 0 .. LOG_MAX - 1) {
        to.log[index] = 0
    }
}

inline push(to, entry)
{
    assert(to.logged < LOG_MAX);
    to.log[to.logged] = entry;
    to.logged++
}

inline push_run(to, a_run)
{
    assert(to.run_count < RUNS_MAX);
    to.runs[to.run_count] = a_run;
    to.run_count++
}

/* -DSTORY: tells the head after each change, as in docs/list-format.md. */
inline tell_head()
{
#ifdef STORY
    printf("    head:");
    for (i : 0 .. head.run_count - 1) {
        printf(" n%d.%d", NAME_OF(head.runs[i]), COUNT_OF(head.runs[i]))
    }
    for (i : 0 .. NAMES - 1) {
        if
        :: head.garbage & BIT(i) -> printf(" -n%d", i)
        :: else
        fi
    }
    printf(" |");
    for (i : 0 .. head.logged - 1) {
        if
        :: IS_ANNOUNCEMENT(head.log[i]) -> printf(" ~n%d", NAME_IN(head.log[i]))
        :: IS_WITHDRAWAL(head.log[i]) -> printf(" ~n%d.0", NAME_IN(head.log[i]))
        :: else -> printf(" %c%c", SIGN(head.log[i]), LETTER(head.log[i]))
        fi
    }
    printf("\n")
#else
    skip
#endif
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* After every step of the server: head and sublists decode to what they ought to. */
inline check_content()
{
    content = EMPTY;
    torn = false;
    for (i : 0 .. head.run_count - 1) {
        for (j : 0 .. COUNT_OF(head.runs[i]) - 1) {
            k = KEY(NAME_OF(head.runs[i]), j);
            if
            :: IS_SUBLIST(k) -> apply(content, store[k])
            :: else -> torn = true
            fi
        }
    }
    for (i : 0 .. head.logged - 1) {
        apply(content, head.log[i])
    }
    assert(!torn || evicted); /* no published head names a sublist that was deleted */
    assert(torn || content == ghost)
}

/* ---- the server ------------------------------------------------------------------------------ */

inline head_changed()
{
    for (i : 0 .. COMPACTORS - 1) {
        fits[i] = false
    }
    tell_head();
    check_content()
}

inline execute_get_head(to)
{
    copy_head(to, head);
    fits[me] = true;
    connected[me] = true
}

/* APPEND to the head; nothing happens when there is none. */
inline execute_append(entry)
{
    if
    :: head.here ->
        push(head, entry);
        told = (IS_ANNOUNCEMENT(entry) -> told | BIT(NAME_IN(entry)) : told);
        apply(ghost, entry);
        head_changed()
    :: else
    fi
}

inline execute_add_head(entry)
{
    if
    :: !head.here ->
        head.here = true;
        execute_append(entry)
    :: else
    fi
}

inline execute_restart()
{
    clear_head(head, i);
    for (k : 0 .. KEYS - 1) {
        store[k] = ABSENT
    }
    for (i : 0 .. COMPACTORS - 1) {
        fits[i] = false;
        connected[i] = false
    }
    ghost = EMPTY
}
