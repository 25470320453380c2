/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What signals do:
 *
 *     SIGTERM        finish what clients asked for (drain_timeout_ms at most), then end
 *     SIGINT         end at once; so does any of the two while finishing
 *     SIGHUP         open the log file anew, and read the configuration anew
 *     SIGUSR1, 2     nothing, but a line in the log: others restart or end at these
 */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

#include <stdbool.h>

#include "base/check.h"
#include "config/config.h"

struct daemon;

/* Makes the main loop, in which signals are handled; they are blocked until signals_block(false):
 * threads that are started meanwhile leave them to the main thread. */
MUST_CHECK int signals_start(struct daemon *d);
/* Signals stay blocked: the next one would have its old effect, and kill. */
void signals_stop(struct daemon *d);
/* In the main thread. */
void signals_block(bool block);

/* What SIGHUP does to the configuration. arg: the struct daemon. Returns 0, or -1 with the reason
 * in error. Any thread. */
int signals_reload(void *arg, char error[CONFIG_ERROR_MAX]);

#endif
