/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are named in the configuration, and read again at each reload. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdio.h>

/* Opens a regular file to be read, and never waits: a pipe would be waited for, perhaps for ever,
 * and cannot be read twice. Returns the file, which the caller closes, or NULL with the reason in
 * *why, which is valid until the thread's next call of the C library about an error. */
FILE *file_open(const char *path, const char **why);

/* Why file_open would fail now, valid as there, or NULL. */
const char *file_problem(const char *path);

#endif
