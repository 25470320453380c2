/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIALECT_PAIRED_PAIRED_H
#define DIALECT_PAIRED_PAIRED_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_paired;

#endif
