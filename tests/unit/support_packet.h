/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of the binary protocol, written in tests byte by byte. */
#ifndef SUPPORT_PACKET_H
#define SUPPORT_PACKET_H

#include "base/slice.h"

#define PACKET_ROOM 1024

/* Reads "80 01 .. 'text'" as bytes: pairs of hexadecimal digits, and text between quotes. Returns
 * them, which stand in out: PACKET_ROOM bytes at most. */
struct slice bytes_of(const char *text, char *out);

#endif
