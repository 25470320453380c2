/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All figures in Prometheus' text format (version 0.0.4), and in that of OpenMetrics (1.0.0).
 * docs/statistics.md, "Metrics", says how their names come about.
 */
#ifndef ADMIN_EXPOSITION_H
#define ADMIN_EXPOSITION_H

#include <stdbool.h>

struct evbuffer;
struct shared;

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_TYPE_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Appends them all to out. */
void exposition_print(struct shared *shared, bool is_open, struct evbuffer *out);

#endif
