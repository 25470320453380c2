/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/metric.h"

static const struct {
    const char *name;
    const char *help;
} table[METRIC_COUNT] = {
#define METRIC_ROW(name, help) {#name, help},
    METRIC_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

const char *metric_name(enum metric which)
{
    return table[which].name;
}

const char *metric_help(enum metric which)
{
    return table[which].help;
}
