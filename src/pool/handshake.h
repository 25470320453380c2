/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a proxy asks a server right after connecting, and what it learns. Pure: lines in, findings
 * out.
 */
#ifndef POOL_HANDSHAKE_H
#define POOL_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* To be sent at connect, in one piece. */
#define HANDSHAKE_REQUEST "version\r\nstats settings\r\n"
/* To be sent behind it where a server may answer that and nothing else. */
#define HANDSHAKE_PROBE "mn\r\n"
/* The line that answers it. */
#define HANDSHAKE_PROBE_ANSWER "MN"
/* Room for the longest text about a server that is not taken. */
#define HANDSHAKE_ERROR_MAX 160

/* Zero-initialise for each connection. */
struct handshake {
    bool version_known;
    char version[32]; /* as the server gives it */
    /* Of the settings; the defaults of memcached where it does not tell. */
    uint64_t item_size_max; /* bytes; 0 = not told */
    bool cas_disabled;
    bool flush_disabled;
    bool evictions_disabled;
};

enum handshake_result { HANDSHAKE_MORE, HANDSHAKE_DONE, HANDSHAKE_REFUSED };

/* Takes the next line of the answer (without its line end). HANDSHAKE_REFUSED: the server is of no
 * use; the reason, a phrase that goes on after "backend NAME: ", is in error. */
MUST_CHECK enum handshake_result handshake_line(struct handshake *hs, struct slice line,
                                                char error[HANDSHAKE_ERROR_MAX]);

#endif
