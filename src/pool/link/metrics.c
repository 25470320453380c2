/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/metrics.h"

static const struct metric_row rows[] = {POOL_METRIC_TABLE(METRIC_ROW)};

const struct metric_table pool_metrics = {rows, POOL_METRIC_BEFORE + 1,
                                          sizeof rows / sizeof rows[0]};
