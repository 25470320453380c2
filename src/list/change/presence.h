/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a list hold any item? Where the head alone does not tell, its sublists are read, up to the
 * first item that counts.
 */
#ifndef LIST_CHANGE_PRESENCE_H
#define LIST_CHANGE_PRESENCE_H

#include "list/content/content.h"
#include "list/core/op.h"
#include "list/core/scan.h"

struct presence {
    struct content content;
    bool content_ready;
    struct scan scan;
    struct list *reads; /* whose sublists the operation reads otherwise */
};

/* The list of that head. Ends with scan.state and presence_found; content.too_large when it takes
 * too much memory to tell. */
enum progress presence_step(struct engine *e, struct op *op, struct presence *p, struct list *list,
                            const struct head *head, const struct op_event *event);
static inline bool presence_found(const struct presence *p)
{
    return p->content.output.position > 0;
}
/* Fine when it was never used. */
void presence_fini(struct op *op, struct presence *p);

#endif
