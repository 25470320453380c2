/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config/text.h"

int os_user_find(const struct config *config, struct os_user *user, char error[CONFIG_ERROR_MAX])
{
    *user = (struct os_user){0};
    if (geteuid() != 0 || config->user[0] == '\0') {
        return 0;
    }
    const struct passwd *found = getpwnam(config->user);
    if (found == NULL) {
        return config_fail(error, "user: there is no user %s", config->user);
    }
    user->wanted = true;
    memcpy(user->name, config->user, sizeof user->name);
    user->uid = found->pw_uid;
    user->gid = found->pw_gid;
    return 0;
}

int os_user_become(const struct os_user *user, char error[CONFIG_ERROR_MAX])
{
    if (!user->wanted) {
        return 0;
    }
    /* The C library changes all threads. */
    if (initgroups(user->name, user->gid) != 0 || setgid(user->gid) != 0 ||
        setuid(user->uid) != 0) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "cannot become the user %s: %s", user->name,
                       strerror(errno));
        return -1;
    }
    /* A change of user turns core dumps off, which a fault should leave behind. */
    (void)prctl(PR_SET_DUMPABLE, 1);
    return 0;
}
