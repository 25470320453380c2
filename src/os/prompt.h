/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mclistd --try: the prompt, a script beside this program. It starts this program again, as a
 * private proxy, and ends it.
 */
#ifndef OS_PROMPT_H
#define OS_PROMPT_H

/* Becomes the prompt, which gets all options of argv and the path of this program. Returns only if
 * that fails: an exit code of <sysexits.h>, with the reason on standard error. */
int prompt_become(int argc, char **argv);

#endif
