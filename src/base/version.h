/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The release, and how a proxy is known by it.
 */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

/* The Makefile says it. */
#ifndef MCLISTD_VERSION
#define MCLISTD_VERSION "unknown"
#endif

/* As `version` answers it. libmemcached rejects a major number below 1 and takes a suffix. */
#define PROXY_MARK "-mclistd-"
#define PROXY_VERSION "1.6.0" PROXY_MARK MCLISTD_VERSION

/* What -V prints: lines with the version, the commit and how the daemon was built. No time and no
 * path: equal sources give equal text. */
extern const char version_text[];

#endif
