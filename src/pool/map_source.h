/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps of a cluster over HTTP, for servers that do not tell them over the data port: one request,
 * whose answer never ends, to one of the servers that the file names with http://. For this folder
 * only.
 *
 *     GET /pools/default/bs/BUCKET                 the short map
 *     GET /pools/default/bucketsStreaming/BUCKET   the long one, where the first is not known
 *
 * When the request ends, the next server is asked, with a back-off where it has told no map. When a
 * request of a client fails, the same one is asked anew: not all servers go on telling.
 */
#ifndef POOL_MAP_SOURCE_H
#define POOL_MAP_SOURCE_H

#include "pool/cluster.h"

struct map_source;

/* Returns NULL when the file names no such server; else owned by the caller until
 * map_source_destroy. Asks by itself, from the next turn of the loop on. */
struct map_source *map_source_create(struct cluster *cluster);
void map_source_destroy(struct map_source **source);
/* A newer map is wanted. */
void map_source_want(struct map_source *source);
/* The resolver has decided something. */
void map_source_relocate(struct map_source *source);

#endif
