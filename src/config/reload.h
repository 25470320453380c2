/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a reload does to the configuration: the one in force stays where it is, so that all that
 * points into it stays valid, and takes the values of a newly read one. Keys that the table calls
 * live may change like that; for any other difference a reload is refused as a whole.
 */
#ifndef CONFIG_RELOAD_H
#define CONFIG_RELOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* One difference. Texts are valid during the call. */
struct config_change {
    const char *section; /* without its brackets */
    const char *key;     /* NULL: the section itself is new, or is missing in the new file */
    const char *now;     /* as a file has it; "" where there is none */
    const char *next;
    bool live;
};

/* Calls take(arg, change) for each difference between two configurations that config_finish has
 * accepted. Their passwords are no keys: they are not compared. */
void config_compare(struct config *now, struct config *next,
                    void (*take)(void *arg, const struct config_change *change), void *arg);

/* now takes next's live values, where each was set, and passwords. Both must have the same
 * sections. No other thread may read now meanwhile. */
void config_adopt(struct config *now, struct config *next);

#endif
