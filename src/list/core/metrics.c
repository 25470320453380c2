/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/metrics.h"

static const struct metric_row rows[] = {LIST_METRIC_TABLE(METRIC_ROW)};

const struct metric_table list_metrics = {rows, LIST_METRIC_BEFORE + 1,
                                          sizeof rows / sizeof rows[0]};
