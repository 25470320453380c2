/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of the daemon. Errors go to standard error; exit codes are those of
 * <sysexits.h>.
 */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

/* Texts point into argv. */
struct options {
    const char *config_path;
    const char *addresses;
    const char *servers;
    const char *threads;
    const char *user;
    const char *takeover_path;
    uint16_t port; /* 0 = not given */
    unsigned more_log;
    bool test_only;
    bool require_pool;
    bool probe;
    bool is_try;
};

/* Returns EX_OK to go on, -1 when all is done (help, version), or the exit code of an error. */
MUST_CHECK int options_parse(int argc, char **argv, struct options *options);

/* Reads the file that the options name into a new configuration, over which goes what -l, -p, -s,
 * -T, -u and -v say, and checks the whole. Returns EX_OK, or an exit code with the reason in error.
 */
MUST_CHECK int options_read_config(const struct options *options, struct config *config,
                                   char error[CONFIG_ERROR_MAX]);

#endif
