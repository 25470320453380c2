/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How lists are stored (docs/list-format.md), for the model checker Spin: one list on one server,
 * and proxies that change, read and compact it at the same time, sleep, crash and lose answers.
 *
 *     scripts/check-model     checks it in all its settings; README.md tells more
 *
 * A request and its answer are one step, taken when the server executes it: what a proxy does
 * between two requests touches no other process. A pause of any length is a process that is not
 * scheduled for a while.
 *
 * The six rules are labels in compactor.pml, where they are kept: fresh_names, announce_first,
 * publish_only_while_announced, delete_only_what_you_know_to_be_unnamed,
 * a_cas_number_belongs_to_its_connection, sweep_before_you_forget. -DBREAK_RULE_n breaks one; the
 * checker must then find what goes wrong.
 */

/* ---- settings -------------------------------------------------------------------------------- */

#ifndef START
#define START 0 /* what is there at first, see init; 0 is nothing */
#endif
#ifndef WRITERS
#define WRITERS 0
#endif
#ifndef CHANGES
#define CHANGES 1 /* by each writer */
#endif
#ifndef CLEARS
#define CLEARS 1 /* 1: '!' is among the changes */
#endif
#ifndef READERS
#define READERS 0
#endif
#ifndef READS
#define READS 1 /* by each reader */
#endif
#ifndef COMPACTORS
#define COMPACTORS 1
#endif
#ifndef STEPS
#define STEPS 1 /* by each compactor */
#endif
#ifndef KINDS
#define KINDS 31 /* of these: the sum of FLIP to REMOVE */
#endif
#ifndef KINDS_OF_FIRST
#define KINDS_OF_FIRST KINDS /* the same for the first compactor */
#endif
#ifndef INPUTS_MIN
#define INPUTS_MIN 2 /* runs that a merge takes at least. 1: it may heal one */
#endif
#ifndef TRIES
#define TRIES 2 /* CAS attempts of one publication */
#endif
#ifndef CRASHES
#define CRASHES 0 /* compactors that may crash, before any write */
#endif
#ifndef FAULTS
#define FAULTS 0 /* writes of compactors that may be refused, or get no answer */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* 1: the server is restarted at some time, and empty then */
#endif
#ifndef EVICTIONS
#define EVICTIONS 0 /* 1: the server throws out some sublist at some time */
#endif

#define FLIP 1
#define MERGE 2
#define FOLD 4
#define COLLECT 8
#define REMOVE 16

#include "storage.pml"
#include "compactor.pml"

/* ---- blind changes --------------------------------------------------------------------------- */

inline note_stored()
{
    adding = !adding && !stored;
    left = (stored -> left - 1 : left);
    change = (stored -> 0 : change);
    stored = false
}

