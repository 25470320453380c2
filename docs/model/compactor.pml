/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compaction: flip, merge, fold, collect and removal, by any number of proxies at the same time.
 * Included by list.pml.
 */

/* How a write ended, as the proxy sees it. */
mtype = { done, conflict, refused, unknown };

byte crashes = CRASHES;
byte faults = FAULTS;

#include "publish.pml"

/* ---- a compactor's requests ------------------------------------------------------------------ */

/* What becomes of a write, and what the proxy hears of it. */
inline draw_fate()
{
    if
    :: executed = true; answer = done
    :: faults > 0 -> faults--; executed = false; answer = refused
    :: faults > 0 -> faults--; executed = true; answer = unknown; died = died | BIT(name)
    :: faults > 0 -> faults--; executed = false; answer = unknown; died = died | BIT(name)
    :: crashes > 0 ->
        crashes--;
        died = died | BIT(name);
        printf("compactor %d: crash\n", me);
        goto stop
    fi
}

inline get_head()
{
    copy_head(h, head);
    fits[me] = true;
    connected[me] = true;
    printf("compactor %d: get head\n", me)
}

/* APPEND of an announcement or its withdrawal. */
inline append_name(entry)
{
    atomic {
        draw_fate();
        d_step {
            answer = (answer == done && !head.here -> refused : answer);
            if
            :: IS_ANNOUNCEMENT(entry) -> printf("compactor %d: append ~n%d: %e\n", me, name, answer)
            :: else -> printf("compactor %d: append ~n%d.0: %e\n", me, name, answer)
            fi;
            if
            :: executed -> execute_append(entry)
            :: else
            fi;
            executed = false
        }
    }
}

/* Has its announcement gone? Then it cannot be published, and what is written stays unless its writer
 * takes it away. */
inline note_late()
{
    gone = true;
    for (i : 0 .. head.logged - 1) {
        gone = gone && head.log[i] != ANNOUNCED(name)
    }
    late = (gone && (told & BIT(name)) -> late | BIT(name) : late);
    gone = false
}

/* ADD. */
inline add_sublist()
{
    draw_fate();
    d_step {
        k = KEY(name, number);
        if
        :: executed && store[k] == ABSENT ->
            store[k] = (number == 0 -> one : two);
            note_late()
        :: executed && store[k] != ABSENT -> answer = unknown /* it is not ours */
        :: else
        fi;
        executed = false;
        printf("compactor %d: add n%d.%d: %e\n", me, name, number, answer);
        check_content();
        number++
    }
}

/* DELETE. */
inline remove_sublist(key)
{
    draw_fate();
    d_step {
        k = key;
        store[k] = (executed -> ABSENT : store[k]);
        printf("compactor %d: delete n%d.%d: %e\n", me, k / SUBLISTS, k % SUBLISTS, answer);
        executed = false;
        check_content()
    }
}

/* With a new connection, the number is one of a server that was restarted since and counts from
 * the beginning: it may be that of another head. */
#define CAS_FITS (head.here && (fits[me] || !connected[me]))

inline tell_cas()
{
    if
    :: kind == FLIP -> printf("compactor %d: cas head to flip: %e\n", me, answer)
    :: kind == MERGE -> printf("compactor %d: cas head to merge: %e\n", me, answer)
    :: kind == FOLD -> printf("compactor %d: cas head to fold: %e\n", me, answer)
    :: kind == COLLECT -> printf("compactor %d: cas head to collect: %e\n", me, answer)
    :: else -> printf("compactor %d: cas head to remove it: %e\n", me, answer)
    fi
}

inline send_cas()
{
    draw_fate();
    d_step {
        answer = (answer == done && !CAS_FITS -> conflict : answer);
        tell_cas();
        if
        :: executed && CAS_FITS ->
            build();
            copy_head(head, next);
            clear_head(next, i);
            head_changed()
        :: else
        fi;
        executed = false
    }
}

/* ---- compaction ------------------------------------------------------------------------------ */

#define MAY(step) ((me == 0 -> KINDS_OF_FIRST : KINDS) & (step))

