/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct slice bytes_of(const char *text, char *out)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0';) {
        assert_true(n < PACKET_ROOM);
        if (*p == '\'') {
            for (p++; *p != '\''; p++) {
                out[n++] = *p;
            }
            p++;
        } else if (*p == ' ') {
            p++;
        } else {
            char pair[3] = {p[0], p[1], '\0'};
            out[n++] = (char)strtoul(pair, NULL, 16);
            p += 2;
        }
    }
    return slice_make(out, n);
}
