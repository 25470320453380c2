/* SPDX-License-Identifier: BSD-3-Clause */
#include "embedded/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_PREFIX "mclistd-"
#define LOCK_NAME "lock"
/* A lock gets its final name only when it is held, so that no other proxy takes a directory in the
 * making for a left-over. */
#define LOCK_NAME_NEW "lock.new"
#define SOCKET_NAME "memcached.sock"
#define BASES_MAX 4

/* Where to try, best first; *count of them. */
static void list_bases(const char *bases[BASES_MAX], size_t *count, bool changes_user)
{
    const char *runtime = getenv("RUNTIME_DIRECTORY"); /* from systemd */
    const char *user_dir = getenv("XDG_RUNTIME_DIR");
    *count = 0;
    if (runtime != NULL && runtime[0] == '/' && strchr(runtime, ':') == NULL) {
        bases[(*count)++] = runtime;
    }
    /* Root's own one is closed to the user that memcached runs as. */
    if (geteuid() != 0 && user_dir != NULL && user_dir[0] == '/') {
        bases[(*count)++] = user_dir;
    }
    if (geteuid() == 0 && !changes_user) {
        bases[(*count)++] = "/run";
    }
    bases[(*count)++] = "/tmp";
}

static void empty_and_remove(int base_fd, const char *name, int dir_fd)
{
    (void)unlinkat(dir_fd, SOCKET_NAME, 0);
    (void)unlinkat(dir_fd, LOCK_NAME, 0);
    (void)unlinkat(base_fd, name, AT_REMOVEDIR);
}

static bool is_ours(int dir_fd, uid_t owner)
{
    struct stat st;
    return fstat(dir_fd, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 077) == 0 &&
           (st.st_uid == geteuid() || (geteuid() == 0 && st.st_uid == owner));
}

/* Removes base/name if it is a left-over: a private directory of ours whose lock no process holds.
 */
static void remove_leftover(int base_fd, const char *name, uid_t owner)
{
    int dir_fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0) {
        return;
    }
    if (is_ours(dir_fd, owner)) {
        int lock_fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (lock_fd >= 0) {
            if (flock(lock_fd, LOCK_EX | LOCK_NB) == 0) {
                log_info("removing %s, left by a daemon that was killed", name);
                empty_and_remove(base_fd, name, dir_fd);
            }
            close(lock_fd);
        }
    }
    close(dir_fd);
}

static void remove_leftovers(const char *base, uid_t owner)
{
    DIR *dir = opendir(base);
    if (dir == NULL) {
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, NAME_PREFIX, sizeof NAME_PREFIX - 1) == 0) {
            remove_leftover(dirfd(dir), entry->d_name, owner);
        }
    }
    closedir(dir);
}

static int take_lock(struct directory *directory)
{
    int dir_fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        return -1;
    }
    int fd = openat(dir_fd, LOCK_NAME_NEW, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 ||
        renameat(dir_fd, LOCK_NAME_NEW, dir_fd, LOCK_NAME) != 0) {
        int saved = errno;
        (void)unlinkat(dir_fd, LOCK_NAME_NEW, 0);
        if (fd >= 0) {
            close(fd);
        }
        close(dir_fd);
        errno = saved;
        return -1;
    }
    close(dir_fd);
    directory->lock_fd = fd;
    return 0;
}

/* Returns 0, or -1 with errno. */
static int create_under(struct directory *directory, const char *base)
{
    int n = snprintf(directory->path, sizeof directory->path, "%s/" NAME_PREFIX "XXXXXX", base);
    if (n < 0 || (size_t)n + sizeof "/" SOCKET_NAME > sizeof directory->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (mkdtemp(directory->path) == NULL) { /* mode 0700 */
        return -1;
    }
    if (take_lock(directory) != 0) {
        int saved = errno;
        (void)rmdir(directory->path);
        errno = saved;
        return -1;
    }
    memcpy(directory->socket_path, directory->path, (size_t)n);
    memcpy(directory->socket_path + n, "/" SOCKET_NAME, sizeof "/" SOCKET_NAME);
    return 0;
}

int directory_create(struct directory *directory, uid_t owner, bool changes_user, bool *given,
                     char error[CONFIG_ERROR_MAX])
{
    const char *bases[BASES_MAX];
    size_t count;
    list_bases(bases, &count, changes_user);
    for (size_t i = 0; i < count; i++) {
        remove_leftovers(bases[i], owner);
    }
    for (size_t i = 0; i < count; i++) {
        if (create_under(directory, bases[i]) == 0) {
            *given = geteuid() != 0 || chown(directory->path, owner, (gid_t)-1) == 0;
            return 0;
        }
    }
    (void)snprintf(error, CONFIG_ERROR_MAX,
                   "no directory for the embedded memcached's socket: %s: %s", bases[count - 1],
                   strerror(errno));
    return -1;
}

/* A file that is there is not believed: any user may make it while it is missing, under /tmp. */
static int check_found(const struct directory *directory, uid_t owner)
{
    int fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool good = fd >= 0 && is_ours(fd, owner);
    if (fd >= 0) {
        close(fd);
        errno = EPERM;
    }
    return good ? 0 : -1;
}

int directory_restore(struct directory *directory, uid_t owner, char error[CONFIG_ERROR_MAX])
{
    int rc;
    if (mkdir(directory->path, 0700) == 0) {
        close(directory->lock_fd);
        directory->lock_fd = -1;
        rc = take_lock(directory);
        if (rc == 0 && geteuid() == 0) {
            rc = chown(directory->path, owner, (gid_t)-1);
        }
    } else {
        rc = errno == EEXIST ? check_found(directory, owner) : -1;
    }
    if (rc != 0) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "its directory %s: %s", directory->path,
                       strerror(errno));
    }
    return rc;
}

void directory_remove(struct directory *directory)
{
    int dir_fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd >= 0) {
        empty_and_remove(AT_FDCWD, directory->path, dir_fd);
        close(dir_fd);
    }
    if (directory->lock_fd >= 0) {
        close(directory->lock_fd); /* and with it the lock */
        directory->lock_fd = -1;
    }
}
