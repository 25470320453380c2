/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOL_COUCHBASE_WIRE_COUCHBASE_H
#define POOL_COUCHBASE_WIRE_COUCHBASE_H

#include "pool/link/wire.h"

/* Couchbase's binary protocol, from Couchbase 5.0 on: its way to log in, its buckets and maps. For
 * operations, BE_MAP and BE_COLLECTION only, not for BE_LINE, its relatives and BE_STATS. */
extern const struct wire wire_couchbase;

#endif
