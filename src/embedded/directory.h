/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private directory of the embedded memcached's socket.
 *
 *     BASE/mclistd-XXXXXX/   mode 0700, owned by the user that memcached runs as
 *         lock               held with flock for as long as the daemon lives: a directory whose
 *                            lock is free is a left-over of a killed daemon
 *         memcached.sock
 */
#ifndef EMBEDDED_DIRECTORY_H
#define EMBEDDED_DIRECTORY_H

#include <sys/types.h>
#include <sys/un.h>

#include "config/config.h"

struct directory {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];
    int lock_fd;
};

/* Makes the directory where this user keeps such things ($RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR,
 * /run, /tmp), after removing what killed daemons left there. As root, owner gets the directory;
 * *given says whether that was possible. changes_user: this process will become owner, which must
 * then be able to remove the directory. Returns 0, or -1 with the reason in error. */
MUST_CHECK int directory_create(struct directory *directory, uid_t owner, bool changes_user,
                                bool *given, char error[CONFIG_ERROR_MAX]);
/* Makes the directory again, under the same name, if it has been removed (by what tidies /tmp, for
 * example). owner: as for directory_create, or the process's own user when that was not possible.
 * Returns 0, or -1 with the reason in error. */
MUST_CHECK int directory_restore(struct directory *directory, uid_t owner,
                                 char error[CONFIG_ERROR_MAX]);
/* Removes it with what is in it. */
void directory_remove(struct directory *directory);

#endif
