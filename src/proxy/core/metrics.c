/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/metrics.h"

static const struct metric_row rows[] = {PROXY_METRIC_TABLE(METRIC_ROW)};

const struct metric_table proxy_metrics = {rows, PROXY_METRIC_BEFORE + 1,
                                           sizeof rows / sizeof rows[0]};
