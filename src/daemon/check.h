/* SPDX-License-Identifier: BSD-3-Clause */
/* `mclistd -t`: would the daemon start with this configuration, and what would it do? */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include "base/check.h"
#include "config/config.h"
#include "config/options.h"

/* Tries what a start would refuse besides the file itself, says on standard error what the
 * configuration means, and with -v prints it. Returns EX_OK, or the exit code of what is wrong,
 * which standard error has. */
MUST_CHECK int check_config(const struct options *options, const struct config *config);

/* Says on standard error that the log file cannot be opened, for the reason in errno. Returns the
 * exit code. */
int check_refuse_log(const char *path);

#endif
