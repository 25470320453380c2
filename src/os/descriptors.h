/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limit of open files, and what it leaves for clients.
 */
#ifndef OS_DESCRIPTORS_H
#define OS_DESCRIPTORS_H

#include "config/config.h"

/* Opens /dev/null in place of standard streams that are closed. Else the next descriptor that is
 * opened becomes standard error, and lines of the log go to a socket or to the event loop. To be
 * called before anything is opened. */
void descriptors_fill_standard(void);

/* Raises the limit of open files to what config may need. Where that is not allowed, logs so and
 * lowers config->max_connections to what is left: clients must never take the descriptors that
 * connections to servers need. Returns 0, or -1 with the reason in error when not even one client
 * for each worker is left. */
MUST_CHECK int descriptors_prepare(struct config *config, char error[CONFIG_ERROR_MAX]);

#endif
