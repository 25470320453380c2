/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions that stay on in production, and the attribute for results that must be looked at.
 *
 *     CHECK(cond)       must hold whatever clients and servers send; when it does not, the process
 *                       ends with file and line, because going on could damage data
 *     CHECK_SLOW(cond)  the same, but too dear for production: compiled in with
 *                       -DMCLISTD_SLOW_CHECKS (tests, simulator)
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
/* A function kept out of its callers, so that what is frequent there stays short; RARE: and seldom
 * called. */
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define RARE __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Writes the condition and its place to standard error and aborts. When it was that an allocation
 * gave a pointer, logs that memory is used up, and ends the process with EX_OSERR. */
void check_failed(const char *condition, const char *file, int line)
    __attribute__((noreturn, cold));

#define CHECK(cond) (LIKELY(cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))

#ifdef MCLISTD_SLOW_CHECKS
#define CHECK_SLOW(cond) CHECK(cond)
#else
#define CHECK_SLOW(cond) ((void)0)
#endif

#endif
