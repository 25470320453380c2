/* SPDX-License-Identifier: BSD-3-Clause */
/* What the pools, the list engine and the proxy count of requests to servers. */
#ifndef PROTO_SERVER_METRICS_H
#define PROTO_SERVER_METRICS_H

#include "base/metric.h"

#define BACKEND_METRIC_TABLE(METRIC) METRIC(outcomes_unknown, "changes whose answer was lost")

enum backend_metric {
    BACKEND_METRIC_BEFORE = 0, /* the number before the first */
#define METRIC_ENUM(name, help) METRIC_##name,
    BACKEND_METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        BACKEND_METRIC_END
};

/* The same for `stats`. */
extern const struct metric_table backend_metrics;

#endif
