/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/metrics.h"

static const struct metric_row rows[] = {BACKEND_METRIC_TABLE(METRIC_ROW)};

const struct metric_table backend_metrics = {rows, BACKEND_METRIC_BEFORE + 1,
                                             sizeof rows / sizeof rows[0]};
