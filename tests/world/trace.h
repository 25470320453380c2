/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happened, line by line: printed at once, or kept until a violation shows the last of it.
 */
#ifndef WORLD_TRACE_H
#define WORLD_TRACE_H

#include <stdint.h>

#include "base/check.h"

extern enum trace_mode { TRACE_OFF, TRACE_PRINT, TRACE_KEEP } trace_mode;

void trace_line(uint64_t now_us, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints what was kept. */
void trace_show(void);

#endif
