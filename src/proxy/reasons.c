/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/reasons.h"

const struct reason reasons[] = {
#define REASON_ROW(what, name, counter) {#what, #name, #counter},
    REASON_TABLE(REASON_ROW)
#undef REASON_ROW
};

const size_t reason_count = sizeof reasons / sizeof reasons[0];
