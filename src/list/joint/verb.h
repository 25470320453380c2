/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs on several lists do.
 */
#ifndef LIST_JOINT_VERB_H
#define LIST_JOINT_VERB_H

#include "list/core/list_verb.h"

enum joint_verb { JOINT_GET, JOINT_INTER, JOINT_UNION, JOINT_DIFF };

static inline enum joint_verb joint_verb(enum list_verb verb)
{
    switch (verb) {
    case LIST_INTER:
    case LIST_INTERLEN:
    case LIST_INTERSTORE:
        return JOINT_INTER;
    case LIST_UNION:
    case LIST_UNIONLEN:
    case LIST_UNIONSTORE:
        return JOINT_UNION;
    case LIST_DIFF:
    case LIST_DIFFLEN:
    case LIST_DIFFSTORE:
        return JOINT_DIFF;
    default:
        return JOINT_GET;
    }
}

#endif
