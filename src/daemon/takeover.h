/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This daemon takes the place of another one, or of the service manager, which has opened its
 * sockets; or another one takes this one's place. What goes over the wire: os/inherited.h.
 */
#ifndef DAEMON_TAKEOVER_H
#define DAEMON_TAKEOVER_H

#include "base/check.h"

struct daemon;

/* Gets what the service manager, or the daemon of --takeover, has opened. */
MUST_CHECK int takeover_inherit(struct daemon *d);
/* Everything has started: the daemon before may go, and clients are served here. Those of the
 * daemon before come one by one, in the main loop. */
MUST_CHECK int takeover_finish(struct daemon *d);
/* Process pid serves from now on: this one finishes what clients asked for, and ends. arg: the
 * struct daemon. Any thread. */
void takeover_leave(void *arg, int pid);

#endif
