/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/prompt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/check.h"

#define PROMPT_NAME "mclistd-cli"

static int refuse(const char *path)
{
    fprintf(stderr,
            "mclistd: --try cannot start %s: %s; expected it beside mclistd, and /usr/bin/python3 "
            "(apt install python3)\n",
            path, strerror(errno));
    return EX_UNAVAILABLE;
}

int prompt_become(int argc, char **argv)
{
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len < 0) {
        return refuse(PROMPT_NAME);
    }
    program[len] = '\0';
    char script[PATH_MAX + sizeof PROMPT_NAME];
    const char *slash = strrchr(program, '/');
    int folder_len = slash == NULL ? 0 : (int)(slash + 1 - program);
    (void)snprintf(script, sizeof script, "%.*s" PROMPT_NAME, folder_len, program);

    char **arguments = calloc((size_t)argc + 3, sizeof *arguments);
    CHECK(arguments != NULL);
    arguments[0] = script;
    arguments[1] = (char[]){"--daemon"};
    arguments[2] = program;
    memcpy(arguments + 3, argv + 1, (size_t)(argc - 1) * sizeof *arguments);
    (void)execv(script, arguments);
    free(arguments);
    return refuse(script);
}
