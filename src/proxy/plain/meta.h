/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meta commands as operations, and their answers. Flags that such servers have nothing for are
 * refused; docs/couchbase.md names them.
 */
#ifndef PROXY_PLAIN_META_H
#define PROXY_PLAIN_META_H

#include "proto/client/request_parse.h"
#include "proto/server/backend.h"
#include "proxy/plain/forward_part.h"

/* The mode of ms or ma, 0: none is named. */
char meta_mode(const struct request *request);
/* The first flag of mg, ms, md or ma that cannot be had, 0: none. */
char meta_refused_flag(const struct request *request);
/* Fills the operation but for its key and value. */
void meta_fill(const struct request *request, struct be_operation *op);

/* Writes the answer. */
void meta_emit(const struct forward_part *part, int64_t now_s, struct chain *out);
/* Writes the answer to an mg of a key that nothing is known of, as memcached's: none with q. */
void meta_emit_miss(const struct request *request, struct chain *out);

#endif
