/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration of a proxy in the simulated world: one pool, one policy for all lists, and
 * limits so small that every kind of work happens within a few calls.
 */
#ifndef WORLD_SETTINGS_H
#define WORLD_SETTINGS_H

#include "config/config.h"

/* A configuration with a pool; the driver sets the rest of config->lists[0], where items are told
 * apart by commas. The caller's, until config_destroy. */
struct config *settings_create(uint32_t log_limit_bytes, uint32_t log_hard_limit_bytes,
                               uint32_t sublist_limit_bytes);
/* Ends the program when the settings contradict each other. */
void settings_finish(struct config *config);

#endif
