/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a compactor sees in h, the head that it read last, and the head that it makes of it.
 * Included by compactor.pml; the variables are those of its process.
 */

Head next; /* the head that a CAS brings; empty between steps */

/* ---- what a compactor finds in h, the head that it read last --------------------------------- */

inline find_announcement()
{
    announced = false;
    for (i : 0 .. h.logged - 1) {
        announced = announced || h.log[i] == ANNOUNCED(name)
    }
}

/* Where the inputs of a merge stand side by side; RUNS_MAX: nowhere. */
inline find_inputs()
{
    at = RUNS_MAX;
    for (i : 0 .. h.run_count - base.run_count) {
        gone = false;
        for (j : 0 .. base.run_count - 1) {
            gone = gone || h.runs[i + j] != base.runs[j]
        }
        at = (at == RUNS_MAX && !gone -> i : at)
    }
}

/* The same runs, and a log that begins with the one that was folded? */
inline find_folded()
{
    possible = h.run_count == base.run_count && h.logged >= base.logged;
    for (i : 0 .. base.run_count - 1) {
        possible = possible && h.runs[i] == base.runs[i]
    }
    for (i : 0 .. base.logged - 1) {
        possible = possible && h.log[i] == base.log[i]
    }
}

/* Does it name anything but runs? */
inline find_names()
{
    named = h.garbage != 0;
    has_ops = false;
    for (i : 0 .. h.logged - 1) {
        named = named || h.log[i] > CLEAR;
        has_ops = has_ops || h.log[i] <= CLEAR
    }
}

inline fold_log()
{
    fold_1 = 0;
    fold_2 = 0;
    cleared = false;
    for (i : 0 .. h.logged - 1) {
        fold_apply(fold_1, fold_2, h.log[i])
    }
}

/* May the step be published over it? */
inline judge_head()
{
    possible = h.here;
    if
#ifndef BREAK_REBASE
    :: possible && kind == FLIP -> find_folded()
#endif
    :: possible && kind == MERGE ->
        find_inputs();
        possible = at < RUNS_MAX && (!inlined || h.run_count == base.run_count)
    :: possible && kind == REMOVE ->
        find_names();
        possible = h.run_count == 0 && h.logged == 0 && !named
    :: else
    fi;
#ifndef BREAK_RULE_3
publish_only_while_announced: /* rule 3 */
    if
    :: possible && (kind == FLIP || kind == MERGE) -> find_announcement(); possible = announced
    :: else
    fi
#endif
}

/* ---- the head that a compactor publishes, made from h ---------------------------------------- */

inline keep_runs(from, to)
{
    for (i : from .. to - 1) {
        push_run(next, h.runs[i])
    }
}

inline drop_runs(from, to)
{
    for (i : from .. to - 1) {
        next.garbage = next.garbage | BIT(NAME_OF(h.runs[i]))
    }
}

inline keep_fold(one, two)
{
    if
    :: one != 0 -> push(next, one)
    :: else
    fi;
    if
    :: two != 0 -> push(next, two)
    :: else
    fi
}

/* Takes along an announcement that another proxy made. */
inline carry_announcement(other)
{
    gone = false;
    for (j : 0 .. carried - 1) {
        gone = gone || h.log[j] == WITHDRAWN(other)
    }
    if
    :: gone
    :: !gone && !sweeps -> push(next, ANNOUNCED(other))
    :: else ->
#ifndef BREAK_RULE_6
sweep_before_you_forget: /* rule 6 */
        next.garbage = next.garbage | BIT(other)
#else
        skip
#endif
    fi
}

/* Takes along the announcements, and the ops unless they were folded. */
inline carry_log()
{
    carried = (kind == FLIP -> base.logged : h.logged);
    for (i : 0 .. carried - 1) {
        if
        :: h.log[i] <= CLEAR && (kind == MERGE || kind == COLLECT) -> push(next, h.log[i])
        :: IS_ANNOUNCEMENT(h.log[i]) && h.log[i] != ANNOUNCED(name) ->
            carry_announcement(NAME_IN(h.log[i]))
        :: else
        fi
    }
}

inline push_written()
{
    if
    :: written > 0 -> push_run(next, RUN(name, written))
    :: else
    fi
}

/* What the CAS of this step brings. */
inline build()
{
    next.here = kind != REMOVE;
    next.garbage = h.garbage & ~deleted;
    if
    :: kind == FLIP ->
        if
        :: voids -> drop_runs(0, h.run_count)
        :: else -> keep_runs(0, h.run_count)
        fi;
        push_written()
    :: kind == MERGE ->
        keep_runs(0, at);
        push_written();
        drop_runs(at, at + base.run_count);
        keep_runs(at + base.run_count, h.run_count);
        if
        :: inlined -> keep_fold(one, two)
        :: else
        fi
    :: kind == FOLD ->
        fold_log();
        if
        :: cleared -> drop_runs(0, h.run_count)
        :: else -> keep_runs(0, h.run_count)
        fi
    :: else -> keep_runs(0, h.run_count)
    fi;
    carry_log();
    if
    :: kind == FLIP ->
        for (i : base.logged .. h.logged - 1) {
            push(next, h.log[i])
        }
    :: kind == FOLD ->
        if
        :: next.run_count == 0 -> fold_as_oldest(fold_1, fold_2)
        :: else
        fi;
        keep_fold(fold_1, fold_2)
    :: else
    fi
}
