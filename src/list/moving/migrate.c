/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/moving/migrate.h"

#include <stdio.h>

#include "list/core/engine_state.h"

#define PAUSE_US 1000u
#define STAYS "the list stays on its old server: "

struct op_migrate {
    struct op op;
    struct list_call *call; /* NULL: its time was over */
    unsigned tries;
    char why[128]; /* the list stays for now, as the last answer has it */
};

const char *migrate_refusal(const struct config *config, const struct list_policy *policy)
{
    if (config->pools[policy->pool_index].next_name[0] == '\0') {
        return "lmigrate: the pool of this list has no next, and its lists do not move";
    }
    return NULL;
}

static void finish(struct engine *e, struct op_migrate *m, const struct op_event *event)
{
    struct list_call *call = m->call;
    const char *text = event->text;
    m->call = NULL;
    if (event->status == BE_MISS) {
        call_finish(e, m->op.list, call, LIST_MISSING);
    } else if (event->status == BE_HIT && event->request->stays == NULL) {
        call_finish(e, m->op.list, call, LIST_OK);
    } else if (event->status == BE_HIT) {
        call_fail(e, m->op.list, call, STAYS "%s", event->request->stays);
    } else {
        call_fail(e, m->op.list, call, "%s", text != NULL ? text : "backend refused a read");
    }
}

static enum progress migrate_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_migrate *m = (struct op_migrate *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    while (m->call != NULL) {
        emit_probe(e, op, 0);
        CO_AWAIT(co, "asking whether the list has moved");
        if (m->call == NULL) {
            break;
        }
        if (event->status != BE_HIT || !event->request->stays_for_now) {
            finish(e, m, event);
            break;
        }
        (void)snprintf(m->why, sizeof m->why, "%s", event->request->stays);
        /* What was announced, and what is to be deleted, goes by a compaction. */
        lists_wish(&e->lists, op->list, WISH_COMPACT, NULL);
        CO_SLEEP(op, co, "waiting for the list to move",
                 op_backoff_end_us(e, PAUSE_US, m->tries++));
    }
    CO_END(co);
}

static enum list_known migrate_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_migrate *m = (struct op_migrate *)op;
    (void)e;
    m->call = NULL;
    if (m->why[0] == '\0') {
        return KNOWN_UNKNOWN;
    }
    (void)snprintf(call->error, sizeof call->error, "deadline over: " STAYS "%s", m->why);
    return KNOWN_TOLD;
}

static void migrate_fini(struct engine *e, struct op *op)
{
    (void)e;
    (void)op;
}

void migrate_start(struct engine *e, struct list *list, struct list_call *call)
{
    struct op_migrate *m = op_create(e, list, sizeof *m, migrate_step, migrate_fini);
    m->call = call;
    m->op.let_go = migrate_let_go;
    call->op = &m->op;
    op_run(e, &m->op);
}