/* Anything that can be done: limits and sizes are not part of the model. */
inline choose_step()
{
    if
    :: MAY(FLIP) && has_ops -> kind = FLIP
    :: MAY(FOLD) && has_ops -> kind = FOLD
    :: MAY(MERGE) && h.run_count >= INPUTS_MIN ->
        kind = MERGE;
        base.run_count = INPUTS_MIN;
        do
        :: at + base.run_count < h.run_count -> at++
        :: at + base.run_count < h.run_count -> base.run_count++
        :: break
        od;
        skip
    :: MAY(COLLECT) && named -> kind = COLLECT
    :: MAY(REMOVE) && h.here && h.run_count == 0 && !has_ops && !named -> kind = REMOVE
    :: else -> kind = 0
    fi
}

/* From the one that is at. */
inline choose_inputs()
{
    for (i : 0 .. base.run_count - 1) {
        base.runs[i] = h.runs[at + i]
    }
    at = 0
}

inline draw_name()
{
#ifndef BREAK_RULE_1
    name = OLD_NAMES + STEPS * me + steps;
#else
    name = 0; /* the first one that the head does not name */
    do
    :: true ->
        find_announcement();
        gone = announced || (h.garbage & BIT(name));
        for (i : 0 .. h.run_count - 1) {
            gone = gone || NAME_OF(h.runs[i]) == name
        }
        if
        :: gone -> name++
        :: else -> break
        fi
    od
#endif
}

/* All that goes into the run is folded. */
inline finish_run()
{
    if
    :: oldest -> fold_as_oldest(one, two)
    :: else
    fi;
    inlined = inlined && one != 0;
    written = (one != 0 && !inlined -> 1 : 0) + (two != 0 && !inlined -> 1 : 0)
}

/* Folds the log, or looks where the inputs of the merge are. */
inline begin_run()
{
    possible = announced;
    if
    :: possible && kind == FLIP ->
        copy_head(base, h);
        fold_log();
        one = fold_1;
        two = fold_2;
        voids = cleared;
        oldest = voids || h.run_count == 0;
        finish_run()
    :: possible && kind == MERGE ->
        find_inputs();
        possible = at < RUNS_MAX;
        oldest = at == 0;
        at = 0
    :: else
    fi
}

inline get_input()
{
    k = SUBLIST_AT(base, at);
    printf("compactor %d: get n%d.%d\n", me, k / SUBLISTS, k % SUBLISTS);
    possible = IS_SUBLIST(k);
    clear_head(h, i); /* it is read again before it is needed */
    if
    :: possible ->
        fold_apply(one, two, store[k]);
        at = BEHIND(base, at);
        if
        :: at == SUBLISTS * base.run_count -> finish_run()
        :: else
        fi
    :: else
    fi
}

#ifdef BREAK_RULE_4_PUBLISHED
inline remove_inputs()
{
    for (i : 0 .. base.run_count - 1) {
        k = KEY(NAME_OF(base.runs[i]), 0);
        store[k] = (kind == MERGE -> ABSENT : store[k])
    }
    check_content()
}
#endif

inline choose_garbage()
{
    base.garbage = h.garbage;
    deleted = base.garbage;
    clear_head(h, i)
}

inline find_garbage()
{
    do
    :: number < KEYS && !(base.garbage & BIT(number / SUBLISTS)) -> number++
    :: else -> break
    od;
    skip
}

inline forget_step()
{
    clear_head(h, number);
    clear_head(base, number);
    kind = 0;
    answer = 0;
    name = 0;
    one = 0;
    two = 0;
    written = 0;
    at = 0;
    number = 0;
    tries = 0;
    deleted = 0;
    executed = false;
    named = false;
    has_ops = false;
    announced = false;
    possible = false;
    oldest = false;
    voids = false;
    inlined = false;
    sweeps = false
}

