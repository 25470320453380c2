/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A case: a scene, what proxies A and B are asked for, and in which order they take their steps.
 */
#ifndef SWEEP_NATIVE_CASE_H
#define SWEEP_NATIVE_CASE_H

#include "native_world.h"
#include "sweep.h"

/* After so many steps, where a case says "to its end". */
#define TO_THE_END 0

/* FAMILY(name, what it does) */
#define FAMILY_TABLE(FAMILY) \
    FAMILY(crash, "A crashes after a step, then B") \
    FAMILY(beside, "B between two steps of A, which goes on to its end or crashes later") \
    FAMILY(around, "A between two steps of B, to its end or until it crashes") \
    FAMILY(meet, "some steps of A, some of B, A to its end, B to its end") \
    FAMILY(pause, "A pauses beyond the grace time, B meanwhile, then A goes on or crashes later") \
    FAMILY(fault, \
           "B between two steps of A, the second of which fails; A goes on or crashes later") \
    FAMILY(conflict, "B between two steps of A, then a later one fails") \
    FAMILY(late, "A loses its connection, what it had sent arrives some steps later")

enum family {
#define FAMILY_ENUM(name, text) FAMILY_##name,
    FAMILY_TABLE(FAMILY_ENUM)
#undef FAMILY_ENUM
        FAMILIES
};

/* FAMILY_fault, FAMILY_conflict: how the next request of A ends. */
enum fault {
    FAULT_LOST,          /* without an answer, not executed, as all that was sent with it */
    FAULT_LOST_AFTER_1,  /* the same, but it was executed */
    FAULT_LOST_AFTER_2,  /* and the one behind it */
    FAULT_LOST_AFTER_3,  /* and the two behind it */
    FAULT_NOT_SENT,      /* BE_DOWN */
    FAULT_DOWN,          /* BE_DOWN, and all that follow */
    FAULT_NO_MEMORY,     /* the server has no memory for it */
    FAULT_OUT_OF_MEMORY, /* nor for those that follow */
    FAULT_REFUSED,       /* BE_REFUSED */
    FAULTS
};

/* FAMILY_late: so many requests arrive late at most. */
#define LATE_MAX 4

/* Who has read the list before. */
enum warm { WARM_NONE, WARM_B, WARM_A, WARM_BOTH, WARMS };

struct native_case {
    enum family family;
    unsigned policy, scene, a, b;
    enum warm warm;
    unsigned kind; /* the family's own */
    unsigned p, q; /* steps */
};

extern const struct op_spec ops_a[], ops_b[];
extern const unsigned ops_a_count, ops_b_count;

/* Of B's operations the first is to do nothing. */
#define B_NOTHING 0
#define FIRST_B 1
/* FAMILY_crash: ways in which what was sent arrives in part (0: nothing of it does). */
#define SCATTERS 16

/* As the numbers of an id, in the order of the struct. */
struct case_id case_id_of(const struct native_case *c);
/* False when there is no such case. */
bool case_of_id(struct native_case *c, const struct case_id *id);
void case_describe(const struct native_case *c, char *out, size_t cap);

/* Runs it in a fresh world. */
enum result case_run(struct native_world *w, const struct scene *scene, const struct native_case *c,
                     bool trace);

#endif
