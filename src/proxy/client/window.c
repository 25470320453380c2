/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/window.h"

/* Answers are never taken for smaller: what a part costs in memory besides its bytes. */
#define ESTIMATE_MIN 128
/* Each smaller answer brings an estimate down by this part of the distance. */
#define DECAY 32
/* What an item's answer has besides its value. */
#define ITEM_LINE_MAX 400

void window_set_limits(struct window *w, const struct config *config)
{
    w->max_unanswered = config->max_pipeline;
    w->soft_bytes = config->client_output_bytes;
    w->max_request_bytes = config->client_input_bytes;
    uint64_t spare_bytes = config->client_hard_bytes - config->client_output_bytes;
    w->max_items = (size_t)(spare_bytes / (config->max_value_bytes + ITEM_LINE_MAX));
    if (w->max_items == 0) {
        w->max_items = 1;
    }
}

void window_init(struct window *w, const struct config *config)
{
    *w = (struct window){0};
    window_set_limits(w, config);
    w->estimate[WINDOW_NONE] = 0;
    w->estimate[WINDOW_SHORT] = w->estimate[WINDOW_LIST] = ESTIMATE_MIN;
    w->estimate[WINDOW_ITEM] = w->soft_bytes / 4 + ESTIMATE_MIN;
}

void window_estimate(struct window *w, enum window_kind kind, size_t bytes)
{
    size_t *estimate = &w->estimate[kind];
    if (kind == WINDOW_ITEM && !w->item_seen) {
        w->item_seen = true;
        *estimate = w->soft_bytes / 16 + ESTIMATE_MIN;
    }
    if (bytes >= *estimate) {
        *estimate = bytes;
    } else {
        *estimate -= (*estimate - bytes) / DECAY;
    }
    if (*estimate < ESTIMATE_MIN) {
        *estimate = ESTIMATE_MIN;
    }
}
