/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/version.h"

/* The Makefile names commit, LTO and sanitizers for the daemon's own copy of this file alone. */
#ifndef MCLISTD_COMMIT
#define MCLISTD_COMMIT "unknown"
#endif

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

#ifdef __OPTIMIZE__
#define OPTIMISED ", optimised"
#else
#define OPTIMISED ", not optimised"
#endif

#ifdef MCLISTD_LTO
#define LINKED ", link-time optimisation"
#else
#define LINKED ""
#endif

#ifdef MCLISTD_SLOW_CHECKS
#define CHECKS ", slow checks"
#else
#define CHECKS ""
#endif

#ifdef MCLISTD_SANITIZERS
#define SANITIZERS ", sanitizers: " MCLISTD_SANITIZERS
#else
#define SANITIZERS ""
#endif

const char version_text[] = "mclistd " MCLISTD_VERSION "\n"
                            "commit " MCLISTD_COMMIT "\n"
                            "built by " COMPILER OPTIMISED LINKED CHECKS SANITIZERS "\n";
