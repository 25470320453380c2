/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines of requests of plain verbs, where the timeouts of exchanges do not do: of requests of
 * several exchanges and, where deadline_ms is less than the pool's timeout_ms, of all others. They
 * stand in a queue in the order in which they came, which is that of their deadlines; one timer
 * looks at its front.
 */
#ifndef PROXY_CLIENT_DEADLINE_H
#define PROXY_CLIENT_DEADLINE_H

#include "proxy/client/client.h"
#include "proxy/core/worker.h"

void deadline_init(struct worker *worker);
/* The configuration has changed. */
void deadline_take_config(struct worker *worker);
void deadline_fini(struct worker *worker);

/* The request ends at its deadline; its handler has abandon and timeout_text. */
void deadline_watch_this(struct pending *pending);
/* The same, where exchanges' timeouts do not do. several: it may have several exchanges. */
static inline void deadline_watch(struct pending *pending, bool several)
{
    if (several || pending->client->worker->watches_all) {
        deadline_watch_this(pending);
    }
}

#endif
