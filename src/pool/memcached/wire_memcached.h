/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOL_MEMCACHED_WIRE_MEMCACHED_H
#define POOL_MEMCACHED_WIRE_MEMCACHED_H

#include "pool/link/wire.h"

/* memcached's ASCII protocol. Each connection begins with it; for memcacheds before 1.6.10, which
 * have no meta commands, or early ones, the handshake chooses another one. */
extern const struct wire wire_memcached;

#endif
