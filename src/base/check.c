/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_ring.h"

/* How long the end of the process waits for a reader of its last words. */
#define LAST_WORDS_MS 200

/* No core is left behind: it would only show a full memory. */
static void end_for_want_of_memory(const char *file, int line)
{
    log_error("out of memory, ending (%s:%d). The limits of the configuration add up to more than "
              "the system gives: see \"Memory\" in docs/operations.md",
              file, line);
    log_flush(LAST_WORDS_MS);
    _exit(EX_OSERR);
}

void check_failed(const char *condition, const char *file, int line)
{
    char text[512];
    /* What an allocation has just left behind. */
    if (errno == ENOMEM && strstr(condition, "!= NULL") != NULL) {
        end_for_want_of_memory(file, line);
    }
    log_ring_flush(LAST_WORDS_MS);
    int len =
        snprintf(text, sizeof text, "mclistd: %s:%d: check failed: %s\n", file, line, condition);
    /* A process that cannot go on must not wait for a pipe that is not read. */
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&room, 1, LAST_WORDS_MS) > 0) {
        size_t bytes = len < (int)sizeof text ? (size_t)len : sizeof text - 1;
        ssize_t ignored = write(STDERR_FILENO, text, bytes);
        (void)ignored;
    }
    abort();
}
