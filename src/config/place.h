/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an error of the last checks is about. For the other files of this folder.
 */
#ifndef CONFIG_PLACE_H
#define CONFIG_PLACE_H

#include "config/config.h"

/* The file, and the line when the section came from there. */
struct place {
    const struct config *config;
    uint32_t line;
    const char *section; /* as it stands in brackets */
    char *error;
};

/* Writes "FILE:LINE: [section]: why" to the place's error; always returns -1. */
int refuse(const struct place *place, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
