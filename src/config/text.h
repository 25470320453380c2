/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small helpers for the text of a configuration: error texts, trimming, comma-separated items,
 * \xNN.
 */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include "config/config.h"

/* Writes the text to error; always returns -1. */
int config_fail(char error[CONFIG_ERROR_MAX], const char *format, ...) PRINTF_LIKE(2, 3);

/* The text without blanks, tabs and line ends around it. */
struct slice text_trim(struct slice text);

/* Takes the next comma-separated item, trimmed, off the front of *rest. False when nothing is left;
 * an empty item between or behind commas is returned as such. Begin with *more = true. */
bool text_next_item(struct slice *rest, bool *more, struct slice *item);

/* Has it letters, digits, . - and _ only, as names do, and at least one of them? */
bool text_is_name(struct slice text);

/* For error texts: writes text as the user wrote it to out (cap bytes), control bytes as \xNN; what
 * does not fit ends in "...". Returns out. */
const char *text_show(struct slice text, char *out, size_t cap);

/* Copies text to out (cap bytes, NUL-terminated) with each \xNN as one byte. Returns the length, or
 * -1 when it does not fit or a backslash is not followed by xNN. */
int text_unescape(struct slice text, char *out, size_t cap);

#endif
