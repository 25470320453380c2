/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/verbs.h"

#include <stdio.h>

#include "proxy/core/worker.h"

/* Room for the longest verb in a line. */
#define LINE_MAX_BYTES 128

void verbs_set_rule(struct client *c)
{
    const struct listener_config *l = c->listener;
    bool takes_all = verb_set_is_empty(&l->allow_verbs) && verb_set_is_empty(&l->deny_verbs);
    c->rules = (uint8_t)(takes_all ? c->rules & ~RULE_VERBS : c->rules | RULE_VERBS);
}

/* The parser does not look at the words of plain verbs. */
static bool wants_no_answer(const struct client *c, const struct request *r)
{
    struct slice rest = r->args, word, last = SLICE_NONE;
    if (r->verb->shape != SHAPE_PLAIN || client_is_binary(c)) {
        return r->noreply;
    }
    while (token_next(&rest, &word)) {
        last = word;
    }
    return slice_equal(last, SLICE_LIT("noreply"));
}

bool verbs_admit(struct client *c, const struct request *r)
{
    const struct listener_config *l = c->listener;
    char line[LINE_MAX_BYTES];
    bool is_denied = verb_set_has(&l->deny_verbs, r->verb->verb);
    if (!is_denied &&
        (verb_set_is_empty(&l->allow_verbs) || verb_set_has(&l->allow_verbs, r->verb->verb))) {
        return true;
    }
    (void)snprintf(line, sizeof line, "CLIENT_ERROR %s is not allowed here (%s)", r->verb->text.p,
                   is_denied ? "deny_verbs" : "allow_verbs");
    metric_inc(&c->worker->metrics, METRIC_refused_verb);
    pending_refuse(c, wants_no_answer(c, r), line);
    return false;
}
