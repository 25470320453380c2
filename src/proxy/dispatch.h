/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a verb to the one who handles it: pass-through (forward), lists, or the proxy itself.
 */
#ifndef PROXY_DISPATCH_H
#define PROXY_DISPATCH_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

extern const struct client_handlers dispatch_handlers;

#endif
