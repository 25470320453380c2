/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIALECT_PAIRED_PAIRED_H
#define DIALECT_PAIRED_PAIRED_H

#include "dialect/shared/dialect.h"

/* Of the write that only makes an item for additions. */
#define PAIRED_TAG_BEGIN 1

extern const struct dialect dialect_paired;

#endif
