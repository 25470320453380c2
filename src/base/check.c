/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "mclistd: %s:%d: check failed: %s\n", file, line, condition);
    abort();
}
