/* SPDX-License-Identifier: BSD-3-Clause */
#include "native_case.h"

#include <stdio.h>

/* B's items overlap with A's, so that the order of the two shows. */
const struct op_spec ops_a[] = {
    {"ladd", 1, false, {{LIST_ADD, 2, {20, 1}, 0, 0}}},
    {"ladd of much", 1, false, {{LIST_ADD, 4, {23, 29, 35, 41}, 0, 0}}},
    {"ladd+lget", 2, true, {{LIST_ADD, 2, {1, 20}, 0, 0}, {.verb = LIST_GET}}},
    {"ldel", 1, false, {{LIST_DEL, 2, {1, 2}, 0, 0}}},
    {"lset", 1, false, {{LIST_SET, 3, {3, 20, 0}, 0, 0}}},
    {"laddx", 1, false, {{LIST_ADDX, 2, {1, 20}, 0, 0}}},
    {"ldelx", 1, false, {{LIST_DELX, 3, {2, 22, 0}, 0, 0}}},
    {"lcreate", 1, false, {{LIST_CREATE, 2, {20, 1}, 0, 0}}},
    {"lget", 1, false, {{.verb = LIST_GET}}},
    {"lhas", 1, false, {{LIST_HAS, 3, {1, 20, 0}, 0, 0}}},
    {"llen", 1, false, {{.verb = LIST_LEN}}},
    {"lrange", 1, false, {{LIST_RANGE, 0, {0}, 1, -2}}},
    {"ldrop", 1, false, {{.verb = LIST_DROP}}},
    {"lcompact", 1, false, {{.verb = LIST_COMPACT}}},
    {"turns",
     4,
     true,
     {{LIST_HAS, 2, {1, 20}, 0, 0},
      {LIST_ADD, 2, {20, 1}, 0, 0},
      {LIST_HAS, 2, {2, 20}, 0, 0},
      {LIST_DEL, 2, {2, 20}, 0, 0}}},
    {"lrevrange", 1, false, {{LIST_REVRANGE, 0, {0}, 1, -2}}},
    {"lpop", 1, false, {{LIST_POP, 0, {0}, 2, 0}}},
    {"lpop of the newest", 1, false, {{LIST_POP, 0, {0}, -1, 0}}},
    {"lpop, lpop", 2, false, {{LIST_POP, 0, {0}, 1, 0}, {LIST_POP, 0, {0}, 3, 0}}},
    {"lafter", 1, false, {{LIST_AFTER, 1, {1}, 2, 0}}},
    {"lbefore", 1, false, {{LIST_BEFORE, 1, {2}, 2, 0}}},
    {"lrandom", 1, false, {{LIST_RANDOM, 0, {0}, 2, 0}}},
};
const unsigned ops_a_count = sizeof ops_a / sizeof ops_a[0];

const struct op_spec ops_b[] = {
    {"nothing", 0, false, {{.verb = LIST_GET}}},
    {"lget", 1, false, {{.verb = LIST_GET}}},
    {"ladd, lget", 2, false, {{LIST_ADD, 3, {22, 20, 1}, 0, 0}, {.verb = LIST_GET}}},
    {"ladd of much", 1, false, {{LIST_ADD, 4, {47, 35, 53, 29}, 0, 0}}},
    {"ldel", 1, false, {{LIST_DEL, 2, {1, 20}, 0, 0}}},
    {"laddx", 1, false, {{LIST_ADDX, 3, {2, 20, 23}, 0, 0}}},
    {"lset", 1, false, {{LIST_SET, 2, {22, 1}, 0, 0}}},
    {"ldrop", 1, false, {{.verb = LIST_DROP}}},
    {"lcompact", 1, false, {{.verb = LIST_COMPACT}}},
    {"lcompact, ladd of much",
     2,
     false,
     {{.verb = LIST_COMPACT}, {LIST_ADD, 4, {47, 35, 53, 29}, 0, 0}}},
    {"lcreate", 1, false, {{LIST_CREATE, 2, {22, 2}, 0, 0}}},
    {"lhas", 1, false, {{LIST_HAS, 3, {20, 1, 2}, 0, 0}}},
    {"llen", 1, false, {{.verb = LIST_LEN}}},
    {"lpop", 1, false, {{LIST_POP, 0, {0}, 1, 0}}},
};
const unsigned ops_b_count = sizeof ops_b / sizeof ops_b[0];

