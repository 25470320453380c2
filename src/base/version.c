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

bool version_read(struct slice text, struct version *out)
{
    for (int i = 0; i < 3; i++) {
        size_t n = 0;
        while (n < text.len && text.p[n] >= '0' && text.p[n] <= '9') {
            n++;
        }
        if (!slice_to_u64(slice_make(text.p, n), &out->parts[i])) {
            return false;
        }
        (void)slice_take(&text, n);
        if (i < 2 && (text.len == 0 || text.p[0] != '.')) {
            return false;
        }
        if (i < 2) {
            (void)slice_take(&text, 1);
        }
    }
    return true;
}

bool version_is_before(const struct version *version, const struct version *other)
{
    for (int i = 0; i < 3; i++) {
        if (version->parts[i] != other->parts[i]) {
            return version->parts[i] < other->parts[i];
        }
    }
    return false;
}
