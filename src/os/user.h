/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user that the daemon runs as when root has started it.
 */
#ifndef OS_USER_H
#define OS_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

struct os_user {
    bool wanted; /* the process is root and is to become this user */
    char name[CONFIG_NAME_MAX + 1];
    uid_t uid;
    gid_t gid;
};

/* Looks up config's user. Without one, or when the process is not root, user->wanted is false.
 * Returns 0, or -1 with the reason in error: there is no such user. */
MUST_CHECK int os_user_find(const struct config *config, struct os_user *user,
                            char error[CONFIG_ERROR_MAX]);

/* Becomes that user, with its groups, in all threads and for good. Does nothing unless wanted.
 * Returns 0, or -1 with the reason in error. */
MUST_CHECK int os_user_become(const struct os_user *user, char error[CONFIG_ERROR_MAX]);

#endif
