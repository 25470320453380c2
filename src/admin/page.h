/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status page: one HTML text without scripts and foreign resources, which browsers load again
 * by themselves.
 */
#ifndef ADMIN_PAGE_H
#define ADMIN_PAGE_H

struct evbuffer;
struct history;
struct shared;

#define PAGE_TYPE "text/html; charset=utf-8"

/* Appends the page to out. */
void page_print(struct shared *shared, const struct history *history, struct evbuffer *out);

#endif
