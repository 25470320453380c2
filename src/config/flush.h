/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pools a flush_all goes to: all of them, or with allow_flush_all = keep_lists those of plain
 * keys, which then have no lists. For the other files of this folder.
 */
#ifndef CONFIG_FLUSH_H
#define CONFIG_FLUSH_H

#include "base/check.h"
#include "config/config.h"

/* Sets config.flush_pools. Call when lists and routes have their pools. */
void flush_find_pools(struct config *config);
/* The same, and refuses what these pools cannot do, or what would go with them. Returns 0, or -1
 * with the reason in error. */
MUST_CHECK int flush_check(struct config *config, char error[CONFIG_ERROR_MAX]);

#endif
