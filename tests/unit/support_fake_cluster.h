/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake Couchbase cluster of tests/cluster, as a process of its own. One at a time. */
#ifndef SUPPORT_FAKE_CLUSTER_H
#define SUPPORT_FAKE_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

/* Starts it with so many nodes and 64 vBuckets; fills ports with those of the nodes. Returns 0, or
 * -1. Its bucket is "lists", its user "user", the password "pencil". */
int fake_cluster_start(uint16_t *ports, size_t nodes);
/* Carries out a command of tests/cluster/fake; returns the number that it answers, or 0. */
uint16_t fake_cluster_tell(const char *command);
int fake_cluster_stop(void);

#endif