struct case_id case_id_of(const struct native_case *c)
{
    return (struct case_id){
        {c->family, c->policy, c->scene, c->a, c->b, c->warm, c->kind, c->p, c->q}};
}

bool case_of_id(struct native_case *c, const struct case_id *id)
{
    const unsigned *n = id->n;
    *c = (struct native_case){(enum family)n[0], n[1], n[2], n[3], n[4],
                              (enum warm)n[5],   n[6], n[7], n[8]};
    return n[0] < FAMILIES && c->policy < policy_count && c->scene < scene_count &&
           c->a < ops_a_count && c->b < ops_b_count && n[5] < WARMS;
}

static const char *fault_text(unsigned fault)
{
    static const char *const texts[] = {
        "loses its connection before a request is executed",
        "loses its connection after one request",
        "loses its connection after two requests",
        "loses its connection after three requests",
        "cannot send a request",
        "cannot send any more",
        "finds no memory for a request",
        "finds no memory any more",
        "has a request refused",
    };
    return texts[fault];
}

/* "to its end", or "up to its step N, where it crashes". */
static const char *describe_end(char out[48], unsigned steps)
{
    if (steps == TO_THE_END) {
        return "to its end";
    }
    snprintf(out, 48, "up to its step %u, where it crashes", steps);
    return out;
}

static void describe_order(const struct native_case *c, char *out, size_t cap)
{
    char end[48];
    switch (c->family) {
    case FAMILY_crash:
        snprintf(out, cap, "A crashes after step %u%s, then B", c->p,
                 c->kind > 0 ? ", some of what it sent still arrives" : "");
        return;
    case FAMILY_beside:
        snprintf(out, cap, "A takes %u steps, B all, A goes on %s", c->p, describe_end(end, c->q));
        return;
    case FAMILY_around:
        snprintf(out, cap, "B takes %u steps, A runs %s, B goes on", c->q, describe_end(end, c->p));
        return;
    case FAMILY_meet:
        snprintf(out, cap, "A takes %u steps, B %u, A all others, B all others", c->p, c->q);
        return;
    case FAMILY_pause:
        snprintf(out, cap, "A takes %u steps%s and pauses, B, A goes on %s", c->p,
                 c->kind > 0 ? ", one more is executed but not answered," : "",
                 describe_end(end, c->q));
        return;
    case FAMILY_fault:
        if (c->q == TO_THE_END) {
            snprintf(end, sizeof end, "to its end");
        } else {
            snprintf(end, sizeof end, "for %u steps, where it crashes", c->q);
        }
        snprintf(out, cap, "A takes %u steps, B all, A %s and goes on %s", c->p,
                 fault_text(c->kind), end);
        return;
    case FAMILY_conflict:
        snprintf(out, cap, "A takes %u steps, B all, A %u more, %s and goes on", c->p, c->q,
                 fault_text(c->kind));
        return;
    case FAMILY_late:
        if (c->q == TO_THE_END) {
            snprintf(end, sizeof end, "when A and then B have ended");
        } else {
            snprintf(end, sizeof end, "%u steps later, then B", c->q - 1);
        }
        snprintf(out, cap, "A takes %u steps, loses its connection, %u requests arrive %s", c->p,
                 c->kind, end);
        return;
    case FAMILIES:
        break;
    }
    snprintf(out, cap, "?");
}

void case_describe(const struct native_case *c, char *out, size_t cap)
{
    static const char *const warms[] = {"", ", B warm", ", A warm", ", both warm"};
    char order[256];
    describe_order(c, order, sizeof order);
    snprintf(out, cap, "%s, %s, A %s, B %s%s: %s", policies[c->policy].name, scenes[c->scene].name,
             ops_a[c->a].name, ops_b[c->b].name, warms[c->warm], order);
}
