/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_fake_cluster.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t fake;
static FILE *commands, *answers;

int fake_cluster_start(uint16_t *ports, size_t nodes)
{
    int to[2], from[2];
    char line[256], *rest = line, count[16];
    if (pipe(to) < 0 || pipe(from) < 0) {
        return -1;
    }
    snprintf(count, sizeof count, "%zu", nodes);
    fake = fork();
    if (fake == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execl("tests/cluster/fake", "fake", count, "64", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    commands = fdopen(to[1], "w");
    answers = fdopen(from[0], "r");
    if (fgets(line, sizeof line, answers) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < nodes; i++) {
        ports[i] = (uint16_t)strtoul(rest, &rest, 10);
    }
    return 0;
}

uint16_t fake_cluster_tell(const char *command)
{
    char line[64];
    assert_true(fprintf(commands, "%s\n", command) > 0 && fflush(commands) == 0);
    assert_non_null(fgets(line, sizeof line, answers));
    return (uint16_t)strtoul(line, NULL, 10);
}

int fake_cluster_stop(void)
{
    (void)fclose(commands);
    (void)fclose(answers);
    kill(fake, SIGTERM);
    return waitpid(fake, NULL, 0) == fake ? 0 : -1;
}