proctype compactor(byte me)
{
    Head h;    /* as it was read last */
    Head base; /* a flip: what it folds; a merge: the runs that it takes */
    mtype answer;
    byte kind, steps, tries, at, number;
    byte name, one, two, written; /* the run: its entries, the number of its sublists */
    short deleted;                /* collecting: the names that are certainly gone */
    bool executed, announced, possible, has_ops, named;
    bool oldest;  /* nothing lies below the run */
    bool voids;   /* the log that is flipped has a '!': all older runs are void */
    bool inlined; /* what was merged goes into the log */
    bool sweeps;  /* the announcements of others are taken for dead */

look:
    if
    :: steps == STEPS -> goto stop
    :: else
    fi;
    atomic {
        d_step { get_head(); find_names() }
        choose_step();
fresh_names: /* rule 1 */
        d_step {
            if
            :: kind == FLIP -> draw_name()
            :: kind == MERGE -> draw_name(); choose_inputs()
            :: kind == COLLECT -> choose_garbage(); find_garbage()
            :: else
            fi;
            steps++;
            has_ops = false;
            named = false
        }
    }
    if
    :: kind == 0 -> goto stop
    :: kind == FOLD || kind == REMOVE -> goto publish
    :: kind == COLLECT -> goto collect
    :: kind == FLIP || kind == MERGE -> announced = true
    fi;

    /* Flip and merge: write a run. */
#ifndef BREAK_RULE_2
announce_first: /* rule 2 */
    append_name(ANNOUNCED(name));
    if
    :: answer == done
    :: else -> goto over
    fi;
#endif
    atomic {
        d_step {
#ifndef BREAK_RULE_2
            get_head();
            find_announcement();
#endif
            begin_run()
        }
        if
        :: true
        :: possible && kind == MERGE && oldest && h.run_count == base.run_count -> inlined = true
        fi
    }
    if
    :: possible
    :: !possible && kind == FLIP -> goto over
    :: !possible && kind == MERGE -> goto undo
    fi;
    do
    :: kind == FLIP || at == SUBLISTS * base.run_count -> break
    :: kind == MERGE && at < SUBLISTS * base.run_count ->
        d_step { get_input() }
        if
        :: possible
        :: else ->
            /* Gone with another proxy's merge or a '!', or else lost. */
            d_step { get_head(); find_inputs() }
            assert(at == RUNS_MAX || evicted);
            goto undo
        fi
    od;
    do
    :: number == written -> break
    :: number < written ->
        atomic { add_sublist() }
        if
        :: answer == done
        :: answer == refused -> goto undo
        :: answer == unknown -> goto over
        fi
    od;
#ifdef BREAK_RULE_2
    append_name(ANNOUNCED(name));
    skip;
    d_step {
        get_head();
        if
        :: kind == FLIP && h.logged == base.logged + 1 -> copy_head(base, h)
        :: else
        fi
    }
#endif
#ifdef BREAK_RULE_4_PUBLISHED
    skip;
    d_step { remove_inputs() }
#endif
    if
    :: kind == MERGE -> d_step { get_head() }
    :: else
    fi;
    goto publish;

    /* Collect. */
collect:
    do
    :: number == KEYS -> break
    :: number < KEYS ->
        atomic {
            remove_sublist(number);
            d_step {
                deleted = (answer == done -> deleted : deleted & ~BIT(number / SUBLISTS));
                number++;
                find_garbage()
            }
        }
    od;
    skip;
    d_step { get_head() }

publish:
    atomic {
        d_step { judge_head(); tries = (possible -> tries + 1 : TRIES) }
        if
        :: possible && (kind != COLLECT || deleted != 0)
        :: possible && kind != REMOVE -> sweeps = true
        :: else
        fi;
#ifndef BREAK_RULE_5
a_cas_number_belongs_to_its_connection: /* rule 5 */
        possible = possible && connected[me];
#endif
        if
        :: possible -> send_cas()
        :: else -> answer = conflict /* it is not sent */
        fi;
        at = 0;
        announced = false;
        sweeps = false
    }
    if
    :: answer == conflict && tries < TRIES ->
        d_step { get_head() }
        goto publish
    :: else
    fi;

delete_only_what_you_know_to_be_unnamed: /* rule 4 */
    if
    :: kind != FLIP && kind != MERGE -> goto over
    :: else
    fi;
    if
    :: answer == done -> goto over
#ifndef BREAK_RULE_4
    :: answer == unknown -> goto over
#endif
    :: else -> goto undo
    fi;
undo:
#ifndef BREAK_UNDO
    number = 0;
#else
    number = written;
#endif
    do
    :: number == written -> break
    :: number < written ->
        atomic { remove_sublist(KEY(name, number)); number++ }
        if
        :: answer == done
#ifndef BREAK_RULE_6_WITHDRAWN
        :: else -> goto over /* it stays announced */
#else
        :: else
#endif
        fi
    od;
    append_name(WITHDRAWN(name));

over:
    skip;
    d_step { forget_step() }
    goto look;

stop:
    skip;
    d_step { forget_step(); steps = 0 }
}
