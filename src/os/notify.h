/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the service manager is told (sd_notify(3)): a datagram to the socket that it names in
 * NOTIFY_SOCKET. Without that nothing is sent.
 */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

#include <stdint.h>

/* Takes NOTIFY_SOCKET out of the environment, so that no program that is started speaks for this
 * one. To be called once, before there are threads. */
void notify_init(void);
/* How often the service manager wants to hear WATCHDOG=1, in microseconds; 0: never. Valid behind
 * notify_init. */
uint64_t notify_watchdog_us(void);
/* The manager as text, for a process that takes this one's place: its socket, a blank, and
 * notify_watchdog_us; "" without one. Lives for ever. */
const char *notify_describe(void);
/* From now on the manager is the one of that text, which may be "", where there was none. */
void notify_adopt(const char *text);
/* Sends lines such as "READY=1\nSTATUS=...". What cannot be sent is logged. */
void notify_send(const char *lines);

#endif
