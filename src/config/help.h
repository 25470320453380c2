/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of keys as a file with every setting, commented out: `mclistd --help-config`, and
 * conf/mclistd.ini.
 */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

void config_help_print(FILE *out);

#endif
