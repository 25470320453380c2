/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of plain verbs that may outlive their deadline: those of several exchanges and, where
 * deadline_ms is less than the pool's timeout_ms, all others. They stand in a queue in the order in
 * which they came, which is that of their deadlines; one timer looks at its front.
 */
#ifndef PROXY_CLIENT_LATE_H
#define PROXY_CLIENT_LATE_H

#include "proxy/client/pending.h"

struct worker;

void late_init(struct worker *worker);
void late_fini(struct worker *worker);

/* The request ends at its deadline; its handler has abandon and late. */
void late_watch(struct pending *pending);
/* Fine when it is not watched. */
void late_forget(struct pending *pending);

#endif
