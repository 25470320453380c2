/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the service manager is told (sd_notify(3)): a datagram to the socket that it names in
 * NOTIFY_SOCKET. Without that nothing is sent.
 */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

/* Takes NOTIFY_SOCKET out of the environment, so that no program that is started speaks for this
 * one. To be called once, before there are threads. */
void notify_init(void);
/* Sends lines such as "READY=1\nSTATUS=...". What cannot be sent is logged. */
void notify_send(const char *lines);

#endif
