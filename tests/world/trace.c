/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>

#define KEPT_LINES 80
#define LINE_MAX_BYTES 240

enum trace_mode trace_mode;

static struct {
    uint64_t count;
    char lines[KEPT_LINES][LINE_MAX_BYTES];
} kept;

void trace_line(uint64_t now_us, const char *format, ...)
{
    char *line = kept.lines[kept.count++ % KEPT_LINES];
    int n = snprintf(line, LINE_MAX_BYTES, "[%10.6f] ", (double)now_us / 1e6);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, LINE_MAX_BYTES - (size_t)n, format, args);
    va_end(args);
    if (trace_mode == TRACE_PRINT) {
        puts(line);
    }
}

void trace_show(void)
{
    if (trace_mode != TRACE_KEEP) {
        return;
    }
    uint64_t first = kept.count > KEPT_LINES ? kept.count - KEPT_LINES : 0;
    for (uint64_t i = first; i < kept.count; i++) {
        puts(kept.lines[i % KEPT_LINES]);
    }
}
