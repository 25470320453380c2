/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs that a listener does not take: allow_verbs and deny_verbs. */
#ifndef PROXY_CLIENT_VERBS_H
#define PROXY_CLIENT_VERBS_H

#include "proxy/client/client.h"

/* Sets or takes RULE_VERBS, as the client's listener has it now. */
void verbs_set_rule(struct client *client);
/* Does the client's listener take the request's verb? If not, the request was refused. */
bool verbs_admit(struct client *client, const struct request *request);

#endif
