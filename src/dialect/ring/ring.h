/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIALECT_RING_RING_H
#define DIALECT_RING_RING_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_ring;

#endif
