/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The release, and how a proxy is known by it.
 */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#include <stdbool.h>

#include "base/slice.h"

/* The Makefile says it. */
#ifndef MCLISTD_VERSION
#define MCLISTD_VERSION "unknown"
#endif

/* What `version` answers behind the version of a memcached, by which a proxy knows another one.
 * libmemcached rejects a major number below 1 and takes a suffix. */
#define PROXY_MARK "-mclistd-"
/* That of `stats`, and what `version` answers while no server has told its own. */
#define PROXY_VERSION "1.6.0" PROXY_MARK MCLISTD_VERSION

/* Three numbers: major, minor, patch. */
struct version {
    uint64_t parts[3];
};
/* "1.6.18_beta2" -> 1 6 18. False when there are no three numbers. */
bool version_read(struct slice text, struct version *out);
bool version_is_before(const struct version *version, const struct version *other);

/* What -V prints: lines with the version, the commit and how the daemon was built. No time and no
 * path: equal sources give equal text. */
extern const char version_text[];

#endif
