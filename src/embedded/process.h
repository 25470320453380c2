/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting a program that must not outlive this process.
 */
#ifndef EMBEDDED_PROCESS_H
#define EMBEDDED_PROCESS_H

#include <sys/types.h>

#include "config/config.h"

struct process {
    const char *path;
    char *const *argv;
    bool change_user; /* to uid and gid, without further groups, as long as this process is root */
    uid_t uid;
    gid_t gid;
};

/* Looks for the program in PATH, unless its name holds a slash. Returns 0 with the path in out, or
 * -1. */
MUST_CHECK int process_find(const char *name, char *out, size_t cap);

/* Starts the program, in a process group of its own (a Ctrl-C is not for it), with standard error
 * of this process. It is killed when the calling THREAD ends, so the main thread must call this.
 * Returns its process id once the program runs, or -1 with the reason in error. */
MUST_CHECK pid_t process_start(const struct process *process, char error[CONFIG_ERROR_MAX]);

#endif