proctype writer(byte me)
{
    byte change, left = CHANGES;
    bool stored, adding;

    do
    :: left == 0 -> break
    :: left > 0 && !adding ->
        atomic {
            if
            :: change != 0 /* once more */
            :: change == 0 -> change = ENTRY(ADD, 1)
            :: change == 0 -> change = ENTRY(DEL, 1)
            :: change == 0 -> change = ENTRY(ADD, 2)
            :: change == 0 -> change = ENTRY(DEL, 2)
            :: change == 0 && CLEARS -> change = CLEAR
            fi;
            d_step {
                stored = head.here;
                printf("writer %d: append %c%c: %d\n", me, SIGN(change), LETTER(change), stored);
                execute_append(change);
                note_stored()
            }
        }
    :: left > 0 && adding ->
        d_step {
            stored = !head.here;
            printf("writer %d: add head %c%c: %d\n", me, SIGN(change), LETTER(change), stored);
            execute_add_head(change);
            note_stored()
        }
    od
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* What a reader does not look at. */
inline forget_names()
{
    h.garbage = 0;
    j = 0;
    for (i : 0 .. h.logged - 1) {
        h.log[j] = h.log[i];
        j = (h.log[j] <= CLEAR -> j + 1 : j)
    }
    for (i : j .. LOG_MAX - 1) {
        h.log[i] = 0
    }
    h.logged = j
}

inline finish_read()
{
    for (i : 0 .. h.logged - 1) {
        apply(answer, h.log[i])
    }
    printf("reader %d: answer %d, the list was %d\n", me, answer, saw);
    assert(answer == saw)
}

inline forget_read()
{
    left--;
    saw = EMPTY;
    answer = EMPTY;
    missed = 0;
    clear_head(h, i)
}

#ifndef BREAK_READING
#define FOUND (cache[k] != ABSENT)
#else
#define FOUND true
#endif

/* Sublists never change: one that was read once is kept in the cache for ever. */
inline get_sublist()
{
    k = SUBLIST_AT(h, at);
    cache[k] = (cache[k] == ABSENT && IS_SUBLIST(k) -> store[k] : cache[k]);
    printf("reader %d: get sublist n%d.%d: %d\n", me, k / SUBLISTS, k % SUBLISTS, cache[k]);
    if
    :: FOUND ->
        apply(answer, cache[k]);
        at = BEHIND(h, at);
        reading = at < SUBLISTS * h.run_count;
        if
        :: !reading -> finish_read(); forget_read()
        :: else
        fi
    :: !FOUND && missed != 1 + k / SUBLISTS ->
        missed = 1 + k / SUBLISTS; /* the head is read again */
        reading = false
    :: else ->
        assert(evicted); /* a head that was read since names it, and names do not come back */
        reading = false;
        forget_read()
    fi;
    at = (reading -> at : 0)
}

proctype reader(byte me)
{
    Head h;
    byte cache[KEYS];
    byte saw; /* what the content was when the head was read */
    byte answer;
    byte missed; /* 1 + the name that was missing in the attempt before */
    byte at, left = READS;
    bool reading;

    do
    :: left == 0 -> break
    :: left > 0 && !reading ->
        d_step {
            copy_head(h, head);
            forget_names();
            saw = ghost;
            answer = EMPTY;
            reading = h.run_count > 0;
            printf("reader %d: get head\n", me);
            if
            :: !reading -> finish_read(); forget_read()
            :: else
            fi
        }
    :: left > 0 && reading -> d_step { get_sublist() }
    od
}

/* ---- the world ------------------------------------------------------------------------------- */

proctype restart()
{
    d_step { execute_restart(); printf("server: restart\n") }
}

proctype eviction()
{
    byte key;

    atomic {
        do
        :: key < KEYS - 1 -> key++
        :: break
        od;
        if
        :: IS_SUBLIST(key) -> store[key] = ABSENT; evicted = true
        :: else
        fi;
        printf("server: sublist n%d.%d is gone\n", key / SUBLISTS, key % SUBLISTS);
        key = 0
    }
}

/* A compaction without other processes beside it: all that the head names as garbage, or that is
 * announced in it and not withdrawn, goes away, and its names with it. */
inline compact_at_last()
{
    next.garbage = head.garbage;
    for (i : 0 .. head.logged - 1) {
        if
        :: IS_ANNOUNCEMENT(head.log[i]) ->
            next.garbage = next.garbage | BIT(NAME_IN(head.log[i]))
        :: else
        fi
    }
    for (i : 0 .. head.logged - 1) {
        if
        :: IS_WITHDRAWAL(head.log[i]) ->
            next.garbage = next.garbage & ~BIT(NAME_IN(head.log[i]))
        :: else
        fi
    }
    for (k : 0 .. KEYS - 1) {
        store[k] = (next.garbage & BIT(k / SUBLISTS) -> ABSENT : store[k])
    }
    next.garbage = 0
}

/* Nothing is stored that the head does not name as a run, but for what was written too late by a
 * proxy that could not undo it. */
inline check_leftovers()
{
    for (k : 0 .. KEYS - 1) {
        gone = IS_SUBLIST(k) && !(late & died & BIT(k / SUBLISTS));
        for (i : 0 .. head.run_count - 1) {
            gone = gone && NAME_OF(head.runs[i]) != k / SUBLISTS
        }
        assert(!gone)
    }
}

inline put_run(a_name, first_entry, second_entry)
{
    store[KEY(a_name, 0)] = first_entry;
    store[KEY(a_name, 1)] = second_entry
}

inline put_start()
{
    head.here = START != 0;
    if
    :: START == 1 -> /* two runs: A B, then A goes behind B */
        put_run(0, ENTRY(ADD, 1), ENTRY(ADD, 2));
        put_run(1, ENTRY(READD, 1), ABSENT);
        push_run(head, RUN(0, 2));
        push_run(head, RUN(1, 1));
        ghost = 4
    :: START == 2 -> /* a run, and a log that deletes A */
        put_run(0, ENTRY(ADD, 1), ENTRY(ADD, 2));
        push_run(head, RUN(0, 2));
        push(head, ENTRY(DEL, 1));
        ghost = 2
    :: START == 3 -> /* garbage, and a list that was dropped and begun again */
        put_run(0, ENTRY(ADD, 1), ENTRY(ADD, 2));
        put_run(1, ENTRY(ADD, 2), ENTRY(ADD, 1));
        head.garbage = BIT(0);
        push_run(head, RUN(1, 2));
        push(head, CLEAR);
        push(head, ENTRY(ADD, 2));
        ghost = 2
    :: START == 4 -> /* what two dead proxies left: one was swept, the other not */
        put_run(0, ENTRY(ADD, 1), ENTRY(ADD, 2));
        put_run(1, ENTRY(ADD, 2), ABSENT);
        put_run(2, ENTRY(ADD, 1), ABSENT);
        push_run(head, RUN(0, 2));
        head.garbage = BIT(1);
        push(head, ANNOUNCED(2));
        push(head, ENTRY(DEL, 1));
        ghost = 2
    :: START == 5 -> /* a run, and one that takes away all of it */
        put_run(0, ENTRY(ADD, 1), ENTRY(ADD, 2));
        put_run(1, ENTRY(DEL, 2), ENTRY(DEL, 1));
        push_run(head, RUN(0, 2));
        push_run(head, RUN(1, 2));
        ghost = EMPTY
    :: else
    fi;
    check_content()
}

init
{
    byte me;

    atomic {
        d_step { put_start() }
        for (me : 0 .. COMPACTORS - 1) {
            run compactor(me)
        }
        for (me : 0 .. WRITERS - 1) {
            run writer(me)
        }
        for (me : 0 .. READERS - 1) {
            run reader(me)
        }
        if
        :: RESTARTS > 0 -> run restart()
        :: else
        fi;
        if
        :: EVICTIONS > 0 -> run eviction()
        :: else
        fi;
        me = 0
    }
    atomic {
        timeout -> /* all is quiet: all have finished or crashed */
        d_step {
            compact_at_last();
            check_content();
            if
            :: RESTARTS == 0 && EVICTIONS == 0 -> check_leftovers()
            :: else
            fi
        }
    }
}
