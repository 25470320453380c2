/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/history.h"

#include <stdbool.h>

#include "base/check.h"
#include "base/memory.h"
#include "list/core/metrics.h"
#include "pool/link/metrics.h"
#include "proxy/figures.h"
#include "proxy/core/metrics.h"

void history_sample(struct history *h, struct shared *s)
{
    struct cpu_figures cpu = figures_of_cpu();
    uint64_t *row = h->at[h->count++ % (HISTORY_SECONDS + 1)];
    row[HISTORY_READS] = figure_value(s, METRIC_cmd_get);
    row[HISTORY_WRITES] = figure_value(s, METRIC_cmd_set) + figure_value(s, METRIC_cmd_other) +
                          figure_value(s, METRIC_cmd_meta);
    row[HISTORY_LIST_READS] = figure_value(s, METRIC_cmd_list_read);
    row[HISTORY_LIST_CHANGES] = figure_value(s, METRIC_cmd_list_write) +
                                figure_value(s, METRIC_cmd_list_exact) +
                                figure_value(s, METRIC_cmd_list_tx);
    row[HISTORY_ERRORS] = figure_value(s, METRIC_server_errors);
    row[HISTORY_TIMEOUTS] = figure_value(s, METRIC_backend_timeouts);
    row[HISTORY_CONFLICTS] = figure_value(s, METRIC_list_conflicts);
    row[HISTORY_FLIPS] = figure_value(s, METRIC_list_flips) + figure_value(s, METRIC_list_merges);
    row[HISTORY_CONNECTIONS] = figure_value(s, METRIC_curr_connections);
    row[HISTORY_MEMORY] = memory_held();
    row[HISTORY_CPU_US] = cpu.user_us + cpu.system_us;
}

size_t history_seconds(const struct history *h)
{
    size_t seconds = h->count == 0 ? 0 : h->count - 1;
    return seconds < HISTORY_SECONDS ? seconds : HISTORY_SECONDS;
}

uint64_t history_of(const struct history *h, enum history_row row, size_t ago)
{
    CHECK(ago < history_seconds(h));
    size_t last = h->count - 1 - ago;
    uint64_t now = h->at[last % (HISTORY_SECONDS + 1)][row];
    uint64_t before = h->at[(last - 1) % (HISTORY_SECONDS + 1)][row];
    if (row == HISTORY_CONNECTIONS || row == HISTORY_MEMORY) {
        return now;
    }
    return now > before ? now - before : 0; /* `stats reset` begins again with 0 */
}
