/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

static const char *problem_of(int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        return strerror(errno);
    }
    return S_ISREG(st.st_mode)   ? NULL
           : S_ISDIR(st.st_mode) ? strerror(EISDIR)
                                 : "it is no regular file";
}

FILE *file_open(const char *path, const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *why = problem_of(fd);
    if (*why != NULL) {
        (void)(fd < 0 ? 0 : close(fd));
        return NULL;
    }
    FILE *file = fdopen(fd, "r");
    CHECK(file != NULL);
    return file;
}

const char *file_problem(const char *path)
{
    const char *why;
    FILE *file = file_open(path, &why);
    if (file != NULL) {
        (void)fclose(file);
    }
    return why;
}
