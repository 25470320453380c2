/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/dialects.h"

#include "dialect/shared/dialect.h"

const struct list_plugin dialects = {.refusal = dialect_refusal, .schedule = dialect_schedule};
