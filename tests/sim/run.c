/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

/* Of a run that neither ends nor breaks a rule; in seconds of this process, not of the world. */
#define HANGS_AFTER_S 300

static void crashed(int number)
{
    trace_show();
    printf("VIOLATION: ended by signal %d\n", number);
    fflush(stdout);
    world_report();
    _Exit(3);
}

pid_t run_start(const struct params *params, enum trace_mode mode, bool quiet)
{
    fflush(stdout);
    pid_t child = fork();
    if (child != 0) {
        if (child < 0) {
            perror("sim");
        }
        return child;
    }
    if (quiet && (freopen("/dev/null", "w", stdout) == NULL || close(STDERR_FILENO) != 0)) {
        exit(2);
    }
    signal(SIGABRT, crashed);
    signal(SIGSEGV, crashed);
    signal(SIGALRM, crashed);
    alarm(HANGS_AFTER_S);
    trace_mode = mode;
    if (mode != TRACE_KEEP) {
        params_print(params);
    }
    world_run(params);
    exit(0);
}

bool run_wait(const struct params *params, enum trace_mode mode, bool quiet)
{
    int status = 0;
    pid_t child = run_start(params, mode, quiet);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
