/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * [route PREFIX]: what it may hold, and what it means. For the other files of this folder.
 */
#ifndef CONFIG_ROUTE_H
#define CONFIG_ROUTE_H

#include "config/config.h"

/* Checks all routes, and finds their pools; the lists are complete. Sets has_routes. Returns 0, or
 * -1 with the reason in error. */
MUST_CHECK int route_check(struct config *config, char error[CONFIG_ERROR_MAX]);

/* Finds the pools of all routes anew, by names that route_check has accepted. */
void route_find_pools(struct config *config);

#endif
